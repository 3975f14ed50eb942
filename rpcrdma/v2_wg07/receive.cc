#include "rpcrdma/v2_wg07/receive.h"

#include <utility>
#include <variant>

#include "requirements/violates.h"
#include "rpcrdma/returned_lists.h"
#include "rpcrdma/v2/call_lists.h"
#include "rpcrdma/v2_wg07/errors.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::rpcrdma::v2_wg07 {

namespace {

using Code = TransportError::Code;
using Direction = Reassembly::Part::Direction;

std::size_t num_segments(const ChunkListsView& lists) {
  std::size_t num = lists.call_chunk.size() + lists.read_list.size();
  for (const SegmentArray& chunk : lists.write_list) num += chunk.size();
  return num + (lists.reply_chunk ? lists.reply_chunk->size() : 0);
}

template <Htype kType>
CallVerdict take_body(Call<kType>& body, const ChunkLimits& limits, ReceivedCall& call) {
  call.external = kType == Htype::kCallExternal;
  call.inv_handle = v2::named_handle(body.inv_handle, body.lists);
  // A limit of 0 is for Calls without chunks, and has errors of its own.
  if (violates("W2-5.2-4 W2-7.3.3-1", limits.max_segments != 0 && num_segments(body.lists) > limits.max_segments)) {
    return refuse(call, {.code = Code::kSegments, .limit = static_cast<std::uint32_t>(limits.max_segments)},
                  "too many segments");
  }
  return v2::take_call_lists(std::move(body.lists), limits, Code::kWriteChunks, call);
}

template <typename OtherBody>
CallVerdict take_body(const OtherBody& /*body*/, const ChunkLimits& /*limits*/, ReceivedCall& call) {
  return discard(call, "a Reply or a message without an RPC message reached a responder");
}

ReplyVerdict take_reply(ReplyInline& body, const Offered& offered, ConstBytes payload, ReceivedReply& reply) {
  reply.lists = std::move(body.lists);
  reply.payload = payload;
  const char* why = disagreement(reply.lists, offered);
  return why == nullptr ? ReplyVerdict::kReply : discard(reply, why);
}

ReplyVerdict take_reply(ReplyExternal& body, const Offered& offered, ConstBytes /*payload*/, ReceivedReply& reply) {
  reply.lists = std::move(body.lists);
  if (const char* why = disagreement(reply.lists, offered); why != nullptr) return discard(reply, why);
  reply.reply_chunk_len = total_length(*reply.lists.reply_chunk);
  return ReplyVerdict::kExternalReply;
}

ReplyVerdict take_reply(const Error& body, const Offered& /*offered*/, ConstBytes /*payload*/, ReceivedReply& reply) {
  reply.error = from_wire(body);
  return ReplyVerdict::kError;
}

template <typename OtherBody>
ReplyVerdict take_reply(const OtherBody& /*body*/, const Offered& /*offered*/, ConstBytes /*payload*/,
                        ReceivedReply& reply) {
  return discard(reply, "no Reply");
}

struct Sort {
  Frame::Type type = Frame::Type::kMalformed;
  Direction direction = Direction::kCall;
};

Sort sort_of(std::uint32_t htype) {
  using Type = Frame::Type;
  switch (static_cast<Htype>(htype)) {
    case Htype::kError: return {Type::kError, Direction::kReply};
    case Htype::kGrant: return {Type::kGrant};
    case Htype::kConnpropMiddle:
    case Htype::kConnpropFinal: return {Type::kProperties};
    case Htype::kCallExternal: return {Type::kExternal, Direction::kCall};
    case Htype::kCallMiddle: return {Type::kMiddle, Direction::kCall};
    case Htype::kCallInline: return {Type::kInline, Direction::kCall};
    case Htype::kReplyExternal: return {Type::kExternal, Direction::kReply};
    case Htype::kReplyMiddle: return {Type::kMiddle, Direction::kReply};
    case Htype::kReplyInline: return {Type::kInline, Direction::kReply};
  }
  return {};
}

}  // namespace

Frame frame(ConstBytes message) {
  xdr::XdrReader in(message);
  v2::Prefix prefix;
  Frame frame;
  if (!v2::parse_prefix(in, prefix)) return frame;
  frame.xid = prefix.xid;
  if (prefix.vers != v2::kVersion) return frame;
  const Sort sort = sort_of(prefix.htype);
  // A lenient receiver would take another draft's message for a GRANT.
  if (sort.type == Frame::Type::kGrant && violates("W2-6.3.2-1", in.remaining() != 0)) return frame;
  frame.type = sort.type;
  frame.direction = sort.direction;
  frame.credit = prefix.credit;
  if (frame.type == Frame::Type::kMiddle) (void)in.u32(frame.remaining);
  return frame;
}

std::optional<ConstBytes> payload(ConstBytes message) {
  Header header;
  ConstBytes payload;
  return parse_message(message, header, payload) == HeaderError::kNone ? std::optional(payload) : std::nullopt;
}

// A message of an unknown type may be a request, and gets an error (W2-7.1.3-1).
MessageKind message_kind(ConstBytes message) {
  xdr::XdrReader in(message);
  v2::Prefix prefix;
  if (!v2::parse_prefix(in, prefix)) return MessageKind::kUnclear;
  const Sort sort = sort_of(prefix.htype);
  if (sort.type == Frame::Type::kError) return MessageKind::kReply;
  if (prefix.vers != v2::kVersion) return MessageKind::kUnclear;
  return sort.direction == Direction::kReply ? MessageKind::kReply : MessageKind::kCall;
}

CallVerdict receive_call(ConstBytes message, const ChunkLimits& limits, ReceivedCall& call) {
  Header header;
  const HeaderError error = parse_message(message, header, call.payload);
  call.xid = header.xid;
  call.version = header.vers;
  call.credit = header.credit;
  if (error == HeaderError::kNone) {
    return std::visit([&](auto& body) { return take_body(body, limits, call); }, header.body);
  }
  const auto err = answer(header, error);
  if (!err) return discard(call, header_error_str(error));
  return refuse(call, from_wire({.err = *err}), header_error_str(error));
}

ReplyVerdict receive_reply(ConstBytes message, const Offered& offered, ReceivedReply& reply) {
  Header header;
  ConstBytes payload;
  const HeaderError error = parse_message(message, header, payload);
  reply.xid = header.xid;
  reply.credit = header.credit;
  if (error != HeaderError::kNone) return discard(reply, header_error_str(error));
  return std::visit([&](auto& body) { return take_reply(body, offered, payload, reply); }, header.body);
}

}  // namespace weft::rpcrdma::v2_wg07
