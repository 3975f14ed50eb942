#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rpcrdma/call.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/service.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/log.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

struct ClientConfig {
  std::size_t inline_threshold = 4096;  // octets, our Sends and Receives (RFC 8797 makes it known); 1024 to 262144
  std::uint32_t credits = 32;           // asked for with every Call
  std::uint8_t ird = 16;
  std::uint8_t ord = 0;
  // Keeps one of the credits for health checks, where there is more than one (RFC 8267 section 6.7.2).
  bool reserve_credit = false;
  ChunkUse chunks = {};
  // Lets the server invalidate a handle of each Call by its Reply (R of RFC 8797), where the device has memory windows
  // of type 2. All chunks are then such windows, bound before each Call.
  bool remote_invalidation = false;
  // Served to the server, on this connection (RFC 8167); none: its Calls are discarded. Bindings and services outlive
  // the client.
  std::span<const Program> reverse_programs = {};
  std::uint32_t reverse_credits = 16;  // granted for them; 1 to 16
  // Takes Calls of the server with chunks, too; else they are answered with ERR_CHUNK.
  bool reverse_chunks = false;
  std::chrono::milliseconds connect_timeout{10000};  // of each attempt
  std::chrono::milliseconds call_timeout{60000};
  ReconnectPolicy reconnect = {};
  HealthCheckPolicy health_check = {};
  // Gets the reasons: of connections that end, of Replies that are discarded, and of Calls that are sent again; and
  // what ServerConfig::log gets, about the server's Calls. Called on the client's thread.
  verbs::Log log = {};
};

// ReplyCounts: what came from the server, over all connections of a Client.
struct ReplyCounts {
  std::uint64_t accepted = 0;
  // Messages that RFC 8166 has a requester discard: the Calls that they may have been meant for still wait.
  std::uint64_t discarded = 0;
  const char* last_discard = "";  // why the last of these was discarded, in a few words; static text
};

// Client is an RPC-over-RDMA version 1 requester with its connection, or with one after the other. Driven by its owner:
// fd() readable or next_timeout() reached -> process(). Calls beyond the peer's credits wait here in order. One thread.
class Client {
 public:
  // kConnecting: for the first time, or again (ClientConfig::reconnect). kClosed is for good.
  enum class State : std::uint8_t { kConnecting, kReady, kClosed };

  // Starts to connect to dst (numeric; name resolution is the application's). The device outlives the client.
  static verbs::Result<std::unique_ptr<Client>> connect(verbs::Device& device, const sockaddr_storage& dst,
                                                        const ClientConfig& config);
  // Every call still open ends as kDisconnected; its callback runs here. Not to be run from a callback.
  ~Client();

  State state() const;
  // Why it is kClosed, or connects again, in one line.
  const std::string& error() const;
  // How often it was kReady.
  std::uint64_t num_connections() const;

  // call queues one Call; done runs once, from process() or from the client's end. Errors: EINVAL (sizes out of range,
  // items that the binding does not know), EEXIST (an XID that is in use), ENOTCONN.
  verbs::Result<CallHandle> call(const CallSpec& spec, ReplyCallback done);
  // cancel gives a Call up: when it returns nothing of the caller's memory is remotely accessible, and the Call ends as
  // kCancelled, from process(). The server may or may not have done it. False where the Call has ended before.
  bool cancel(CallHandle handle);
  // reply answers a Call of the server's, one that a reverse program's service got; from the client's thread, and what
  // the service still has of it is destroyed before the client. Unknown ids (the connection is gone) are ignored.
  void reply(CallId id, ServedReply reply);
  // Calls queued or sent and not ended.
  std::size_t num_outstanding() const;

  // process drives the device, the connection and the calls; returns what Device::process does, plus calls ended.
  std::size_t process(verbs::TimePoint now);
  std::optional<verbs::TimePoint> next_timeout() const;
  int fd() const;
  void disconnect();

  // Sums over all its connections.
  verbs::QpCounters counters() const;
  ReplyCounts replies() const;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
