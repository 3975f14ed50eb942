#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "apps/dissect/frame.h"
#include "apps/dissect/held_entries.h"

namespace weft::apps::dissect {

// PendingReads remembers the RDMA Read Requests of a side until their Responses come. A value without I/O. Beyond kMax
// of them, or beyond HeldEntries, it forgets all: so many are open only where the capture lacks Responses.
class PendingReads {
 public:
  static constexpr std::size_t kMax = 65536;

  // Read: where the octets come from.
  struct Read {
    std::uint32_t stag = 0;
    std::uint64_t to = 0;
    Timestamp time{};  // of the Request
  };
  // Sink: where the octets go.
  using Sink = std::pair<std::uint32_t, std::uint64_t>;  // STag, TO

  // held outlives the value.
  explicit PendingReads(HeldEntries& held) : count_(held) {}

  // is_only: no older Request to this place waits; if one is there, its Response is missing.
  void add(const Sink& sink, const Read& read, bool is_only) {
    if (is_only) reads_.erase(sink);
    if (reads_.size() >= kMax || !count_.has_room(1)) reads_.clear();
    reads_.emplace(sink, read);
    count_.set(reads_.size());
  }
  // take returns the oldest Request to this place, and forgets it. Empty: there is none.
  std::optional<Read> take(const Sink& sink) {
    const auto found = reads_.lower_bound(sink);
    if (found == reads_.end() || found->first != sink) return std::nullopt;
    const Read read = found->second;
    reads_.erase(found);
    count_.set(reads_.size());
    return read;
  }

 private:
  std::multimap<Sink, Read> reads_;  // of one place in the order of the Requests
  EntryCount count_;
};

}  // namespace weft::apps::dissect
