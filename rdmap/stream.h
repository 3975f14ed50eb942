#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ddp/memory_table.h"
#include "mpa/direct_fpdu.h"
#include "mpa/fpdu_reader.h"
#include "mpa/staging.h"
#include "mpa/startup.h"
#include "mpa/startup_frame.h"
#include "mpa/wire/bytes.h"
#include "rdmap/nudge.h"
#include "rdmap/receiver.h"
#include "rdmap/ring.h"
#include "rdmap/rtr.h"
#include "rdmap/send_queue.h"
#include "rdmap/stream_config.h"
#include "rdmap/stream_events.h"
#include "rdmap/transmitter.h"
#include "rdmap/work.h"

namespace weft::rdmap {

// Stream is one iWARP connection (MPA, DDP and RDMAP) as a value: octets in, octets out, events out. It does no I/O,
// reads no clock and is touched by one loop only.
//
// The driver's turn: rx_buffers, recvmsg, on_rx; then poll_event until empty; then tx_buffers, sendmsg, on_tx until
// tx_buffers is empty or the socket is full; then llp_action; then next_timeout.
class Stream {
 public:
  // memory outlives the stream.
  Stream(const StreamConfig& config, ddp::MemoryTable& memory);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // ---- commands
  // Starts MPA as initiator: the Request is the first thing tx_buffers gives. private_data: at most 508 octets
  // (512 with revision 1); recvs outlives the stream.
  void start_initiator(ConstBytes private_data, RecvSource& recvs, TimePoint now);
  // Starts MPA as responder; a ConnectionRequest event follows, or Closed.
  void start_responder(TimePoint now);
  // Answers a ConnectionRequest. accept makes the stream established from our side: what is posted is held back until
  // the peer's first FPDU (RFC 5044 section 7.1.2 rule 4). In the peer-to-peer model Established follows only then:
  // that FPDU is the RTR indication, of which the ULP sees nothing else (RFC 6581 section 4.4.3). ird and ord bound
  // what is negotiated for this connection.
  void accept(ConstBytes private_data, RecvSource& recvs, std::uint16_t ird, std::uint16_t ord, std::uint32_t pd,
              TimePoint now);
  void reject(ConstBytes private_data, TimePoint now);
  // Ends the stream in order: what is queued is sent first, then FIN. Further posts are refused.
  void disconnect(TimePoint now);
  // A fault of our own during startup: after the Reply the peer is told by a Terminate (RFC 6581 section 9.3), where it
  // may be told anything yet; otherwise TCP is closed.
  void fail_setup(TimePoint now);
  // Ends it at once: everything outstanding is flushed, RST.
  void abort(TimePoint now);

  [[nodiscard]] PostResult post_send(const SendWr& wr);

  // Gives back memory that only a busy connection needs; what is left is some 20 KiB. For a driver whose connection may
  // have come to rest: a busy one takes it again.
  void trim();

  // ---- inputs
  // n octets arrived in what rx_buffers() gave, from the front of its list.
  void on_rx(mpa::Staging& staging, std::size_t n, TimePoint now);
  void on_rx_eof(TimePoint now);
  // recv or send failed with this errno (ECONNRESET, ETIMEDOUT ...).
  void on_llp_error(int errno_value, TimePoint now);
  // n octets of what tx_buffers() gave were taken by the socket. To be called once after each tx_buffers() that was
  // not empty (n may be 0).
  void on_tx(std::size_t n, TimePoint now);
  void on_timeout(TimePoint now);
  // The driver carried out llp_action().
  void on_llp_action_done(LlpAction done);

  // ---- outputs
  // The scatter list for the next recvmsg; empty where nothing more is to be read (not before EOF otherwise).
  std::span<const MutBytes> rx_buffers(mpa::Staging& staging);
  // Takes everything unconsumed out of staging into memory of the stream's own, before another stream borrows it;
  // rx_buffers puts it back first.
  void park(mpa::Staging& staging);
  // The gather list for the next sendmsg: at most about max_octets (a whole number of FPDUs, at least one), FPDUs cut
  // for the emss given (octets, read from the socket in this turn). Views are valid until on_tx or any other input.
  std::span<const ConstBytes> tx_buffers(std::size_t emss, std::size_t max_octets, TimePoint now);
  // Whether an error ended it, a Terminate of either side above all: nothing that is posted will be carried out, though
  // Closed may be some time away (close_timeout).
  bool failed() const { return discard_; }
  // What Closed will say of that; nothing while nothing failed.
  std::optional<Closed> failure() const;
  // Whether tx_buffers would give anything.
  bool wants_tx() const;
  LlpAction llp_action() const;
  std::optional<TimePoint> next_timeout() const;
  std::optional<Event> poll_event();

  const StreamCounters& counters() const { return counters_; }

 private:
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

  // ---- MPA startup (stream_startup.cc)
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
  // Initiator: what a peer does that closes on a Request of a revision it does not know (MPA2-10-04).
  bool no_octet_of_reply() const {
    return state_ == State::kReplyWait && !rx_partial_ && request_frame_.rev >= mpa::kEnhancedRevision;
  }
  Established established(const mpa::Agreement& agreement, ConstBytes private_data) const;

  // ---- Full Operation and the end (stream.cc)
  void process_fpdus(mpa::Staging& staging, TimePoint now);
  void on_valid_fpdu();
  void on_delivered();
  void on_verdict(Receiver::Verdict verdict, TimePoint now);
  void on_peer_terminate(TimePoint now);
  std::optional<ddp::Msn> refused_request(const TerminateMessage& message);

  // ---- direct placement (stream_direct.cc)
  // The FPDU at the front of staging goes straight into place from here on; false where it may or need not.
  bool begin_direct(mpa::Staging& staging);
  // Whether the FPDU has come to its end and the next one is due.
  bool finish_direct(mpa::Staging& staging, TimePoint now);
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
  RtrWait rtr_;
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
