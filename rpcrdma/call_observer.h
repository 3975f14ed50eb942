#pragma once

#include <cstdint>
#include <string>

#include "rpcrdma/call.h"
#include "rpcrdma/server_statistics.h"

namespace weft::rpcrdma {

// CallOutcome: the kind of an answer (RFC 5531 section 9, RFC 8166 section 4.5).
enum class CallOutcome : std::uint8_t {
  kSuccess,
  kProgUnavail,
  kProgMismatch,
  kProcUnavail,
  kGarbageArgs,
  kSystemErr,
  kRpcMismatch,
  kAuthError,
  kErrVers,   // a transport error: the version of RPC-over-RDMA
  kErrChunk,  // any other transport error
};
inline constexpr std::size_t kNumCallOutcomes = 10;

// AnsweredCall: a Call at the moment when its answer goes to the send queue.
struct AnsweredCall {
  ConnectionId connection;
  std::uint64_t mark = 0;  // the result of CallObserver::on_arrival
  CallOutcome outcome = CallOutcome::kSuccess;
  // Whether the server has the program. Otherwise the next three are 0.
  bool is_served = false;
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
};

// CallObserver hears of the Calls of a Server and of their connections, for metrics. On the server's thread. A Call
// whose connection ends, and a Call without a Reply (Server::finish), have no answer.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // client: as ConnectionStatistics::client.
  virtual void on_connection(ConnectionId connection, const std::string& client) = 0;
  // A Call arrived as a whole, but for its chunks. The result is the observer's own, for example the time.
  virtual std::uint64_t on_arrival() = 0;
  virtual void on_answer(const AnsweredCall& call) = 0;
  // The last counts of a connection.
  virtual void on_end(const ConnectionStatistics& last) = 0;
};

}  // namespace weft::rpcrdma
