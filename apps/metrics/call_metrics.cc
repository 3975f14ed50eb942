#include "apps/metrics/call_metrics.h"

#include <algorithm>

#include "nfsulb/bindings.h"
#include "nfsulb/walk.h"

namespace weft::metrics {
namespace {

using rpcrdma::AnsweredCall;
using rpcrdma::ConnectionId;

ProcedureId known(const AnsweredCall& call) {
  ProcedureId id;
  if (!call.is_served) return id;
  for (const nfsulb::BoundProgram& program : nfsulb::bound_programs()) {
    if (program.binding.program != call.program || program.binding.version != call.version) continue;
    id.program = call.program;
    id.version = call.version;
    if (nfsulb::find_operation(program.schema->procedures, call.procedure) != nullptr) id.procedure = call.procedure;
  }
  return id;
}

}  // namespace

CallMetrics::Place& CallMetrics::place_of(const std::string& client) {
  return *counts_.clients.try_emplace(client).first;
}

void CallMetrics::on_connection(ConnectionId connection, const std::string& client) {
  auto& clients = counts_.clients;
  if (!clients.contains(client) && clients.size() >= kMaxClients) {
    const auto rank = [](const Place& place) {
      return place.second.num_connections > 0 ? UINT64_MAX : place.second.gone;
    };
    const auto least = std::ranges::min_element(clients, {}, rank);
    if (least->second.num_connections > 0) {
      ++counts_.other_clients.num_connections;
      return;
    }
    counts_.other_clients.latency += least->second.latency;
    counts_.other_clients.ended += least->second.ended;
    clients.erase(least);
  }
  Place& place = place_of(client);
  ++place.second.num_connections;
  connections_[connection.value] = &place;
}

std::uint64_t CallMetrics::on_arrival() {
  return static_cast<std::uint64_t>(now_().time_since_epoch() / std::chrono::nanoseconds(1));
}

ClientCounts& CallMetrics::counts_of(ConnectionId connection) {
  const auto at = connections_.find(connection.value);
  return at == connections_.end() ? counts_.other_clients : at->second->second;
}

const std::string& CallMetrics::client_of(ConnectionId connection) const {
  static const std::string kOther = kOtherClients;
  const auto at = connections_.find(connection.value);
  return at == connections_.end() ? kOther : at->second->first;
}

LatencyHistogram& CallMetrics::histogram_of(const AnsweredCall& call) {
  auto& procedures = counts_.procedures;
  if (call.is_served) {
    const auto at = procedures.find({call.program, call.version, call.procedure});
    if (at != procedures.end()) return at->second;
  }
  return procedures[known(call)];
}

void CallMetrics::on_answer(const AnsweredCall& call) {
  const std::uint64_t ns = on_arrival() - call.mark;
  ++counts_.outcomes[static_cast<std::size_t>(call.outcome)];
  histogram_of(call).add(ns);
  counts_of(call.connection).latency.add(ns);
}

void CallMetrics::on_end(const rpcrdma::ConnectionStatistics& last) {
  ClientCounts& client = counts_of(last.connection);
  client.ended += last.messages;
  if (--client.num_connections == 0) client.gone = ++last_gone_;
  connections_.erase(last.connection.value);
}

}  // namespace weft::metrics
