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

// A Client and a Server with a thread of their own that drives them, for programs without a loop. Each owns its device,
// which nothing else uses. What they call (callbacks, services) runs on that thread and must not block it; their own
// functions are for any thread.
namespace weft::rpcrdma {

// CallResult is a Reply that outlives the callback: its octets are copied.
struct CallResult {
  CallStatus status = CallStatus::kLocalError;
  std::vector<std::uint8_t> results;
  std::vector<std::optional<std::size_t>> item_lens;
  std::optional<std::size_t> item_len;
  std::string text;
};

// CallTicket names one Call of a ThreadedClient.
struct CallTicket {
  std::uint64_t value = 0;
  friend bool operator==(CallTicket, CallTicket) = default;
};

class ThreadedClient {
 public:
  // connect starts the thread and waits for the first connection: as long as one attempt may take
  // (ClientConfig::connect_timeout), or as ClientConfig::reconnect keeps trying. The server's thread is another one.
  // Errors: those of Client::connect; ENOTCONN with the reason (refused, nobody listens, no answer in time); EAGAIN (no
  // thread), EMFILE.
  static verbs::Result<std::unique_ptr<ThreadedClient>> connect(std::unique_ptr<verbs::Device> device,
                                                                const sockaddr_storage& dst,
                                                                const ClientConfig& config = {});
  // Ends every call that is open, waits for their callbacks, then for the thread. Not from a callback, and no other
  // function runs meanwhile, but those that callbacks call.
  ~ThreadedClient();

  // call queues one Call. What `spec` views stays valid until `done` ran, which it does once, on the client's thread;
  // a Call that Client::call refuses ends as kDisconnected or kLocalError. Errors: ENOTCONN (the client is going away).
  verbs::Result<CallTicket> call(const CallSpec& spec, ReplyCallback done);
  // cancel gives a Call up; one that has ended is ignored. Its memory is the caller's again when its callback ran,
  // which then says kCancelled, or how it ended before.
  void cancel(CallTicket ticket);
  // call_and_wait makes one Call and waits for its end. Not from a callback, where it fails as kLocalError.
  CallResult call_and_wait(const CallSpec& spec);

  // post runs `task` on the client's thread, behind what was asked for before. False where the client is going away.
  bool post(std::function<void(Client&)> task);

 private:
  struct Impl;
  explicit ThreadedClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class ThreadedServer {
 public:
  // As Server::listen, but nothing is served before start(): services may need to know this object first.
  static verbs::Result<std::unique_ptr<ThreadedServer>> listen(std::unique_ptr<verbs::Device> device,
                                                               const sockaddr_storage& addr,
                                                               std::span<const Program> programs,
                                                               const ServerConfig& config = {});
  // Takes the replies that were given before, ends all connections (what their sockets do not take at once is lost),
  // then the thread. By now every ServedCall that a service kept has been given back, and no other thread calls any
  // more.
  ~ThreadedServer();

  // Starts the thread. Errors: EAGAIN, EMFILE.
  verbs::Status start();

  sockaddr_storage local_addr() const;

  // reply answers a Call from any thread. It takes the whole ServedCall, since what a Call holds goes back to the
  // server's thread; so do the Buffers of the answer, which are taken (Server::buffers) within on_call and may be
  // filled by any thread. Every Call that a service keeps ends here, also one whose connection is over.
  void reply(ServedCall call, ServedReply reply);

  // post runs `task` on the server's thread, behind what was asked for before. False where the server is going away.
  bool post(std::function<void(Server&)> task);

  // The server itself, for its thread alone: within on_call, on_end and tasks.
  Server& server();

 private:
  struct Impl;
  explicit ThreadedServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::rpcrdma
