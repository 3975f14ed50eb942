#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace weft::rpcrdma {

// ObservedLink: the connection that a LinkObserver hears of.
struct ObservedLink {
  std::uint32_t id = 0;    // at a Server: ConnectionId::value; at a Client: the number of the attempt to connect
  bool is_client = false;  // this end made the connection
  std::string peer;        // its address and port
};

// LinkMessage: one message of RPC-over-RDMA, which is the octets of one Send.
struct LinkMessage {
  enum class Direction : std::uint8_t { kSent, kReceived };

  Direction direction = Direction::kSent;
  // The version: "1", "2-cel05" or "2-wg07". While the versions of the two ends are not settled: the version that this
  // end asks or answers in.
  std::string_view profile = {};
  std::span<const ConstBytes> octets = {};  // in order: the transport header, and what follows it in the Send
  std::uint32_t credit = 0;  // the credit word as it stands in the message; 0 if the message is too short
  std::optional<std::uint32_t> invalidated = {};  // the handle of the receiver that the Send invalidates
};

// LinkObserver hears of each message of RPC-over-RDMA that a Client or a Server sends and receives, in this order, and
// of the end of each of its connections: statistics and traces are made of it (ClientConfig::observer,
// ServerConfig::observer). Calls come on the thread of the client or server. Arguments are valid during the call. An
// observer never calls the client or the server.
//
// A message is told when it was handed to the device or taken from it, before its engine judges it: the octets may be
// anything.
class LinkObserver {
 public:
  virtual void on_message(const ObservedLink& link, const LinkMessage& message) = 0;
  // The last call for this connection. It comes for each connection, also for one that was never established. why: one
  // line.
  virtual void on_end(const ObservedLink& link, std::string_view why) = 0;

 protected:
  ~LinkObserver() = default;
};

}  // namespace weft::rpcrdma
