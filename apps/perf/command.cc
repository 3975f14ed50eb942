#include "apps/perf/command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/connection.h"
#include "apps/common/option_checks.h"
#include "apps/common/setup.h"
#include "apps/nfs/url.h"
#include "apps/perf/client.h"
#include "apps/perf/listener.h"
#include "apps/perf/report.h"
#include "apps/perf/rpc_program.h"
#include "base/address.h"

namespace weft::apps {
namespace perf {
namespace {

// check_options says which options do not fit together; empty if all fit.
std::string check_options(const PerfOptions& options) {
  std::string op(op_name(options.op));
  std::uint64_t size = effective_size(options), depth = effective_depth(options);
  if (nfs::looks_like_url(options.target) && !is_rpc(options.op)) {
    return "an NFS server is measured with --op rpc-null, rpc-read or rpc-write, not " + op;
  }
  if (nfs::looks_like_url(options.target)) {
    if (auto url = nfs::parse_url(options.target); !url.ok()) return std::string(url.status().message());
  }
  if (options.lat && !has_latency(options.op)) return "--lat has no meaning for --op " + op;
  if (is_rpc(options.op) && size > kMaxItem) return "--size of --op " + op + " is at most 4194304";
  if ((is_rpc(options.op) || options.op == Op::kTcpBatch) && size * depth > kMaxSendMemory) {
    return "--size times --depth is at most 1 GiB for --op " + op;
  }
  return {};
}

std::string target_fault(const std::string& target) {
  return nfs::looks_like_url(target) ? "" : address_fault(target);
}

absl::StatusOr<Measured> run_with_device(const GlobalOptions& global, const PerfOptions& options, StopSignals& stop) {
  auto device =
      open_device(global, {.congestion_control = kDefaultCongestionControl, .answer_timeout = patience(options)});
  if (!device.ok()) return device.status();
  if (nfs::looks_like_url(options.target)) {
    Progress progress(global.progress_or(ProgressMode::kAdapt), &stop);
    return run_nfs(global, options, **device, progress, stop);
  }
  auto addr = resolve_address(options.target);
  if (!addr.ok()) return addr.status();
  auto pd = alloc_pd(**device);
  if (!pd.ok()) return pd.status();
  Progress progress(global.progress_or(ProgressMode::kAdapt), &stop);
  progress.expect(place_of(*addr));
  progress.drive(**device);
  RunContext context{global, options, **device, **pd, progress, *addr};
  if (is_rdma(options.op)) return run_rdma(context);
  auto ready = introduce(context);
  if (!ready.ok()) return ready.status();
  if (is_tcp(options.op)) {
    sockaddr_storage tcp = *addr;
    set_port(tcp, ready->tcp_port);
    return run_tcp(global, options, stop, tcp);
  }
  auto measured = run_rpc(context, ready->rpc_port);
  if (measured.ok()) {
    measured->peer_congestion_control = ready->congestion_control;
    if (global.is_soft()) measured->crc = global.crc || ready->crc;
  }
  return measured;
}

absl::StatusOr<Measured> run_client(const GlobalOptions& global, const PerfOptions& options) {
  StopSignals stop;
  if (!is_tcp(options.op) || options.tcp_port == 0) return run_with_device(global, options, stop);
  auto addr = resolve_address(options.target);
  if (!addr.ok()) return addr.status();
  set_port(*addr, options.tcp_port);
  return run_tcp(global, options, stop, *addr);
}

int run(const GlobalOptions& global, const PerfOptions& options) {
  if (options.listen.empty() == options.target.empty()) {
    return usage_error("perf wants a listener's ADDR:PORT, or --listen ADDR:PORT");
  }
  if (!options.listen.empty()) return run_listener(global, options);
  if (std::string wrong = check_options(options); !wrong.empty()) return usage_error(wrong);
  auto measured = run_client(global, options);
  if (!measured.ok()) return fail(measured.status());
  print(*measured, options.json);
  return kExitDone;
}

}  // namespace

}  // namespace perf

void register_perf_command(CLI::App& root, CommandContext& context) {
  auto options = std::make_shared<perf::PerfOptions>();
  CLI::App* perf = root.add_subcommand("perf", "Throughput and latency over RDMA, and over plain TCP for comparison.");
  auto* target = perf->add_option("target", options->target,
                                  "the listener; with rpc-* also a file of an NFSv3 server: "
                                  "nfs+rdma://HOST[:PORT]/PATH[?mountport=N] (rpc-write overwrites it)")
                     ->check(perf::target_fault)
                     ->type_name("ADDR:PORT|URL");
  CLI::Option* listen = perf->add_option("--listen", options->listen, "listen, for every op; port 0 picks one")
                            ->check([](const std::string& text) { return address_fault(text); })
                            ->type_name("ADDR:PORT")
                            ->excludes(target);
  add_timeout_option(*perf, options->timeout,
                     "give up after this time without a message from the other side (default 10; listener: 30)");
  perf->add_option_function<std::string>(
          "--op", [options](const std::string& name) { options->op = *perf::op_from_name(name); },
          "the operation to measure (default write)")
      ->check(CLI::IsMember(perf::op_names()))
      ->excludes(listen)
      ->type_name("OP");
  perf->add_option("--size", options->size, "bytes of one operation (default: 64 for send, else 1 MiB; tcp: n x MSS)")
      ->check(CLI::Range(std::uint64_t{1}, perf::kMaxSize))
      ->excludes(listen)
      ->type_name("BYTES");
  perf->add_option("--depth", options->depth,
                   "operations in flight (default: send 64, rpc-read and rpc-write 8, else 16)")
      ->check(CLI::Range(1u, perf::kMaxDepth))
      ->excludes(listen)
      ->type_name("N");
  perf->add_option("--seconds", options->seconds, "how long to measure (default 3)")
      ->check(CLI::Range(0.001, 86400.0))
      ->check(nan_fault)
      ->excludes(listen)
      ->type_name("S");
  perf->add_flag("--lat", options->lat, "measure round trips, one at a time (send, read, rpc-*, tcp-lat)")
      ->excludes(listen);
  perf->add_option("--tcp-port", options->tcp_port,
                   "port of the TCP baselines (default: a free port, which clients learn from the listener)")
      ->type_name("PORT");
  perf->add_option("--file", options->file, "listener: the file that tcp-file-read serves")
      ->check(empty_fault)
      ->needs(listen)
      ->type_name("PATH");
  perf->add_option("--sink", options->sink, "listener: the file that tcp-file-write overwrites")
      ->check(empty_fault)
      ->needs(listen)
      ->type_name("PATH");
  perf->add_flag("--json", options->json, "print the result as JSON")->excludes(listen);
  std::string ops;
  for (const std::string& name : perf::op_names()) ops += " " + name;
  perf->footer(
      "Example, two terminals:\n  weft perf --listen 127.0.0.1:18515\n  weft perf 127.0.0.1:18515 --op write --seconds "
      "5\n"
      "Ops:" +
      ops);
  perf->callback([options, &context] { context.exit_status = perf::run(context.options, *options); });
}

}  // namespace weft::apps
