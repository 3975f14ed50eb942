#pragma once

#include <cstddef>

#include "rpcrdma/server.h"
#include "verbs-shim/api/verbs.h"

// What a ServerConfig leaves to be worked out.
namespace weft::rpcrdma {

// Whether a device and its server can do what the configuration asks for.
verbs::Status check(const ServerConfig& config, const verbs::Caps& caps);

// The limits for one group of addresses (peer_group): three quarters of the connections and a quarter of the buffered
// octets where the configuration says 0.
std::size_t max_connections_per_group(const ServerConfig& config);
std::size_t max_buffered_per_group(const ServerConfig& config);

// Octets of Calls that a connection never waits for.
std::size_t guaranteed_octets(const ServerConfig& config);

}  // namespace weft::rpcrdma
