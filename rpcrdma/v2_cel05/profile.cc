#include "rpcrdma/v2_cel05/profile.h"

#include "rpcrdma/chunk_list_codec.h"
#include "rpcrdma/v2/first_message.h"
#include "rpcrdma/v2_cel05/errors.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_cel05/property_exchange.h"
#include "rpcrdma/v2_cel05/receive.h"

namespace weft::rpcrdma::v2_cel05 {

namespace {

bool is_first(ConstBytes message) {
  return v2::classify_first_message(message) == v2::FirstMessage::kCel05;
}

std::string_view other_draft(std::uint32_t xid, ConstBytes answer) {
  return v2::other_draft({.draft = v2::Draft::kCel05, .xid = xid}, answer);
}

void emit_message(xdr::XdrWriter& out, const Message& message) {
  if (message.type == Message::Type::kError) {
    return emit_header(
        out, {.xid = message.xid, .vers = message.version, .credit = message.credit, .body = to_wire(message.error)});
  }
  const Proc proc = message.external ? Proc::kNomsg : Proc::kMsg;
  const bool is_call = message.type == Message::Type::kCall;
  emit_chunk_lists(out,
                   {.xid = message.xid,
                    .vers = message.version,
                    .credit = message.credit,
                    .htype = static_cast<std::uint32_t>(proc)},
                   is_call ? Direction::kCall : Direction::kReply, is_call ? message.inv_handle : 0, message.lists);
}

// R2-7.2-6: the smallest header has 36 octets.
constexpr HeaderLengths kLengths{
    .empty = 36, .read_segment = kReadSegmentLen, .write_chunk = 8, .reply_chunk = 4, .segment = kSegmentLen};

}  // namespace

const Profile kProfile{
    .name = "2-cel05",
    .version = v2::kVersion,
    .call_lengths = kLengths,
    .reply_lengths = kLengths,
    .default_threshold = 4096,  // R2-3.3-3
    .first_threshold = 1024,    // R2-8-3
    .names_invalidation = true,
    .retries_keep_xid = true,                    // R2-7.2.4-20, R2-7.2.4-23
    .serves_reverse = true,                      // R2-7.2.2-1
    .thresholds_by_properties = true,            // R2-3.3-3
    .default_reverse = ReverseSupport::kInline,  // R2-6.2-2
    .is_first = is_first,
    .message_kind = message_kind,
    .receive_call = receive_call,
    .reply_xid = v2::reply_xid,
    .receive_reply = receive_reply,
    .other_draft = other_draft,
    .error_name = error_name,
    .make_exchange = make_exchange,
    .emit = emit_message,
};

}  // namespace weft::rpcrdma::v2_cel05
