#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "ddp/memory_table.h"
#include "mpa/direct_fpdu.h"
#include "mpa/fpdu_reader.h"
#include "mpa/staging.h"
#include "mpa/startup.h"
#include "mpa/startup_frame.h"
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

// Stream is one iWARP connection (MPA, DDP and RDMAP) as a value: octets in, octets out, events out. It does no I/O and
// reads no clock. Only one loop uses it.
//
// The driver's turn: rx_buffers, recvmsg, on_rx; then poll_event until it is empty; then tx_buffers, sendmsg, on_tx
// until tx_buffers is empty or the socket is full; then llp_action; then next_timeout.
class Stream {
 public:
  // TxRoom is the memory of what tx_buffers gives. A worker has one for all its streams, as mpa::Staging for what
  // comes.
  using TxRoom = Transmitter::Room;

  // memory outlives the stream, and so does tx_room. tx_room: null: the stream has its own. Otherwise no other stream
  // uses it between tx_buffers and on_tx.
  Stream(const StreamConfig& config, ddp::MemoryTable& memory, TxRoom* tx_room = nullptr);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // ---- commands
  // Starts MPA as initiator: tx_buffers gives the Request first. private_data: at most 508 octets (512 with revision
  // 1); recvs outlives the stream.
  void start_initiator(ConstBytes private_data, RecvSource& recvs, TimePoint now);
  // Starts MPA as responder. The event ConnectionRequest follows, or Closed.
  void start_responder(TimePoint now);
  // Answers a ConnectionRequest. accept makes the stream established from our side, but posted requests wait for the
  // peer's first FPDU (RFC 5044 section 7.1.2 rule 4). In the peer-to-peer model Established waits for this FPDU too:
  // it is the RTR indication, and the ULP sees nothing else of it (RFC 6581 section 4.4.3). ird and ord are upper
  // bounds for the negotiated values of this connection.
  void accept(ConstBytes private_data, RecvSource& recvs, std::uint16_t ird, std::uint16_t ord, std::uint32_t pd,
              TimePoint now);
  void reject(ConstBytes private_data, TimePoint now);
  // Ends the stream in order: it sends the queued requests, then FIN. Further posts are refused.
  void disconnect(TimePoint now);
  // Ends the stream after a fault of our own during startup. After the Reply, a Terminate tells the peer (RFC 6581
  // section 9.3), if we may already send. Otherwise TCP is closed.
  void fail_setup(TimePoint now);
  // Ends the stream at once: it flushes all outstanding requests and sends RST.
  void abort(TimePoint now);

  [[nodiscard]] PostResult post_send(const SendWr& wr);

  // Gives back the memory that a connection at rest does not need: of its queues, if nothing is in them, and of its own
  // TxRoom. A driver calls it between turns, when nothing has moved for a while. What moves next allocates it again.
  void trim();

  // ---- inputs
  // n octets arrived in the buffers of rx_buffers(), from the front of the list.
  void on_rx(mpa::Staging& staging, std::size_t n, TimePoint now);
  void on_rx_eof(TimePoint now);
  // recv or send failed with this errno (ECONNRESET, ETIMEDOUT ...).
  void on_llp_error(int errno_value, TimePoint now);
  // The socket took n octets of the list of tx_buffers(). Call it once after each tx_buffers() that was not empty; n
  // may be 0.
  void on_tx(std::size_t n, TimePoint now);
  void on_timeout(TimePoint now);
  // The driver carried out llp_action().
  void on_llp_action_done(LlpAction done);

  // ---- outputs
  // The scatter list for the next recvmsg. It is empty only if nothing more is to be read, as after EOF.
  std::span<const MutBytes> rx_buffers(mpa::Staging& staging);
  struct Parked {
    std::size_t num_octets = 0;
    bool again = false;  // the stream has parked octets of the same FPDU before
  };
  // Moves all unconsumed octets from staging into the stream's own memory, before another stream borrows staging. The
  // next rx_buffers puts them back first.
  Parked park(mpa::Staging& staging);
  // The gather list for the next sendmsg: at most about max_octets (a whole number of FPDUs, at least one), cut for the
  // given emss (octets, read from the socket in this turn). The views are valid until on_tx or any other input.
  std::span<const ConstBytes> tx_buffers(std::size_t emss, std::size_t max_octets, TimePoint now);
  // Whether an error ended the stream, usually a Terminate of either side. No posted request will be carried out,
  // although Closed may come later (close_timeout).
  bool failed() const { return discard_; }
  // The contents of the later Closed event; nothing if the stream has not failed.
  std::optional<Closed> failure() const;
  // Whether tx_buffers has octets to give.
  bool wants_tx() const;
  LlpAction llp_action() const;
  std::optional<TimePoint> next_timeout() const;
  std::optional<Event> poll_event();

  const StreamCounters& counters() const { return counters_; }

 private:
  // The states of a stream; README.md has the picture.
  enum class State : std::uint8_t {
    kIdle,
    kReplyWait,    // initiator: the Request is being sent, or was sent
    kRequestWait,  // responder
    kAcceptWait,   // responder: the ULP has to answer
    kReplySend,    // responder: an accepting Reply is being sent
    kRejectSend,   // responder: a rejecting Reply is being sent
    kRdma,         // Full Operation
    kDraining,     // disconnect: queued requests are sent, then FIN
    kTerminating,  // a Terminate is being sent; input is discarded
    kFinWait,      // our half is done (FIN), the peer's half is not
    kClosing,      // the peer's half is done; only the rest of an FPDU is sent
    kClosed,
  };

