#include "apps/ping/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "mpa/wire/cursor.h"

namespace weft::apps::ping {

InfoOctets emit_info(const BufferInfo& info) {
  InfoOctets out{};
  Writer writer(out);
  [[maybe_unused]] bool fits = writer.u64(info.addr) && writer.u32(info.rkey) && writer.u32(info.length);
  return out;
}

BufferInfo parse_info(const InfoOctets& octets) {
  BufferInfo info;
  Reader reader(octets);
  [[maybe_unused]] bool whole = reader.u64(info.addr) && reader.u32(info.rkey) && reader.u32(info.length);
  return info;
}

void fill_pattern(std::span<std::uint8_t> out, std::uint64_t turn) {
  constexpr std::uint8_t kFirst = 65, kLast = 122;
  if (out.empty()) return;
  std::string head = fmt::format("rdma-ping-{}: ", turn);
  std::size_t head_len = std::min(head.size(), out.size());
  std::copy_n(head.begin(), head_len, out.begin());
  auto c = std::uint8_t(kFirst + turn % (kLast - kFirst + 1));
  for (std::uint8_t& octet : out.subspan(head_len)) {
    octet = c;
    c = c == kLast ? kFirst : std::uint8_t(c + 1);
  }
  out.back() = 0;
}

std::size_t text_len(std::span<const std::uint8_t> octets) {
  auto nul = std::find(octets.begin(), octets.end(), std::uint8_t{0});
  return nul == octets.end() ? octets.size() : std::size_t(nul - octets.begin()) + 1;
}

}  // namespace weft::apps::ping
