#include "rpcrdma/v2/first_message.h"

#include "rpcrdma/v2/prefix.h"
#include "rpcrdma/v2/properties.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::rpcrdma::v2 {

namespace {

constexpr std::uint32_t kCall = 0;  // msg_type
constexpr std::size_t kMinOptionalLen = 28;

bool is_one_propset(xdr::XdrReader in) {
  Propset set;
  return parse_propset(in, set) == HeaderError::kNone && in.at_end();
}

// Whether the octets are rdma_remaining of RDMA2_CALL_MIDDLE and the beginning of an RPC Call.
bool begins_call(xdr::XdrReader in, std::uint32_t xid) {
  std::uint32_t rpc_xid = 0;
  std::uint32_t type = 0;
  return in.skip(4) && in.u32(rpc_xid) && in.u32(type) && rpc_xid == xid && type == kCall;
}

// Header types 5 to 9 have a meaning in both drafts.
FirstMessage classify_shared_type(const Prefix& prefix, const xdr::XdrReader& in) {
  switch (prefix.htype) {
    case 5:  // RDMA2_OPTIONAL, RDMA2_GRANT
      if (in.at_end()) return FirstMessage::kWg07;
      return in.position() + in.remaining() >= kMinOptionalLen ? FirstMessage::kCel05 : FirstMessage::kUnknown;
    case 6:  // RDMA2_CONNPROP with a subset behind the properties, RDMA2_CONNPROP_MIDDLE without
      return is_one_propset(in) ? FirstMessage::kWg07 : FirstMessage::kCel05;
    case 7:  // RDMA2_REQPROP, RDMA2_CONNPROP_FINAL
    case 8:  // RDMA2_RESPROP, which answers something, RDMA2_CALL_EXTERNAL
      return FirstMessage::kWg07;
    case 9:  // RDMA2_UPDPROP, RDMA2_CALL_MIDDLE
      return begins_call(in, prefix.xid) ? FirstMessage::kWg07 : FirstMessage::kCel05;
    default: return FirstMessage::kUnknown;
  }
}

// The error that a draft's codec reads; null where it reads none.
template <typename Error, typename Header>
const Error* parse_error(ConstBytes message, Header& header) {
  ConstBytes payload;
  if (parse_message(message, header, payload) != HeaderError::kNone) return nullptr;
  return std::get_if<Error>(&header.body);
}

bool is_resprop(ConstBytes message) {
  v2_cel05::Header header;
  ConstBytes payload;
  return v2_cel05::parse_message(message, header, payload) == HeaderError::kNone &&
         std::holds_alternative<v2_cel05::Resprop>(header.body);
}

// The error codes that look the same in both drafts.
Refusal::Meaning shared_error(const Opening& opening, v2_cel05::Err err) {
  using Meaning = Refusal::Meaning;
  const bool is_cel05 = opening.draft == Draft::kCel05;
  switch (err) {
    case v2_cel05::Err::kVers: return Meaning::kVersions;
    case v2_cel05::Err::kBadXdr: return is_cel05 && opening.is_call ? Meaning::kNone : Meaning::kUnclear;
    case v2_cel05::Err::kInvalProc:  // RDMA2_ERR_BAD_PROPVAL of wg07, which is no answer to a Call
      if (!opening.is_call) return Meaning::kUnclear;
      return is_cel05 ? Meaning::kNone : Meaning::kCel05;
    default: return Meaning::kNone;
  }
}

}  // namespace

FirstMessage classify_first_message(ConstBytes message) {
  xdr::XdrReader in(message);
  Prefix prefix;
  if (!parse_prefix(in, prefix)) return FirstMessage::kUnknown;
  if (prefix.vers == 1) return FirstMessage::kVersion1;
  if (prefix.vers != kVersion) return FirstMessage::kUnknown;
  switch (prefix.htype) {
    case 0:  // RDMA2_MSG
    case 1:  // RDMA2_NOMSG
      return FirstMessage::kCel05;
    case 10:  // RDMA2_CALL_INLINE
      return FirstMessage::kWg07;
    default: return classify_shared_type(prefix, in);
  }
}

Refusal refusal(const Opening& opening, ConstBytes answer) {
  using Meaning = Refusal::Meaning;
  xdr::XdrReader in(answer);
  Prefix prefix;
  if (!parse_prefix(in, prefix) || prefix.xid != opening.xid) return {};
  const bool is_cel05 = opening.draft == Draft::kCel05;
  if (!is_cel05 && !opening.is_call && is_resprop(answer)) return {.meaning = Meaning::kCel05};

  v2_cel05::Header cel05_header;
  v2_wg07::Header wg07_header;
  const auto* cel05 = parse_error<v2_cel05::Error>(answer, cel05_header);
  const auto* wg07 = parse_error<v2_wg07::Error>(answer, wg07_header);
  if (cel05 != nullptr && wg07 != nullptr) {
    return {.meaning = shared_error(opening, cel05->err), .low = cel05->arm.vers_low, .high = cel05->arm.vers_high};
  }
  if (is_cel05 && wg07 != nullptr) return {.meaning = Meaning::kWg07};
  if (!is_cel05 && cel05 != nullptr) return {.meaning = Meaning::kCel05};
  return {};
}

std::string_view other_draft(const Opening& opening, ConstBytes answer) {
  switch (refusal(opening, answer).meaning) {
    case Refusal::Meaning::kCel05: return "2-cel05";
    case Refusal::Meaning::kWg07: return "2-wg07";
    default: return {};
  }
}

}  // namespace weft::rpcrdma::v2
