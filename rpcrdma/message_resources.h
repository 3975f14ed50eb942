#pragma once

#include <cstdint>
#include <memory>

#include "rpcrdma/endpoint.h"
#include "rpcrdma/message_pool.h"
#include "rpcrdma/receive_pool.h"
#include "rpcrdma/server.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// SharedReceives: Receives of many connections, and the queue for their completions. They outlive these connections.
struct SharedReceives {
  std::unique_ptr<ReceivePool> pool;
  std::unique_ptr<verbs::Cq> cq;
  bool overrun = false;  // `cq` lost completions: its connections end, and no other connection uses it
};

// MessageResources: resources that a server's connections share for their Sends and Receives, and the share of each
// connection. On devices without shared receive queues each connection has its own Receives.
struct MessageResources {
  std::unique_ptr<MessagePool> sends;
  std::shared_ptr<SharedReceives> receives;  // of new connections; null: the Receives are not shared
  std::uint32_t idle_credits = 0;            // first grant of a connection, and its grant when idle
  std::uint32_t reverse_credits = 0;         // Receives of a connection for Replies to the server's own Calls
  // The shape of a queue pair and its Endpoint, without serial and share.
  Endpoint::Config shape;
  ReceivePool::Config receive_shape;

  // The caller sets the threshold and the send queue of `shape` first.
  verbs::Status open(verbs::Device& device, verbs::Pd& pd, verbs::CompChannel& events, const ServerConfig& config);
  // Makes new shared Receives if the present ones have lost completions. Their connections keep these until they end.
  verbs::Status replace_overrun(verbs::Device& device, verbs::Pd& pd, verbs::CompChannel& events);

  // The shape of the next connection, which is from that address (peer_group).
  Endpoint::Config next(std::uint32_t serial, std::string address) const;
  // Completions that a connection needs room for, besides completions of shared Receives.
  std::uint32_t completions() const { return (receives ? 0 : shape.num_receives) + shape.max_send_wr; }
  ServerMemory memory() const;
  // Gives back memory that no message needs now.
  void trim();

 private:
  verbs::Status share_receives(verbs::Device& device, verbs::Pd& pd, verbs::CompChannel& events);
};

}  // namespace weft::rpcrdma
