#pragma once

#include <cstddef>

#include "rpcrdma/budget.h"
#include "rpcrdma/server.h"
#include "verbs-shim/api/verbs.h"

// Limits that follow from a ServerConfig.
namespace weft::rpcrdma {

// Whether one of the protocols has Framing: Calls may come in parts, and credits count messages.
bool frames_messages(const ServerConfig& config);

// Whether the device and the server can satisfy the configuration.
verbs::Status check(const ServerConfig& config, const verbs::Caps& caps);

// The limits for one group of addresses (peer_group): all connections and a quarter of the buffered octets if the
// configuration says 0.
std::size_t max_connections_per_group(const ServerConfig& config);
std::size_t max_buffered_per_group(const ServerConfig& config);
// The newcomers that wait for a place, of all groups.
std::size_t max_waiting(const ServerConfig& config);

// The bounds of the memory of Calls, and the most octets of it.
Budget::Bounds call_memory(const ServerConfig& config);
std::size_t max_call_memory(const ServerConfig& config);

// with_default_threshold raises inline_threshold to the default of every protocol that the server speaks: a peer that
// hears nothing else sends messages of this length (R2-3.3-1).
ServerConfig with_default_threshold(ServerConfig config);

}  // namespace weft::rpcrdma
