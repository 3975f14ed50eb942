#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ddp/memory_table.h"
#include "ddp/segmenter.h"
#include "mpa/fpdu_writer.h"
#include "mpa/startup.h"
#include "rdmap/inlined_vector.h"
#include "rdmap/read_server.h"
#include "rdmap/send_queue.h"
#include "rdmap/stream_config.h"
#include "rdmap/stream_events.h"
#include "rdmap/terminate.h"

namespace weft::rdmap {

// Transmitter cuts posted requests and the Responses to the peer's Reads and Atomics into FPDUs, batch by batch, and
// carries out the requests that send nothing when their turn comes. Messages are never interleaved. Requests and
// Responses take turns when both wait. FPDUs that the socket did not take are discarded and framed again for the next
// batch. So the transmitter refers to no memory of a caller between turns.
class Transmitter {
 public:
  // The most FPDUs of a batch: enough to make the cost of the system call negligible, few enough to rewind.
  static constexpr std::size_t kMaxFpdus = 1024;
  // The largest ULPDU. An FPDU of MPA's greatest MULPDU would need a PAD. Linux siw cannot put a padded FPDU's trailer
  // together if one TCP segment brings the PAD and the next one the CRC. MPA-4.5-06 lets DDP align its ULPDUs.
  static constexpr std::size_t kMaxUlpdu = mpa::kMaxMulpdu - (mpa::kMaxMulpdu + mpa::kUlpduLengthLen) % 4;

  // The memory of a batch, between frame and on_tx.
  class Room;

  // All references outlive the transmitter. room: no other transmitter uses it between frame and on_tx; null: the
  // transmitter has its own.
  Transmitter(ddp::MemoryTable& memory, SendQueue& requests, InboundReads& reads, StreamCounters& counters,
              Room* room = nullptr);
  ~Transmitter();

  // Begins Full Operation as MPA agreed on it. hold: nothing leaves before release (RFC 5044 section 7.1.2 rule 4).
  void open(const mpa::Agreement& agreement, ddp::StreamScope scope, std::size_t fpdu_limit, bool hold);
  void release() { held_ = false; }
  bool held() const { return held_; }

  // Frames nothing more: only the rest of a cut FPDU still leaves. Call stop and terminate between batches only.
  void stop();
  // Does stop, then sends this Terminate.
  void terminate(const TerminateMessage& message);

  // Sends a Write of no octets ahead of the messages that have not begun. Call it between batches only.
  void nudge() { cursor_.nudge = true; }

  // Whether frame has anything to do: a batch would hold something, or a local request can be carried out.
  bool wants_tx() const;
  // Whether TCP has taken a part of an FPDU but not its last octets.
  bool mid_fpdu() const { return rest_len_ > 0; }

  // Fault is the reason why the next message cannot be sent: request failed_request has a local fault, or the source of
  // a Read Response is gone.
  struct Fault {
    TerminateMessage message;
    std::optional<std::uint64_t> failed_request;
    WorkStatus status = WorkStatus::kLocalProtection;  // of the failed request
  };
  // frame makes a batch of at most about max_octets. It reports a fault only when no FPDU of the batch is ahead of it.
  // The caller then calls terminate and frames again.
  std::optional<Fault> frame(std::size_t emss, std::size_t max_octets);
  std::span<const ConstBytes> buffers() { return writer_ ? writer_->buffers() : std::span<const ConstBytes>(); }
  // The socket took n octets of buffers(). Completes the messages that left, and rewinds to the next one. Without a
  // batch it does nothing.
  void on_tx(std::size_t n);

  // Gives back the memory of its own that no octets are in. Call it between batches only.
  void trim();

 private:
  enum class Source : std::uint8_t { kNone, kRequest, kResponse, kNudge, kTerminate };
  enum class TerminateState : std::uint8_t { kNone, kQueued, kSent };
  enum class Step : std::uint8_t { kFramed, kNothing, kFull, kFault };

