#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpa/direct_fpdu.h"
#include "mpa/fpdu_reader.h"
#include "mpa/startup.h"
#include "mpa/startup_frame.h"
#include "rdmap/nudge.h"
#include "rdmap/receiver.h"
#include "rdmap/ring.h"
#include "rdmap/send_queue.h"
#include "rdmap/stream.h"
#include "rdmap/transmitter.h"

namespace weft::rdmap {

// RtrRecvs stands before the ULP's receives while an RTR indication may come as a Send: that one takes none of them.
// Its completion is the first of all receives, and is kept from the ULP in poll_event.
class RtrRecvs final : public RecvSource {
 public:
  explicit RtrRecvs(const StreamCounters& counters) : counters_(counters) {}
  void open(RecvSource& recvs, bool awaits_send) {
    recvs_ = &recvs;
    awaits_send_ = awaits_send;
  }
  std::optional<PostedRecv> take() override {
    // Only the first message of all is an indication.
    const bool first = counters_.sends_rx + counters_.writes_rx + counters_.reads_rx == 0;
    if (!std::exchange(awaits_send_, false) || !first) return recvs_->take();
    hidden_ = true;
    return PostedRecv{};
  }
  // Whether this completion is that of the RTR indication.
  bool hides(const Completion& completion) { return completion.op == WorkOp::kRecv && std::exchange(hidden_, false); }

 private:
  const StreamCounters& counters_;
  RecvSource* recvs_ = nullptr;
  bool awaits_send_ = false;
  bool hidden_ = false;
};

// The states of a stream; README.md has the picture.
enum class State : std::uint8_t {
  kIdle,
  kReplyWait,    // initiator: the Request is on its way out, or out
  kRequestWait,  // responder
  kAcceptWait,   // responder: the ULP has to answer
  kReplySend,    // responder: an accepting Reply is on its way out
  kRejectSend,   // responder: a rejecting one
  kRdma,         // Full Operation
  kDraining,     // disconnect: what is queued still goes, then FIN
  kTerminating,  // a Terminate is on its way out; input is discarded
  kFinWait,      // our half is done (FIN), the peer's is not
  kClosing,      // the peer's half is done; only the rest of an FPDU still goes
  kClosed,
};

// Stream::Impl is the state machine around the sending half (Transmitter) and the receiving half (Receiver).
struct Stream::Impl {
  Impl(const StreamConfig& config, ddp::MemoryTable& memory)
      : config_(config),
        memory_(memory),
        nudge_(config.nudge),
        requests_(config.max_send_wr, events_),
        transmitter_(memory, requests_, reads_, counters_),
        receiver_(memory, requests_, reads_, events_, counters_) {}

  // ---- MPA startup (stream_startup.cc)
  void start_initiator(ConstBytes private_data, RecvSource& recvs, TimePoint now);
  void start_responder(TimePoint now);
  void accept(ConstBytes private_data, RecvSource& recvs, std::uint16_t ird, std::uint16_t ord, std::uint32_t pd,
              TimePoint now);
  void reject(ConstBytes private_data, TimePoint now);
  mpa::StartupOptions startup_options(std::uint16_t ird, std::uint16_t ord) const;
  void on_startup_rx(mpa::Staging& staging, TimePoint now);
  void on_request(mpa::StartupFrame frame, bool surplus, TimePoint now);
  void on_reply(const mpa::StartupFrame& frame, TimePoint now);
  void blame_frame(mpa::StartupFault fault, std::string_view what);
  // One line about a startup that failed: what happened, likely cause, what to try. rejected: the peer's answer.
  std::string startup_text(mpa::StartupFault fault, std::string_view what,
                           const mpa::RejectedReply* rejected = nullptr) const;
  void add_suspicions(const mpa::RejectedReply* rejected,
                      const std::function<void(std::string_view, std::string_view)>& add) const;
  void on_startup_tx(std::size_t n, TimePoint now);
  void enter_rdma(const mpa::Agreement& agreement, bool hold);
  void send_rtr(mpa::Rtr rtr);
  // Initiator: what a peer does that closes on a Request of a revision it does not know (MPA2-10-04).
  bool no_octet_of_reply() const {
    return state_ == State::kReplyWait && !rx_partial_ && request_frame_.rev >= mpa::kEnhancedRevision;
  }
  void fail_setup(TimePoint now);
  Established established(const mpa::Agreement& agreement, ConstBytes private_data) const;
  // Responder in the peer-to-peer model: nothing of the initiator's has come yet.
  bool awaits_rtr() const { return late_established_ && (held_ || !heard_message()); }
  bool heard_message() const { return counters_.sends_rx + counters_.writes_rx + counters_.reads_rx > 0; }

