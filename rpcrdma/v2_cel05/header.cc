#include "rpcrdma/v2_cel05/header.h"

#include <algorithm>
#include <type_traits>

#include "requirements/violates.h"
#include "rpcrdma/chunk_list_codec.h"
#include "rpcrdma/v2_cel05/properties.h"

namespace weft::rpcrdma::v2_cel05 {

namespace {

using v2::ErrorArmKind;

HeaderError parse_direction(xdr::XdrReader& in, Direction& direction) {
  std::uint32_t word = 0;
  if (!in.u32(word)) return HeaderError::kTruncated;
  if (violates("R2-7.2-11", word > static_cast<std::uint32_t>(Direction::kReply))) return HeaderError::kDirection;
  direction = static_cast<Direction>(word);
  return HeaderError::kNone;
}

template <Proc kType>
HeaderError parse_body(xdr::XdrReader& in, ChunkListsBody<kType>& body) {
  if (const auto error = parse_direction(in, body.direction); error != HeaderError::kNone) return error;
  if (!in.u32(body.inv_handle)) return HeaderError::kTruncated;
  ListError error = parse_read_list(in, body.lists.read_list);
  if (error == ListError::kNone) error = parse_write_list(in, body.lists.write_list);
  if (error == ListError::kNone) error = parse_reply_chunk(in, body.lists.reply_chunk);
  return v2::header_error(error);
}

std::optional<ErrorArmKind> arm_kind(std::uint32_t err) {
  switch (static_cast<Err>(err)) {
    case Err::kVers: return ErrorArmKind::kVersions;
    case Err::kBadXdr:
    case Err::kInvalProc:
    case Err::kInvalOption:
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
  if (violates("R2-7.2.4-27", !kind)) return HeaderError::kErrorCode;
  body.err = static_cast<Err>(err);
  return v2::parse_error_arm(in, kind.value_or(ErrorArmKind::kVoid), body.arm) ? HeaderError::kNone
                                                                               : HeaderError::kTruncated;
}

HeaderError parse_body(xdr::XdrReader& in, Optional& body) {
  if (const auto error = parse_direction(in, body.optdir); error != HeaderError::kNone) return error;
  ConstBytes optinfo;
  if (!in.u32(body.opttype)) return HeaderError::kTruncated;
  if (violates("R2-7.2.4-5", !in.opaque(optinfo))) return HeaderError::kOpaque;
  body.optinfo.assign(optinfo.begin(), optinfo.end());
  return HeaderError::kNone;
}

// Values are checked here, and applied by the receiver of the message.
HeaderError parse_values(xdr::XdrReader& in, v2::Propset& set) {
  if (const auto error = v2::parse_propset(in, set); error != HeaderError::kNone) return error;
  Properties scratch;
  return v2::apply(set, kProperties, scratch);
}

HeaderError parse_body(xdr::XdrReader& in, Connprop& body) {
  if (const auto error = parse_values(in, body.start); error != HeaderError::kNone) return error;
  return v2::parse_propsubset(in, body.nochg);
}

HeaderError parse_body(xdr::XdrReader& in, Reqprop& body) {
  return parse_values(in, body.want);
}

HeaderError parse_body(xdr::XdrReader& in, Resprop& body) {
  if (const auto error = v2::parse_propsubset(in, body.done); error != HeaderError::kNone) return error;
  if (const auto error = v2::parse_propsubset(in, body.rejected); error != HeaderError::kNone) return error;
  return parse_values(in, body.other);
}

HeaderError parse_body(xdr::XdrReader& in, Updprop& body) {
  return parse_values(in, body.now);
}

HeaderError parse_body(xdr::XdrReader& in, std::uint32_t proc, Body& body) {
  switch (static_cast<Proc>(proc)) {
    case Proc::kMsg: return parse_body(in, body.emplace<Msg>());
    case Proc::kNomsg: return parse_body(in, body.emplace<Nomsg>());
    case Proc::kError: return parse_body(in, body.emplace<Error>());
    case Proc::kOptional: return parse_body(in, body.emplace<Optional>());
    case Proc::kConnprop: return parse_body(in, body.emplace<Connprop>());
    case Proc::kReqprop: return parse_body(in, body.emplace<Reqprop>());
    case Proc::kResprop: return parse_body(in, body.emplace<Resprop>());
    case Proc::kUpdprop: return parse_body(in, body.emplace<Updprop>());
  }
  return HeaderError::kHeaderType;  // R2-7.2.4-4
}

std::uint64_t position_zero_length(const std::vector<ReadSegment>& list) {
  std::uint64_t length = 0;
  for (const ReadSegment& segment : list) length += segment.position == 0 ? segment.target.length : 0;
  return length;
}

bool has_position_zero(const std::vector<ReadSegment>& list) {
  return std::ranges::find(list, 0u, &ReadSegment::position) != list.end();
}

// The first two words of the Payload stream are the RPC's XID and msg_type.
HeaderError check_payload(const Header& header, const Msg& body, ConstBytes payload) {
  xdr::XdrReader in(payload);
  std::uint32_t xid = 0;
  std::uint32_t type = 0;
  if (violates("R2-7.2.1-1", !in.u32(xid) || !in.u32(type))) return HeaderError::kNoPayload;
  if (violates("R2-7.2.4-5", xid != header.xid)) return HeaderError::kPayloadXid;
  if (violates("R2-7.2.2-4", type != static_cast<std::uint32_t>(body.direction))) return HeaderError::kPayloadType;
  return HeaderError::kNone;
}

HeaderError check(const Header& header, const Msg& body, ConstBytes payload) {
  const auto& reads = body.lists.read_list;
  if (violates("R1-5.3.1-02", body.direction == Direction::kReply && !reads.empty())) return HeaderError::kReadList;
  // The message has two candidates for the Payload stream.
  if (violates("R1-4.5.3-03", has_position_zero(reads))) return HeaderError::kPosition;
  return check_payload(header, body, payload);
}

HeaderError check(const Header& /*header*/, const Nomsg& body, ConstBytes payload) {
  const ChunkListsView& lists = body.lists;
  if (violates("R2-7.2.1-4", !payload.empty())) return HeaderError::kTrailing;
  const bool is_call = body.direction == Direction::kCall;
  if (violates("R1-5.3.1-02", !is_call && !lists.read_list.empty())) return HeaderError::kReadList;
  const std::uint64_t reply_length = lists.reply_chunk ? total_length(*lists.reply_chunk) : 0;
  const std::uint64_t length = is_call ? position_zero_length(lists.read_list) : reply_length;
  return violates("R2-7.2.4-5", length == 0) ? HeaderError::kBodyChunk : HeaderError::kNone;
}

HeaderError check(const Header& header, const Error& body, ConstBytes payload) {
  // An error has the version of the message that it answers: another one than 2 only where that was the fault.
  if (violates("R2-7.2.4-2", header.vers != v2::kVersion && body.err != Err::kVers)) return HeaderError::kVersion;
  return violates("R2-7.2.1-2", !payload.empty()) ? HeaderError::kTrailing : HeaderError::kNone;
}

HeaderError check(const Header& /*header*/, const Optional& /*body*/, ConstBytes /*payload*/) {
  return HeaderError::kNone;
}

template <typename PropertyBody>
HeaderError check(const Header& /*header*/, const PropertyBody& /*body*/, ConstBytes payload) {
  return violates("R2-6.3-6", !payload.empty()) ? HeaderError::kTrailing : HeaderError::kNone;
}

void emit_body(xdr::XdrWriter& out, Direction direction, std::uint32_t inv_handle, const ChunkListsView& lists) {
  out.u32(static_cast<std::uint32_t>(direction));
  out.u32(inv_handle);
  emit_read_list(out, lists.call_chunk, lists.read_list);
  emit_write_list(out, lists.write_list);
  emit_reply_chunk(out, lists.reply_chunk);
}

template <Proc kType>
void emit_body(xdr::XdrWriter& out, const ChunkListsBody<kType>& body) {
  emit_body(out, body.direction, body.inv_handle, body.lists);
}

void emit_body(xdr::XdrWriter& out, const Error& body) {
  const auto err = static_cast<std::uint32_t>(body.err);
  out.u32(err);
  v2::emit_error_arm(out, arm_kind(err).value_or(ErrorArmKind::kVoid), body.arm);
}

void emit_body(xdr::XdrWriter& out, const Optional& body) {
  out.u32(static_cast<std::uint32_t>(body.optdir));
  out.u32(body.opttype);
  out.opaque(body.optinfo);
}

void emit_body(xdr::XdrWriter& out, const Connprop& body) {
  v2::emit_propset(out, body.start);
  v2::emit_propsubset(out, body.nochg);
}

void emit_body(xdr::XdrWriter& out, const Reqprop& body) {
  v2::emit_propset(out, body.want);
}

void emit_body(xdr::XdrWriter& out, const Resprop& body) {
  v2::emit_propsubset(out, body.done);
  v2::emit_propsubset(out, body.rejected);
  v2::emit_propset(out, body.other);
}

void emit_body(xdr::XdrWriter& out, const Updprop& body) {
  v2::emit_propset(out, body.now);
}

// Errors never flow from requester to responder, and an unreadable Error or Reply is no request.
bool is_request(const Body& body) {
  return std::visit(
      [](const auto& b) {
        using B = std::decay_t<decltype(b)>;
        if constexpr (requires { b.direction; }) return b.direction == Direction::kCall;
        if constexpr (requires { b.optdir; }) return b.optdir == Direction::kCall;
        return !std::is_same_v<B, Error> && !std::is_same_v<B, Resprop>;
      },
      body);
}

}  // namespace

HeaderError parse_message(ConstBytes message, Header& header, ConstBytes& payload) {
  header = {};
  payload = {};
  xdr::XdrReader in(message, xdr::Padding::kZero);
  v2::Prefix prefix;
  if (violates("R2-7.2.4-28", !v2::parse_prefix(in, prefix))) return HeaderError::kTooShort;
  header.xid = prefix.xid;
  header.vers = prefix.vers;
  header.credit = prefix.credit;
  const bool is_error = prefix.htype == static_cast<std::uint32_t>(Proc::kError);
  if (violates("R2-7.2.4-8", prefix.vers != v2::kVersion && !is_error)) return HeaderError::kVersion;
  if (const auto error = parse_body(in, prefix.htype, header.body); error != HeaderError::kNone) return error;
  payload = in.rest();
  return std::visit([&](const auto& body) { return check(header, body, payload); }, header.body);
}

void emit_header(xdr::XdrWriter& out, const Header& header) {
  std::visit(
      [&](const auto& body) {
        v2::emit_prefix(out, {.xid = header.xid,
                              .vers = header.vers,
                              .credit = header.credit,
                              .htype = static_cast<std::uint32_t>(body.kProc)});
        emit_body(out, body);
      },
      header.body);
}

void emit_chunk_lists(xdr::XdrWriter& out, const v2::Prefix& prefix, Direction direction, std::uint32_t inv_handle,
                      const ChunkListsView& lists) {
  v2::emit_prefix(out, prefix);
  emit_body(out, direction, inv_handle, lists);
}

std::optional<Err> answer(const Header& header, HeaderError error) {
  if (error == HeaderError::kNone || error == HeaderError::kTooShort || !is_request(header.body)) return {};
  if (error == HeaderError::kVersion) return Err::kVers;
  if (error == HeaderError::kHeaderType) return Err::kInvalProc;
  return Err::kBadXdr;
}

}  // namespace weft::rpcrdma::v2_cel05
