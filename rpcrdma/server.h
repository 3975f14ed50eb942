#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rpcrdma/binding.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/bytes.h"
#include "rpcrdma/client.h"
#include "verbs-shim/api/cm.h"

namespace weft::rpcrdma {

// CallId names one Call of one connection until it is answered; a Call whose connection ended is answered into nothing.
struct CallId {
  std::uint64_t value = 0;
  friend bool operator==(CallId, CallId) = default;
};

// ServedCall is one Call as its handler sees it. It owns what it shows; handlers may keep it and move it to any thread,
// but must give it back to the server's thread (Server::reply) in the end.
struct ServedCall {
  CallId id;
  std::uint32_t xid = 0;
  std::uint32_t program = 0, version = 0, procedure = 0;
  OpaqueAuth cred;
  std::vector<std::uint8_t> args;  // XDR; without the item where it came by Read chunk
  // The DDP-eligible argument pulled by RDMA Read: its place in args (already checked against the binding) and octets.
  // Where it came inline, it is simply part of args.
  std::optional<std::size_t> item_position;
  Buffer item;
  // Largest eligible result that the Write chunk of this Call takes; nothing where none was offered.
  std::optional<std::size_t> result_item_capacity;
  std::string peer;  // address:port, for logs
  // What Server::buffers() is sure to have for this Call's result, if taken within on_call, in octets.
  std::size_t result_room = 0;
};

// ServedReply answers one ServedCall.
struct ServedReply {
  enum class Accept : std::uint32_t { kSuccess, kProgUnavail, kProgMismatch, kProcUnavail, kGarbageArgs, kSystemErr };
  Accept accept = Accept::kSuccess;
  std::vector<std::uint8_t> results;  // XDR; the item's octets and padding left out
  // The DDP-eligible result: it stands behind the first item_position octets of results. The engine sends it through
  // the Write chunk where one was offered, else inline (or within the Reply chunk).
  std::optional<std::size_t> item_position;
  Buffer item;
  std::size_t item_len = 0;  // octets of `item` that count
};

// Service receives Calls. One thread, the server's.
class Service {
 public:
  virtual ~Service() = default;
  // on_call must sooner or later lead to one Server::reply (it may call it itself); it must not block.
  virtual void on_call(ServedCall call) = 0;
};

// Program is one program and version that a server offers. The Server itself answers PROG_UNAVAIL, PROG_MISMATCH and
// RPC_MISMATCH.
struct Program {
  const Binding* binding = nullptr;
  Service* service = nullptr;
};

struct ServerConfig {
  std::size_t inline_threshold = 4096;
  std::uint32_t credits = 32;            // granted to every connection
  std::size_t max_call = 1 << 20;        // octets of a Long Call (without items)
  std::size_t max_item = 4 << 20;        // octets of one Read or Write chunk
  std::size_t max_buffered = 256 << 20;  // octets held for all connections together; Calls beyond it wait
  std::size_t max_buffered_per_connection = 64 << 20;
  std::size_t max_connections = 1024;
  std::uint8_t ird = 0;
  std::uint8_t ord = 16;
  int backlog = 128;
  // A connection whose RDMA Reads, Writes or Sends make no progress for this long is ended.
  std::chrono::milliseconds stall_timeout{30000};
};

// Server listens for RPC-over-RDMA version 1 connections and answers with its programs' services. Driven like Client.
class Server {
 public:
  // Starts to listen at addr. device, programs' bindings and services outlive the server.
  static verbs::Result<std::unique_ptr<Server>> listen(verbs::Device& device, const sockaddr_storage& addr,
                                                       std::span<const Program> programs, const ServerConfig& config);
  ~Server();

  sockaddr_storage local_addr() const;
  // Registered memory for results; take from it on the server's thread.
  BufferPool& buffers();

  // reply answers a Call; from the server's thread. Unknown ids (the connection is gone) are ignored.
  void reply(CallId id, ServedReply reply);

  std::size_t process(verbs::TimePoint now);
  std::optional<verbs::TimePoint> next_timeout() const;
  int fd() const;

  std::size_t num_connections() const;
  // Sums over all connections, ended ones included.
  verbs::QpCounters counters() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
