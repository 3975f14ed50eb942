#include "verbs-shim/soft/packet_head.h"

#include <netinet/in.h>

#include <bit>
#include <cstring>

namespace weft::verbs::soft {

namespace {

constexpr std::uint8_t kProtocolTcp = 6, kHops = 64;
constexpr std::size_t kIpv4ChecksumAt = 10, kTcpChecksumAt = 16;

// There is room for everything.
void put([[maybe_unused]] bool fits) {}

std::uint16_t fold(std::uint64_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

// The one's complement sum of the 16-bit words (RFC 1071). Eight octets at a time: the sum does not depend on the order
// of octets, but for a swap at the end.
std::uint64_t sum_of(ConstBytes octets) {
  std::uint64_t sum = 0;
  std::size_t at = 0;
  for (; octets.size() - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, octets.data() + at, sizeof(word));
    sum += word & 0xffffffff;
    sum += word >> 32;
  }
  std::uint64_t rest = 0;
  if (at < octets.size()) std::memcpy(&rest, octets.data() + at, octets.size() - at);
  sum += (rest & 0xffffffff) + (rest >> 32);
  const std::uint16_t folded = fold(sum);
  if constexpr (std::endian::native == std::endian::big) return folded;
  return static_cast<std::uint16_t>(folded << 8 | folded >> 8);
}

in_addr_t ipv4_of(const sockaddr_storage& address) {
  return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
}

ConstBytes ipv6_of(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in6&>(address).sin6_addr.s6_addr;
}

// sin_port and sin6_port lie at the same place.
std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

PacketHead::PacketHead(const sockaddr_storage& src, const sockaddr_storage& dst, const Tcp& tcp, ConstBytes kept,
                       std::size_t payload_len)
    : out_(room_) {
  if (src.ss_family == AF_INET6) {
    put_ipv6(src, dst, payload_len);
  } else {
    put_ipv4(src, dst, payload_len);
  }
  put_tcp(src, dst, tcp);
  if (kept.size() == payload_len) put_tcp_checksum(kept);
}

void PacketHead::set_u16(std::size_t at, std::uint16_t value) {
  room_[at] = static_cast<std::uint8_t>(value >> 8);
  room_[at + 1] = static_cast<std::uint8_t>(value);
}

void PacketHead::put_ipv4(const sockaddr_storage& src, const sockaddr_storage& dst, std::size_t payload_len) {
  const auto total = static_cast<std::uint16_t>(kIpv4Len + kTcpLen + payload_len);
  put(out_.u8(0x45) && out_.u8(0) && out_.u16(total) && out_.u32(0x4000) && out_.u8(kHops) && out_.u8(kProtocolTcp) &&
      out_.u16(0) && out_.u32(ipv4_of(src)) && out_.u32(ipv4_of(dst)));
  ip_len_ = kIpv4Len;
  // The checksum of RFC 791 section 3.1, of the words above: each packet has one.
  const auto words_of = [](in_addr_t address) { return (address >> 16) + (address & 0xffff); };
  const std::uint64_t sum = 0x4500u + total + 0x4000u + (kHops << 8 | kProtocolTcp) +
                            std::uint64_t{words_of(ipv4_of(src))} + words_of(ipv4_of(dst));
  set_u16(kIpv4ChecksumAt, static_cast<std::uint16_t>(~fold(sum)));
}

void PacketHead::put_ipv6(const sockaddr_storage& src, const sockaddr_storage& dst, std::size_t payload_len) {
  put(out_.u32(0x60000000) && out_.u16(static_cast<std::uint16_t>(kTcpLen + payload_len)) && out_.u8(kProtocolTcp) &&
      out_.u8(kHops) && out_.bytes(ipv6_of(src)) && out_.bytes(ipv6_of(dst)));
  ip_len_ = kIpv6Len;
}

void PacketHead::put_tcp(const sockaddr_storage& src, const sockaddr_storage& dst, const Tcp& tcp) {
  put(out_.u16(port_of(src)) && out_.u16(port_of(dst)) && out_.u32(tcp.seq) && out_.u32(tcp.ack) &&
      out_.u8(kTcpLen / 4 << 4) && out_.u8(tcp.flags) && out_.u16(0xffff) && out_.u32(0));
}

// RFC 9293 section 3.1: over the addresses, the protocol and the length as well. The addresses are the last octets of
// either IP header.
void PacketHead::put_tcp_checksum(ConstBytes payload) {
  const std::size_t addresses_len = ip_len_ == kIpv4Len ? 8 : 32;
  const ConstBytes head = octets();
  std::uint64_t sum = kProtocolTcp + kTcpLen + payload.size();
  sum += sum_of(head.subspan(ip_len_ - addresses_len, addresses_len));
  sum += sum_of(head.subspan(ip_len_, kTcpLen)) + sum_of(payload);
  set_u16(ip_len_ + kTcpChecksumAt, static_cast<std::uint16_t>(~fold(sum)));
}

}  // namespace weft::verbs::soft
