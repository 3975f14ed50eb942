#pragma once

#include <cstdint>
#include <memory>

#include "rpcrdma/endpoint.h"
#include "rpcrdma/message_pool.h"
#include "rpcrdma/receive_pool.h"
#include "rpcrdma/server.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// MessageResources: resources that a server's connections share for their Sends and Receives, and the share of each
// connection. On devices without shared receive queues each connection has its own Receives.
struct MessageResources {
  std::unique_ptr<MessagePool> sends;
  std::unique_ptr<ReceivePool> receives;  // null: the Receives are not shared
  std::unique_ptr<verbs::Cq> receive_cq;  // for all shared Receives
  std::uint32_t idle_credits = 0;         // first grant of a connection, and its grant when idle
  std::uint32_t reverse_credits = 0;      // Receives of a connection for Replies to the server's own Calls
  // The shape of a queue pair and its Endpoint, without serial and share.
  Endpoint::Config shape;

  // The caller sets the threshold and the send queue of `shape` first.
  verbs::Status open(verbs::Device& device, verbs::Pd& pd, verbs::CompChannel& events, const ServerConfig& config);

  // The shape of the next connection.
  Endpoint::Config next(std::uint32_t serial) const;
  // Completions that a connection needs room for, besides completions of shared Receives.
  std::uint32_t completions() const { return (receives ? 0 : shape.num_receives) + shape.max_send_wr; }
  ServerMemory memory() const;
  // Gives back memory that no message needs now.
  void trim();
};

}  // namespace weft::rpcrdma
