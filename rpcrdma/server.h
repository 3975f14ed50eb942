#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "rpcrdma/call_observer.h"
#include "rpcrdma/earned_time.h"
#include "rpcrdma/link_observer.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/server_statistics.h"
#include "rpcrdma/service.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/log.h"

namespace weft::rpcrdma {

struct ServerConfig {
  std::size_t inline_threshold = 4096;
  std::uint32_t credits = 32;  // largest grant to one connection
  // At least one. The first message of a client decides which one its connection has.
  std::vector<Protocol> protocols = {Protocol::k1};
  // Exchanges transport properties with clients that begin to, in versions that have them.
  bool properties = true;
  // As ClientConfig::literal_credits (draft-ietf-nfsv4-rpcrdma-version-two-07 section 4.2.1), for clients of that
  // reading.
  bool literal_credits = false;
  // Smallest grant: for a connection that uses few credits, and while memory is short. 0: as many credits as
  // kIdleReceives holds if the device has shared receive queues; `credits` if every connection must have its own
  // Receives.
  std::uint32_t min_credits = 0;
  // Octets of the Receives that all connections together may be granted beyond min_credits each. If the device keeps a
  // reserve (verbs::SrqAttr), the server holds them only while Calls need them. 0: no shared receive queue, `credits`
  // Receives for every connection.
  std::size_t max_shared_receives = 16 << 20;
  // Calls to each client that may be under way at once on its connection (RFC 8167); at most 16. 0: Server::call makes
  // no Calls.
  std::uint32_t reverse_credits = 0;
  bool reverse_chunks = false;  // only if the clients are known to take them
  std::chrono::milliseconds reverse_timeout{60000};
  // Invalidates a handle of each Call's chunks by its Reply, if the client allows it too (R of RFC 8797). Not with
  // reverse_chunks: the handles of Calls to the client must stay valid.
  bool remote_invalidation = false;
  std::size_t max_call = 1 << 20;  // octets of a Long Call (without items)
  std::size_t max_item = 4 << 20;  // octets of one Read or Write chunk
  // How complex a Call's chunk lists may be. A header beyond these limits is answered with ERR_CHUNK, arguments beyond
  // them with GARBAGE_ARGS (RFC 8267 section 6.4.2). Allow at least 32 segments and one chunk of each kind.
  std::size_t max_segments = 128;    // of each list
  std::size_t max_read_chunks = 16;  // besides a Position Zero Read chunk
  std::size_t max_write_chunks = 16;
  std::size_t max_items = 256;  // DDP-eligible arguments of a Call that has Read chunks
  // Octets that Calls hold for their chunks and results beyond the guarantees of their connections: for all clients,
  // and for one address (an IPv4 address, or a /64 of IPv6; 0: a quarter, or one Call of the largest kind if that is
  // more). Calls beyond a limit wait, and their connections take turns. An address may take at most as much as it
  // leaves free.
  std::size_t max_buffered = 256 << 20;
  std::size_t max_buffered_per_client = 0;
  // Octets that each connection may hold whatever other connections do; at least inline_threshold. Small Calls are
  // therefore always served.
  std::size_t min_buffered_per_connection = 64 << 10;
  // Four Calls of 1 MiB and a little. If the Calls in hand exceed a processor's cache, the octets of each Call leave
  // the cache before they are sent. A Call that needs more than this limit runs alone.
  std::size_t max_buffered_per_connection = (4 << 20) + (64 << 10);
  // When there is no room for a new connection, the server ends an old one: first a connection that never carried a
  // Call, then one of the address with the most connections, also one with Calls under way. Clients send these again.
  std::size_t max_connections = 1024;
  // The same for one address; 0: max_connections.
  std::size_t max_connections_per_client = 0;
  // The most newcomers that wait until a connection of their own address ends for them, for half a second at most
  // (Arrivals): a quarter as many as the address has connections, half of this number, and half of max_connections for
  // all addresses together.
  std::size_t max_waiting = 256;
  // Decides by its address whether a peer may connect. The server calls it on its own thread, before it spends anything
  // on the connection. It rejects the connection if the answer is false. Empty: all peers may connect.
  std::function<bool(const sockaddr_storage& peer)> admits = {};
  // How many Replies of programs with ServedProgram::keeps_replies the server keeps, and how long.
  DuplicateRequestLimits duplicate_requests = {};
  std::uint8_t ird = 0;
  std::uint8_t ord = 16;
  int backlog = 128;  // connect requests that the server has not looked at yet
  // The server ends a connection whose RDMA Reads, Writes or Sends make no progress for this long.
  std::chrono::milliseconds stall_timeout{30000};
  // While other connections of the same address wait for memory, or while any other connection waits and a quarter or
  // less of max_buffered is free: the time to move octets that a connection which holds such memory has, and earns.
  EarnedTime::Terms while_others_wait = {};
  // Receives the reason for each connection that the server ends or cannot take, and for each Call that gets
  // RDMA_ERROR, GARBAGE_ARGS or no answer. Called on the server's thread.
  verbs::Log log = {};
  // Hears of each message and of the end of each connection. It outlives the server; null: none.
  LinkObserver* observer = nullptr;
};

// Octets of Receives granted to a client that does little; at least one Receive. The client costs the server less if
// the device keeps a reserve. Otherwise an idle client costs the Receives of its last grant.
inline constexpr std::size_t kIdleReceives = 32 << 10;

// ServerMemory: memory that a server holds for messages and Calls.
struct ServerMemory {
  std::size_t calls = 0;      // octets that Calls hold or reserve: chunks and results, also in buffers(), and parts
  std::size_t max_calls = 0;  // the bound of `calls`, with the guarantees of all connections
  std::size_t sends = 0;      // octets registered
  std::size_t receives = 0;   // octets registered, if Receives are shared
  // Receives promised to clients, if Receives are shared.
  std::uint32_t promised = 0;
  bool has_shared_receives = false;
};

// Server listens for RPC-over-RDMA connections and answers Calls with the services of its programs. Its owner
// drives it like a Client.
class Server {
 public:
  // Starts to listen on addr. device, programs' bindings and services outlive the server.
  static verbs::Result<std::unique_ptr<Server>> listen(verbs::Device& device, const sockaddr_storage& addr,
                                                       std::span<const ServedProgram> programs,
                                                       const ServerConfig& config);
  ~Server();

