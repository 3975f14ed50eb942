#pragma once

#include <string>

#include "rpcrdma/binding.h"
#include "rpcrdma/call.h"

namespace weft::rpcrdma {

// ConnectionEnd: a connection that is over, and the reason, one line without a line feed. The reason is the peer's where
// the device tells it, else this end's.
struct ConnectionEnd {
  ConnectionId connection;
  std::string why;
};

// Service receives Calls. One thread, the server's.
class Service {
 public:
  virtual ~Service() = default;
  // on_call must sooner or later lead to one Server::reply (it may call it itself); it must not block.
  virtual void on_call(ServedCall call) = 0;
  // A connection is over: no answer to its Calls goes anywhere, though it may be kept (Program::keeps_replies). What
  // the Calls show stays until they are destroyed.
  virtual void on_end(const ConnectionEnd&) {}
};

// Program is one program and version that a server offers. The Server itself answers PROG_UNAVAIL, PROG_MISMATCH and
// RPC_MISMATCH.
struct Program {
  const Binding* binding = nullptr;
  Service* service = nullptr;
  // Whether the service understands RPCSEC_GSS: it gets such credentials as they came, and arguments as they were
  // wrapped. Otherwise the Server refuses them with AUTH_BADCRED.
  bool takes_gss = false;
  // For gateways: also called with every program and version that has no entry of its own. The binding names no items.
  bool is_any = false;
  // Calls of it that are not idempotent (Binding::bound_reply) run once, however often clients send them: their Replies
  // are kept (ServerConfig::replays). Not for programs whose sessions see to that, as NFSv4.1's do. The service then
  // answers also those Calls whose connection is gone.
  bool keeps_replies = false;
};

}  // namespace weft::rpcrdma
