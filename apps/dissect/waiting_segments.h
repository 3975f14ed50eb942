#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/dissect/queue.h"
#include "apps/dissect/tcp_half.h"
#include "apps/dissect/tcp_segment.h"

namespace weft::apps::dissect {

// WaitingSegments holds the segments of a side that acknowledge octets of the other side which the capture does not
// have yet: what these segments carry may answer those octets. They are in the order of sending, which is that of
// their acknowledgments: octets that come again, in a later segment, do not keep the earlier one. A value without I/O.
// Its memory counts in HeldOctets.
class WaitingSegments {
 public:
  static constexpr std::size_t kMax = 64;
  static constexpr Timestamp kMaxTime = std::chrono::seconds(1);  // of the capture

  // held outlives the value.
  explicit WaitingSegments(HeldOctets& held) : held_(held) {}
  WaitingSegments(const WaitingSegments&) = delete;
  WaitingSegments& operator=(const WaitingSegments&) = delete;
  ~WaitingSegments() { held_.now -= held_here_; }

  // Waiting: a segment with its octets.
  struct Waiting {
    // segment returns the segment, whose views live as long as this value.
    TcpSegment segment();

    TcpSegment head;
    std::vector<std::uint8_t> octets;
    std::vector<std::string> comments;
    std::vector<std::string_view> comment_views = {};
  };

  void hold(const TcpSegment& segment);
  bool empty() const { return waiting_.empty(); }
  // The segment that was sent first, without payload. Precondition: not empty.
  const TcpSegment& front() const { return waiting_.front().head; }
  // Whether there is no room for more, or the first one has waited for too long.
  bool is_overdue(Timestamp now) const;
  // take returns the first one. Precondition: not empty.
  Waiting take();

 private:
  static std::size_t size_of(const Waiting& waiting);
  static bool was_sent_before(const TcpSegment& one, const TcpSegment& other);

  HeldOctets& held_;
  Queue<Waiting> waiting_;
  std::size_t held_here_ = 0;
};

}  // namespace weft::apps::dissect