  sockaddr_storage local_addr() const;
  // Registered memory for results; take from it on the server's thread.
  BufferPool& buffers();
  // make_buffers makes another pool for results, like buffers(). The server owns the pool, because Replies that are
  // under way hold its Buffers until the server's end. By then the caller must have given back all other Buffers.
  BufferPool& make_buffers(std::size_t max_len, std::size_t max_total);

  // reply answers a Call. Call it on the server's thread. Unknown ids (the connection is gone) are ignored.
  void reply(ServedCallId id, ServedReply reply);
  // Whether the Reply of an unanswered Call will be kept (ServedProgram::keeps_replies). The server then needs the
  // Reply even if the Call's connection ends.
  bool keeps_reply_of(ServedCallId id) const;
  // finish: a Call gets no Reply, because its procedure has none (CallSpec::call_only). The same rules as of reply.
  void finish(ServedCallId id);
  // abandon: a Call whose Reply was to be kept gets no Reply, and it is unknown whether the Call ran. The server ends
  // the connections over which the Call came again. Their clients then send the Call once more, and it runs.
  void abandon(ServedCallId id);

  // call queues a Call to the client at the other end. The client must have said that it takes Calls (R1-7.3.1-01).
  // done runs once, from process() or from the server's end. If the connection ends, the Call ends as kDisconnected.
  // Errors: ENOTCONN, EOPNOTSUPP (reverse_credits is 0), and the errors of Client::call.
  verbs::Result<CallId> call(ConnectionId connection, const CallSpec& spec, ReplyCallback done);
  // As Client::cancel, for a Call of this connection.
  bool cancel(ConnectionId connection, CallId id);

  // disconnect ends a connection, and Service::on_end follows. A connection that is already over is ignored.
  void disconnect(ConnectionId connection);

  std::size_t process(TimePoint now);
  std::optional<TimePoint> next_timeout() const;
  int fd() const;

  std::size_t num_connections() const;
  ServerMemory memory() const;
  // Sums over all connections, including ended ones.
  verbs::QpCounters counters() const;
  ServerStatistics statistics() const;
  // observe: the observer hears of all Calls and connections from now on. Before the first process(). It outlives the
  // server.
  void observe(CallObserver& observer);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
