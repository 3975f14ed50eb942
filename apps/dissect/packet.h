#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace weft::apps::dissect {

// Timestamp: time since 1970 (UTC), as captures have it.
using Timestamp = std::chrono::nanoseconds;

// Packet: one packet of a capture. `octets` can be fewer than the packet had: the capture may cut packets.
struct Packet {
  std::uint64_t number = 0;  // from 1, as Wireshark counts
  Timestamp time{};
  ConstBytes octets = {};  // from the link layer on; valid until the next packet is read
  std::size_t wire_len = 0;
  int link_type = 0;  // as libpcap's DLT_
  // What the capture says of the packet (opt_comment of pcapng); valid until the next packet is read.
  std::span<const std::string_view> comments = {};
};

}  // namespace weft::apps::dissect
