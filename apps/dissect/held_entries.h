#pragma once

#include <cstddef>

namespace weft::apps::dissect {

// HeldEntries bounds what all connections remember together: open Calls, the chunks and segments that they offer, the
// beginnings of Replies in chunks, XIDs of ended Calls, RDMA Reads and Atomics under way, STags. An entry takes at most
// some 300 octets.
struct HeldEntries {
  static constexpr std::size_t kMax = 1 << 20;
  std::size_t now = 0;
};

// EntryCount counts the entries of one holder among those of all.
class EntryCount {
 public:
  // all outlives the count.
  explicit EntryCount(HeldEntries& all) : all_(all) {}
  EntryCount(const EntryCount&) = delete;
  EntryCount& operator=(const EntryCount&) = delete;
  ~EntryCount() { set(0); }

  bool has_room(std::size_t more) const { return all_.now + more <= HeldEntries::kMax; }
  // set: the holder has `num` entries now.
  void set(std::size_t num) {
    all_.now = all_.now - own_ + num;
    own_ = num;
  }

 private:
  HeldEntries& all_;
  std::size_t own_ = 0;
};

}  // namespace weft::apps::dissect
