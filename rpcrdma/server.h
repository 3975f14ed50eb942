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

#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/service.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/log.h"

namespace weft::rpcrdma {

struct ServerConfig {
  std::size_t inline_threshold = 4096;
  std::uint32_t credits = 32;  // granted to a connection at most
  // And at least, while memory is short or it uses few. 0: as many as kIdleReceives hold, where the device has shared
  // receive queues; as many as at most, where every connection must have Receives of its own.
  std::uint32_t min_credits = 0;
  // Octets of the Receives that all connections together may be granted beyond min_credits each; held only while Calls
  // need them, where the device keeps a reserve (verbs::SrqAttr). 0: no shared receive queue, `credits` Receives for
  // every connection.
  std::size_t max_shared_receives = 16 << 20;
  // Calls to each client that may be under way at once on its connection (RFC 8167); at most 16, 0: Server::call makes
  // none.
  std::uint32_t reverse_credits = 0;
  bool reverse_chunks = false;  // of clients that are known to take them
  std::chrono::milliseconds reverse_timeout{60000};
  // Invalidates a handle of each Call's chunks by its Reply, where the client allows it too (R of RFC 8797). Not with
  // reverse_chunks: those of Calls to the client must stay.
  bool remote_invalidation = false;
  std::size_t max_call = 1 << 20;  // octets of a Long Call (without items)
  std::size_t max_item = 4 << 20;  // octets of one Read or Write chunk
  // How complex a Call's chunk lists may be: a header beyond it is answered with ERR_CHUNK, arguments beyond it with
  // GARBAGE_ARGS (RFC 8267 section 6.4.2). At least 32 segments and one chunk of each kind.
  std::size_t max_segments = 128;    // of each list
  std::size_t max_read_chunks = 16;  // besides a Position Zero Read chunk
  std::size_t max_write_chunks = 16;
  std::size_t max_items = 256;  // DDP-eligible arguments of a Call that has Read chunks
  // Octets that Calls hold for their chunks and results beyond what is guaranteed to their connections: of all clients,
  // and of one address (an IPv4 address, or a /64 of IPv6; 0: a quarter, or one Call of the largest kind where that is
  // more). Calls beyond it wait, and their connections take turns. An address may take no more than it leaves free.
  std::size_t max_buffered = 256 << 20;
  std::size_t max_buffered_per_client = 0;
  // What each connection may hold whatever others do, and at least inline_threshold: so small Calls are always served.
  std::size_t min_buffered_per_connection = 64 << 10;
  // Four Calls of 1 MiB and a little: with more in hand at once than a processor's cache holds, each one's octets have
  // left it before they are sent. A Call that needs more runs alone.
  std::size_t max_buffered_per_connection = (4 << 20) + (64 << 10);
  // Where there is no room for another connection, one gives way to it: first one over which no Call ever came, then
  // the one that was silent longest, of the address that has most.
  std::size_t max_connections = 1024;
  // Of one address, as above; 0: three quarters.
  std::size_t max_connections_per_client = 0;
  // Which peers may connect, by their address; called on the server's thread before anything is spent on the
  // connection, which is rejected where the answer is false. Empty: all.
  std::function<bool(const sockaddr_storage& peer)> admits = {};
  // How many Replies to keep of programs with Program::keeps_replies, and how long.
  ReplayLimits replays = {};
  std::uint8_t ird = 0;
  std::uint8_t ord = 16;
  int backlog = 128;
  // A connection whose RDMA Reads, Writes or Sends make no progress for this long is ended.
  std::chrono::milliseconds stall_timeout{30000};
  // The same while other connections of its address wait for memory, or any while a quarter or less of max_buffered is
  // free.
  std::chrono::milliseconds short_stall_timeout{2000};
  // Gets the reasons: of connections that the server ends or cannot take, and of Calls that get RDMA_ERROR,
  // GARBAGE_ARGS or no answer. Called on the server's thread.
  verbs::Log log = {};
};

// Octets of Receives that a client is granted which does little (at least one Receive). It costs the server less where
// the device keeps a reserve, and otherwise, while it does nothing, what it was granted last.
inline constexpr std::size_t kIdleReceives = 32 << 10;

// ServerMemory: what a server holds for messages, apart from buffers().
struct ServerMemory {
  std::size_t sends = 0;     // octets registered
  std::size_t receives = 0;  // octets registered, where Receives are shared
  // Receives that clients were promised, where they are shared.
  std::uint32_t promised = 0;
  bool has_shared_receives = false;
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
  // make_buffers makes another pool, as good for results as buffers(). The server owns it, since Replies that are under
  // way hold its Buffers until the server's end. The caller has given back all others by then.
  BufferPool& make_buffers(std::size_t max_len, std::size_t max_total);

  // reply answers a Call; from the server's thread. Unknown ids (the connection is gone) are ignored.
  void reply(CallId id, ServedReply reply);
  // Whether the Reply of a Call that is not answered yet will be kept, so that it is wanted even if its connection ends
  // (Program::keeps_replies).
  bool keeps_reply_of(CallId id) const;
  // abandon: there will be no Reply to such a Call, and nobody knows whether it ran. Connections over which it came
  // again are ended, so that their clients ask once more; then it runs.
  void abandon(CallId id);

  // call queues a Call to the client at the other end, which must have said that it takes some (R1-7.3.1-01); done runs
  // once, from process() or from the server's end. A Call to a connection that ends does so as kDisconnected. Errors:
  // ENOTCONN, EOPNOTSUPP (reverse_credits is 0), and those of Client::call.
  verbs::Result<CallHandle> call(ConnectionId connection, const CallSpec& spec, ReplyCallback done);
  // As Client::cancel; handles are those of this connection.
  bool cancel(ConnectionId connection, CallHandle handle);

  // disconnect ends a connection; one that is over is ignored. Service::on_end follows.
  void disconnect(ConnectionId connection);

  std::size_t process(verbs::TimePoint now);
  std::optional<verbs::TimePoint> next_timeout() const;
  int fd() const;

  std::size_t num_connections() const;
  ServerMemory memory() const;
  // Sums over all connections, ended ones included.
  verbs::QpCounters counters() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
