#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "expected.h"

namespace weft::e2e {

// Capture writes TCP connections between two addresses as a classic pcap file of raw IPv4 packets, and beside it one
// line of JSON for each packet that carries octets of MPA: the contents by the script.
class Capture {
 public:
  Capture(std::ostream& pcap, std::ostream& list);

  // begin opens a connection: the three segments of TCP's handshake. The connections follow one another.
  void begin(std::string_view conversation);
  // segment is one TCP segment; at most 65,495 octets.
  void segment(bool from_initiator, const Octets& octets, const Json& expected);

 private:
  void packet(bool from_initiator, std::uint8_t flags, const Octets& payload);

  std::ostream& pcap_;
  std::ostream& list_;
  std::string conversation_;
  std::uint16_t initiator_port_ = 40000;
  std::uint32_t num_packets_ = 0;
  std::uint32_t next_seq_[2] = {};  // of the responder, of the initiator
};

}  // namespace weft::e2e
