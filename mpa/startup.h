#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "mpa/error.h"
#include "mpa/peer_profile.h"
#include "mpa/startup_frame.h"
#include "mpa/wire/bytes.h"

namespace weft::mpa {

// The negotiation of RFC 5044 section 7.1 and RFC 6581 section 9, as functions of frames: no I/O, no clock, no state.
//
//   initiator: make_request ------> responder: evaluate_request -> Acceptable | Refused (send its reply, close) |
//   BadFrame initiator: evaluate_reply <---- responder: make_accept or make_reject
//   -> Agreement | RejectedReply | Unagreeable

// StartupOptions is what one end brings to the negotiation.
struct StartupOptions {
  std::uint8_t revision = 2;  // initiator: what it asks with (2 means enhanced); responder: the highest it answers
  bool permissive = false;    // RDMAC peers (Rev 0) are served too, RFC 5044 appendix C; an initiator asks with Rev 1
  bool crc = true;            // our own C bit; CRCs are off only where both ends say so (MPA-4.4-06)
  bool markers = false;       // our own M bit: Markers in what we receive
  std::uint16_t ird = 16;     // most inbound RDMA Reads we serve; EnhancedWords::kManual to leave it to the ULP
  std::uint16_t ord = 16;     // most outbound RDMA Reads we keep open; the same
  RtrSet rtr_offered = {};    // initiator: none for the client-server model, which is the default
  RtrSet rtr_understood = {.send = true, .write = true, .read = true};  // responder: at least one
  Rtr rtr_unasked = Rtr::kNone;  // initiator: what the peer waits for where nothing can be negotiated (revision 1)
};

// request_revision is what an initiator asks with (MPA-C.2.5-01).
constexpr std::uint8_t request_revision(const StartupOptions& options) {
  return options.permissive ? std::uint8_t{1} : options.revision;
}

// max_private_data is how much of the ULP's private data a frame of this revision holds, in octets, where the peer
// takes PD_Length up to max_pd_length.
constexpr std::size_t max_private_data(std::uint8_t revision, std::size_t max_pd_length = kMaxPrivateDataLen) {
  return revision >= kEnhancedRevision ? max_pd_length - kEnhancedWordsLen : max_pd_length;
}

// Agreement is what both ends hold to once the Reply is through.
struct Agreement {
  std::uint8_t revision = 1;
  std::uint8_t version = 1;  // of DDP and RDMAP, in both directions (MPA-C.1-02): 0 with RDMAC peers, else 1
  bool crc = true;
  bool markers_tx = false;  // the peer asked for them
  bool markers_rx = false;  // we did
  std::uint16_t ird = 0;    // our own, final
  std::uint16_t ord = 0;
  // The peer's words, for the ULP (MPA2-9.1-06); absent at revision 1, and where the peer said 0x3fff.
  std::optional<std::uint16_t> peer_ird;
  std::optional<std::uint16_t> peer_ord;
  Rtr rtr = Rtr::kNone;  // initiator: the RTR indication that has to be its first FPDU
  RtrSet rtr_awaited;    // responder: which may come; none in the client-server model
};

// make_request builds a Request. Precondition: private_data.size() <=
// max_private_data(request_revision(options)).
StartupFrame make_request(const StartupOptions& options, ConstBytes private_data);

// Acceptable: the ULP may accept or reject.
struct Acceptable {
  std::uint8_t revision = 1;              // of the Reply
  std::optional<std::uint16_t> peer_ird;  // absent at revision 1, and where the peer said 0x3fff
  std::optional<std::uint16_t> peer_ord;
};

// Refused: MPA itself answers with a Reply that says R=1 and then closes in order.
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
// bounds; what is agreed on may be less. One exception: where the initiator may begin with a zero-length RDMA Read as
// its RTR indication, which at revision 1 nobody announces, the IRD is at least 1 (RFC 6581 section 9.1). Precondition:
// private_data fits max_private_data of the Reply's revision where the Request was enhanced, else kMaxPrivateDataLen.
Accepted make_accept(const StartupFrame& request, const StartupOptions& options, ConstBytes private_data);

// make_reject builds the Reply that says R=1. Same precondition.
StartupFrame make_reject(const StartupFrame& request, const StartupOptions& options, ConstBytes private_data);

// RejectedReply: R=1. The private data is that of the frame (ulp_private_data).
struct RejectedReply {
  std::uint8_t revision = 1;
  std::optional<std::uint16_t> peer_ird;  // what the responder would need (MPA2-9.1-14)
  std::optional<std::uint16_t> peer_ord;
};

// Unagreeable: a well-formed accepting Reply that cannot be lived with (RFC 6581 section 9). The peer is in Full
// Operation: a Terminate with `error` is sent as the first FPDU, framed as `agreement` says, and the connection ended.
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
