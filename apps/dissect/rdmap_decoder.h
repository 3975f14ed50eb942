#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "apps/dissect/accusation.h"
#include "apps/dissect/frame.h"
#include "apps/dissect/mpa_half.h"
#include "apps/dissect/sent_segments.h"
#include "apps/dissect/sent_stags.h"
#include "apps/dissect/stream_rules.h"
#include "apps/dissect/tagged_messages.h"
#include "apps/dissect/untagged_queue.h"
#include "ddp/segment.h"
#include "ddp/untagged_queue.h"
#include "mpa/peer_profile.h"
#include "rdmap/header.h"

namespace weft::apps::dissect {

class LayerWriter;

// Send: a Send message that arrived whole, or the front of one.
struct Send {
  Side from = Side::kClient;
  ConstBytes octets;    // views are valid during the call
  std::size_t len = 0;  // octets that it had; more than octets.size() if the capture or a limit cut it
  std::optional<std::uint32_t> invalidated = {};
  bool in_order = false;  // the capture has both directions from the first FPDU on, in their order
};

// Transfer: an RDMA Read Request, or an RDMA Write or RDMA Read Response that is complete.
struct Transfer {
  enum class Kind : std::uint8_t { kWrite, kReadRequest, kReadResponse };
  Kind kind = Kind::kWrite;
  Side from = Side::kClient;
  std::uint32_t stag = 0;  // of the memory at the other side: written to or read from. Of a Read Response: its sink
  std::uint64_t to = 0;
  std::uint64_t len = 0;
  std::uint32_t sink_stag = 0;  // kReadRequest: of the memory at this side
  std::uint64_t sink_to = 0;
  ConstBytes head = {};  // the first octets, not of a Read Request; valid during the call
  Timestamp began{};     // when its first octet came
  bool in_order = false;
};

// UpperLayer reads the messages of the layer above RDMAP.
class UpperLayer {
 public:
  virtual void on_send(const Send& send, Frame& frame) = 0;
  // The capture misses octets of this side, or may have them too late.
  virtual void on_gap(Side from) = 0;
  // on_resumed comes behind on_gap, with the next Send. num_lost: how many messages for Receives of the other side the
  // capture lacks; empty if this is not known.
  virtual void on_resumed(Side from, std::optional<std::uint32_t> num_lost) = 0;
  // on_overtaken follows on_gap: the other side has answered octets of this side, and the capture has these octets
  // later. on_caught_up: they have come, or are lost.
  virtual void on_overtaken(Side of) = 0;
  virtual void on_caught_up(Side of) = 0;
  // on_written: octets of an RDMA Write that goes on at another place. on_transfer tells of its last octets.
  virtual void on_written(Side from, std::uint32_t stag, std::uint64_t to, std::uint64_t len) = 0;
  // Adds to the line that tells the transfer.
  virtual void on_transfer(const Transfer& transfer, Frame& frame, LayerWriter& layer) = 0;

 protected:
  ~UpperLayer() = default;
};

// RdmapDecoder reads the DDP segments of one connection, puts messages together, and tells of DDP (RFC 5041) and RDMAP
// (RFC 5040, RFC 7306). A value without I/O. Its memory is that of its UntaggedQueues and TaggedMessages.
class RdmapDecoder {
 public:
  // The references outlive the decoder.
  RdmapDecoder(const Options& options, UpperLayer& upper, HeldMessages& messages, HeldEntries& entries)
      : options_(options), upper_(upper), rules_(entries), halves_{Half(messages, entries), Half(messages, entries)} {}
  RdmapDecoder(const RdmapDecoder&) = delete;
  RdmapDecoder& operator=(const RdmapDecoder&) = delete;

