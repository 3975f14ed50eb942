#include "rpcrdma/v2_wg07/profile.h"

#include "rpcrdma/chunk_list_codec.h"
#include "rpcrdma/framing.h"
#include "rpcrdma/v2/first_message.h"
#include "rpcrdma/v2_wg07/errors.h"
#include "rpcrdma/v2_wg07/header.h"
#include "rpcrdma/v2_wg07/property_exchange.h"
#include "rpcrdma/v2_wg07/receive.h"

namespace weft::rpcrdma::v2_wg07 {

namespace {

using Direction = Reassembly::Part::Direction;

bool is_first(ConstBytes message) {
  return v2::classify_first_message(message) == v2::FirstMessage::kWg07;
}

std::string_view other_draft(std::uint32_t xid, ConstBytes answer) {
  return v2::other_draft({.draft = v2::Draft::kWg07, .xid = xid}, answer);
}

void emit_message(xdr::XdrWriter& out, const Message& message) {
  const Start start{message.xid, message.version, message.credit};
  switch (message.type) {
    case Message::Type::kCall: return emit_call(out, start, message.external, message.inv_handle, message.lists);
    case Message::Type::kReply: return emit_reply(out, start, message.external, message.lists);
    case Message::Type::kError:
      return emit_header(
          out, {.xid = start.xid, .vers = start.vers, .credit = start.credit, .body = to_wire(message.error)});
  }
}

void emit_middle(xdr::XdrWriter& out, Direction direction, std::uint32_t xid, std::uint32_t remaining) {
  Header header{.xid = xid, .body = CallMiddle{remaining}};
  if (direction == Direction::kReply) header.body = ReplyMiddle{remaining};
  emit_header(out, header);
}

void emit_grant(xdr::XdrWriter& out) {
  emit_header(out, {.xid = 0, .body = Grant{}});  // W2-6.3.2-1
}

constexpr Framing kFraming{
    .middle_header_len = v2::kPrefixLen + 4,  // W2-6.3.6-1
    .frame = frame,
    .payload = payload,
    .emit_middle = emit_middle,
    .emit_grant = emit_grant,
};

}  // namespace

// The shortest headers: W2-6.3.7-1, W2-6.3.5-1, W2-6.3.10-1.
const Profile kProfile{
    .name = "2-wg07",
    .version = v2::kVersion,
    .call_lengths = {.empty = 32,
                     .call_chunk = 4,
                     .read_segment = kReadSegmentLen,
                     .write_chunk = 8,
                     .reply_chunk = 4,
                     .segment = kSegmentLen},
    .reply_lengths = {.empty = 20, .write_chunk = 8, .reply_chunk = 8, .segment = kSegmentLen},
    .default_threshold = 4096,  // W2-4.2.2-2
    .first_threshold = 1024,    // W2-4.3-4
    .names_invalidation = true,
    .refuses_other_version = true,  // W2-7.1.2-1
    .returns_reply_chunk = false,   // W2-6.3.10-1
    .framing = &kFraming,
    .thresholds_by_properties = true,                                // W2-5.2-2
    .default_chunks = {.max_segment = 1 << 20, .max_segments = 16},  // W2-5.2-3, W2-5.2-4
    .default_reverse = ReverseSupport::kNone,                        // W2-5.2-5
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

}  // namespace weft::rpcrdma::v2_wg07
