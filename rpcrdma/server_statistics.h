#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rpcrdma/call.h"
#include "verbs-shim/api/types.h"

// The counts of a Server, as plain values.
namespace weft::rpcrdma {

// ResponderCounters: the Calls and answers of one connection.
struct ResponderCounters {
  std::uint64_t calls_served = 0;
  std::uint64_t discarded = 0;  // messages without an answer
  std::uint64_t err_vers = 0;
  std::uint64_t err_chunk = 0;
  std::uint64_t garbage_args = 0;        // found here, not by a service
  std::uint64_t reply_chunks = 0;        // Replies through the Reply chunk
  std::uint64_t continued_replies = 0;   // Replies in several messages
  std::uint64_t write_chunks = 0;        // items through a Write chunk
  std::uint64_t invalidations = 0;       // Replies that invalidate a handle
  std::uint64_t duplicate_requests = 0;  // repeated Calls that a service has already received

  ResponderCounters& operator+=(const ResponderCounters& one);
};

// ConnectionStatistics: the counts of one connection of a Server.
struct ConnectionStatistics {
  ConnectionId connection;
  std::string client;  // the group of its address for limits: an IPv4 address, or a /64 of IPv6
  verbs::QpCounters messages = {};
  ResponderCounters calls = {};
  std::uint32_t credits = 0;    // that the client may use now
  std::uint32_t under_way = 0;  // Calls without an answer
  std::uint32_t waiting = 0;    // the part of these Calls that waits for memory
};

// EndReason: why a Server's connection ended. The log has the whole reason.
enum class EndReason : std::uint8_t {
  kClient,    // the client closed it in order
  kProtocol,  // one end broke a rule of MPA, DDP or RDMAP: a Terminate went out or came in
  kLost,      // TCP was reset or lost, or the device went away
  kTimeout,   // TCP did not answer in time
  kFailed,    // the server gave up: the client stalled or broke a rule of RPC-over-RDMA, or resources ran out
  kGaveWay,   // to another client
  kProgram,   // the server's program wanted it
};
inline constexpr std::size_t kNumEndReasons = 7;

// ServerStatistics: all counts of a Server.
struct ServerStatistics {
  std::vector<ConnectionStatistics> connections;  // that are open
  // Of ended connections:
  verbs::QpCounters ended_messages = {};
  ResponderCounters ended_calls = {};

  std::uint64_t opened = 0;
  std::array<std::uint64_t, kNumEndReasons> ended = {};  // by EndReason
  // Connect requests that the server rejected:
  std::uint64_t not_admitted = 0;  // by ServerConfig::admits
  std::uint64_t no_place = 0;      // all places were taken
  std::uint64_t not_accepted = 0;  // no memory or no descriptors
};

}  // namespace weft::rpcrdma
