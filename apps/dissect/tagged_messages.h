#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "apps/dissect/frame.h"
#include "apps/dissect/runs.h"
#include "ddp/segment.h"

namespace weft::apps::dissect {

// TaggedMessages follows the RDMA Writes or the RDMA Read Responses of a side, one message at a time (RFC 5041 section
// 5.2). A value without I/O; it keeps the first kMaxHead octets of a message.
class TaggedMessages {
 public:
  static constexpr std::size_t kMaxHead = 2048;

  // Stretch: segments of the message under way that lie one behind the other.
  struct Stretch {
    std::uint32_t stag = 0;
    std::uint64_t to = 0;
    std::uint64_t len = 0;
    std::size_t num_segments = 0;
    ConstBytes head = {};  // its first octets; valid until the next segment
    Timestamp began{};
  };

  // The capture misses segments.
  void on_gap();
  // judge holds a segment against the message. It comes before keep(). is_response: of an RDMA Read Response, of which
  // each segment has to go where its Request says; another rule holds that.
  void judge(const ddp::TaggedHeader& header, std::size_t len, bool is_response, Frame& frame);
  // Whether the message goes on elsewhere: the stretch so far has come to its end without the message.
  bool splits(const ddp::TaggedHeader& header) const { return stretch_.num_segments != 0 && !continues(header); }
  // keep adds a segment to the stretch, or begins one. len: octets of its payload, of which the capture may lack some.
  void keep(const ddp::TaggedHeader& header, ConstBytes payload, std::size_t len, Timestamp now);
  const Stretch& stretch() const { return stretch_; }
  // The last segment of the message has been told.
  void end_message() {
    stretch_.num_segments = 0;
    is_broken_ = false;
  }

 private:
  // Extent: the octets of the message by their TOs, up to the segment with L. The runs are empty as long as each
  // segment follows the one before it.
  struct Extent {
    std::uint64_t begin = UINT64_MAX, end = 0;
    std::uint64_t len = 0;  // of all segments
    std::size_t num_segments = 0;
    bool is_mixed = false;  // it has several STags, or passes 2^64
    bool is_scattered = false;
    Runs runs = {};

    void add(Run run);
    bool is_one_run() const { return end - begin == len && (!is_scattered || runs.fill({begin, end})); }
  };

  bool continues(const ddp::TaggedHeader& header) const;
  void judge_extent(const ddp::TaggedHeader& header, std::size_t len, bool is_response, Frame& frame);

  Stretch stretch_;
  std::vector<std::uint8_t> head_;  // of a stretch of several segments
  Extent extent_;
  bool is_broken_ = false;  // the capture may lack a segment of the message under way
};

}  // namespace weft::apps::dissect
