#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "ddp/memory_table.h"
#include "mpa/peer_profile.h"
#include "rdmap/work.h"

namespace weft::rdmap {

class Observer;

// Placement says when the octets of an FPDU reach their memory.
enum class Placement : std::uint8_t {
  // FPDUs are received into staging, verified, then copied (RFC 5044 section 6). Memory only gets verified octets.
  kVerify,
  // Large FPDUs are received straight into their memory, verified there, and only then delivered. After a bad CRC, the
  // contents of the message's memory are undefined. A damaged header may also have named another region that the peer
  // may write. If the caller writes to that memory meanwhile, its octets go into the CRC too.
  kDirect,
};

// StreamConfig holds the limits and options of one connection. Numbers are octets or counts. The defaults are the
// defaults of `weft`.
struct StreamConfig {
  std::uint8_t mpa_revision = 2;  // initiator: the one to ask for; responder: the highest answered (RFC 6581 section 6)
  bool permissive = false;        // also RDMAC peers (RFC 5044 appendix C); an initiator asks with revision 1
  bool crc = true;                // our own wish; CRCs are off only if both ends say so (RFC 5044 section 7.1)
  bool markers = false;           // our own wish, for FPDUs that we receive; the peer's wish is always met
  mpa::RtrSet rtr_offered;        // initiator, revision 2: any RTR asks for the peer-to-peer model (RFC 6581 s9.2)
  mpa::PeerProfile peer;          // the peer's habits that we allow for
  std::uint16_t ird = 16;         // the most inbound RDMA Reads and Atomics that we serve at once
  std::uint16_t ord = 16;         // the most outbound RDMA Reads and Atomics that we keep open at once
  bool rfc7306 = true;            // understand Atomics and Immediate Data; otherwise their opcodes are unexpected
  std::size_t max_send_wr = 256;  // the most outstanding requests of the send queue
  Placement placement = Placement::kVerify;            // with CRCs off it is always direct
  std::size_t direct_min_len = 16 * 1024;              // the missing octets that make an FPDU worth its own recvmsg
  std::size_t fpdu_limit = 0;                          // upper bound of an FPDU in octets, 0 for none
  Duration request_timeout = std::chrono::seconds(5);  // responder: from start to a whole Request; then to the RTR
  Duration reply_timeout = std::chrono::seconds(10);   // initiator: from the Request to a whole Reply
  Duration nudge{};                                    // initiator: rdmap/nudge.h; 0 for never
  Duration close_timeout = std::chrono::seconds(5);    // after a Terminate or a disconnect: waiting for the peer's FIN
  // From the last octet of an FPDU that has arrived in part to the end of the connection. TCP delivers the rest within
  // this time, if the peer sent it, unless the network failed for half of it. An FPDU whose header cannot be one gets
  // kHopelessPart from its header on.
  Duration part_timeout = std::chrono::seconds(30);
  static constexpr Duration kHopelessPart = std::chrono::seconds(1);
  bool keep_llp_after_reject = false;  // TCP was there before MPA and outlives its rejection
  ddp::StreamScope scope;              // the scope for resolving memory
  Observer* observer = nullptr;        // rdmap/observer.h; outlives the stream
  const void* peer_address = nullptr;  // the peer's sockaddr, for probes alone; outlives the stream
};

}  // namespace weft::rdmap
