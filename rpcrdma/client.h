#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "rpcrdma/call.h"
#include "rpcrdma/link_observer.h"
#include "rpcrdma/policies.h"
#include "rpcrdma/service.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/log.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

class KnownServers;

struct ClientConfig {
  std::size_t inline_threshold = 4096;  // octets, our Sends and Receives (RFC 8797 makes it known); 1024 to 262144
  std::uint32_t credits = 32;           // requested with every Call
  // The versions that the client speaks, best first, each once. With several, a NULL Call finds out before all others
  // which of them the server speaks: see first_answer_timeout.
  std::vector<Protocol> protocols = {Protocol::k1};
  // Exchanges transport properties with the server, in versions that have them. Without it the defaults of the version
  // hold for both ends.
  bool properties = true;
  // The credit word of 2-wg07 is Sent + Advertised, as draft-ietf-nfsv4-rpcrdma-version-two-07 section 4.2.1 prints it,
  // and not Received + Advertised: for a server of that reading. One that gets many more messages than it sends, or
  // many fewer, gets too many credits by it, or too few. Other versions ignore it.
  bool literal_credits = false;
  std::uint8_t ird = 16;
  std::uint8_t ord = 0;
  // Keeps one credit for health checks if the server grants more than one (RFC 8267 section 6.7.2).
  bool reserve_credit = false;
  ChunkUse chunks = {};
  // Lets the server invalidate a handle of each Call by its Reply (R of RFC 8797), if the device has memory windows of
  // type 2. All chunks are then windows of this type, bound before each Call.
  bool remote_invalidation = false;
  // Programs that the client offers to the server on this connection (RFC 8167). Empty: in version 1 the server's Calls
  // are discarded. Bindings and services outlive the client.
  std::span<const ServedProgram> reverse_programs = {};
  std::uint32_t reverse_credits = 16;  // granted to the server for its Calls; 1 to 16
  // Accepts the server's Calls with chunks. Otherwise Calls with chunks are answered with ERR_CHUNK.
  bool reverse_chunks = false;
  std::chrono::milliseconds connect_timeout{10000};  // for each attempt
  // With several protocols: how long each NULL Call that asks for one of them waits for its answer. If no answer comes,
  // or the server ends the connection meanwhile, the client speaks version 1 over another connection, whatever
  // `reconnect` says, and if the server refuses version 1, it asks for the newer ones again. Without version 1 in
  // `protocols`, `reconnect` says what follows, also if this was the first connection.
  std::chrono::milliseconds first_answer_timeout{1000};
  // Remembers what servers spoke. Outlives the client; null: KnownServers::of_process().
  KnownServers* known_servers = nullptr;
  std::chrono::milliseconds call_timeout{60000};
  // How many messages, one after the other, may come over a connection that RFC 8166 section 4.5 lets a requester
  // discard, although each may have answered a Call. One more ends the connection: what it answered is waited for in
  // vain. Late Replies to Calls that were given up do not count. Calls of the server and second Replies to one of the
  // last Calls (as many as `credits`) are counted by themselves, and at least 16 of them may come.
  std::uint32_t max_discards = 16;
  ReconnectPolicy reconnect = {};
  HealthCheckPolicy health_check = {};
  // Receives the reason for each connection that ends, each Reply that is discarded and each Call that is sent again.
  // For the server's Calls it receives the same events as ServerConfig::log. Called on the client's thread.
  verbs::Log log = {};
  // The channel for events of the client's completion queues. It is for a program with many clients of one device. The
  // program takes the events in the client's thread, and calls progress for the client whose completion_queue() an
  // event names. The channel outlives the client; null: the client has a channel of its own.
  verbs::CompChannel* events = nullptr;
  // Hears of each message and of the end of each connection. It outlives the client; null: none.
  LinkObserver* observer = nullptr;
};

// ReplyCounts: messages from the server, over all connections of a Client.
struct ReplyCounts {
  std::uint64_t accepted = 0;
  // Messages that a requester discards by RFC 8166. The Calls that they may have answered still wait.
  std::uint64_t discarded = 0;
  const char* last_discard = "";  // reason for the last discard, in a few words; static text
};

// Client is an RPC-over-RDMA requester with its connection; with ClientConfig::reconnect, with one connection
// after another. Its owner drives it: fd() readable or next_timeout() reached -> process(). Calls beyond the peer's
// credits wait here in order. One thread.
class Client {
 public:
  // kConnecting: for the first time, or again (ClientConfig::reconnect), or the server's version is not known yet.
  // kClosed is final.
  enum class State : std::uint8_t { kConnecting, kReady, kClosed };

  // Starts to connect to dst (numeric; name resolution is the application's). The device outlives the client.
  static verbs::Result<std::unique_ptr<Client>> connect(verbs::Device& device, const sockaddr_storage& dst,
                                                        const ClientConfig& config);
  // Every open call ends as kDisconnected; its callback runs here. Do not destroy the client from a callback.
  ~Client();

  State state() const;
  // The reason why the client is kClosed or connects again, in one line.
  const std::string& error() const;
  // How many times the client became kReady.
  std::uint64_t num_connections() const;
  // The version that the connection speaks; empty while it is not known, or there is no connection.
  std::optional<Protocol> protocol() const;

  // call queues one Call; done runs once, from process() or from the client's end. Errors: EINVAL (sizes out of range,
  // items that the binding does not know), EEXIST (an XID that is in use), ENOTCONN.
  verbs::Result<CallId> call(const CallSpec& spec, ReplyCallback done);
  // cancel gives a Call up. When cancel returns, none of the caller's memory is remotely accessible. The Call ends as
  // kCancelled, from process(). The server may or may not have run it. False: the Call has already ended.
  bool cancel(CallId id);
  // reply answers a Call of the server that the service of a reverse program received. Call it on the client's thread.
  // The service destroys everything that it still holds of the Call before the client is destroyed. Unknown ids (the
  // connection is gone) are ignored.
  void reply(ServedCallId id, ServedReply reply);
  // Calls that were queued or sent and have not ended.
  std::size_t num_outstanding() const;

  // process drives the device, the connection and the calls. It returns the result of Device::process plus the number
  // of calls that ended.
  std::size_t process(TimePoint now);
  // progress is process without Device::process, for a program with many clients of one device: it drives the device
  // itself, before and after it has called progress for the clients that have something to do.
  std::size_t progress(TimePoint now);
  // The completion queue of the present connection; null without one. Each connection has its own.
  const verbs::Cq* completion_queue() const;
  std::optional<TimePoint> next_timeout() const;
  int fd() const;
  void disconnect();

  // Sums over all connections of the client.
  verbs::QpCounters counters() const;
  ReplyCounts replies() const;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
