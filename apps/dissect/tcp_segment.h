#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apps/dissect/packet.h"
#include "base/bytes.h"

namespace weft::apps::dissect {

// IpEndpoint: an IP address and a port. An IPv4 address stands in the first four octets.
struct IpEndpoint {
  std::array<std::uint8_t, 16> address{};
  bool is_v6 = false;
  std::uint16_t port = 0;
  friend auto operator<=>(const IpEndpoint&, const IpEndpoint&) = default;
};
// endpoint_str: "192.0.2.1:20049", "[2001:db8::1]:20049".
std::string endpoint_str(const IpEndpoint& endpoint);

// TcpSegment: one TCP segment of a packet (RFC 9293 section 3.1).
struct TcpSegment {
  std::uint64_t packet = 0;  // Packet::number
  Timestamp time{};
  IpEndpoint src = {}, dst = {};
  std::uint32_t seq = 0;
  std::uint32_t ack = 0;
  bool has_ack = false;
  bool syn = false;
  bool fin = false;
  bool rst = false;
  bool is_fragment = false;                         // the first IP fragment; the octets of the others are missing
  ConstBytes payload = {};                          // the captured octets; views the packet
  std::size_t payload_len = 0;                      // the octets that the segment had
  std::span<const std::string_view> comments = {};  // Packet::comments
};

// seq_distance: from one sequence number to another. A TCP window has at most 2^30 octets, so a number that is further
// back is ahead instead: a capture can miss more than 2 GiB.
constexpr std::int64_t seq_distance(std::uint32_t from, std::uint32_t to) {
  constexpr std::int64_t kSpace = std::int64_t{1} << 32, kMaxWindow = std::int64_t{1} << 30;
  const std::int64_t ahead = static_cast<std::uint32_t>(to - from);
  return ahead < kSpace - kMaxWindow ? ahead : ahead - kSpace;
}

// parse_tcp_segment finds the TCP segment in a packet: Ethernet with VLAN tags, Linux cooked, loopback or raw IP, IPv4
// or IPv6. Empty for everything else, for fragments other than the first, and where the capture cut the TCP header.
std::optional<TcpSegment> parse_tcp_segment(const Packet& packet);

// is_known_link_type tells whether parse_tcp_segment knows the link layer.
bool is_known_link_type(int link_type);

}  // namespace weft::apps::dissect