  // ---- Full Operation and the end (stream.cc)
  void disconnect(TimePoint now);
  void abort(std::string_view text);
  void on_rx(mpa::Staging& staging, std::size_t n, TimePoint now);
  void on_rx_eof(TimePoint now);
  void on_llp_error(int errno_value);
  void on_tx(std::size_t n, TimePoint now);
  void on_timeout(TimePoint now);
  void process_fpdus(mpa::Staging& staging, TimePoint now);
  void on_valid_fpdu();
  void on_delivered();
  void on_verdict(Receiver::Verdict verdict, TimePoint now);
  void on_peer_terminate(TimePoint now);
  std::optional<ddp::Msn> refused_request(const TerminateMessage& message);
  std::span<const ConstBytes> tx_buffers(std::size_t emss, std::size_t max_octets, TimePoint now);
  bool wants_tx() const;

  // ---- direct placement (stream_direct.cc)
  // The FPDU at the front of staging goes straight into place from here on; false where it may or need not.
  bool begin_direct(mpa::Staging& staging);
  // Whether the FPDU has come to its end and the next one is due.
  bool finish_direct(mpa::Staging& staging, TimePoint now);
  std::span<const MutBytes> rx_buffers(mpa::Staging& staging);
  // n octets arrived in rx_views_; those behind the FPDU under way are in staging.
  void on_direct_rx(mpa::Staging& staging, std::size_t n, TimePoint now);

  // Whether ULPDUs are taken in; otherwise what arrives is thrown away.
  bool receiving() const;
  bool starting() const { return state_ >= State::kReplyWait && state_ <= State::kRejectSend; }
  // A Terminate goes out, everything outstanding is ended, and the stream with it.
  void fail(const TerminateMessage& message, TimePoint now);
  void fail_unheard(const TerminateMessage& message);
  void flush(const std::optional<Terminate>& why);
  // Remembers why the stream ends. The first reason stands.
  void blame(CloseReason reason, std::string text, std::optional<Terminate> terminate = std::nullopt);
  void enter(State state, TimePoint now);
  // The way out of a state may have opened: sent all, EOF seen.
  void advance(TimePoint now);
  void close(LlpAction action);

  StreamConfig config_;
  ddp::MemoryTable& memory_;
  Nudge nudge_;
  Ring<Event> events_;
  StreamCounters counters_;
  InboundReads reads_;
  SendQueue requests_;
  Transmitter transmitter_;
  Receiver receiver_;

  State state_ = State::kIdle;
  std::optional<TimePoint> deadline_;
  bool fin_done_ = false;  // our write side is shut down
  bool eof_ = false;       // the peer's is
  bool held_ = false;      // responder: no FPDU of the peer yet
  bool discard_ = false;   // an error or Terminate was met: nothing more is processed
  LlpAction close_action_ = LlpAction::kNone;
  std::optional<CloseReason> reason_;
  std::string text_;
  std::optional<Terminate> terminate_;
  std::optional<Closed::RefusedWrite> refused_write_;

  RecvSource* recvs_ = nullptr;
  RtrRecvs rtr_recvs_{counters_};
  bool rtr_due_ = false;                         // responder: no message of the initiator's has been delivered yet
  std::optional<Established> late_established_;  // to be reported when the RTR indication has come
  std::vector<std::uint8_t> surplus_;
  bool initiator_ = false;
  bool try_revision_1_ = false;
  mpa::StartupFrame request_frame_;  // ours, or the peer's until it is answered
  std::optional<mpa::Agreement> agreement_;
  std::vector<std::uint8_t> startup_out_;
  std::size_t startup_out_begin_ = 0;

  std::optional<mpa::FpduReader> reader_;
  std::size_t rx_need_ = 1;  // octets without which nothing more can be said
  bool rx_partial_ = false;  // part of a frame or FPDU has arrived
  std::vector<std::uint8_t> parked_;
  std::vector<MutBytes> rx_views_;  // what rx_buffers gave
  bool place_directly_ = false;
  bool expect_direct_ = false;  // the last FPDU went straight into place, so the next one probably can
  std::optional<mpa::DirectFpdu> direct_;
  ViewList direct_views_;
  ConstBytes tx_view_;
};

}  // namespace weft::rdmap
