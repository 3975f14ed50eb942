#include "verbs-shim/soft/iwpm/message.h"

#include <algorithm>

#include "mpa/wire/cursor.h"

namespace weft::verbs::soft::iwpm {
namespace {

// The first octet: version of the protocol, type, IP version.
constexpr unsigned kVersionShift = 6;
constexpr unsigned kTypeShift = 4;
constexpr std::uint8_t kTypeMask = 0x03;
constexpr std::uint8_t kIpMask = 0x0f;
constexpr std::uint8_t kVersion = 0;

constexpr std::size_t address_len(IpVersion ip) {
  return ip == IpVersion::k4 ? 4 : 16;
}

constexpr std::size_t message_len(MessageType type) {
  return type == MessageType::kRequest ? kRequestLen : kMessageLen;
}

bool read_address(Reader& reader, IpVersion ip, Address& out) {
  ConstBytes octets;
  if (!reader.bytes(out.size(), octets)) return false;
  std::ranges::copy(octets.first(address_len(ip)), out.begin());
  return true;
}

bool write_address(Writer& writer, IpVersion ip, const Address& address) {
  Address octets{};
  std::copy_n(address.begin(), address_len(ip), octets.begin());
  return writer.bytes(octets);
}

}  // namespace

std::variant<Message, BadMessage> parse_message(ConstBytes octets) {
  Reader reader(octets);
  std::uint8_t magic = 0;
  if (!reader.u8(magic)) return BadMessage::kLength;
  if (magic >> kVersionShift != kVersion) return BadMessage::kVersion;
  Message message;
  message.type = static_cast<MessageType>(magic >> kTypeShift & kTypeMask);
  message.ip = static_cast<IpVersion>(magic & kIpMask);
  if (message.ip != IpVersion::k4 && message.ip != IpVersion::k6) return BadMessage::kIpVersion;
  if (octets.size() != message_len(message.type)) return BadMessage::kLength;
  const bool request = message.type == MessageType::kRequest;
  std::uint16_t reserved = 0;
  if (!(reader.u8(message.pmtime) && reader.u16(reserved) && reader.u16(message.accepting.port) &&
        reader.u16(message.connecting.port) && reader.u64(message.assochandle) &&
        read_address(reader, message.ip, message.connecting.address) &&
        read_address(reader, message.ip, message.accepting.address) &&
        (!request || read_address(reader, message.ip, message.mapped_connecting.address)))) {
    return BadMessage::kLength;
  }
  if (request) message.mapped_connecting.port = reserved;
  return message;
}

std::size_t emit_message(const Message& message, MutBytes out) {
  if (out.size() < message_len(message.type)) return 0;
  const bool request = message.type == MessageType::kRequest;
  const auto magic =
      static_cast<std::uint8_t>(kVersion << kVersionShift | static_cast<std::uint8_t>(message.type) << kTypeShift |
                                static_cast<std::uint8_t>(message.ip));
  Writer w(out);
  const bool ok = w.u8(magic) && w.u8(message.pmtime) && w.u16(request ? message.mapped_connecting.port : 0) &&
                  w.u16(message.accepting.port) && w.u16(message.connecting.port) && w.u64(message.assochandle) &&
                  write_address(w, message.ip, message.connecting.address) &&
                  write_address(w, message.ip, message.accepting.address) &&
                  (!request || write_address(w, message.ip, message.mapped_connecting.address));
  return ok ? w.len() : 0;
}

}  // namespace weft::verbs::soft::iwpm
