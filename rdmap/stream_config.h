#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ddp/memory_table.h"
#include "mpa/peer_profile.h"
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

}  // namespace weft::rdmap
