#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace weft::apps::dissect {

// Timestamp: time since 1970 (UTC), as captures have it.
using Timestamp = std::chrono::nanoseconds;

// Packet: one packet of a capture. `octets` can be fewer than the packet had: the capture may cut packets.
struct Packet {
  std::uint64_t number = 0;  // from 1, as Wireshark counts
  Timestamp time{};
  ConstBytes octets;  // from the link layer on; valid until the next packet is read
  std::size_t wire_len = 0;
};

// Capture reads a pcap or pcapng file, or one from a pipe (libpcap). Not thread-safe.
class Capture {
 public:
  // path: "-" reads standard input. The error is one line.
  static Result<Capture, std::string> open(const std::string& path);
  Capture(Capture&&) noexcept;
  Capture& operator=(Capture&&) noexcept;
  ~Capture();

  // link_type: LINKTYPE_ of the packets, as libpcap's DLT_.
  int link_type() const;

  enum class Next : std::uint8_t { kPacket, kEnd, kError };
  // next reads the next packet. kError: the file is cut or broken here; error() says why.
  Next next(Packet& packet);
  const std::string& error() const { return error_; }

 private:
  struct Handle;
  explicit Capture(std::unique_ptr<Handle> handle);

  std::unique_ptr<Handle> handle_;
  std::uint64_t num_packets_ = 0;
  std::string error_;
};

}  // namespace weft::apps::dissect
