#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "apps/dissect/packet.h"
#include "base/result.h"

namespace weft::apps::dissect {

// Capture reads a pcap file (libpcap) or a pcapng file, or one from a pipe. Not thread-safe.
class Capture {
 public:
  // path: "-" reads standard input. The error is one line.
  static Result<Capture, std::string> open(const std::string& path);
  Capture(Capture&&) noexcept;
  Capture& operator=(Capture&&) noexcept;
  ~Capture();

  enum class Next : std::uint8_t { kPacket, kEnd, kError };
  // next reads the next packet. kError: the file is cut or broken here; error() says why.
  Next next(Packet& packet);
  const std::string& error() const { return error_; }
  // Packets that the capture lacks, as it says itself so far. pcap files do not say.
  std::uint64_t num_dropped() const;

 private:
  class Reader;
  class PcapReader;
  class PcapngReader;
  explicit Capture(std::unique_ptr<Reader> reader);

  std::unique_ptr<Reader> reader_;
  std::uint64_t num_packets_ = 0;
  std::string error_;
};

}  // namespace weft::apps::dissect
