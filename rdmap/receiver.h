#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "ddp/memory_table.h"
#include "ddp/segment.h"
#include "ddp/untagged_queue.h"
#include "mpa/fpdu_reader.h"
#include "rdmap/header.h"
#include "rdmap/read_server.h"
#include "rdmap/send_queue.h"
#include "rdmap/sge.h"
#include "rdmap/stream_config.h"
#include "rdmap/stream_events.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {

// Receiver takes in the ULPDUs of a stream in three steps (RFC 5040 section 7.2). It checks the headers, finds the
// memory of the payload, and delivers the message once the octets lie there. on_ulpdu does all three steps with a whole
// verified ULPDU: a refused ULPDU has changed no octet of memory. With direct placement the Stream drives the steps: it
// receives the octets into that memory before it knows that they are right.
class Receiver {
 public:
  // The most octets of a ULPDU that check looks at. No header, and no body that is not placed, is longer.
  static constexpr std::size_t kHeadLen = ddp::kUntaggedHeaderLen + kTerminateMaxLen;

  // All references outlive the receiver.
  Receiver(ddp::MemoryTable& memory, SendQueue& requests, InboundReads& reads, Ring<Event>& events,
           StreamCounters& counters)
      : memory_(memory), requests_(requests), reads_(reads), events_(events), counters_(counters) {}

  // version: the only version of DDP and RDMAP that the peer may send (mpa::Agreement). rfc7306: Atomics and Immediate
  // Data are understood; without it their opcodes and queue are refused.
  void open(ddp::StreamScope scope, RecvSource& recvs, std::uint16_t ird, std::uint8_t version, bool rfc7306);

  // Sets whether the opcodes and the queue of RFC 7306 exist. open sets it first.
  void set_rfc7306(bool rfc7306);

  enum class Verdict : std::uint8_t {
    kTaken,
    kRefused,       // message() is the Terminate to send, after settle_refusal
    kTerminate,     // message() is the peer's Terminate
    kBadTerminate,  // an unreadable Terminate; not to be answered (RDMAP-N-12)
  };
  // on_ulpdu takes in one verified ULPDU and settles a refusal.
  [[nodiscard]] Verdict on_ulpdu(const mpa::Ulpdu& ulpdu);

  // check judges a segment by the first kHeadLen octets of its ULPDU, or by all of a shorter one. A second check of the
  // same segment gives the same result. check takes a receive that the segment needs from its source and keeps it.
  [[nodiscard]] Verdict check(ConstBytes head, std::size_t ulpdu_len);
  // For the segment that passed check: the number of octets ahead of its payload in the ULPDU, and the number of octets
  // to place. A body that is a header itself (Read Request, the Atomics) is not placed.
  std::size_t header_len() const { return header_len_; }
  std::size_t placed_len() const { return target_ == Target::kNone ? 0 : payload_len_; }
  Opcode opcode() const { return opcode_; }
  // find_memory gives the memory of its payload from octet `offset` on. Call it again in each turn. views is
  // overwritten. Precondition: offset <= placed_len().
  [[nodiscard]] Verdict find_memory(std::size_t offset, ViewList& views);
  // invalidate carries out the invalidation at the end of a Send with Invalidate, or refuses it. For all other messages
  // it does nothing. Call it once the segment is known to be right, before deliver.
  [[nodiscard]] Verdict invalidate();
  // Call deliver once the whole payload lies in its memory.
  void deliver();

  const TerminateMessage& message() const { return message_; }
  // settle_refusal ends (or marks) the request or receive that the refused segment belonged to with its own status.
  void settle_refusal();

  // Whether a message has begun to arrive and has not ended. A FIN at this point is not orderly.
  bool message_open() const { return tagged_open_ || queues_[kSendQn].open(); }

  // Whether a whole Send, Write or Read Request of the peer was delivered.
  bool heard_message() const { return heard_message_; }
  // Whether octets of a Read Response were delivered since the last call.
  bool take_read_progress() { return std::exchange(read_progress_, false); }

