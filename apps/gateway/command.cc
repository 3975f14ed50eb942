#include "apps/gateway/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/allow_list.h"
#include "apps/common/command.h"
#include "apps/common/descriptor_plan.h"
#include "apps/common/idle_trim.h"
#include "apps/common/limit_options.h"
#include "apps/common/output.h"
#include "apps/common/rpc_config.h"
#include "apps/common/rpcbind_registration.h"
#include "apps/common/say.h"
#include "apps/common/setup.h"
#include "apps/common/signals.h"
#include "apps/common/tcp_endpoint.h"
#include "apps/gateway/loop.h"
#include "apps/gateway/served_programs.h"
#include "apps/gateway/to_rdma.h"
#include "apps/gateway/to_tcp.h"
#include "apps/gateway/url.h"
#include "apps/metrics/metrics_option.h"
#include "base/address.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/worker_descriptors.h"

namespace weft::apps {
namespace {

using boost::asio::io_context;
using gateway::Transport;
using gateway::Url;

struct GatewayOptions {
  std::string listen, connect;
  std::string metrics;
  std::vector<std::string> allow;
  bool rpcbind = false;
  bool reserved_port = false;
  LimitOptions limits;
};

// One record has to hold the largest message over RDMA.
constexpr std::size_t kMaxRecord = 5 << 20;
constexpr std::size_t kMaxBufferedPerClient = 16 << 20;
constexpr std::size_t kMaxBuffered = 256 << 20;
constexpr std::size_t kMaxConnections = 1024;

// Limits are the clients' limits from the options and the defaults.
struct Limits {
  std::size_t connections = 0, connections_per_address = 0;
  std::size_t lost = 0;     // clients that are gone while the server works on their Calls
  std::size_t passing = 0;  // connections without an MPA Request, ones that are closing, and ones that wait for a place
  std::size_t buffered = 0, buffered_per_address = 0;  // bytes
};

// Descriptors of a gateway without clients, beside those that it inherited: the device, the listener and --rpcbind.
constexpr std::size_t kDescriptorsOfGateway = 32;
// The least for five equal parts: connections of lost clients, connections that say nothing yet, ones that wait for a
// place, ones that are closing, and short uses.
constexpr std::size_t kLeastOthers = 40, kParts = 5;

absl::StatusOr<Limits> limits_of(const GlobalOptions& global, const GatewayOptions& all, std::uint64_t file_limit) {
  using gateway::ToRdmaConfig;
  const LimitOptions& options = all.limits;
  Limits out;
  const absl::StatusOr<DescriptorPlan> plan =
      plan_descriptors({.limit = file_limit,
                        .own = num_open_descriptors() + kDescriptorsOfGateway +
                               global.num_workers * verbs::kDescriptorsOfWorker + metrics::num_descriptors(all.metrics),
                        .per_client = 2,  // a connection on either side
                        .least_others = kLeastOthers,
                        .preferred_clients = kMaxConnections,
                        .clients = options.max_connections});
  if (!plan.ok()) return plan.status();
  out.connections = plan->clients;
  out.connections_per_address = options.connections_per_address(out.connections);
  out.passing = plan->others / kParts;
  out.lost = std::min({gateway::ToTcpConfig{}.max_lost, out.connections / 4 + 1, plan->others / kParts});
  out.buffered = options.max_buffered.value_or(kMaxBuffered);
  out.buffered_per_address =
      options.max_buffered_per_address.value_or(std::max(out.buffered / 4, ToRdmaConfig::kLeastBufferedPerAddress));
  return out;
}

// Registers the programs that the server has at this moment.
std::unique_ptr<RpcbindRegistration> make_findable(const sockaddr_storage& local, const sockaddr_storage& server,
                                                   int stop_fd) {
  constexpr std::chrono::seconds kTimeout{2};
  const auto programs = gateway::served_programs(server, kTimeout, stop_fd);
  if (!programs.ok()) {
    spdlog::warn(
        "--rpcbind: nothing is registered, because the server did not say which programs it has: {}; start the server "
        "first",
        std::string(programs.status().message()));
    return nullptr;
  }
  RpcbindRegistration::Config config;
  config.stop_fd = stop_fd;
  return std::make_unique<RpcbindRegistration>(local, *programs, config);
}

// The server trusts the address of this host. So every user that reaches the gateway has the rights of this host.
void warn_of_reach(const sockaddr_storage& local, const GatewayOptions& options) {
  if (is_loopback(local)) return;
  const bool is_limited = !options.allow.empty();
  say(stderr,
      "weft gateway: warning: {} is reached from other hosts: every user of {} reaches {} with the rights of this "
      "host{}{}.\n",
      address_str(local), is_limited ? "the hosts of --allow" : "every host that reaches it", options.connect,
      options.reserved_port ? ", and may act as root there (--reserved-port)" : "",
      is_limited ? "" : "; --allow limits it to some hosts");
}

// Runs a gateway of either kind until a signal comes.
template <typename Gateway>
int run(io_context& io, Gateway& gateway, const GlobalOptions& global, const StopSignals& stop, const Url& listen,
        const sockaddr_storage& local, const GatewayOptions& options) {
  const auto endpoint = metrics::open_endpoint(options.metrics, "gateway");
  if (!endpoint.ok()) return fail(endpoint.status());
  warn_of_reach(local, options);
  print_ready("listen=" + gateway::scheme(listen.transport) + address_str(local) +
              metrics::ready_text(endpoint->get()));
  gateway::drive(io, gateway, stop, global.progress_or(ProgressMode::kBlock), endpoint->get());
  spdlog::info("gateway: {}", gateway.summary());
  return kExitDone;
}

int run_gateway(const GlobalOptions& global, const GatewayOptions& options) {
  const Url listen = gateway::parse_url(options.listen).value(), connect = gateway::parse_url(options.connect).value();
  if (listen.transport == connect.transport) {
    return usage_error("gateway wants rdma:// on one side and tcp:// on the other");
  }
  if (options.rpcbind && listen.transport != Transport::kRdma) {
    return usage_error("--rpcbind registers the programs served over RDMA: it wants --listen rdma://");
  }
  if (options.reserved_port && connect.transport != Transport::kTcp) {
    return usage_error("--reserved-port is for connections over TCP: it wants --connect tcp://");
  }
  if (const std::string fault = limits_fault(options.limits); !fault.empty()) return usage_error(fault);
  StopSignals stop;
  bound_unused_heap();
  const std::uint64_t file_limit = raise_file_limit();
  const absl::StatusOr<Limits> planned = limits_of(global, options, file_limit);
  if (!planned.ok()) return fail(planned.status());
  const Limits& limits = *planned;
  auto from = resolve(listen.where), to = resolve(connect.where);
  if (!from.ok()) return fail(from.status());
  if (!to.ok()) return fail(to.status());
  const auto allow = AllowList::parse(options.allow);
  if (!allow.ok()) return fail(allow.status());
  const auto admits = filter_of(*allow);
  // The device makes connections too, but the filter applies only to incoming ones.
  const auto refused = std::make_shared<RefusedPeers>(0);
  const verbs::SoftConfig usual = soft_config(global);
  auto device = open_device(global, {.max_silent = std::min(usual.max_silent, limits.passing),
                                     .max_lingering = std::min(usual.max_lingering, limits.passing),
                                     .admits = counting(admits, refused)});
  if (!device.ok()) return fail(device.status());
  io_context io(1);
  if (listen.transport == Transport::kRdma) {
    gateway::ToTcpConfig config{
        .listen = *from, .server = to_endpoint(*to), .rpc = server_config(global, kCredits), .stream = {}};
    config.rpc.max_connections = limits.connections;
    config.rpc.max_connections_per_client = limits.connections_per_address;
    config.rpc.max_waiting = std::min(config.rpc.max_waiting, limits.passing);
    config.rpc.max_buffered_per_client = limits.buffered_per_address;
    config.rpc.max_buffered = config.max_replies = limits.buffered;
    config.max_replies_per_address = limits.buffered_per_address;
    config.max_lost = limits.lost;
    config.rpc.admits = admits;
    // The server may be far away: with few Calls at once, the Calls would wait for one another.
    config.rpc.max_buffered_per_connection = kMaxBufferedPerClient;
    config.stream.record.max_record = kMaxRecord;
    config.reserved_port = options.reserved_port;
    config.has_metrics = !options.metrics.empty();
    config.refused_by_device = refused;
    auto made = gateway::ToTcp::start(config, **device, io);
    if (!made.ok()) return fail(made.status());
    std::unique_ptr<RpcbindRegistration> registration;
    if (options.rpcbind) registration = make_findable((*made)->local_addr(), *to, stop.fd());
    return run(io, **made, global, stop, listen, (*made)->local_addr(), options);
  }
  gateway::ToRdmaConfig config{
      .listen = to_endpoint(*from), .server = *to, .rpc = client_config(global, kCredits), .stream = {}};
  config.max_connections = limits.connections;
  config.max_connections_per_address = limits.connections_per_address;
  config.max_waiting = std::min(config.max_waiting, limits.passing);
  config.max_buffered = limits.buffered;
  config.max_buffered_per_address = limits.buffered_per_address;
  config.stream.record.max_record = kMaxRecord;
  config.admits = admits;
  config.has_metrics = !options.metrics.empty();
  auto made = gateway::ToRdma::start(config, **device, io);
  if (!made.ok()) return fail(made.status());
  return run(io, **made, global, stop, listen, to_sockaddr((*made)->local_endpoint()), options);
}

}  // namespace

void register_gateway_command(CLI::App& root, CommandContext& context) {
  auto options = std::make_shared<GatewayOptions>();
  CLI::App* gateway = root.add_subcommand("gateway", "Join RPC-over-RDMA and RPC over TCP.");
  const auto check_url = [](const std::string& text) {
    return std::string(gateway::parse_url(text).status().message());
  };
  gateway->add_option("--listen", options->listen, "the address for clients: rdma://ADDR[:PORT] or tcp://ADDR[:PORT]")
      ->required()
      ->check(check_url)
      ->type_name("URL");
  gateway->add_option("--connect", options->connect, "the server, over the other transport")
      ->required()
      ->check(check_url)
      ->type_name("URL");
  gateway
      ->add_option("--allow", options->allow,
                   "clients that may connect, an address or a network; may be given more than once; without it all "
                   "clients may connect")
      ->check(allow_fault)
      ->allow_extra_args(false)
      ->type_name("ADDRESS[/PREFIX]");
  gateway->add_flag("--rpcbind", options->rpcbind,
                    "register the programs of the server with the rpcbind of this host, for RDMA clients to find");
  gateway->add_flag("--reserved-port", options->reserved_port,
                    "connect to the server over TCP from ports below 1024; it then trusts every client like root");
  metrics::add_metrics_option(*gateway, options->metrics);
  add_limit_options(*gateway, options->limits,
                    {.mib = gateway::ToRdmaConfig::kLeastBuffered >> 20,
                     .mib_per_address = gateway::ToRdmaConfig::kLeastBufferedPerAddress >> 20});
  gateway->footer(
      "Examples:\n"
      "  weft gateway --listen rdma://127.0.0.1 --connect tcp://127.0.0.1  RDMA clients reach an NFS server over TCP\n"
      "  weft gateway --listen tcp://127.0.0.1:2049 --connect rdma://HOST  TCP clients reach an NFS server over RDMA\n"
      "The default ports are those of NFS: 20049 over RDMA, 2049 over TCP.\n"
      "The server sees the address of the gateway: every client gets the rights of this address.");
  gateway->callback([options, &context] { context.exit_status = run_gateway(context.options, *options); });
}

}  // namespace weft::apps
