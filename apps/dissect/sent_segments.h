#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/dissect/held_entries.h"
#include "apps/dissect/ring.h"
#include "ddp/segment.h"
#include "rdmap/header.h"
#include "rdmap/terminate.h"

namespace weft::apps::dissect {

// SentSegments remembers the last DDP segments of a side. Of each it has the words that a Terminate of the other side
// repeats. Beyond kMax segments, or without room in HeldEntries, it forgets the oldest one. A value without I/O.
class SentSegments {
 public:
  static constexpr std::size_t kMax = 8;  // each connection has two of these rings
  static constexpr std::size_t kSegmentsOfEntry = 4;
  static constexpr std::size_t kRoomOfOthers = HeldEntries::kMax / 2;  // entries that are left to Calls and STags

  // Place: what names a segment. Only tagged segments can share one.
  struct Place {
    bool is_tagged = false;
    std::uint32_t target = 0;  // the STag or the queue
    std::uint64_t offset = 0;  // the TO; or the MSN, and the MO in the low 32 bits
    friend bool operator==(const Place&, const Place&) = default;
  };
  static Place place_of(const ddp::TaggedHeader& header) { return {true, header.stag.value, header.to}; }
  static Place place_of(const ddp::UntaggedHeader& header) {
    return {false, header.qn, std::uint64_t{header.msn.value} << 32 | header.mo};
  }

  struct Sent {
    Place place;
    std::uint32_t len = 0;          // of the ULPDU
    std::uint32_t payload_len = 0;  // of it, behind the header of DDP
    bool is_asked = false;          // of an RDMA Read Response that suits the Request of the other side
  };

  // payload_len: octets behind the header of DDP.
  static Sent sent_of(const ddp::TaggedHeader& header, std::size_t payload_len) {
    return {place_of(header), static_cast<std::uint32_t>(ddp::kTaggedHeaderLen + payload_len),
            static_cast<std::uint32_t>(payload_len)};
  }
  static Sent sent_of(const ddp::UntaggedHeader& header, std::size_t payload_len) {
    return {place_of(header), static_cast<std::uint32_t>(ddp::kUntaggedHeaderLen + payload_len),
            static_cast<std::uint32_t>(payload_len)};
  }

  // held outlives the value.
  explicit SentSegments(HeldEntries& held) : count_(held) {}

  // read: of an RDMA Read Request, if the capture has all of it.
  void on_sent(const Sent& sent, const std::optional<rdmap::ReadRequestHeader>& read = {});
  // The last one suits the RDMA Read Request of the other side.
  void note_asked();
  // The capture misses segments.
  void on_gap() { knows_all_ = false; }

  // Weighed: a segment that a Terminate names, beside those that were sent.
  struct Weighed {
    std::string unsent;     // what of it differs from the segments that were sent; empty: nothing is known to differ
    bool is_asked = false;  // Sent::is_asked, of all segments with its place
  };
  Weighed weigh(const ddp::Segment& named, const rdmap::TerminateMessage& message) const;

 private:
  struct Read {
    std::uint32_t msn = 0;
    rdmap::ReadRequestHeader header;
  };
  const rdmap::ReadRequestHeader* read_of(const Place& place) const;

  struct Rings {
    Ring<Sent, kMax> sent;
    Ring<Read, kMax> reads;  // of the last Read Requests
  };

  std::unique_ptr<Rings> rings_;  // from the first segment on: many connections have none
  bool knows_all_ = true;
  EntryCount count_;
};

}  // namespace weft::apps::dissect
