#include "apps/dissect/tcp_segment.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pcap/dlt.h>

#include <algorithm>

#include "base/address.h"
#include "mpa/wire/cursor.h"

namespace weft::apps::dissect {

namespace {

constexpr std::uint16_t kEtherIpv4 = 0x0800, kEtherIpv6 = 0x86dd;
constexpr std::uint16_t kEtherVlan = 0x8100, kEtherQinq = 0x88a8, kEtherOldQinq = 0x9100;
constexpr std::uint8_t kProtocolTcp = 6;
// Extension headers of IPv6 that may stand before TCP (RFC 8200 section 4).
constexpr std::uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kDestination = 60;
constexpr int kMaxExtensions = 8;

// Ip: the IP packet behind the link layer.
struct Ip {
  Reader octets{ConstBytes{}};
  std::size_t wire_len = 0;  // octets from here on that the packet had
};

bool skip_vlan_tags(Reader& in, std::uint16_t& type) {
  while (type == kEtherVlan || type == kEtherQinq || type == kEtherOldQinq) {
    if (!in.skip(2) || !in.u16(type)) return false;
  }
  return type == kEtherIpv4 || type == kEtherIpv6;
}

bool skip_link(int link_type, Reader& in) {
  std::uint16_t type = 0;
  switch (link_type) {
    case DLT_EN10MB: return in.skip(12) && in.u16(type) && skip_vlan_tags(in, type);
    case DLT_LINUX_SLL: return in.skip(14) && in.u16(type) && skip_vlan_tags(in, type);
    case DLT_LINUX_SLL2: return in.u16(type) && in.skip(18) && skip_vlan_tags(in, type);
    case DLT_NULL:
    case DLT_LOOP: return in.skip(4);
    case DLT_RAW:
    case DLT_IPV4:
    case DLT_IPV6: return true;
    default: return false;
  }
}

bool parse_ipv4(Ip& ip, TcpSegment& segment) {
  std::uint8_t version = 0, protocol = 0;
  std::uint16_t total_len = 0, fragment = 0;
  ConstBytes src, dst;
  if (!ip.octets.u8(version) || !ip.octets.skip(1) || !ip.octets.u16(total_len) || !ip.octets.skip(2) ||
      !ip.octets.u16(fragment) || !ip.octets.skip(1) || !ip.octets.u8(protocol) || !ip.octets.skip(2) ||
      !ip.octets.bytes(4, src) || !ip.octets.bytes(4, dst)) {
    return false;
  }
  const std::size_t header_len = (version & 0x0fu) * 4;
  constexpr std::uint16_t kMoreFragments = 0x2000, kOffset = 0x1fff;
  const bool is_later_fragment = (fragment & kOffset) != 0;
  segment.is_fragment = (fragment & kMoreFragments) != 0;
  if (header_len < 20 || protocol != kProtocolTcp || is_later_fragment || !ip.octets.skip(header_len - 20))
    return false;
  std::ranges::copy(src, segment.src.address.begin());
  std::ranges::copy(dst, segment.dst.address.begin());
  // Segmentation offload leaves a length of 0 in packets beyond 64 KiB. Ethernet pads short packets.
  const std::size_t len = total_len == 0 ? ip.wire_len : std::min<std::size_t>(total_len, ip.wire_len);
  if (len < header_len) return false;
  ip.wire_len = len - header_len;
  return true;
}

bool skip_extension(Ip& ip, std::uint8_t& next, std::size_t& len, TcpSegment& segment) {
  constexpr std::uint16_t kMoreFragments = 0x0001, kOffset = 0xfff8;
  const std::uint8_t header = next;
  std::uint8_t units = 0;
  std::uint16_t fragment = 0;
  if (!ip.octets.u8(next) || !ip.octets.u8(units) || !ip.octets.u16(fragment)) return false;
  if (header == kFragment) {
    units = 0;
    segment.is_fragment = (fragment & kMoreFragments) != 0;
    if ((fragment & kOffset) != 0) return false;
  }
  len += 8 + units * 8u;
  return ip.octets.skip(4 + units * 8u);
}

bool parse_ipv6(Ip& ip, TcpSegment& segment) {
  std::uint16_t payload_len = 0;
  std::uint8_t next = 0;
  ConstBytes src, dst;
  if (!ip.octets.skip(4) || !ip.octets.u16(payload_len) || !ip.octets.u8(next) || !ip.octets.skip(1) ||
      !ip.octets.bytes(16, src) || !ip.octets.bytes(16, dst)) {
    return false;
  }
  segment.src.is_v6 = segment.dst.is_v6 = true;
  std::ranges::copy(src, segment.src.address.begin());
  std::ranges::copy(dst, segment.dst.address.begin());
  const std::size_t behind = ip.wire_len < 40 ? 0 : ip.wire_len - 40;
  const std::size_t len = payload_len == 0 ? behind : std::min<std::size_t>(payload_len, behind);
  std::size_t skipped = 0;
  for (int i = 0; next == kHopByHop || next == kRouting || next == kFragment || next == kDestination; ++i) {
    if (i == kMaxExtensions || !skip_extension(ip, next, skipped, segment)) return false;
  }
  if (next != kProtocolTcp || skipped > len) return false;
  ip.wire_len = len - skipped;
  return true;
}

bool parse_tcp(Ip& ip, TcpSegment& segment) {
  constexpr std::size_t kTcpHeaderLen = 20;
  constexpr std::uint8_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kAck = 0x10;
  std::uint8_t offset = 0, flags = 0;
  Reader& in = ip.octets;
  if (!in.u16(segment.src.port) || !in.u16(segment.dst.port) || !in.u32(segment.seq) || !in.u32(segment.ack) ||
      !in.u8(offset) || !in.u8(flags) || !in.skip(6)) {
    return false;
  }
  const std::size_t header_len = (offset >> 4) * 4u;
  if (header_len < kTcpHeaderLen || header_len > ip.wire_len || !in.skip(header_len - kTcpHeaderLen)) return false;
  segment.fin = (flags & kFin) != 0;
  segment.syn = (flags & kSyn) != 0;
  segment.rst = (flags & kRst) != 0;
  segment.has_ack = (flags & kAck) != 0;
  segment.payload_len = ip.wire_len - header_len;
  segment.payload = in.rest().first(std::min(in.rest().size(), segment.payload_len));
  return true;
}

}  // namespace

std::string endpoint_str(const IpEndpoint& endpoint) {
  if (endpoint.is_v6) {
    sockaddr_in6 addr{};
    addr.sin6_family = AF_INET6;
    addr.sin6_port = htons(endpoint.port);
    std::ranges::copy(endpoint.address, addr.sin6_addr.s6_addr);
    return address_str(reinterpret_cast<const sockaddr&>(addr));
  }
  sockaddr_in addr{};
  addr.sin_family = AF_INET;
  addr.sin_port = htons(endpoint.port);
  std::copy_n(endpoint.address.begin(), 4, reinterpret_cast<std::uint8_t*>(&addr.sin_addr));
  return address_str(reinterpret_cast<const sockaddr&>(addr));
}

std::optional<TcpSegment> parse_tcp_segment(const Packet& packet) {
  TcpSegment segment{.packet = packet.number, .time = packet.time};
  segment.comments = packet.comments;
  Ip ip{Reader(packet.octets), 0};
  if (!skip_link(packet.link_type, ip.octets) || ip.octets.empty()) return std::nullopt;
  const std::size_t link_len = packet.octets.size() - ip.octets.rest().size();
  if (packet.wire_len < link_len) return std::nullopt;
  ip.wire_len = packet.wire_len - link_len;
  const int version = ip.octets.rest()[0] >> 4;
  const bool is_ip = version == 4 ? parse_ipv4(ip, segment) : version == 6 && parse_ipv6(ip, segment);
  if (!is_ip || !parse_tcp(ip, segment)) return std::nullopt;
  return segment;
}

bool is_known_link_type(int link_type) {
  constexpr int kKnown[] = {DLT_EN10MB, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_NULL, DLT_LOOP, DLT_RAW, DLT_IPV4, DLT_IPV6};
  return std::ranges::find(kKnown, link_type) != std::end(kKnown);
}

}  // namespace weft::apps::dissect
