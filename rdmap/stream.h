#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ddp/memory_table.h"
#include "mpa/peer_profile.h"
#include "mpa/staging.h"
#include "mpa/wire/bytes.h"
#include "rdmap/work.h"

namespace weft::rdmap {

// Placement says when the octets of an FPDU reach the memory they are for.
enum class Placement : std::uint8_t {
  // Received into staging, verified, then copied (RFC 5044 section 6): memory holds nothing that was not right.
  kVerify,
  // Large FPDUs are received straight into place and verified there; only then delivered. After a bad CRC the memory of
  // the message under way holds anything, and a header damaged in just the right way may have named another region of
  // the peer's. What the caller writes to that memory meanwhile is hashed with the rest.
  kDirect,
};

// StreamConfig is what one connection is allowed and asked to do. Octets and counts; defaults are those of `weft`.
struct StreamConfig {
  std::uint8_t mpa_revision = 2;  // what an initiator asks for; a responder answers any up to this (RFC 6581 section 6)
  bool permissive = false;        // RDMAC peers too (RFC 5044 appendix C); as initiator this asks with revision 1
  bool crc = true;                // our own wish; CRCs are on unless both ends say off (RFC 5044 section 7.1)
  bool markers = false;           // our own wish, for what we receive; the peer's for what we send is always met
  mpa::RtrSet rtr_offered;        // initiator, revision 2: any of them asks for the peer-to-peer model (RFC 6581 s9.2)
  mpa::PeerProfile peer;          // the habits of the peer that are allowed for
  std::uint16_t ird = 16;         // inbound RDMA Reads and Atomics we serve at once
  std::uint16_t ord = 16;         // outbound RDMA Reads and Atomics we keep open at once
  bool rfc7306 = true;            // Atomics and Immediate Data are understood; else their opcodes are unexpected ones
  std::size_t max_send_wr = 256;  // outstanding requests of the send queue
  Placement placement = Placement::kVerify;  // with CRCs off it is always direct
  std::size_t direct_min_len = 16 * 1024;    // so much of an FPDU has to be missing to be worth a recvmsg of its own
  std::size_t fpdu_limit = 0;                // upper bound of an FPDU in octets, 0 for none
  Duration request_timeout = std::chrono::seconds(5);  // responder: from start to a whole Request; then for the RTR
  Duration reply_timeout = std::chrono::seconds(10);   // initiator: from the Request to a whole Reply
  Duration nudge{};                                    // initiator: rdmap/nudge.h; 0 for never
  Duration close_timeout = std::chrono::seconds(5);    // after a Terminate or a disconnect: waiting for the peer's FIN
  bool keep_llp_after_reject = false;                  // TCP was there before MPA and outlives its rejection
  ddp::StreamScope scope;                              // on whose behalf memory is resolved
};

// ConnectionRequest: the responder holds a whole, acceptable MPA Request; answer with accept or reject.
struct ConnectionRequest {
  std::vector<std::uint8_t> private_data;  // the peer's ULP private data, without RFC 6581's four octets
  std::uint8_t revision = 0;
  std::optional<std::uint16_t>
      peer_ird;  // absent where the peer sent none (revision 1), or 0x3fff (RFC 6581 section 9.1)
  std::optional<std::uint16_t> peer_ord;
};

// Established: full operation, both roles. ird and ord are what was negotiated.
struct Established {
  std::vector<std::uint8_t> private_data;  // initiator: from the Reply
  std::uint16_t ird = 0;
  std::uint16_t ord = 0;
  std::uint8_t revision = 0;
  bool crc = true;
  bool markers_tx = false;
  bool markers_rx = false;
  std::optional<std::uint16_t> peer_ird;  // the peer's own words (RFC 6581 section 9.1); absent as in ConnectionRequest
  std::optional<std::uint16_t> peer_ord;
};

// Rejected: the initiator got a Reply with R=1.
struct Rejected {
  std::vector<std::uint8_t> private_data;
  std::vector<std::uint8_t> surplus;      // with keep_llp_after_reject: what came behind the Reply, which is not MPA's
  std::optional<std::uint16_t> peer_ird;  // what the responder would have needed
  std::optional<std::uint16_t> peer_ord;
  std::string text;  // as Closed::text
};

enum class CloseReason : std::uint8_t {
  kGraceful,  // FIN on an FPDU boundary, nothing outstanding (RFC 5041, DDP-A-23)
  kLocal,     // our own disconnect or abort
  kStartup,   // a malformed, unacceptable or missing startup frame
  kTerminateSent,
  kTerminateReceived,
  kLlp,  // reset, FIN inside an FPDU or message, timeout
};

// Closed is the last event of a stream. Every outstanding request has been completed before it.
struct Closed {
  CloseReason reason = CloseReason::kGraceful;
  // The Terminate sent or received; where none could be sent, the error that it would have named (RFC 5044 section 8:
  // code 1, a lost connection; code 4, an invalid startup frame).
  std::optional<Terminate> terminate;
  std::string text;  // one line for a log: what happened, in the RFCs' words, the likely cause and what to try
  // The RDMA Write of ours that the peer's Terminate returns, which the peer refused; completed long before, perhaps.
  struct RefusedWrite {
    ddp::Stag stag;
    std::uint64_t to = 0;  // of the segment
  };
  std::optional<RefusedWrite> refused_write = {};
  // Initiator: the peer does not seem to know the revision that it was asked with, and nothing else is known against
  // it. A Request with revision 1 over a new TCP connection may do better (MPA2-10-05).
  bool try_revision_1 = false;
};

using Event = std::variant<Completion, ConnectionRequest, Established, Rejected, Closed>;

// What the driver has to do with the socket once tx_buffers() is empty.
enum class LlpAction : std::uint8_t {
  kNone,
  kShutdownWrite,  // shutdown(SHUT_WR), then go on reading until EOF or the next timeout
  kClose,          // close(): both directions are done
  kReset,          // close with RST (SO_LINGER 0): an abort
};

struct StreamCounters {
  std::uint64_t fpdus_tx = 0, fpdus_rx = 0;
  std::uint64_t sends_tx = 0, sends_rx = 0;
  std::uint64_t writes_tx = 0, writes_rx = 0;
  std::uint64_t write_octets_tx = 0, write_octets_rx = 0;
  std::uint64_t reads_tx = 0, reads_rx = 0;              // Read Requests
  std::uint64_t read_octets_tx = 0, read_octets_rx = 0;  // Read Responses
  std::uint64_t no_buffer_rx = 0;  // messages that found no buffer (DDP-7.1-03): 0 or 1, since that ends the stream
  std::uint64_t immediates_tx = 0, immediates_rx = 0;
  std::uint64_t atomics_tx = 0, atomics_rx = 0;  // Atomic Requests
  std::uint64_t nudges_tx = 0;                   // Writes of no octets that nobody posted (nudge.h)
};

// Stream is one iWARP connection (MPA, DDP and RDMAP) as a value: octets in, octets out, events out. It does no I/O,
// reads no clock and is touched by one loop only.
//
// The driver's turn: rx_buffers, recvmsg, on_rx; then poll_event until empty; then tx_buffers, sendmsg, on_tx until
// tx_buffers is empty or the socket is full; then llp_action; then next_timeout.
class Stream {
 public:
  // memory outlives the stream.
  Stream(const StreamConfig& config, ddp::MemoryTable& memory);
  ~Stream();
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
  bool failed() const;
  // What Closed will say of that; nothing while nothing failed.
  std::optional<Closed> failure() const;
  // Whether tx_buffers would give anything.
  bool wants_tx() const;
  LlpAction llp_action() const;
  std::optional<TimePoint> next_timeout() const;
  std::optional<Event> poll_event();

  const StreamCounters& counters() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rdmap
