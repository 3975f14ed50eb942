#include "capture.h"

namespace weft::e2e {

namespace {

constexpr std::uint32_t kLinktypeRaw = 101;  // a packet begins with its IP header
constexpr std::uint32_t kSnapLen = 262144;
constexpr std::uint16_t kResponderPort = 20049;
constexpr std::size_t kHeadersLen = 40;  // IPv4 and TCP, both without options

constexpr std::uint8_t kSyn = 0x02;
constexpr std::uint8_t kPush = 0x08;
constexpr std::uint8_t kAck = 0x10;

class Block {
 public:
  explicit Block(std::ostream& out) : out_(out) {}
  Block& u8(std::uint32_t value) {
    out_.put(static_cast<char>(value));
    return *this;
  }
  Block& u16(std::uint32_t value) { return u8(value >> 8 & 0xff).u8(value & 0xff); }
  Block& u32(std::uint32_t value) { return u16(value >> 16).u16(value & 0xffff); }

 private:
  std::ostream& out_;
};

}  // namespace

Capture::Capture(std::ostream& pcap, std::ostream& list) : pcap_(pcap), list_(list) {
  Block(pcap_).u32(0xa1b2c3d4).u16(2).u16(4).u32(0).u32(0).u32(kSnapLen).u32(kLinktypeRaw);
}

void Capture::begin(std::string_view conversation) {
  ++initiator_port_;
  conversation_ = std::to_string(initiator_port_) + ", " + std::string(conversation);
  next_seq_[0] = 0x20000000;
  next_seq_[1] = 0x10000000;
  packet(true, kSyn, {});
  ++next_seq_[1];
  packet(false, kSyn | kAck, {});
  ++next_seq_[0];
  packet(true, kAck, {});
}

void Capture::segment(bool from_initiator, const Octets& octets, const Json& expected) {
  packet(from_initiator, kPush | kAck, octets);
  next_seq_[from_initiator] += static_cast<std::uint32_t>(octets.size());
  Json line{
      {"frame", num_packets_}, {"conversation", conversation_}, {"from", from_initiator ? "initiator" : "responder"}};
  line.update(expected);
  list_ << line.dump() << '\n';
}

// Checksums stay zero: tshark does not look at them unless told to.
void Capture::packet(bool from_initiator, std::uint8_t flags, const Octets& payload) {
  constexpr std::uint32_t kInitiator = 0xc0000201;  // 192.0.2.1 and 192.0.2.2, for documentation (RFC 5737)
  constexpr std::uint32_t kResponder = 0xc0000202;
  const auto len = static_cast<std::uint32_t>(kHeadersLen + payload.size());
  ++num_packets_;
  Block out(pcap_);
  out.u32(num_packets_ / 1000).u32(num_packets_ % 1000 * 1000).u32(len).u32(len);  // one packet a millisecond
  out.u8(0x45).u8(0).u16(len).u16(0).u16(0x4000).u8(64).u8(6).u16(0);
  out.u32(from_initiator ? kInitiator : kResponder).u32(from_initiator ? kResponder : kInitiator);
  out.u16(from_initiator ? initiator_port_ : kResponderPort).u16(from_initiator ? kResponderPort : initiator_port_);
  out.u32(next_seq_[from_initiator]).u32((flags & kAck) != 0 ? next_seq_[!from_initiator] : 0);
  out.u8(0x50).u8(flags).u16(0xffff).u16(0).u16(0);
  for (std::uint8_t octet : payload) out.u8(octet);
}

}  // namespace weft::e2e
