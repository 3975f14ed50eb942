#pragma once

#include <cstddef>
#include <cstdint>

#include "rpcrdma/receive_pool.h"
#include "rpcrdma/server.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// ReceivePlan says how a server's connections share Receives: how many each one is promised for as long as it lives,
// and how many all together may be promised beyond that. A plain value, made once at start.
//
// Every connection, up to ServerConfig::max_connections, has its first share: a client that rests may send as many
// Calls at any time. With many connections the device may have few Receives for each. Then a first share is smaller,
// and at most half of the Receives go into first shares, because clients that work need more.
struct ReceivePlan {
  std::uint32_t idle_credits = 0;  // credits of a first share
  ReceivePool::Config pool;

  // The device has shared receive queues. Error: EINVAL, where the device has too few Receives for a first share of one
  // credit (or of what the protocols need at least) for each of max_connections.
  static verbs::Result<ReceivePlan> make(const ServerConfig& config, const verbs::Caps& caps);
};

// Whether a server shares Receives on this device.
bool shares_receives(const ServerConfig& config, const verbs::Caps& caps);

}  // namespace weft::rpcrdma