  // Cursor is the progress of the sending half. It is a value: each FPDU of a batch keeps a copy as its bookmark.
  struct Cursor {
    Source source = Source::kNone;  // of the message under way
    bool tagged = false;
    bool nudge = false;              // a nudge is due
    bool response_next = false;      // a Response has the next turn if both wait
    std::uint64_t next_request = 0;  // behind the message under way
    std::uint64_t next_response = 0;
    ddp::TaggedSegmenter tagged_cut;
    ddp::UntaggedSegmenter untagged_cut;
  };
  struct Mark {
    Cursor after;
    Source source = Source::kNone;
    std::uint64_t seq = 0;
    std::uint32_t payload_len = 0;
    bool last = false;
    std::size_t len = 0;  // octets of the FPDU
  };
  // Memory of one sg_list entry, or of a Read Response's source, resolved once per batch.
  struct Resolved {
    Source source = Source::kNone;
    std::uint64_t seq = 0;
    std::size_t index = 0;
    std::uint64_t offset = 0;  // of `octets` in the message
    ConstBytes octets;
  };
  using Gather = absl::InlinedVector<ConstBytes, 4>;

  bool request_due(std::uint64_t seq, std::size_t reads_in_batch) const;
  bool next_message();
  bool run_local();
  bool carry_out(const SendWr& wr);
  bool begin_request(std::uint64_t seq);
  bool begin_response(std::uint64_t seq);
  bool execute(InboundRead& read);
  void end_piece(const ddp::Cut& cut, Mark& mark);
  std::size_t emit_body(const Mark& mark, MutBytes out) const;
  Step frame_one(std::size_t mulpdu, std::size_t max_octets);
  Step frame_terminate();
  bool gather(const ddp::Cut& cut, Gather& out);
  bool gather_request(const SendEntry& entry, const ddp::Cut& cut, Gather& out);
  bool gather_response(const ddp::Cut& cut, Gather& out);
  Step add(Mark& mark, ConstBytes header, const Gather& payload, std::size_t max_octets);
  ddp::UntaggedHeader untagged_header(Opcode opcode, ddp::Msn msn) const;
  ddp::TaggedHeader tagged_header(Opcode opcode, ddp::Stag stag, std::uint64_t to) const;
  std::uint64_t current_seq() const;
  Opcode opcode_of(const Mark& mark) const;
  void begun(const Mark& mark);
  void finished(const Mark& mark);

  ddp::MemoryTable& memory_;
  SendQueue& requests_;
  InboundReads& reads_;
  StreamCounters& counters_;
  ddp::StreamScope scope_;
  ddp::Msn next_atomic_msn_{1};  // of the next Atomic Response
  std::size_t max_ulpdu_ = kMaxUlpdu;
  bool markers_ = false;      // in our FPDUs
  std::uint8_t version_ = 1;  // of DDP and RDMAP
  std::optional<mpa::FpduWriter> writer_;
  bool held_ = false;
  bool stopped_ = false;
  bool batch_open_ = false;
  TerminateState terminate_ = TerminateState::kNone;
  TerminateMessage terminate_message_;

  Cursor cursor_;
  Cursor batch_begin_;
  std::unique_ptr<Room> own_room_;
  Room* room_;
  std::size_t reads_in_batch_ = 0;
  std::size_t rest_len_ = 0;  // of the FPDU that the last on_tx cut
  std::optional<Mark> rest_mark_;
  Resolved resolved_;
  std::optional<Fault> fault_;
};

// Room is what a worker keeps for the batches of all its connections.
class Transmitter::Room {
 public:
  // Gives the memory back to the heap. Call it between batches only.
  void release();

 private:
  friend class Transmitter;
  mpa::FramingRoom framing_;
  std::vector<Mark> marks_;  // one for each FPDU of the batch
};

}  // namespace weft::rdmap
