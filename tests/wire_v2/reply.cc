#include "tests/wire_v2/reply.h"

#include <algorithm>

namespace weft::wire_v2 {
namespace {

constexpr Rules kCopied = {"R1-4.4.6-04", "W2-4.5.2.1-2"};

// The same segments, none of them longer.
bool is_copy(const Chunk& offered, const Chunk& returned) {
  return std::ranges::equal(offered, returned, [](const Segment& was, const Segment& is) {
    return was.handle == is.handle && was.offset == is.offset && is.length <= was.length;
  });
}

bool is_written(const Request& call, const Chunk& returned) {
  return std::ranges::all_of(returned, [&](const Segment& segment) {
    const auto end = call.written.find(segment.handle);
    return segment.length == 0 || (end != call.written.end() && end->second >= segment.offset + segment.length);
  });
}

}  // namespace

void judge_reply(const Request& call, const Message& reply,
                 const std::function<void(const Rules& rules, const char* text)>& report) {
  std::vector<Chunk> offered = call.header.writes, returned = reply.writes;
  if (reply.reply && !call.header.reply) {
    report({"R1-5.3.3-05", "W2-6.6.3-2"}, "a Reply uses a Reply chunk that was not offered");
  } else if (reply.reply) {
    offered.push_back(*call.header.reply);
    returned.push_back(*reply.reply);
  }
  if (!std::ranges::equal(offered, returned, is_copy)) {
    report(kCopied, "a Reply does not return the chunks that were offered");
  } else if (!std::ranges::all_of(returned, [&](const Chunk& chunk) { return is_written(call, chunk); })) {
    report(kCopied, "a Reply tells of octets that were not written");
  }
}

void judge_invalidation(const Request* call, const Message& message, std::optional<std::uint32_t> invalidated,
                        const std::function<void(const Rules& rules, const char* text)>& report) {
  if (!invalidated) return;
  const bool is_reply =
      message.direction == Direction::kReply && (message.kind == Kind::kInline || message.kind == Kind::kExternal);
  if (!is_reply) return report({"R2-7.2.3-4", "W2-6.5-3"}, "a Send that ends no Reply invalidates a handle");
  if (call == nullptr) return;
  if (call->header.inv_handle == 0) {
    report({"R2-7.2.3-3", "W2-6.5-2"}, "a Reply invalidates a handle though its Call named none");
  } else if (call->header.inv_handle != *invalidated) {
    report({"R2-7.2.3-4", "W2-6.5-2"}, "a Reply invalidates another handle than its Call named");
  }
}

}  // namespace weft::wire_v2
