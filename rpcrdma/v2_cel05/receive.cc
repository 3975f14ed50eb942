#include "rpcrdma/v2_cel05/receive.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "requirements/violates.h"
#include "rpcrdma/returned_lists.h"
#include "rpcrdma/v2/call_lists.h"
#include "rpcrdma/v2_cel05/errors.h"
#include "rpcrdma/v2_cel05/header.h"

namespace weft::rpcrdma::v2_cel05 {

namespace {

using Code = TransportError::Code;

template <Proc kType>
CallVerdict take_body(ChunkListsBody<kType>& body, const ChunkLimits& limits, ReceivedCall& call) {
  if (violates("R2-7.2.2-2", body.direction == Direction::kReply)) return discard(call, "a Reply reached a responder");
  call.external = kType == Proc::kNomsg;
  call.inv_handle = v2::named_handle(body.inv_handle, body.lists);
  body.lists.split_position_zero();
  return v2::take_call_lists(std::move(body.lists), limits, Code::kReplyResource, call);
}

// R2-7.2.4-1
CallVerdict take_body(const Error& /*body*/, const ChunkLimits& /*limits*/, ReceivedCall& call) {
  return discard(call, "RDMA2_ERROR reached a responder");
}

CallVerdict take_body(const Optional& body, const ChunkLimits& /*limits*/, ReceivedCall& call) {
  if (violates("R2-5.1-4", body.optdir == Direction::kReply)) return discard(call, "an unknown option in a Reply");
  return refuse(call, {.code = Code::kOption}, "an unknown option");  // R2-5.1-3
}

// R2-6.3-2
template <typename PropertyBody>
CallVerdict take_body(const PropertyBody& /*body*/, const ChunkLimits& /*limits*/, ReceivedCall& call) {
  return refuse(call, {.code = Code::kOption}, "an operation on properties");
}

ReplyVerdict take_lists(const ChunkListsView& lists, const Offered& offered, ReceivedReply& reply) {
  if (const char* why = disagreement(lists, offered); why != nullptr) return discard(reply, why);
  reply.reply_chunk_len = lists.reply_chunk ? total_length(*lists.reply_chunk) : 0;
  return ReplyVerdict::kReply;
}

ReplyVerdict take_reply(Msg& body, const Offered& offered, ConstBytes payload, ReceivedReply& reply) {
  if (violates("R2-7.2.2-2", body.direction == Direction::kCall)) return discard(reply, "a Call reached a requester");
  reply.lists = std::move(body.lists);
  reply.payload = payload;
  const ReplyVerdict verdict = take_lists(reply.lists, offered, reply);
  if (verdict == ReplyVerdict::kReply && violates("R1-5.3.3-05", reply.reply_chunk_len != 0)) {
    return discard(reply, "RDMA2_MSG with bytes in the Reply chunk");
  }
  return verdict;
}

ReplyVerdict take_reply(Nomsg& body, const Offered& offered, ConstBytes /*payload*/, ReceivedReply& reply) {
  if (violates("R2-7.2.2-2", body.direction == Direction::kCall)) return discard(reply, "a Call reached a requester");
  reply.lists = std::move(body.lists);
  const ReplyVerdict verdict = take_lists(reply.lists, offered, reply);
  return verdict == ReplyVerdict::kReply ? ReplyVerdict::kExternalReply : verdict;
}

ReplyVerdict take_reply(const Error& body, const Offered& /*offered*/, ConstBytes /*payload*/, ReceivedReply& reply) {
  reply.error = from_wire(body);
  return ReplyVerdict::kError;
}

template <typename OtherBody>
ReplyVerdict take_reply(const OtherBody& /*body*/, const Offered& /*offered*/, ConstBytes /*payload*/,
                        ReceivedReply& reply) {
  return discard(reply, "an option or an operation on properties");
}

}  // namespace

MessageKind message_kind(ConstBytes message) {
  xdr::XdrReader in(message);
  v2::Prefix prefix;
  std::uint32_t direction = 0;
  if (!v2::parse_prefix(in, prefix)) return MessageKind::kUnclear;
  const auto proc = static_cast<Proc>(prefix.htype);
  if (proc == Proc::kError) return MessageKind::kReply;
  if (prefix.vers != v2::kVersion) return MessageKind::kUnclear;
  if (proc == Proc::kResprop) return MessageKind::kReply;
  if (proc != Proc::kMsg && proc != Proc::kNomsg && proc != Proc::kOptional) return MessageKind::kCall;
  if (!in.u32(direction)) return MessageKind::kUnclear;
  return direction == static_cast<std::uint32_t>(Direction::kReply) ? MessageKind::kReply : MessageKind::kCall;
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
  if (error != HeaderError::kNone) return discard(reply, header_error_str(error));  // R2-7.2.4-29
  return std::visit([&](auto& body) { return take_reply(body, offered, payload, reply); }, header.body);
}

}  // namespace weft::rpcrdma::v2_cel05
