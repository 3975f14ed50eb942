#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "mpa/error.h"
#include "mpa/peer_profile.h"
#include "mpa/startup_frame.h"

namespace weft::mpa {

// The negotiation of RFC 5044 section 7.1 and RFC 6581 section 9, as functions of frames: no I/O, no clock, no state.
//
//   initiator: make_request   ------> responder: evaluate_request -> Acceptable | BadFrame |
//                                                                    Refused (send its reply, close)
//   initiator: evaluate_reply <------ responder: make_accept or make_reject
//              -> Agreement | RejectedReply | Unagreeable | BadFrame

// StartupOptions holds one end's wishes for the negotiation.
struct StartupOptions {
  std::uint8_t revision = 2;  // initiator: the Rev to ask with (2: enhanced); responder: the highest to answer
  bool permissive = false;    // RDMAC peers (Rev 0) are served too, RFC 5044 appendix C; an initiator asks with Rev 1
  bool crc = true;            // our own C bit; CRCs are off only if both ends say so (MPA-4.4-06)
  bool markers = false;       // our own M bit: Markers in the FPDUs that we receive
  std::uint16_t ird = 16;     // the most inbound RDMA Reads that we serve; EnhancedWords::kManual: the ULP decides
  std::uint16_t ord = 16;     // the most outbound RDMA Reads that we keep open; the same
  RtrSet rtr_offered = {};    // initiator: none for the client-server model, which is the default
  RtrSet rtr_understood = {.send = true, .write = true, .read = true};  // responder: at least one
  Rtr rtr_unasked = Rtr::kNone;  // initiator: the indication that a peer at revision 1 expects
};

// request_revision gives the revision of an initiator's Request (MPA-C.2.5-01).
constexpr std::uint8_t request_revision(const StartupOptions& options) {
  return options.permissive ? std::uint8_t{1} : options.revision;
}

// max_private_data gives the most ULP private data that a frame of this revision holds, in octets, if the peer takes a
// PD_Length up to max_pd_length.
constexpr std::size_t max_private_data(std::uint8_t revision, std::size_t max_pd_length = kMaxPrivateDataLen) {
  return revision >= kEnhancedRevision ? max_pd_length - kEnhancedWordsLen : max_pd_length;
}

// Agreement holds the negotiated values, which bind both ends after the Reply.
struct Agreement {
  std::uint8_t revision = 1;
  std::uint8_t version = 1;  // of DDP and RDMAP, in both directions (MPA-C.1-02): 0 with RDMAC peers, else 1
  bool crc = true;
  bool markers_tx = false;  // the peer asked for Markers
  bool markers_rx = false;  // we asked for Markers
  std::uint16_t ird = 0;    // our own, final
  std::uint16_t ord = 0;
  // The peer's words, for the ULP (MPA2-9.1-06). Absent at revision 1, or if the peer sent 0x3fff.
  std::optional<std::uint16_t> peer_ird;
  std::optional<std::uint16_t> peer_ord;
  Rtr rtr = Rtr::kNone;  // initiator: the RTR indication, its first FPDU
  RtrSet rtr_awaited;    // responder: the possible indications; none in the client-server model
};

// make_request builds a Request. Precondition: private_data.size() <=
// max_private_data(request_revision(options)).
StartupFrame make_request(const StartupOptions& options, ConstBytes private_data);

// Acceptable: the ULP may accept or reject.
struct Acceptable {
  std::uint8_t revision = 1;              // of the Reply
  std::optional<std::uint16_t> peer_ird;  // absent at revision 1, or if the peer sent 0x3fff
  std::optional<std::uint16_t> peer_ord;
};

// Refused: MPA itself answers with a Reply with R=1 and then closes in order.
struct Refused {
  StartupFrame reply;
  std::string_view reason;
};

// evaluate_request judges a Request that the responder received.
std::variant<Acceptable, Refused, BadFrame> evaluate_request(const StartupFrame& request,
                                                             const StartupOptions& options);

struct Accepted {
  StartupFrame reply;
  Agreement agreement;
};

// make_accept builds the accepting Reply to a Request that evaluate_request found Acceptable. options.ird and ord are
// upper bounds of the agreed values. One exception: the IRD is at least 1 if the initiator may send a zero-length RDMA
// Read as its RTR indication, which no frame announces at revision 1 (RFC 6581 section 9.1). Precondition: private_data
// fits max_private_data of the Reply's revision if the Request was enhanced, else kMaxPrivateDataLen.
Accepted make_accept(const StartupFrame& request, const StartupOptions& options, ConstBytes private_data);

// make_reject builds the Reply with R=1. It has the same precondition.
StartupFrame make_reject(const StartupFrame& request, const StartupOptions& options, ConstBytes private_data);

// RejectedReply: R=1. The frame holds the private data (ulp_private_data).
struct RejectedReply {
  std::uint8_t revision = 1;
  std::optional<std::uint16_t> peer_ird;  // the responder's needs (MPA2-9.1-14)
  std::optional<std::uint16_t> peer_ord;
};

// Unagreeable: a well-formed accepting Reply with unacceptable values (RFC 6581 section 9). The peer is in Full
// Operation. So the first FPDU is a Terminate with `error`, framed as `agreement` says, and the connection ends.
struct Unagreeable {
  Error error = Error::kLocalCatastrophic;
  std::string_view reason;
  Agreement agreement;
};

// evaluate_reply judges a Reply to the initiator's own Request.
std::variant<Agreement, RejectedReply, Unagreeable, BadFrame> evaluate_reply(const StartupFrame& reply,
                                                                             const StartupFrame& request,
                                                                             const StartupOptions& options);

}  // namespace weft::mpa
