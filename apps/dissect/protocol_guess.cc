#include "apps/dissect/protocol_guess.h"

#include "apps/dissect/transport_header.h"
#include "rpcrdma/v2/first_message.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

using rpcrdma::Protocol;

namespace {

// Messages of other protocols may look like a header. A whole RPC message behind it has the header's XID.
bool is_certain(Protocol protocol, ConstBytes message) {
  const auto header = parse_transport_header(protocol, message);
  if (!header || header->version != (protocol == Protocol::k1 ? 1 : 2)) return false;
  if (!header->has_payload) return header->len == message.size();
  rpcrdma::xdr::XdrReader in(message.subspan(header->len));
  std::uint32_t xid = 0;
  return in.u32(xid) && xid == header->xid;
}

}  // namespace

std::optional<Protocol> guess_protocol(ConstBytes message) {
  using rpcrdma::v2::FirstMessage;
  std::optional<Protocol> first;
  switch (rpcrdma::v2::classify_first_message(message)) {
    case FirstMessage::kVersion1: first = Protocol::k1; break;
    case FirstMessage::kCel05: first = Protocol::k2Cel05; break;
    case FirstMessage::kWg07: first = Protocol::k2Wg07; break;
    case FirstMessage::kUnknown: break;
  }
  if (first && is_certain(*first, message)) return first;
  for (const Protocol protocol : {Protocol::k1, Protocol::k2Cel05, Protocol::k2Wg07}) {
    if (is_certain(protocol, message)) return protocol;
  }
  return std::nullopt;
}

}  // namespace weft::apps::dissect
