#include "rpcrdma/v2_wg07/header.h"

#include <algorithm>
#include <vector>

#include "requirements/violates.h"
#include "rpcrdma/chunk_list_codec.h"
#include "rpcrdma/v2_wg07/properties.h"

namespace weft::rpcrdma::v2_wg07 {

namespace {

using v2::ErrorArmKind;

constexpr std::size_t kFirstWordLen = 4;  // rdma_rpc_first_word

std::optional<ErrorArmKind> arm_kind(std::uint32_t err) {
  switch (static_cast<Err>(err)) {
    case Err::kVers: return ErrorArmKind::kVersions;
    case Err::kBadXdr:
    case Err::kBadPropval:
    case Err::kInvalHtype:
    case Err::kInvalCont:
    case Err::kVersMismatch:
    case Err::kSystem: return ErrorArmKind::kVoid;
    case Err::kReadChunks:
    case Err::kWriteChunks: return ErrorArmKind::kMaxChunks;
    case Err::kSegments: return ErrorArmKind::kMaxSegments;
    case Err::kWriteResource: return ErrorArmKind::kWriteResource;
    case Err::kReplyResource: return ErrorArmKind::kLengthNeeded;
  }
  return {};
}

HeaderError parse_body(xdr::XdrReader& in, Error& body) {
  std::uint32_t err = 0;
  if (!in.u32(err)) return HeaderError::kTruncated;
  const auto kind = arm_kind(err);
  if (violates("W2-7-3", !kind)) return HeaderError::kErrorCode;
  body.err = static_cast<Err>(err);
  return v2::parse_error_arm(in, kind.value_or(ErrorArmKind::kVoid), body.arm) ? HeaderError::kNone
                                                                               : HeaderError::kTruncated;
}

HeaderError parse_body(xdr::XdrReader& /*in*/, Grant& /*body*/) {
  return HeaderError::kNone;
}

// Values are checked here, and applied by the receiver of the message.
template <Htype kType>
HeaderError parse_body(xdr::XdrReader& in, Connprop<kType>& body) {
  if (const auto error = v2::parse_propset(in, body.props); error != HeaderError::kNone) return error;
  Properties scratch;
  return v2::apply(body.props, kProperties, scratch);
}

HeaderError parse_call_chunk(xdr::XdrReader& in, SegmentArray& chunk) {
  std::vector<ReadSegment> list;
  if (const auto error = parse_read_list(in, list); error != ListError::kNone) return v2::header_error(error);
  for (const ReadSegment& segment : list) {
    if (violates("W2-6.6.3-1", segment.position != 0)) return HeaderError::kPosition;
    chunk.push_back(segment.target);
  }
  return violates("W2-6.3.5-3", total_length(chunk) == 0) ? HeaderError::kBodyChunk : HeaderError::kNone;
}

HeaderError parse_reads(xdr::XdrReader& in, std::vector<ReadSegment>& list) {
  if (const auto error = parse_read_list(in, list); error != ListError::kNone) return v2::header_error(error);
  if (violates("W2-4.5.1.1-1", !std::ranges::is_sorted(list, {}, &ReadSegment::position))) {
    return HeaderError::kPosition;
  }
  if (violates("W2-6.3.7-2", !list.empty() && list.front().position == 0)) return HeaderError::kPosition;
  return HeaderError::kNone;
}

template <Htype kType>
HeaderError parse_body(xdr::XdrReader& in, Call<kType>& body) {
  if (!in.u32(body.inv_handle)) return HeaderError::kTruncated;
  if constexpr (kType == Htype::kCallExternal) {
    if (const auto error = parse_call_chunk(in, body.lists.call_chunk); error != HeaderError::kNone) return error;
  }
  if (const auto error = parse_reads(in, body.lists.read_list); error != HeaderError::kNone) return error;
  ListError error = parse_write_list(in, body.lists.write_list);
  if (error == ListError::kNone) error = parse_reply_chunk(in, body.lists.reply_chunk);
  return v2::header_error(error);
}

template <Htype kType>
HeaderError parse_body(xdr::XdrReader& in, Middle<kType>& body) {
  return in.u32(body.remaining) ? HeaderError::kNone : HeaderError::kTruncated;
}

HeaderError parse_body(xdr::XdrReader& in, ReplyExternal& body) {
  ListError error = parse_write_list(in, body.lists.write_list);
  if (error == ListError::kNone) error = parse_reply_chunk(in, body.lists.reply_chunk);
  if (error != ListError::kNone) return v2::header_error(error);
  const std::uint64_t length = body.lists.reply_chunk ? total_length(*body.lists.reply_chunk) : 0;
  return violates("W2-6.3.8-2", length == 0) ? HeaderError::kBodyChunk : HeaderError::kNone;
}

HeaderError parse_body(xdr::XdrReader& in, ReplyInline& body) {
  return v2::header_error(parse_write_list(in, body.lists.write_list));
}

HeaderError parse_body(xdr::XdrReader& in, std::uint32_t htype, Body& body) {
  switch (static_cast<Htype>(htype)) {
    case Htype::kError: return parse_body(in, body.emplace<Error>());
    case Htype::kGrant: return parse_body(in, body.emplace<Grant>());
    case Htype::kConnpropMiddle: return parse_body(in, body.emplace<ConnpropMiddle>());
    case Htype::kConnpropFinal: return parse_body(in, body.emplace<ConnpropFinal>());
    case Htype::kCallExternal: return parse_body(in, body.emplace<CallExternal>());
    case Htype::kCallMiddle: return parse_body(in, body.emplace<CallMiddle>());
    case Htype::kCallInline: return parse_body(in, body.emplace<CallInline>());
    case Htype::kReplyExternal: return parse_body(in, body.emplace<ReplyExternal>());
    case Htype::kReplyMiddle: return parse_body(in, body.emplace<ReplyMiddle>());
    case Htype::kReplyInline: return parse_body(in, body.emplace<ReplyInline>());
  }
  return HeaderError::kHeaderType;  // W2-6.1-4, W2-7.1.3-1
}

bool has_payload(const Body& body) {
  return std::holds_alternative<CallMiddle>(body) || std::holds_alternative<CallInline>(body) ||
         std::holds_alternative<ReplyMiddle>(body) || std::holds_alternative<ReplyInline>(body);
}

HeaderError check_payload(const Body& body, ConstBytes payload) {
  if (has_payload(body)) {
    return violates("W2-7.2.1-1", payload.size() < kFirstWordLen) ? HeaderError::kNoPayload : HeaderError::kNone;
  }
  return violates("W2-6.1-2", !payload.empty()) ? HeaderError::kTrailing : HeaderError::kNone;
}

// An error has the version of the message that it answers: another one than 2 only where that was the fault.
bool has_right_version(const Header& header) {
  if (header.vers == v2::kVersion) return true;
  const auto* error = std::get_if<Error>(&header.body);
  return error != nullptr && (error->err == Err::kVers || error->err == Err::kVersMismatch);
}

void emit_body(xdr::XdrWriter& out, const Error& body) {
  const auto err = static_cast<std::uint32_t>(body.err);
  out.u32(err);
  v2::emit_error_arm(out, arm_kind(err).value_or(ErrorArmKind::kVoid), body.arm);
}

void emit_body(xdr::XdrWriter& /*out*/, const Grant& /*body*/) {}

template <Htype kType>
void emit_body(xdr::XdrWriter& out, const Connprop<kType>& body) {
  v2::emit_propset(out, body.props);
}

void emit_call_body(xdr::XdrWriter& out, bool external, std::uint32_t inv_handle, const ChunkListsView& lists) {
  out.u32(inv_handle);
  if (external) emit_read_list(out, lists.call_chunk, {});
  emit_read_list(out, {}, lists.read_list);
  emit_write_list(out, lists.write_list);
  emit_reply_chunk(out, lists.reply_chunk);
}

void emit_reply_body(xdr::XdrWriter& out, bool external, const ChunkListsView& lists) {
  emit_write_list(out, lists.write_list);
  if (external) emit_reply_chunk(out, lists.reply_chunk);
}

template <Htype kType>
void emit_body(xdr::XdrWriter& out, const Call<kType>& body) {
  emit_call_body(out, kType == Htype::kCallExternal, body.inv_handle, body.lists);
}

template <Htype kType>
void emit_body(xdr::XdrWriter& out, const Middle<kType>& body) {
  out.u32(body.remaining);
}

template <Htype kType>
void emit_body(xdr::XdrWriter& out, const Reply<kType>& body) {
  emit_reply_body(out, kType == Htype::kReplyExternal, body.lists);
}

bool is_request(const Body& body) {
  return std::holds_alternative<ConnpropMiddle>(body) || std::holds_alternative<ConnpropFinal>(body) ||
         std::holds_alternative<CallExternal>(body) || std::holds_alternative<CallMiddle>(body) ||
         std::holds_alternative<CallInline>(body);
}

}  // namespace

HeaderError parse_message(ConstBytes message, Header& header, ConstBytes& payload) {
  payload = {};
  xdr::XdrReader in(message, xdr::Padding::kZero);
  v2::Prefix prefix;
  if (violates("W2-7-1", !v2::parse_prefix(in, prefix))) return HeaderError::kTooShort;
  header.xid = prefix.xid;
  header.vers = prefix.vers;
  header.credit = prefix.credit;
  const bool is_error = prefix.htype == static_cast<std::uint32_t>(Htype::kError);
  if (violates("W2-7.1.1-1", prefix.vers != v2::kVersion && !is_error)) return HeaderError::kVersion;
  if (const auto error = parse_body(in, prefix.htype, header.body); error != HeaderError::kNone) return error;
  if (violates("W2-7-2", !has_right_version(header))) return HeaderError::kVersion;
  payload = in.rest();
  return check_payload(header.body, payload);
}

void emit_header(xdr::XdrWriter& out, const Header& header) {
  std::visit(
      [&](const auto& body) {
        v2::emit_prefix(out, {.xid = header.xid,
                              .vers = header.vers,
                              .credit = header.credit,
                              .htype = static_cast<std::uint32_t>(body.kHtype)});
        emit_body(out, body);
      },
      header.body);
}

void emit_call(xdr::XdrWriter& out, const Start& start, bool external, std::uint32_t inv_handle,
               const ChunkListsView& lists) {
  const Htype htype = external ? Htype::kCallExternal : Htype::kCallInline;
  v2::emit_prefix(out, {start.xid, start.vers, start.credit, static_cast<std::uint32_t>(htype)});
  emit_call_body(out, external, inv_handle, lists);
}

void emit_reply(xdr::XdrWriter& out, const Start& start, bool external, const ChunkListsView& lists) {
  const Htype htype = external ? Htype::kReplyExternal : Htype::kReplyInline;
  v2::emit_prefix(out, {start.xid, start.vers, start.credit, static_cast<std::uint32_t>(htype)});
  emit_reply_body(out, external, lists);
}

std::optional<Err> answer(const Header& header, HeaderError error) {
  if (error == HeaderError::kNone || error == HeaderError::kTooShort || !is_request(header.body)) return {};
  if (error == HeaderError::kVersion) return Err::kVers;
  if (error == HeaderError::kHeaderType) return Err::kInvalHtype;
  return error == HeaderError::kPropertyValue ? Err::kBadPropval : Err::kBadXdr;
}

}  // namespace weft::rpcrdma::v2_wg07
