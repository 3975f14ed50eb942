#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// rping's protocol on the wire. In one turn the client sends a BufferInfo of its source, and the server reads the
// source and sends go ahead. Then the client sends a BufferInfo of its sink, and the server writes the octets that it
// read there and sends go ahead.
namespace weft::apps::ping {

inline constexpr std::uint16_t kDefaultPort = 7174;
inline constexpr std::size_t kDefaultSize = 64;
inline constexpr std::size_t kMinSize = 26;  // room for the counter in the text
inline constexpr std::size_t kMaxSize = 65536;
inline constexpr std::size_t kInfoLen = 16;

using InfoOctets = std::array<std::uint8_t, kInfoLen>;

// BufferInfo is rping's only message: 64-bit address, 32-bit STag, 32-bit length, big-endian. In the server's go ahead
// its content has no meaning.
struct BufferInfo {
  std::uint64_t addr = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  friend bool operator==(const BufferInfo&, const BufferInfo&) = default;
};

InfoOctets emit_info(const BufferInfo& info);
BufferInfo parse_info(const InfoOctets& octets);

// fill_pattern writes the text of one turn: "rdma-ping-N: ", then characters from 'A' to 'z' in a circle that starts
// one character further every turn, and a NUL at the end.
void fill_pattern(std::span<std::uint8_t> out, std::uint64_t turn);

// text_len is the number of octets that the server writes back: up to and with the first NUL, or all if there is none.
std::size_t text_len(std::span<const std::uint8_t> octets);

}  // namespace weft::apps::ping