  // Ends the receive under way, if any, with kFlushed.
  void flush(const std::optional<Terminate>& why);

 private:
  enum class Target : std::uint8_t { kNone, kRegion, kRead, kAtomic, kRecv };
  enum class Headers : std::uint8_t { kNone, kDdp, kDdpAndRdma };
  // The work request that a refusal ends with a status of its own.
  enum class Blamed : std::uint8_t { kNobody, kRead, kAtomic, kRecv };

  void keep_ddp_header(ConstBytes head);
  Verdict check_tagged(const ddp::TaggedHeader& header);
  Verdict check_read_response(const ddp::TaggedHeader& header);
  Verdict check_untagged(const ddp::UntaggedHeader& header, ConstBytes body);
  Verdict check_send(const ddp::UntaggedHeader& header, ConstBytes body);
  std::optional<std::uint64_t> request_buffer_len(std::size_t header_len) const;
  Verdict check_read_request(const ddp::UntaggedHeader& header, ConstBytes body);
  Verdict check_atomic_request(const ddp::UntaggedHeader& header, ConstBytes body);
  Verdict check_atomic_response(const ddp::UntaggedHeader& header, ConstBytes body);
  Verdict check_terminate(const ddp::UntaggedHeader& header, ConstBytes body);
  void deliver_tagged(const ddp::TaggedHeader& header);
  void deliver_untagged(const ddp::UntaggedHeader& header);
  void deliver_send(const ddp::UntaggedHeader& header);
  void deliver_atomic_response(const ddp::UntaggedHeader& header);
  void complete_recv(const ddp::UntaggedHeader& header, std::uint32_t len);

  Verdict refuse(Terminate what, Headers headers = Headers::kDdp);
  Verdict refuse(ddp::Error error) { return refuse(to_terminate(error)); }
  Verdict refuse_for(Blamed blamed, WorkStatus status, Terminate what);
  void mark_failed(SendEntry& entry) const;
  void fail_recv(WorkStatus status, const std::optional<Terminate>& why);

  ddp::MemoryTable& memory_;
  SendQueue& requests_;
  InboundReads& reads_;
  Ring<Event>& events_;
  StreamCounters& counters_;
  ddp::StreamScope scope_;
  RecvSource* recvs_ = nullptr;
  std::uint16_t ird_ = 0;
  std::uint8_t version_ = kRdmapVersion;
  std::uint8_t num_opcodes_ = kNumOpcodes5040;
  std::uint32_t num_queues_ = ddp::kNumQueues;

  std::array<ddp::UntaggedQueue, ddp::kNumQueuesWithAtomics> queues_;
  bool heard_message_ = false;
  bool read_progress_ = false;
  bool tagged_open_ = false;
  Opcode tagged_opcode_ = Opcode::kWrite;
  Opcode send_opcode_ = Opcode::kSend;
  std::optional<PostedRecv> recv_;  // of the Send under way
  std::uint64_t recv_len_ = 0;

  // The segment that was checked last.
  ConstBytes head_;  // during check only
  std::array<std::uint8_t, ddp::kUntaggedHeaderLen> ddp_header_{};
  std::size_t ddp_header_len_ = 0;
  std::array<std::uint8_t, kHeadLen> head_scratch_;
  std::size_t ulpdu_len_ = 0;
  std::size_t header_len_ = 0;
  std::size_t payload_len_ = 0;
  Opcode opcode_ = Opcode::kWrite;
  Target target_ = Target::kNone;
  ddp::Segment segment_;         // its payload: during check only
  InboundRead read_;             // opcode_ kReadRequest or kAtomicRequest
  ImmediateData immediate_{};    // the two opcodes that carry one
  AtomicResponseHeader answer_;  // opcode_ kAtomicResponse

  ViewList views_;
  ViewList sink_views_;  // of the Atomic whose answer was checked; valid until the turn ends
  TerminateMessage message_;
  Blamed blamed_ = Blamed::kNobody;
  WorkStatus blamed_status_ = WorkStatus::kFatal;
};

}  // namespace weft::rdmap
