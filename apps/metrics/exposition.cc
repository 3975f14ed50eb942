#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>

#include "apps/metrics/openmetrics_writer.h"
#include "apps/metrics/process_start.h"
#include "apps/metrics/snapshot.h"
#include "fmt/format.h"
#include "nfsulb/bindings.h"
#include "nfsulb/programs.h"
#include "nfsulb/walk.h"

// The metrics and their names. docs/metrics.md lists them.
namespace weft::metrics {
namespace {

using rpcrdma::ConnectionStatistics;
using verbs::QpCounters;

constexpr const char* kOther = "other";

constexpr std::array<const char*, rpcrdma::kNumCallOutcomes> kOutcomes = {
    "success",    "prog_unavail", "prog_mismatch", "proc_unavail", "garbage_args",
    "system_err", "rpc_mismatch", "auth_error",    "err_vers",     "err_chunk"};
constexpr std::array<const char*, rpcrdma::kNumEndReasons> kEndReasons = {"client", "protocol", "lost",   "timeout",
                                                                          "failed", "gave_way", "program"};

// Transfer: one kind of RDMA message in one direction of its data, seen from the program.
struct Transfer {
  const char* kind;
  const char* direction;
  std::uint64_t QpCounters::*operations;
  std::uint64_t QpCounters::*octets;
};
// A Read that this end asks for brings data in.
constexpr Transfer kTransfers[] = {
    {"send", "in", &QpCounters::sends_rx, &QpCounters::send_octets_rx},
    {"send", "out", &QpCounters::sends_tx, &QpCounters::send_octets_tx},
    {"rdma_read", "in", &QpCounters::reads_tx, &QpCounters::read_octets_rx},
    {"rdma_read", "out", &QpCounters::reads_rx, &QpCounters::read_octets_tx},
    {"rdma_write", "in", &QpCounters::writes_rx, &QpCounters::write_octets_rx},
    {"rdma_write", "out", &QpCounters::writes_tx, &QpCounters::write_octets_tx},
};

struct ProcedureLabels {
  std::string program = kOther, version = kOther, procedure = kOther;
};

ProcedureLabels labels_of(const ProcedureId& id) {
  ProcedureLabels labels;
  for (const nfsulb::BoundProgram& program : nfsulb::bound_programs()) {
    if (program.binding.program != id.program || program.binding.version != id.version) continue;
    labels.program = nfsulb::program_name(id.program);
    labels.version = std::to_string(id.version);
    const nfsulb::Operation* row = nfsulb::find_operation(program.schema->procedures, id.procedure);
    if (row != nullptr) labels.procedure = row->name;
  }
  return labels;
}

// ClientSums: the numbers of one client over its connections.
struct ClientSums {
  QpCounters messages;
  std::uint64_t connections = 0, credits = 0, under_way = 0, waiting = 0;

  void add(const ConnectionStatistics& one) {
    messages += one.messages;
    ++connections;
    credits += one.credits;
    under_way += one.under_way;
    waiting += one.waiting;
  }
};

class Exposition {
 public:
  Exposition(const Snapshot& snapshot, const std::string& program) : now_(snapshot), program_(program) {
    for (const auto& [name, counts] : now_.calls.clients) clients_[name].messages = counts.ended;
    clients_[CallMetrics::kOtherClients].messages = now_.calls.other_clients.ended;
    for (const ConnectionStatistics& one : now_.server.connections) {
      clients_[one.client].add(one);
      all_.add(one);
      calls_ += one.calls;
    }
    all_.messages += now_.server.ended_messages;
    calls_ += now_.server.ended_calls;
  }

  std::string write() {
    process();
    connections();
    calls();
    transfers();
    clients();
    disk();
    resources();
    return out_.finish();
  }

 private:
  void process() {
    out_.info("weft_build", "The version of Weft and the command that runs.");
    out_.info_labels({{"version", WEFT_VERSION}, {"command", program_}});
    out_.gauge("process_start_time_seconds", "seconds", "When the process started, in seconds since 1970.");
    out_.value({}, process_start_time());
  }

