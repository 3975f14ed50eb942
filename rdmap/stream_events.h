#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ddp/memory_table.h"
#include "rdmap/work.h"

namespace weft::rdmap {

// ConnectionRequest: the responder holds a whole, acceptable MPA Request; answer with accept or reject.
struct ConnectionRequest {
  std::vector<std::uint8_t> private_data;  // the peer's ULP private data, without RFC 6581's four octets
  std::uint8_t revision = 0;
  std::optional<std::uint16_t> peer_ird;  // absent if the peer sent none (revision 1) or 0x3fff (RFC 6581 section 9.1)
  std::optional<std::uint16_t> peer_ord;
};

// Established: Full Operation has begun, in either role. ird and ord are the negotiated values.
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
  std::vector<std::uint8_t> surplus;      // with keep_llp_after_reject: the octets behind the Reply, not MPA's
  std::optional<std::uint16_t> peer_ird;  // the responder's needs
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
  // The Terminate that was sent or received. If none could be sent, the error that it would have named (RFC 5044
  // section 8: code 1, a lost connection; code 4, an invalid startup frame).
  std::optional<Terminate> terminate;
  std::string text;  // one line for a log: the event in the RFCs' words, the likely cause, and advice
  // Our RDMA Write that the peer refused and returned in its Terminate. It may have completed long before.
  struct RefusedWrite {
    ddp::Stag stag;
    std::uint64_t to = 0;  // of the segment
  };
  std::optional<RefusedWrite> refused_write = {};
  // Initiator: the peer does not seem to know our revision, and no other fault is known. A Request with revision 1 over
  // a new TCP connection may succeed (MPA2-10-05).
  bool try_revision_1 = false;
};

// Nudged: the peer seems stuck behind its accept. The stream's next FPDU is a Write of no octets (nudge.h).
struct Nudged {};

using Event = std::variant<Completion, ConnectionRequest, Established, Rejected, Closed, Nudged>;

// LlpAction is the driver's next action on the socket once tx_buffers() is empty.
enum class LlpAction : std::uint8_t {
  kNone,
  kShutdownWrite,  // shutdown(SHUT_WR), then go on reading until EOF or the next timeout
  kClose,          // close(): both directions are done
  kReset,          // close with RST (SO_LINGER 0): an abort
};

struct StreamCounters {
  std::uint64_t fpdus_tx = 0, fpdus_rx = 0;
  std::uint64_t sends_tx = 0, sends_rx = 0;
  std::uint64_t send_octets_tx = 0, send_octets_rx = 0;
  std::uint64_t writes_tx = 0, writes_rx = 0;
  std::uint64_t write_octets_tx = 0, write_octets_rx = 0;
  std::uint64_t reads_tx = 0, reads_rx = 0;              // Read Requests
  std::uint64_t read_octets_tx = 0, read_octets_rx = 0;  // Read Responses
  std::uint64_t no_buffer_rx = 0;  // messages that found no buffer (DDP-7.1-03): 0 or 1, since that ends the stream
  std::uint64_t immediates_tx = 0, immediates_rx = 0;
  std::uint64_t atomics_tx = 0, atomics_rx = 0;  // Atomic Requests
  std::uint64_t nudges_tx = 0;                   // Writes of no octets of the stream's own (nudge.h)
};

}  // namespace weft::rdmap
