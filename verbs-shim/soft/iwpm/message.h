#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "base/bytes.h"

// The wire format of the iWARP port mapper (iwpmd of rdma-core). No RFC describes it; the names come from iwpmd.
namespace weft::verbs::soft::iwpm {

inline constexpr std::uint16_t kPort = 3935;  // UDP
inline constexpr std::size_t kMessageLen = 48;
inline constexpr std::size_t kRequestLen = 64;
inline constexpr std::size_t kMaxMessageLen = kRequestLen;

enum class MessageType : std::uint8_t { kRequest, kAccept, kAck, kReject };

// IpVersion: the IP version of all addresses of a message.
enum class IpVersion : std::uint8_t { k4 = 4, k6 = 6 };

// Address is an IP address in network order. An IPv4 address is the first four octets; the others are 0.
using Address = std::array<std::uint8_t, 16>;

// Endpoint is an address and a TCP port, of either IP version as its context says.
struct Endpoint {
  Address address{};
  std::uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// Message is one datagram. The accepting peer listens, the connecting peer asks.
struct Message {
  MessageType type = MessageType::kRequest;
  IpVersion ip = IpVersion::k4;
  std::uint8_t pmtime = 0;        // sent as 0 by all; echoed
  std::uint64_t assochandle = 0;  // the connecting peer's, echoed by the accepting one
  Endpoint accepting;             // apipaddr and apport: as asked for; in an Accept the endpoint to connect to
  Endpoint connecting;            // cpipaddr and cpport, echoed
  Endpoint mapped_connecting;     // Request only: the source of the TCP connection
  friend bool operator==(const Message&, const Message&) = default;
};

// BadMessage: why a datagram is not a message.
enum class BadMessage : std::uint8_t { kLength, kVersion, kIpVersion };

// parse_message reads a whole datagram: exactly 64 octets for a Request, exactly 48 octets for the other types. It
// ignores the reserved field and the octets behind an IPv4 address: iwpmd does not clear the latter.
[[nodiscard]] std::variant<Message, BadMessage> parse_message(ConstBytes octets);

// emit_message writes a message and returns its length; 0 if there is no room. Reserved and unused octets are 0.
[[nodiscard]] std::size_t emit_message(const Message& message, MutBytes out);

}  // namespace weft::verbs::soft::iwpm
