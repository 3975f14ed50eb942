#pragma once

#include <cstdint>
#include <memory>

#include "rpcrdma/channel.h"
#include "rpcrdma/message_pool.h"
#include "rpcrdma/receive_pool.h"
#include "rpcrdma/server.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// MessageResources: what a server's connections share for their Sends and Receives, and how much of it each gets. On
// devices without shared receive queues the Receives are the connections' own.
struct MessageResources {
  std::unique_ptr<MessagePool> sends;
  std::unique_ptr<ReceivePool> receives;  // null: there is none
  std::unique_ptr<verbs::Cq> receive_cq;  // for all of these
  std::uint32_t idle_credits = 0;         // what a connection is granted at first, and comes back to
  std::uint32_t reverse_credits = 0;      // Receives of it for Replies to the server's own Calls
  // Of a queue pair and its Channel, without serial and share.
  Channel::Config shape;

  // shape: threshold and send queue are set already.
  verbs::Status open(verbs::Device& device, verbs::Pd& pd, verbs::CompChannel& events, const ServerConfig& config);

  // The shape of the next connection.
  Channel::Config next(std::uint32_t serial) const;
  // Completions that a connection needs to have room for beside those of shared Receives.
  std::uint32_t completions() const { return (receives ? 0 : shape.num_receives) + shape.max_send_wr; }
  ServerMemory memory() const;
  // Gives back what no message needs now.
  void trim();
};

}  // namespace weft::rpcrdma