  void connections() {
    out_.gauge("weft_clients", "", "Clients with a connection. A client is an IPv4 address or a /64 of IPv6.");
    out_.value({}, std::uint64_t{now_.num_clients});
    out_.gauge("weft_connections", "", "Open connections of clients.");
    out_.value({}, all_.connections);
    out_.gauge("weft_connections_limit", "", "The most connections at once.");
    out_.value({}, std::uint64_t{now_.max_connections});
    out_.counter("weft_connections_opened", "", "Connections that were accepted.");
    out_.total({}, now_.server.opened);
    out_.counter("weft_connections_ended", "", "Connections that ended, by the reason.");
    for (std::size_t i = 0; i < kEndReasons.size(); ++i) {
      out_.total({{"reason", kEndReasons[i]}}, now_.server.ended[i]);
    }
    out_.counter("weft_connections_refused", "", "Connections that were refused, by the reason.");
    out_.total({{"reason", "not_admitted"}}, now_.server.not_admitted);
    out_.total({{"reason", "no_place"}}, now_.server.no_place);
    out_.total({{"reason", "not_accepted"}}, now_.server.not_accepted);
    out_.counter("weft_terminates", "", "Terminates that ended connections, by their error (RFC 5040 section 4.8).");
    for (const verbs::TerminateCount& one : now_.terminates) terminate(one);
  }

  void terminate(const verbs::TerminateCount& one) {
    constexpr std::array kLayers = {"rdmap", "ddp", "llp"};
    const bool is_known = one.layer < kLayers.size();
    const std::string layer = is_known ? kLayers[one.layer] : kOther;
    const std::string etype = is_known ? std::to_string(one.etype) : kOther;
    const std::string code = is_known ? fmt::format("{:#04x}", one.code) : kOther;
    for (const auto& [direction, count] : {std::pair{"sent", one.sent}, std::pair{"received", one.received}}) {
      out_.total({{"direction", direction}, {"layer", layer}, {"etype", etype}, {"code", code}, {"error", one.meaning}},
                 count);
    }
  }

  void calls() {
    out_.histogram("weft_rpc_duration_seconds",
                   "Time from the arrival of a Call to its answer, by procedure. The count is the number of answers.");
    for (const auto& [id, histogram] : now_.calls.procedures) {
      const ProcedureLabels labels = labels_of(id);
      out_.durations({{"program", labels.program}, {"version", labels.version}, {"procedure", labels.procedure}},
                     histogram);
    }
    out_.counter("weft_rpc_answers", "", "Answers to Calls, by their kind (RFC 5531, RFC 8166).");
    for (std::size_t i = 0; i < kOutcomes.size(); ++i) out_.total({{"outcome", kOutcomes[i]}}, now_.calls.outcomes[i]);
    out_.counter("weft_rpc_discarded", "", "Messages of clients that got no answer.");
    out_.total({}, calls_.discarded);
    out_.counter("weft_rpc_repeated", "", "Calls that came again and did not run again.");
    out_.total({}, calls_.duplicate_requests);
    out_.gauge("weft_rpc_calls_under_way", "", "Calls without an answer.");
    out_.value({}, all_.under_way);
    out_.gauge("weft_rpc_calls_waiting", "", "The part of the Calls under way that waits for memory.");
    out_.value({}, all_.waiting);
    out_.gauge("weft_credits_granted", "", "Credits that clients may use now.");
    out_.value({}, all_.credits);
  }

  void transfers() {
    out_.counter("weft_transfer_bytes", "bytes", "Data of RDMA messages, by kind and direction.");
    for (const Transfer& one : kTransfers) {
      out_.total({{"kind", one.kind}, {"direction", one.direction}}, all_.messages.*one.octets);
    }
    out_.counter("weft_transfer_operations", "", "RDMA messages, by kind and direction of their data.");
    for (const Transfer& one : kTransfers) {
      out_.total({{"kind", one.kind}, {"direction", one.direction}}, all_.messages.*one.operations);
    }
  }

