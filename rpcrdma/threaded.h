#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rpcrdma/client.h"
#include "rpcrdma/server.h"

// A Client and a Server that each have a thread of their own, for programs without a loop. Each owns its device;
// nothing else uses the device. Callbacks and services run on that thread and must not block it. The functions of the
// two classes may be called on any thread.
namespace weft::rpcrdma {

// CallResult is a Reply that outlives the callback: its octets are copied.
struct CallResult {
  CallStatus status = CallStatus::kLocalError;
  std::vector<std::uint8_t> results;
  std::vector<std::optional<std::size_t>> item_lens;
  std::optional<std::size_t> item_len;
  std::string text;
  bool did_not_run = false;
};

class ThreadedClient {
 public:
  // connect starts the thread and waits for the first connection: as long as one attempt may take
  // (ClientConfig::connect_timeout, and ClientConfig::first_answer_timeout for several protocols), or as long as
  // ClientConfig::reconnect keeps trying. The server must run on another
  // thread. Errors: the errors of Client::connect; ENOTCONN with the reason (refused, no listener, no answer in time);
  // EAGAIN (no thread), EMFILE.
  static verbs::Result<std::unique_ptr<ThreadedClient>> connect(std::unique_ptr<verbs::Device> device,
                                                                const sockaddr_storage& dst,
                                                                const ClientConfig& config = {});
  // Ends every open call, waits for the callbacks, then for the thread. Do not destroy the client from a callback.
  // Meanwhile no other function may run, except functions that callbacks call.
  ~ThreadedClient();

  // call queues one Call. The memory that `spec` views stays valid until `done` ran. `done` runs once, on the client's
  // thread. A Call that Client::call refuses ends as kDisconnected or kLocalError. Errors: ENOTCONN (the client is
  // going away).
  verbs::Result<CallId> call(const CallSpec& spec, ReplyCallback done);
  // cancel gives a Call up. A Call that has ended is ignored. The Call's memory is the caller's again when its callback
  // ran. The callback gets kCancelled, or the status with which the Call ended before.
  void cancel(CallId id);
  // call_and_wait makes one Call and waits for its end. In a callback it fails as kLocalError.
  CallResult call_and_wait(const CallSpec& spec);

  // post runs `task` on the client's thread, after all earlier requests. False if the client is going away.
  bool post(std::function<void(Client&)> task);

 private:
  struct Impl;
  explicit ThreadedClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class ThreadedServer {
 public:
  // As Server::listen, but the server serves no Call before start(): services may need to know this object first.
  static verbs::Result<std::unique_ptr<ThreadedServer>> listen(std::unique_ptr<verbs::Device> device,
                                                               const sockaddr_storage& addr,
                                                               std::span<const ServedProgram> programs,
                                                               const ServerConfig& config = {});
  // Takes the replies that were given before, ends all connections, then the thread. Octets that the sockets do not
  // take at once are lost. Before this every service has given back its ServedCalls, and no other thread calls a
  // function any more.
  ~ThreadedServer();

  // Starts the thread. Errors: EAGAIN, EMFILE.
  verbs::Status start();

  sockaddr_storage local_addr() const;

  // reply answers a Call from any thread. It takes the whole ServedCall, because the memory of a Call goes back to the
  // server's thread. The Buffers of the answer go back too: a service takes them (Server::buffers) within on_call, and
  // any thread may fill them. Every Call that a service keeps ends here, even if its connection is over.
  void reply(ServedCall call, ServedReply reply);

  // post runs `task` on the server's thread, after all earlier requests. False if the server is going away.
  bool post(std::function<void(Server&)> task);

  // The server itself. Use it on its thread only: within on_call, on_end and tasks.
  Server& server();

 private:
  struct Impl;
  explicit ThreadedServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