  // The way of received payload. kDirect: straight into place, where it can. kDirectNext: the last FPDU went there, so
  // the next one probably can.
  enum class Placing : std::uint8_t { kStaged, kDirect, kDirectNext };

  // ---- MPA startup (stream_startup.cc)
  mpa::StartupOptions startup_options(std::uint16_t ird, std::uint16_t ord) const;
  void on_startup_rx(mpa::Staging& staging, TimePoint now);
  void on_request(mpa::StartupFrame frame, bool surplus, TimePoint now);
  void on_reply(const mpa::StartupFrame& frame, TimePoint now);
  void blame_frame(mpa::StartupFault fault, std::string_view what);
  // One line about a failed startup: the fault, its likely cause, and advice. rejected: the peer's answer.
  std::string startup_text(mpa::StartupFault fault, std::string_view what,
                           const mpa::RejectedReply* rejected = nullptr) const;
  void add_suspicions(const mpa::RejectedReply* rejected,
                      const std::function<void(std::string_view, std::string_view)>& add) const;
  void on_startup_tx(std::size_t n, TimePoint now);
  void enter_rdma(const mpa::Agreement& agreement, bool hold);
  // Initiator: whether no octet of a Reply has arrived. A peer that does not know our revision closes like this
  // (MPA2-10-04).
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
  // Begins direct placement of the FPDU at the front of staging. False if it is not allowed or not needed.
  bool begin_direct(mpa::Staging& staging);
  // Whether the FPDU has ended and the next one is due.
  bool finish_direct(mpa::Staging& staging, TimePoint now);
  // n octets arrived in rx_views_. The octets behind the FPDU under way are in staging.
  void on_direct_rx(mpa::Staging& staging, std::size_t n, TimePoint now);

  void tell_sent(std::size_t n, TimePoint now);
  // The observer hears of the end when its reason is known.
  void tell_failure();
  void probe(const Event& event) const;
  std::optional<Event> next_event();
  // Whether ULPDUs are taken in. Otherwise arriving octets are discarded.
  bool receiving() const;
  bool starting() const { return state_ >= State::kReplyWait && state_ <= State::kRejectSend; }
  // Sends a Terminate, and ends all outstanding requests and the stream.
  void fail(const TerminateMessage& message, TimePoint now);
  void fail_unheard(const TerminateMessage& message);
  void flush(const std::optional<Terminate>& why);
  // Remembers why the stream ends. The first reason stands.
  void blame(CloseReason reason, std::string text, std::optional<Terminate> terminate = std::nullopt);
  void enter(State state, TimePoint now);
  // Leaves the state if its work is done: all octets are sent, or EOF was seen.
  void advance(TimePoint now);
  // try_revision_1: as in Closed.
  void close(LlpAction action, bool try_revision_1 = false);
  // An FPDU that has arrived in part: whether its header can be one, and when its last octet came, or when that was
  // known.
  struct Part {
    TimePoint at;
    std::size_t len = 0;  // 0: not known
    bool is_hopeless = false;
  };
  // part: what is in staging of it. is_hopeless: its header cannot be one.
  void note_part(ConstBytes part, bool is_hopeless, TimePoint now);
  bool is_hopeless(ConstBytes part) const;
  Duration patience_with(const Part& part) const;
  // True: the stream has ended.
  bool end_late_part(TimePoint now);

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
  bool eof_ = false;       // the peer's write side is
  bool discard_ = false;   // after an error or a Terminate: nothing more is processed
  LlpAction close_action_ = LlpAction::kNone;
  std::optional<CloseReason> reason_;
  std::string text_;
  std::optional<Terminate> terminate_;
  std::optional<Closed::RefusedWrite> refused_write_;

  RecvSource* recvs_ = nullptr;
  Rtr rtr_;
  std::vector<std::uint8_t> surplus_;
  bool initiator_ = false;
  mpa::StartupFrame request_frame_;  // ours, or the peer's until it is answered
  std::optional<mpa::Agreement> agreement_;
  std::vector<std::uint8_t> startup_out_;
  std::size_t startup_out_begin_ = 0;

  std::optional<mpa::FpduReader> reader_;
  std::size_t rx_need_ = 1;  // octets needed before the next step
  bool rx_partial_ = false;  // part of a frame or FPDU has arrived
  std::optional<Part> part_;
  std::optional<unsigned> version_in_place_;  // of DDP and RDMAP in received FPDUs, unless Markers move it
  std::optional<TimePoint> part_due_;         // when to look at part_; may be earlier than its end
  std::vector<std::uint8_t> parked_;
  bool parked_before_ = false;      // octets of the FPDU under way
  std::vector<MutBytes> rx_views_;  // the list of rx_buffers
  Placing placing_ = Placing::kStaged;
  std::optional<mpa::DirectFpdu> direct_;
  ViewList direct_views_;
  ConstBytes tx_view_;
};

}  // namespace weft::rdmap