  void clients() {
    const auto each_gauge = [this](const char* name, const char* help, std::uint64_t ClientSums::*value) {
      out_.gauge(name, "", help);
      for (const auto& [client, sums] : clients_) out_.value({{"client", client}}, sums.*value);
    };
    each_gauge("weft_client_connections", "Open connections, by client.", &ClientSums::connections);
    each_gauge("weft_client_credits_granted", "Credits that a client may use now.", &ClientSums::credits);
    each_gauge("weft_client_calls_under_way", "Calls without an answer, by client.", &ClientSums::under_way);
    each_gauge("weft_client_calls_waiting", "The part of these Calls that waits for memory, by client.",
               &ClientSums::waiting);
    out_.counter("weft_client_transfer_bytes", "bytes", "Data of RDMA messages, by client, kind and direction.");
    for (const auto& [client, sums] : clients_) {
      for (const Transfer& one : kTransfers) {
        out_.total({{"client", client}, {"kind", one.kind}, {"direction", one.direction}}, sums.messages.*one.octets);
      }
    }
    out_.histogram("weft_client_rpc_duration_seconds", "Time from the arrival of a Call to its answer, by client.");
    for (const auto& [client, counts] : now_.calls.clients) out_.durations({{"client", client}}, counts.latency);
    out_.durations({{"client", CallMetrics::kOtherClients}}, now_.calls.other_clients.latency);
  }

  void disk() {
    if (now_.lanes.empty()) return;
    const auto each_gauge = [this](const char* name, const char* help, std::uint64_t DiskLaneCounts::*value) {
      out_.gauge(name, "", help);
      for (const DiskLaneCounts& lane : now_.lanes) out_.value({{"lane", lane.lane}}, lane.*value);
    };
    each_gauge("weft_disk_tasks_queued", "Tasks that wait for a disk worker.", &DiskLaneCounts::queued);
    each_gauge("weft_disk_tasks_queued_limit", "The most tasks that may wait.", &DiskLaneCounts::queue_limit);
    each_gauge("weft_disk_tasks_running", "Tasks that disk workers run.", &DiskLaneCounts::running);
    each_gauge("weft_disk_workers", "Disk workers.", &DiskLaneCounts::workers);
    out_.counter("weft_disk_tasks_done", "", "Tasks that disk workers have run.");
    for (const DiskLaneCounts& lane : now_.lanes) out_.total({{"lane", lane.lane}}, lane.done);
    out_.counter("weft_disk_tasks_refused", "", "Tasks that were refused because too many waited.");
    for (const DiskLaneCounts& lane : now_.lanes) out_.total({{"lane", lane.lane}}, lane.refused);
  }

  void holdings(const std::string& name, const std::string& unit, const char* help, const char* limit_help,
                const std::vector<Holding>& holdings) {
    if (holdings.empty()) return;
    const std::string end = unit.empty() ? "" : "_" + unit;
    out_.gauge(name + "_held" + end, unit, help);
    for (const Holding& one : holdings) out_.value({{"kind", one.kind}}, one.held);
    out_.gauge(name + "_limit" + end, unit, limit_help);
    for (const Holding& one : holdings) {
      if (one.limit != 0) out_.value({{"kind", one.kind}}, one.limit);
    }
  }

  void resources() {
    holdings("weft_memory", "bytes", "Memory that is held for clients, by its use.",
             "The bound of that memory, where it has a bound of its own.", now_.memory);
    holdings("weft_files", "", "Files that are kept open.", "The most files that are kept open.", now_.files);
  }

  const Snapshot& now_;
  const std::string& program_;
  std::map<std::string, ClientSums> clients_;
  ClientSums all_;
  rpcrdma::ResponderCounters calls_;
  OpenMetricsWriter out_;
};

}  // namespace

void take(Snapshot& snapshot, const CallMetrics& calls, rpcrdma::ServerStatistics server) {
  std::set<std::string> clients;
  for (ConnectionStatistics& one : server.connections) {
    clients.insert(one.client);
    one.client = calls.client_of(one.connection);
  }
  snapshot.num_clients = clients.size();
  snapshot.calls = calls.counts();
  snapshot.server = std::move(server);
}

std::string to_openmetrics(const Snapshot& snapshot, const std::string& program) {
  return Exposition(snapshot, program).write();
}

}  // namespace weft::metrics
