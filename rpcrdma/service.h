#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rpcrdma/binding.h"
#include "rpcrdma/call.h"

namespace weft::rpcrdma {

// ConnectionEnd: a connection that is over, and the reason as one line without a line feed. It is the peer's reason if
// the device reports it, else the reason of this end.
struct ConnectionEnd {
  ConnectionId connection;
  std::string why;
};

// Service receives Calls, on the server's thread only.
class Service {
 public:
  virtual ~Service() = default;
  // Each on_call must sooner or later lead to one Server::reply. on_call may call Server::reply itself. It must not
  // block.
  virtual void on_call(ServedCall call) = 0;
  // A connection is over. Answers to its Calls are not sent any more, but may be kept (ServedProgram::keeps_replies).
  // The views of its ServedCalls stay valid until the ServedCalls are destroyed.
  virtual void on_end(const ConnectionEnd&) {}
};

// ResultsOf is what a service knows about the results of a procedure, for the memory that its Calls hold.
struct ResultsOf {
  // The most octets that the service answers, items included. A Call whose chunks offer more room holds no more memory
  // than that.
  std::size_t longest = SIZE_MAX;
  // Whether Calls may hold their memory for a while before the service begins with them. The slow Calls of a connection
  // have ServerConfig::min_buffered_per_connection. All slow Calls together have a quarter of the other memory, too
  // (Budget). A Call that needs more than an eighth of the memory of an address does not count as slow.
  bool is_slow = false;
};

// ServedProgram is one program and version that a server offers. The Server itself answers PROG_UNAVAIL, PROG_MISMATCH
// and RPC_MISMATCH.
struct ServedProgram {
  const Binding* binding = nullptr;
  Service* service = nullptr;
  // Whether the service understands RPCSEC_GSS. It then receives RPCSEC_GSS credentials as they came, and arguments as
  // they were wrapped. Otherwise the Server refuses these credentials with AUTH_BADCRED.
  bool takes_gss = false;
  // For gateways: the service also receives the Calls of every program and version without an entry of its own. The
  // binding names no items.
  bool is_any = false;
  // Calls of this program that are not idempotent (Binding::is_idempotent) run once, however often clients send them:
  // the server keeps their Replies (ServerConfig::duplicate_requests). The service then also answers Calls whose
  // connection is gone. Not for programs whose sessions already do this, as the sessions of NFSv4.1 do.
  bool keeps_replies = false;
  // results_of describes the results of a procedure. Empty: of none is anything known.
  ResultsOf (*results_of)(std::uint32_t procedure) = nullptr;
};

}  // namespace weft::rpcrdma
