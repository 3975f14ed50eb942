#include <fmt/format.h>

#include <memory>
#include <type_traits>
#include <variant>

#include "apps/dissect/transport_header.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v2_cel05/errors.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_wg07/errors.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::apps::dissect {

namespace {

namespace v1 = rpcrdma::v1;
namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;

template <typename... T>
void add(std::string& text, fmt::format_string<T...> format, T&&... values) {
  text += ", ";
  fmt::format_to(std::back_inserter(text), format, std::forward<T>(values)...);
}

void tell_inv_handle(std::uint32_t handle, TransportHeader& out) {
  if (handle != 0) add(out.text, "may invalidate {:#010x}", handle);
  out.inv_handle = handle;
}

// ---- version 1

std::string_view name_of(v1::Proc proc) {
  switch (proc) {
    case v1::Proc::kMsg: return "RDMA_MSG";
    case v1::Proc::kNomsg: return "RDMA_NOMSG";
    case v1::Proc::kMsgp: return "RDMA_MSGP";
    case v1::Proc::kDone: return "RDMA_DONE";
    case v1::Proc::kError: return "RDMA_ERROR";
  }
  return "";
}

bool parse_v1(ConstBytes message, TransportHeader& out) {
  v1::HeaderWords header;
  rpcrdma::xdr::XdrReader in(message);
  if (v1::parse_header(in, header, out.lists) != v1::HeaderError::kNone) return false;
  // An ERR_VERS may have the version that it refuses.
  if (header.vers != v1::kVersion && header.proc != v1::Proc::kError) return false;
  if (message.size() < v1::kMinHeader && header.proc != v1::Proc::kError) return false;
  out.xid = header.xid;
  out.version = header.vers;
  out.credit = header.credit;
  out.type = header.proc;
  out.external = header.proc == v1::Proc::kNomsg;
  out.has_payload = header.proc == v1::Proc::kMsg || header.proc == v1::Proc::kMsgp;
  if (header.proc == v1::Proc::kError) {
    using Code = rpcrdma::TransportError::Code;
    out.reply = true;
    if (header.err == v1::Err::kVers) {
      add(out.text, "ERR_VERS: versions {} to {}", header.vers_low, header.vers_high);
      out.error = {.code = Code::kVersion, .low = header.vers_low, .high = header.vers_high};
    } else {
      add(out.text, "ERR_CHUNK");
      out.error = {.code = Code::kChunk};
    }
  }
  if (header.proc == v1::Proc::kMsgp) add(out.text, "align {}, thresh {}", header.align, header.thresh);
  out.lists.split_position_zero();
  out.len = in.position();
  return true;
}

// ---- cel05

std::string_view name_of(cel05::Proc proc) {
  switch (proc) {
    case cel05::Proc::kMsg: return "RDMA2_MSG";
    case cel05::Proc::kNomsg: return "RDMA2_NOMSG";
    case cel05::Proc::kError: return "RDMA2_ERROR";
    case cel05::Proc::kOptional: return "RDMA2_OPTIONAL";
    case cel05::Proc::kConnprop: return "RDMA2_CONNPROP";
    case cel05::Proc::kReqprop: return "RDMA2_REQPROP";
    case cel05::Proc::kResprop: return "RDMA2_RESPROP";
    case cel05::Proc::kUpdprop: return "RDMA2_UPDPROP";
  }
  return "";
}

std::string_view err_str(cel05::Err err) {
  switch (err) {
    case cel05::Err::kVers: return "VERS";
    case cel05::Err::kBadXdr: return "BAD_XDR";
    case cel05::Err::kInvalProc: return "INVAL_PROC";
    case cel05::Err::kReadChunks: return "READ_CHUNKS";
    case cel05::Err::kWriteChunks: return "WRITE_CHUNKS";
    case cel05::Err::kSegments: return "SEGMENTS";
    case cel05::Err::kWriteResource: return "WRITE_RESOURCE";
    case cel05::Err::kReplyResource: return "REPLY_RESOURCE";
    case cel05::Err::kInvalOption: return "INVAL_OPTION";
    case cel05::Err::kSystem: return "SYSTEM";
  }
  return "";
}

template <rpcrdma::v2_cel05::Proc kType>
void tell_body(cel05::ChunkListsBody<kType>& body, TransportHeader& out) {
  out.reply = body.direction == cel05::Direction::kReply;
  out.lists_at = 24;
  out.external = kType == cel05::Proc::kNomsg;
  out.has_payload = !out.external;
  tell_inv_handle(body.inv_handle, out);
  out.lists = std::move(body.lists);
}
void tell_body(const cel05::Error& body, TransportHeader& out) {
  out.reply = true;
  out.error = cel05::from_wire(body);
  add(out.text, "{}", err_str(body.err));
  if (body.err == cel05::Err::kVers) add(out.text, "versions {} to {}", body.arm.vers_low, body.arm.vers_high);
}
void tell_body(const cel05::Optional& body, TransportHeader& out) {
  out.reply = body.optdir == cel05::Direction::kReply;
  add(out.text, "opttype {}", body.opttype);
}
void tell_body(const cel05::Connprop& body, TransportHeader& out) {
  add(out.text, "{} properties", body.start.size());
}
void tell_body(const cel05::Reqprop& body, TransportHeader& out) {
  add(out.text, "{} properties wanted", body.want.size());
}
void tell_body(const cel05::Resprop&, TransportHeader&) {}
void tell_body(const cel05::Updprop& body, TransportHeader& out) {
  add(out.text, "{} properties", body.now.size());
}

// ---- wg07

std::string_view name_of(wg07::Htype htype) {
  switch (htype) {
    case wg07::Htype::kError: return "RDMA2_ERROR";
    case wg07::Htype::kGrant: return "RDMA2_GRANT";
    case wg07::Htype::kConnpropMiddle: return "RDMA2_CONNPROP_MIDDLE";
    case wg07::Htype::kConnpropFinal: return "RDMA2_CONNPROP_FINAL";
    case wg07::Htype::kCallExternal: return "RDMA2_CALL_EXTERNAL";
    case wg07::Htype::kCallMiddle: return "RDMA2_CALL_MIDDLE";
    case wg07::Htype::kCallInline: return "RDMA2_CALL_INLINE";
    case wg07::Htype::kReplyExternal: return "RDMA2_REPLY_EXTERNAL";
    case wg07::Htype::kReplyMiddle: return "RDMA2_REPLY_MIDDLE";
    case wg07::Htype::kReplyInline: return "RDMA2_REPLY_INLINE";
  }
  return "";
}

std::string_view err_str(wg07::Err err) {
  switch (err) {
    case wg07::Err::kVers: return "VERS";
    case wg07::Err::kBadXdr: return "BAD_XDR";
    case wg07::Err::kBadPropval: return "BAD_PROPVAL";
    case wg07::Err::kInvalHtype: return "INVAL_HTYPE";
    case wg07::Err::kInvalCont: return "INVAL_CONT";
    case wg07::Err::kReadChunks: return "READ_CHUNKS";
    case wg07::Err::kWriteChunks: return "WRITE_CHUNKS";
    case wg07::Err::kSegments: return "SEGMENTS";
    case wg07::Err::kWriteResource: return "WRITE_RESOURCE";
    case wg07::Err::kReplyResource: return "REPLY_RESOURCE";
    case wg07::Err::kVersMismatch: return "VERS_MISMATCH";
    case wg07::Err::kSystem: return "SYSTEM";
  }
  return "";
}

template <wg07::Htype kType>
void tell_body(wg07::Call<kType>& body, TransportHeader& out) {
  out.reply = false;
  out.lists_at = 20;
  out.external = kType == wg07::Htype::kCallExternal;
  out.has_payload = !out.external;
  tell_inv_handle(body.inv_handle, out);
  out.lists = std::move(body.lists);
}
template <wg07::Htype kType>
void tell_body(wg07::Reply<kType>& body, TransportHeader& out) {
  out.reply = true;
  out.external = kType == wg07::Htype::kReplyExternal;
  out.has_payload = !out.external;
  out.lists = std::move(body.lists);
}
template <wg07::Htype kType>
void tell_body(const wg07::Middle<kType>& body, TransportHeader& out) {
  out.reply = kType == wg07::Htype::kReplyMiddle;
  out.is_middle = true;
  add(out.text, "{} bytes remain", body.remaining);
}
template <wg07::Htype kType>
void tell_body(const wg07::Connprop<kType>& body, TransportHeader& out) {
  add(out.text, "{} properties", body.props.size());
}
void tell_body(const wg07::Grant&, TransportHeader&) {}
void tell_body(const wg07::Error& body, TransportHeader& out) {
  out.reply = true;
  out.error = wg07::from_wire(body);
  add(out.text, "{}", err_str(body.err));
  if (body.err == wg07::Err::kVers) add(out.text, "versions {} to {}", body.arm.vers_low, body.arm.vers_high);
}

// Both drafts: header and payload come from parse_message, which also judges what the engines refuse.
template <typename Header>
bool parse_v2(ConstBytes message, TransportHeader& out) {
  Header header;
  ConstBytes payload;
  out.lists.clear();
  if (parse_message(message, header, payload) != rpcrdma::v2::HeaderError::kNone) return false;
  out.xid = header.xid;
  out.version = header.vers;
  out.credit = header.credit;
  std::visit(
      [&out](auto& body) {
        using Body = std::remove_cvref_t<decltype(body)>;
        if constexpr (std::is_same_v<Header, cel05::Header>) {
          out.type = Body::kProc;
        } else {
          out.type = Body::kHtype;
        }
        tell_body(body, out);
      },
      header.body);
  out.lists.split_position_zero();
  out.len = message.size() - payload.size();
  return true;
}

}  // namespace

std::string_view type_str(const TransportType& type) {
  if (const auto* proc = std::get_if<v1::Proc>(&type)) return name_of(*proc);
  if (const auto* proc = std::get_if<cel05::Proc>(&type)) return name_of(*proc);
  if (const auto* htype = std::get_if<wg07::Htype>(&type)) return name_of(*htype);
  return "";
}

bool parse_transport_header(rpcrdma::Protocol protocol, ConstBytes message, TransportHeader& out) {
  std::construct_at<TransportWords>(&out);  // an assignment would make a second one and copy it
  out.text.clear();
  switch (protocol) {
    case rpcrdma::Protocol::k1: return parse_v1(message, out);
    case rpcrdma::Protocol::k2Cel05: return parse_v2<cel05::Header>(message, out);
    case rpcrdma::Protocol::k2Wg07: return parse_v2<wg07::Header>(message, out);
  }
  return false;
}

}  // namespace weft::apps::dissect
