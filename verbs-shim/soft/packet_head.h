#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "mpa/wire/cursor.h"

namespace weft::verbs::soft {

// Flags of a TCP header (RFC 9293 section 3.1).
inline constexpr std::uint8_t kFin = 0x01, kSyn = 0x02, kPush = 0x08, kAck = 0x10;

// PacketHead is the IP header and the TCP header of a packet that was never on a wire as such.
class PacketHead {
 public:
  struct Tcp {
    std::uint32_t seq = 0, ack = 0;
    std::uint8_t flags = 0;
  };

  // kept: the front of the payload that the capture keeps; payload_len: all of the payload. The checksum of TCP is
  // right if the capture keeps all. Otherwise it is 0: no reader can verify it.
  PacketHead(const sockaddr_storage& src, const sockaddr_storage& dst, const Tcp& tcp, ConstBytes kept,
             std::size_t payload_len);

  ConstBytes octets() const { return ConstBytes(room_).first(out_.len()); }

 private:
  static constexpr std::size_t kTcpLen = 20, kIpv4Len = 20, kIpv6Len = 40;

  void put_ipv4(const sockaddr_storage& src, const sockaddr_storage& dst, std::size_t payload_len);
  void put_ipv6(const sockaddr_storage& src, const sockaddr_storage& dst, std::size_t payload_len);
  void put_tcp(const sockaddr_storage& src, const sockaddr_storage& dst, const Tcp& tcp);
  void put_tcp_checksum(ConstBytes payload);
  void set_u16(std::size_t at, std::uint16_t value);

  std::array<std::uint8_t, kIpv6Len + kTcpLen> room_{};
  Writer out_;
  std::size_t ip_len_ = 0;
};

}  // namespace weft::verbs::soft
