#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "apps/dissect/frame.h"
#include "apps/dissect/held_messages.h"
#include "apps/dissect/runs.h"
#include "ddp/segment.h"

namespace weft::apps::dissect {

// UntaggedQueue puts together the messages that a side sends to one queue of the other side, and judges their segments
// (RFC 5041 section 5.3). A value without I/O; it holds at most kMaxMessage octets. A message beyond that or beyond
// HeldMessages is cut, as if the capture had cut it.
class UntaggedQueue {
 public:
  static constexpr std::size_t kMaxMessage = 1 << 20;
  static constexpr std::size_t kMaxOddMsns = 64;   // of each queue; beyond them, any MSN may have come
  static constexpr std::size_t kMaxHoles = 65536;  // octets of a message before segments that came early

  // held outlives the queue.
  explicit UntaggedQueue(HeldMessages& held) : held_(held) {}
  UntaggedQueue(const UntaggedQueue&) = delete;
  UntaggedQueue& operator=(const UntaggedQueue&) = delete;
  ~UntaggedQueue() { begin(); }

  // The capture has the first segment: its MSN is 1.
  void on_start() { next_msn_ = ddp::Msn().value; }
  // The capture misses segments.
  void on_gap();
  // The capture may miss segments, or they come later: the other side has answered some that it does not have yet.
  void on_overtaken() {
    is_resuming_ = true;
    due_ = next_msn_;
  }
  // resumed returns, once behind on_gap or on_overtaken, how many messages the capture lacks before the last segment.
  // nullopt inside: it is not known.
  std::optional<std::optional<std::uint32_t>> resumed() { return std::exchange(resumed_, std::nullopt); }
  // take adds a segment. len: octets of its payload, of which the capture may lack some. Returns whether it is the last
  // one of a message, which stays until end_message().
  bool take(const ddp::UntaggedHeader& header, ConstBytes payload, std::size_t len, Frame& frame);
  // The message has been told. Its octets live on in HeldMessages, since the frame shows them.
  void end_message();

  // Of the message that is there or under way:
  ConstBytes octets() const { return message_.whole; }
  std::size_t len() const { return message_.len; }  // with octets that are not kept
  std::size_t num_segments() const { return message_.num_segments; }
  bool is_whole() const { return message_.whole.size() == message_.len; }  // every octet is there
  bool is_broken() const { return message_.broken; }                       // a segment is missing
  bool is_counted() const { return message_.counted; }  // broken, and one of those that resumed() told
  // Whether the side has sent a segment with this MSN. Unknown counts as sent.
  bool may_have_sent(ddp::Msn msn) const;

 private:
  void begin();
  bool resume(const ddp::UntaggedHeader& header, Frame& frame);
  void keep_order(const ddp::UntaggedHeader& header, Frame& frame);
  void judge_same(const ddp::UntaggedHeader& header, Frame& frame) const;
  void keep(const ddp::UntaggedHeader& header, ConstBytes payload, std::size_t len);
  bool has_room(std::size_t mo, std::size_t kept) const;
  void note_place(std::size_t mo, std::size_t len);
  void judge_order(const ddp::UntaggedHeader& header, Frame& frame);

  // Message: the one that is there or under way.
  struct Message {
    ConstBytes whole = {};  // its octets, of one whose last segment came
    std::size_t len = 0;    // of all segments
    std::size_t end = 0;    // the MO behind the segment with the highest
    std::size_t num_segments = 0;
    bool broken = false;
    bool counted = false;
    bool is_cut = false;     // the capture has a segment in part
    bool scattered = false;  // a segment does not follow the one before it
  };

  HeldMessages& held_;
  Message message_;
  std::vector<std::uint8_t> octets_;  // of a message with several segments
  Runs runs_;                         // Message::scattered: what came, by MO
  std::uint8_t opcode_ = 0;
  std::uint32_t rsvd_ulp_8_39_ = 0;
  std::optional<std::uint32_t> next_msn_;
  std::vector<std::uint32_t> odd_msns_;  // the last kMaxOddMsns that came and were not due
  // Behind a gap, up to the next segment:
  bool is_resuming_ = false;
  bool was_inside_ = false;           // a message was under way
  std::optional<std::uint32_t> due_;  // next_msn_
  std::optional<std::optional<std::uint32_t>> resumed_;
};

}  // namespace weft::apps::dissect