  // Start: what the startup frames say about a side.
  struct Start {
    std::uint8_t version = 1;          // of DDP and RDMAP
    std::optional<std::uint16_t> ird;  // how many RDMA Reads and Atomics at once the side takes
    bool is_responder = false;
    mpa::RtrSet rtr = {};  // the initiator's: its first message is one of these
    // The initiator's: its IRD may be too low for the responder's ORD, or it may have no RTR that the Reply names.
    bool may_lack_ird = false, may_lack_rtr = false;
    bool is_enhanced = false;  // the startup frames have the words of RFC 6581
  };
  // The startup frame of this side has ended: the capture has its first FPDU.
  void on_startup_frame(Side from);
  // The startup frames of both sides are there.
  void on_start(Side from, const Start& start);
  // on_first_octets: octets of this side's first FPDU came. The FPDU may not be whole.
  void on_first_octets(Side from) { rules_.on_first_octets(from); }
  // Whether this side has sent octets that were not read yet: of an FPDU that is not whole, or behind a hole. Its
  // receiver may have read the headers there, and placed what follows them.
  void set_unread(Side from, bool has_unread) { half(from).has_unread = has_unread; }
  // Adds the layers above MPA to the frame.
  void on_fpdu(Side from, const Fpdu& fpdu, Frame& frame);
  // The capture misses octets of this side: messages under way cannot be told whole.
  void on_gap(Side from);
  // The other side has answered octets of this side that the capture does not have yet.
  void on_overtaken(Side of);
  // These octets have come, or are lost.
  void on_caught_up(Side of) { upper_.on_caught_up(of); }
  // An FPDU stands before the startup frames of both sides, or without them.
  void on_early_fpdu();
  // The capture does not have the two directions in their order.
  void on_disorder(std::string_view why) { rules_.stop(why); }
  // Why the rules about both sides are not judged; empty: they are.
  std::string_view why_unjudged() const { return rules_.why_stopped(); }
  // What is known of a side that a Terminate accuses.
  Record record(Side accused) const;
  // Why the rules that need missing octets are not judged; empty: none are missing.
  std::string_view why_uncertain() const { return why_uncertain_; }

 private:
  static constexpr std::size_t kNumQueues = ddp::kNumQueuesWithAtomics;

  struct Half {
    Half(HeldMessages& messages, HeldEntries& entries)
        : queues{UntaggedQueue(messages), UntaggedQueue(messages), UntaggedQueue(messages), UntaggedQueue(messages)},
          stags(entries),
          sent(entries) {}

    std::array<UntaggedQueue, kNumQueues> queues;
    TaggedMessages writes, read_responses;
    SentStags stags;  // of its tagged segments
    SentSegments sent;
    mpa::RtrSet rtr_due = {};  // what the next message has to be
    bool was_early = false;    // an FPDU came before the startup frames of both sides
    bool has_unread = false;   // see set_unread
    bool has_gap = false;      // the capture misses octets
    std::uint16_t deeds = 0;   // Record::deeds
    bool may_lack_ird = false, may_lack_rtr = false, is_enhanced = false;
  };

  Half& half(Side side) { return halves_[static_cast<std::size_t>(side)]; }
  void note_gap(Side of, std::string_view why);
  void on_damaged(Side from, const Fpdu& fpdu, Frame& frame);
  static void judge_first(Half& half, const Fpdu& fpdu, const ddp::Segment& segment, Frame& frame);
  void on_tagged(Side from, const ddp::TaggedHeader& header, ConstBytes payload, std::size_t len, Frame& frame);
  void on_untagged(Side from, const ddp::UntaggedHeader& header, ConstBytes payload, std::size_t len, Frame& frame);
  void tell_tagged(Side from, rdmap::Opcode opcode, const TaggedMessages::Stretch& stretch, Frame& frame,
                   LayerWriter& layer);
  void judge_terminated(Side from, Frame& frame) const;
  static std::string unsent_message(const Half& half, const ddp::Segment& named);
  void note_deeds(Half& own, const ddp::UntaggedHeader& header, std::size_t len);
  void on_message(Side from, const ddp::UntaggedHeader& header, const UntaggedQueue& queue, Frame& frame);
  void tell_send(Side from, rdmap::Opcode opcode, const ddp::UntaggedHeader& header, const UntaggedQueue& queue,
                 Frame& frame, LayerWriter& layer);
  void tell_immediate(const UntaggedQueue& queue, Frame& frame, LayerWriter& layer);
  void tell_cut(Side from, const Frame& frame, LayerWriter& layer);
  // is_whole: the capture has all octets of the message.
  void tell_read_request(Side from, const ddp::UntaggedHeader& header, bool is_whole, Frame& frame, LayerWriter& layer);
  void tell_atomic_request(Side from, const ddp::UntaggedHeader& header, bool is_whole, Frame& frame,
                           LayerWriter& layer);
  void tell_atomic_response(Side from, const ddp::UntaggedHeader& header, bool is_whole, Frame& frame,
                            LayerWriter& layer);

  const Options& options_;
  UpperLayer& upper_;
  std::optional<std::uint8_t> version_;  // of DDP and RDMAP
  StreamRules rules_;
  std::string_view why_uncertain_ = {};
  std::array<Half, 2> halves_;
};

}  // namespace weft::apps::dissect
