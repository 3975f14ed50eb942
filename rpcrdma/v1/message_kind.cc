#include "rpcrdma/v1/message_kind.h"

#include "requirements/violates.h"
#include "rpcrdma/chunk_list_codec.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/xdr/xdr.h"

namespace weft::rpcrdma::v1 {

namespace {

struct ListsSeen {
  bool has_read_list = false;
  bool reply_chunk_is_filled = false;  // lengths other than zero
};

bool skip_segments(xdr::XdrReader& in, bool& has_length) {
  std::uint32_t count = 0;
  if (!in.u32(count)) return false;
  for (; count > 0; --count) {
    std::uint32_t handle = 0;
    std::uint32_t length = 0;
    if (!in.u32(handle) || !in.u32(length) || !in.skip(8)) return false;
    has_length = has_length || length != 0;
  }
  return true;
}

// Skips the three chunk lists without keeping them. False: they do not parse.
bool skip_lists(xdr::XdrReader& in, ListsSeen& seen) {
  bool more = false;
  bool ignored = false;
  if (!in.boolean(more)) return false;
  seen.has_read_list = more;
  while (more) {
    if (!in.skip(kReadSegmentLen - 4) || !in.boolean(more)) return false;
  }
  if (!in.boolean(more)) return false;
  while (more) {
    if (!skip_segments(in, ignored) || !in.boolean(more)) return false;
  }
  return in.boolean(more) && (!more || skip_segments(in, seen.reply_chunk_is_filled));
}

}  // namespace

bool is_first(ConstBytes message) {
  xdr::XdrReader in(message);
  std::uint32_t vers = 0;
  return in.skip(4) && in.u32(vers) && vers == kVersion;
}

MessageKind message_kind(ConstBytes message) {
  xdr::XdrReader in(message);
  std::uint32_t xid = 0;
  std::uint32_t vers = 0;
  std::uint32_t credit = 0;
  std::uint32_t proc = 0;
  if (!in.u32(xid) || !in.u32(vers) || !in.u32(credit) || !in.u32(proc)) return MessageKind::kUnclear;
  // In every version; only responders send it.
  if (violates("R1-9-01", proc == static_cast<std::uint32_t>(Proc::kError))) return MessageKind::kReply;
  if (violates("R1-7.2.1-05", vers != kVersion)) return MessageKind::kUnclear;
  ListsSeen seen;
  if (proc == static_cast<std::uint32_t>(Proc::kNomsg)) {
    // There is no msg_type inline. A Reply has no Read list, and a Call has no filled Reply chunk. Lists that both
    // could have are unclear.
    if (violates("R1-7.2.1-05", !skip_lists(in, seen))) return MessageKind::kUnclear;
    if (violates("R1-5.3.1-02", seen.has_read_list)) return MessageKind::kCall;
    return seen.reply_chunk_is_filled ? MessageKind::kReply : MessageKind::kUnclear;
  }
  if (violates("R1-7.2.1-05", proc != static_cast<std::uint32_t>(Proc::kMsg))) return MessageKind::kUnclear;
  if (violates("R1-7.2.1-05", !skip_lists(in, seen))) return MessageKind::kUnclear;
  std::uint32_t type = 0;
  if (violates("R1-7.2.1-05", !in.u32(xid) || !in.u32(type))) return MessageKind::kUnclear;
  if (violates("R1-7.1.4-02", type == static_cast<std::uint32_t>(MsgType::kReply))) return MessageKind::kReply;
  const bool is_neither = type != static_cast<std::uint32_t>(MsgType::kCall);
  return violates("R1-7.2.1-05", is_neither) ? MessageKind::kUnclear : MessageKind::kCall;
}

}  // namespace weft::rpcrdma::v1
