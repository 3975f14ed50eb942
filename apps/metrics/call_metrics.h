#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "apps/metrics/latency_histogram.h"
#include "base/time.h"
#include "rpcrdma/call_observer.h"

namespace weft::metrics {

// ProcedureId is a procedure of a known program. Everything else is counted together, in two steps:
struct ProcedureId {
  static constexpr std::uint32_t kOther = UINT32_MAX;

  std::uint32_t program = kOther;    // kOther: a program that has no binding
  std::uint32_t version = kOther;    // kOther with the program
  std::uint32_t procedure = kOther;  // kOther: a procedure that the program does not have
  auto operator<=>(const ProcedureId&) const = default;
};

// ClientCounts: the counts of one client.
struct ClientCounts {
  LatencyHistogram latency;
  verbs::QpCounters ended;          // of ended connections
  std::size_t num_connections = 0;  // that are open
  std::uint64_t gone = 0;           // a greater number: its last connection ended later
};

// CallCounts: the counts of all Calls. A value; copies of it go to another thread.
struct CallCounts {
  std::map<ProcedureId, LatencyHistogram> procedures;
  std::array<std::uint64_t, rpcrdma::kNumCallOutcomes> outcomes{};
  std::map<std::string, ClientCounts> clients;  // at most CallMetrics::kMaxClients
  ClientCounts other_clients;
};

// CallMetrics counts the Calls of a server by procedure, outcome and client. A client is a group of addresses (an IPv4
// address, or a /64 of IPv6). The number of counted clients is bounded: a newcomer gets the place of a client without
// connections, first of the client that has been gone longest, and the counts of that client join other_clients.
// Without such a client the newcomer is counted in other_clients. One thread.
class CallMetrics : public rpcrdma::CallObserver {
 public:
  static constexpr std::size_t kMaxClients = 64;
  static constexpr const char* kOtherClients = "other";

  // now: the clock.
  explicit CallMetrics(TimePoint (*now)() = [] { return TimePoint(std::chrono::steady_clock::now()); }) : now_(now) {}

  void on_connection(rpcrdma::ConnectionId connection, const std::string& client) override;
  std::uint64_t on_arrival() override;
  void on_answer(const rpcrdma::AnsweredCall& call) override;
  void on_end(const rpcrdma::ConnectionStatistics& last) override;

  const CallCounts& counts() const { return counts_; }
  // The name under which a connection's client is counted.
  const std::string& client_of(rpcrdma::ConnectionId connection) const;

 private:
  using Place = std::pair<const std::string, ClientCounts>;

  Place& place_of(const std::string& client);
  ClientCounts& counts_of(rpcrdma::ConnectionId connection);
  LatencyHistogram& histogram_of(const rpcrdma::AnsweredCall& call);

  TimePoint (*now_)();
  CallCounts counts_;
  std::unordered_map<std::uint32_t, Place*> connections_;  // without those of other_clients
  std::uint64_t last_gone_ = 0;
};

}  // namespace weft::metrics
