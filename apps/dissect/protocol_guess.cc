#include "apps/dissect/protocol_guess.h"

#include <algorithm>

#include "apps/dissect/transport_header.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/v2/first_message.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::apps::dissect {

using rpcrdma::Protocol;
using rpcrdma::xdr::XdrReader;

namespace {

constexpr std::size_t kWord = 4;

bool is_call(ConstBytes octets, rpcrdma::CallHeaderView& call) {
  XdrReader in(octets);
  return rpcrdma::parse_call(in, call) == rpcrdma::CallParse::kOk && call.program != 0;
}

// Whether the message has an RPC Call (RFC 5531) with its own XID, behind any header.
bool holds_call(ConstBytes message) {
  constexpr std::size_t kMaxFront = 4096;
  XdrReader front(message);
  std::uint32_t xid = 0;
  if (!front.u32(xid)) return false;
  for (std::size_t at = kWord; at < std::min(message.size(), kMaxFront); at += kWord) {
    rpcrdma::CallHeaderView call;
    if (is_call(message.subspan(at), call) && call.xid == xid) return true;
  }
  return false;
}

// Messages of other protocols may look like a header. A whole RPC message behind it has the header's XID.
bool is_certain(Protocol protocol, ConstBytes message) {
  TransportHeader header;
  if (!parse_transport_header(protocol, message, header)) return false;
  if (header.version != (protocol == Protocol::k1 ? 1 : 2)) return false;
  if (!header.has_payload) return header.len == message.size();
  XdrReader in(message.subspan(header.len));
  std::uint32_t xid = 0;
  return in.u32(xid) && xid == header.xid;
}

// Whether the message has a whole RPC Call with another XID behind its header.
bool holds_other_call(Protocol protocol, ConstBytes message) {
  TransportHeader header;
  if (!parse_transport_header(protocol, message, header) || !header.has_payload) return false;
  rpcrdma::CallHeaderView call;
  return is_call(message.subspan(header.len), call);
}

std::optional<Protocol> first_protocol(ConstBytes message) {
  using rpcrdma::v2::FirstMessage;
  switch (rpcrdma::v2::classify_first_message(message)) {
    case FirstMessage::kVersion1: return Protocol::k1;
    case FirstMessage::kCel05: return Protocol::k2Cel05;
    case FirstMessage::kWg07: return Protocol::k2Wg07;
    case FirstMessage::kUnknown: break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Protocol> guess_protocol(ConstBytes message) {
  const std::optional<Protocol> first = first_protocol(message);
  if (first && is_certain(*first, message)) return first;
  for (const Protocol protocol : {Protocol::k1, Protocol::k2Cel05, Protocol::k2Wg07}) {
    if (is_certain(protocol, message)) return protocol;
  }
  return std::nullopt;
}

std::optional<Protocol> guess_faulty(ConstBytes message) {
  const std::optional<Protocol> first = first_protocol(message);
  return first && (holds_call(message) || holds_other_call(*first, message)) ? first : std::nullopt;
}

}  // namespace weft::apps::dissect
