#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ddp/memory_table.h"
#include "ddp/segment.h"
#include "ddp/untagged_queue.h"
#include "rdmap/header.h"
#include "rdmap/read_server.h"
#include "rdmap/send_queue.h"
#include "rdmap/sge.h"
#include "rdmap/stream.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {

// Receiver takes in the ULPDUs of a stream, one whole verified ULPDU at a time: checks everything, then places, then
// delivers (RFC 5040 section 7.2). A ULPDU that is refused has changed no octet of anybody's memory.
class Receiver {
 public:
  // All references outlive the receiver.
  Receiver(ddp::MemoryTable& memory, SendQueue& requests, InboundReads& reads, Ring<Event>& events,
           StreamCounters& counters)
      : memory_(memory), requests_(requests), reads_(reads), events_(events), counters_(counters) {}

  void open(ddp::StreamScope scope, RecvSource& recvs, std::uint16_t ird);

  enum class Verdict : std::uint8_t {
    kTaken,
    kRefused,       // message() is the Terminate to send
    kTerminate,     // message() is what the peer's Terminate says
    kBadTerminate,  // a Terminate that says nothing; not to be answered (notes N-12)
  };
  // A request or receive that the refused ULPDU belonged to has been ended (or marked) with its own status already.
  [[nodiscard]] Verdict on_ulpdu(ConstBytes ulpdu);
  const TerminateMessage& message() const { return message_; }

  // Whether a message has begun to arrive and not ended: a FIN now is no orderly one.
  bool message_open() const { return tagged_open_ || queues_[kSendQn].open(); }

  // The receive under way, if any, ends with kFlushed.
  void flush(const std::optional<Terminate>& why);

 private:
  Verdict on_tagged(const ddp::TaggedHeader& header, ConstBytes payload, ConstBytes ulpdu);
  Verdict on_untagged(const ddp::UntaggedHeader& header, ConstBytes payload, ConstBytes ulpdu);
  Verdict on_write(const ddp::TaggedHeader& header, ConstBytes payload, ConstBytes ulpdu);
  Verdict on_read_response(const ddp::TaggedHeader& header, ConstBytes payload, ConstBytes ulpdu);
  Verdict on_send(Opcode opcode, const ddp::UntaggedHeader& header, ConstBytes payload, ConstBytes ulpdu);
  Verdict on_read_request(const ddp::UntaggedHeader& header, ConstBytes payload, ConstBytes ulpdu);
  Verdict on_terminate(const ddp::UntaggedHeader& header, ConstBytes payload, ConstBytes ulpdu);
  void deliver(Opcode opcode, const ddp::UntaggedHeader& header, std::uint32_t len);

  enum class Headers : std::uint8_t { kNone, kDdp, kDdpAndRdma };
  Verdict refuse(Terminate what, ConstBytes ulpdu, Headers headers = Headers::kDdp);
  Verdict refuse(ddp::Error error, ConstBytes ulpdu) { return refuse(to_terminate(error), ulpdu); }
  Verdict refuse_response(Terminate what, WorkStatus status, ConstBytes ulpdu);
  Verdict refuse_send(Terminate what, WorkStatus status, ConstBytes ulpdu);
  void fail_recv(WorkStatus status, const std::optional<Terminate>& why);

  ddp::MemoryTable& memory_;
  SendQueue& requests_;
  InboundReads& reads_;
  Ring<Event>& events_;
  StreamCounters& counters_;
  ddp::StreamScope scope_;
  RecvSource* recvs_ = nullptr;
  std::uint16_t ird_ = 0;

  std::array<ddp::UntaggedQueue, ddp::kNumQueues> queues_;
  bool tagged_open_ = false;
  Opcode tagged_opcode_ = Opcode::kWrite;
  Opcode send_opcode_ = Opcode::kSend;
  std::optional<PostedRecv> recv_;  // of the Send under way
  std::uint64_t recv_len_ = 0;
  ViewList views_;
  TerminateMessage message_;
};

}  // namespace weft::rdmap
