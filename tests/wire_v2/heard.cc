#include "tests/wire_v2/heard.h"

#include <optional>

namespace weft::wire_v2 {
namespace {

Bytes gathered(const verbs::SendWr& wr) {
  Bytes octets;
  for (const verbs::Sge& sge : wr.sg_list) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(sge.addr);
    octets.insert(octets.end(), at, at + sge.length);
  }
  return octets;
}

Segment segment_of(const verbs::SendWr& wr) {
  std::uint32_t len = 0;
  for (const verbs::Sge& sge : wr.sg_list) len += sge.length;
  return {wr.rkey, len, wr.remote_addr};
}

std::optional<Post> post_of(std::size_t end, const verbs::SendWr& wr) {
  switch (wr.opcode) {
    case verbs::WrOpcode::kSend: return Post{end, Post::Kind::kSend, gathered(wr), {}, {}};
    case verbs::WrOpcode::kSendWithInv: return Post{end, Post::Kind::kSend, gathered(wr), wr.invalidate_rkey, {}};
    case verbs::WrOpcode::kRdmaRead: return Post{end, Post::Kind::kRead, {}, {}, segment_of(wr)};
    case verbs::WrOpcode::kRdmaWrite: return Post{end, Post::Kind::kWrite, {}, {}, segment_of(wr)};
    default: return {};
  }
}

}  // namespace

void Heard::on_post(std::size_t end, const verbs::SendWr& wr) {
  if (auto post = post_of(end, wr)) add(std::move(*post));
}

void Heard::on_pair(std::size_t client, std::size_t server) {
  const std::scoped_lock lock(mutex_);
  transcript_.pair(client, server);
}

void Heard::on_arrival(std::size_t end, std::span<const std::uint8_t> octets) {
  add({end, Post::Kind::kArrival, {octets.begin(), octets.end()}, {}, {}});
}

void Heard::add(Post post) {
  if (!post.octets.empty()) on_octets(post.octets);
  const std::scoped_lock lock(mutex_);
  transcript_.add(std::move(post));
}

}  // namespace weft::wire_v2
