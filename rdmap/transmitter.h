#pragma once

#include <cstdint>
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
// carries out the requests that send nothing when their turn comes. Messages are never interleaved; where requests and
// Responses wait they take turns. What was framed and not taken by the socket is forgotten, and framed again for the
// next batch, so that nothing of a caller's memory is held between turns.
class Transmitter {
 public:
  // At most so many FPDUs a batch: enough that the system call no longer shows, little enough to rewind.
  static constexpr std::size_t kMaxFpdus = 1024;
  // The largest ULPDU: of MPA's MULPDUs the greatest alone would have its FPDU padded, and Linux siw cannot put
  // together a padded FPDU's trailer of which a TCP segment brings the PAD and the next one the CRC (MPA-4.5-06 lets
  // DDP align).
  static constexpr std::size_t kMaxUlpdu = mpa::kMaxMulpdu - (mpa::kMaxMulpdu + mpa::kUlpduLengthLen) % 4;

  // All references outlive the transmitter.
  Transmitter(ddp::MemoryTable& memory, SendQueue& requests, InboundReads& reads, StreamCounters& counters)
      : memory_(memory), requests_(requests), reads_(reads), counters_(counters) {}

  // Full Operation begins, as MPA agreed on it. hold: nothing leaves before release (RFC 5044 section 7.1.2 rule 4).
  void open(const mpa::Agreement& agreement, ddp::StreamScope scope, std::size_t fpdu_limit, bool hold);
  void release() { held_ = false; }

  // Nothing more is framed; only what is left of a cut FPDU still leaves. Between batches only, like terminate.
  void stop();
  // stop, and this Terminate behind it.
  void terminate(const TerminateMessage& message);

  // A Write of no octets goes ahead of the messages that have not begun. Between batches only.
  void nudge() { cursor_.nudge = true; }

  // Whether frame has anything to do: a batch would hold something, or a local request can be carried out.
  bool wants_tx() const;
  // Whether octets of an FPDU that TCP has begun to take are still here.
  bool mid_fpdu() const { return rest_len_ > 0; }

  // Fault is why the next message cannot be sent: a local fault of request failed_request, or the source of a Read
  // Response is gone.
  struct Fault {
    TerminateMessage message;
    std::optional<std::uint64_t> failed_request;
    WorkStatus status = WorkStatus::kLocalProtection;  // of the failed request
  };
  // frame makes a batch of at most about max_octets. A fault is reported when it has come to the front of the batch;
  // the caller answers with terminate and frames again.
  std::optional<Fault> frame(std::size_t emss, std::size_t max_octets);
  std::span<const ConstBytes> buffers() { return writer_ ? writer_->buffers() : std::span<const ConstBytes>(); }
  // n octets of buffers() were taken: completes what left, rewinds behind it. Without a batch: does nothing.
  void on_tx(std::size_t n);

  // Gives back the memory that only large batches need. Between batches.
  void trim();

 private:
  enum class Source : std::uint8_t { kNone, kRequest, kResponse, kNudge, kTerminate };
  enum class TerminateState : std::uint8_t { kNone, kQueued, kSent };
  enum class Step : std::uint8_t { kFramed, kNothing, kFull, kFault };

  // Cursor is how far the sending half has come. A value: each FPDU of a batch keeps a copy as its bookmark.
  struct Cursor {
    Source source = Source::kNone;  // of the message under way
    bool tagged = false;
    bool nudge = false;              // one is to be sent
    bool response_next = false;      // whose turn it is when both wait
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
  // Memory of one sg_list entry, or of a Read Response's source, resolved once a batch.
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
  Step add(Mark mark, ConstBytes header, const Gather& payload, std::size_t max_octets);
  std::uint64_t current_seq() const;
  void begun(const Mark& mark);
  void finished(const Mark& mark);

  ddp::MemoryTable& memory_;
  SendQueue& requests_;
  InboundReads& reads_;
  StreamCounters& counters_;
  ddp::StreamScope scope_;
  ddp::Msn next_atomic_msn_{1};  // of the next Atomic Response
  std::size_t max_ulpdu_ = kMaxUlpdu;
  bool markers_ = false;      // in what we send
  std::uint8_t version_ = 1;  // of DDP and RDMAP
  std::optional<mpa::FpduWriter> writer_;
  bool held_ = false;
  bool stopped_ = false;
  bool batch_open_ = false;
  TerminateState terminate_ = TerminateState::kNone;
  TerminateMessage terminate_message_;

  Cursor cursor_;
  Cursor batch_begin_;
  std::vector<Mark> marks_;  // one for each FPDU of the batch
  std::size_t reads_in_batch_ = 0;
  std::size_t rest_len_ = 0;  // of the FPDU that the last on_tx cut
  std::optional<Mark> rest_mark_;
  Resolved resolved_;
  std::optional<Fault> fault_;
};

}  // namespace weft::rdmap
