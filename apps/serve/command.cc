#include "apps/serve/command.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/address.h"
#include "apps/common/allow_list.h"
#include "apps/common/command.h"
#include "apps/common/descriptor_plan.h"
#include "apps/common/idle_trim.h"
#include "apps/common/limit_options.h"
#include "apps/common/option_checks.h"
#include "apps/common/output.h"
#include "apps/common/rpc_config.h"
#include "apps/common/rpcbind_registration.h"
#include "apps/common/say.h"
#include "apps/common/setup.h"
#include "apps/common/signals.h"
#include "apps/metrics/metrics_option.h"
#include "apps/serve/descriptor_shares.h"
#include "apps/serve/serve_app.h"
#include "apps/serve/warnings.h"
#include "base/address.h"
#include "fmt/format.h"
#include "nfsulb/programs.h"
#include "spdlog/spdlog.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/worker_descriptors.h"

namespace weft::apps {
namespace {

struct ServeOptions {
  std::string directory;
  std::string listen = fmt::format("127.0.0.1:{}", nfsulb::kNfsRdmaPort);
  std::string mount_listen = fmt::format("127.0.0.1:{}", nfsulb::kMountTcpPort);
  std::string state_dir;
  std::string metrics;
  std::vector<std::string> allow;
  bool read_write = false;
  bool cross_mounts = false;
  bool set_id_files = false;
  bool devices = false;
  bool rpcbind = false;
  unsigned disk_workers = 4;
  LimitOptions limits;
};

// Spinning before sleep is cheap compared with waking a core, and 8 READs in flight come a few microseconds apart.
constexpr std::chrono::microseconds kSpinBeforeBlock{50};

// The place for state in the XDG base directory specification.
absl::StatusOr<std::string> default_state_dir() {
  if (const char* base = std::getenv("XDG_STATE_HOME"); base != nullptr && base[0] == '/')
    return std::string(base) + "/weft";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return std::string(home) + "/.local/state/weft";
  return absl::FailedPreconditionError("neither XDG_STATE_HOME nor HOME is set: say where with --state-dir DIR");
}

// Descriptors of a server without clients, beside those that it inherited: the device, both listeners, the export and
// its state with an index that is rewritten, and --rpcbind.
constexpr std::size_t kDescriptorsOfServer = 32;
constexpr std::size_t kMaxOpenFiles = 1024;

// Divides the descriptors among tasks, connections, open files and MOUNT. Where the limit of open files is low, there
// are fewer workers in the sync lane.
absl::Status divide_descriptors(const GlobalOptions& global, const ServeOptions& options, std::uint64_t file_limit,
                                serve::ServeConfig& config, DeviceWish& wish) {
  const verbs::SoftConfig device = soft_config(global);
  const absl::StatusOr<serve::DescriptorShares> shares = serve::share_descriptors(
      {.limit = file_limit,
       .own = num_open_descriptors() + kDescriptorsOfServer + global.num_workers * verbs::kDescriptorsOfWorker +
              metrics::num_descriptors(options.metrics),
       .disk_workers = config.pool.num_workers,
       .connections = options.limits.max_connections,
       .most = {.connections = config.rpc.max_connections,
                .open_files = kMaxOpenFiles,
                .mount_connections = config.mount.max_connections,
                .sync_workers = config.pool.num_sync_workers,
                .waiting = config.rpc.max_waiting,
                .silent = device.max_silent,
                .lingering = device.max_lingering}});
  if (!shares.ok()) return shares.status();
  config.rpc.max_connections = shares->connections;
  config.backend.max_open_files = shares->open_files;
  config.mount.max_connections = shares->mount_connections;
  config.pool.num_sync_workers = shares->sync_workers;
  config.rpc.max_waiting = shares->waiting;
  wish.max_silent = shares->silent;
  wish.max_lingering = shares->lingering;
  return absl::OkStatus();
}

absl::StatusOr<serve::ServeConfig> to_config(const GlobalOptions& global, const ServeOptions& options,
                                             std::uint64_t file_limit, DeviceWish& wish) {
  serve::ServeConfig config;
  config.tree.directory = options.directory;
  config.tree.state_dir = options.state_dir;
  if (options.state_dir.empty()) {
    absl::StatusOr<std::string> dir = default_state_dir();
    if (!dir.ok()) return dir.status();
    config.tree.state_dir = *dir;
  }
  config.tree.cross_mounts = options.cross_mounts;
  config.has_metrics = !options.metrics.empty();
  config.backend.read_write = options.read_write;
  config.backend.set_id_files = options.set_id_files;
  config.backend.devices = options.devices;
  config.backend.log = program_log();
  config.backend.log.sink = [sink = config.backend.log.sink](verbs::LogLevel level, std::string_view line) {
    sink(level, fmt::format("serve: {}", line));
  };
  config.pool.num_workers = options.disk_workers;
  config.rpc = server_config(global, kCreditsForFiles);
  const LimitOptions& limits = options.limits;
  if (absl::Status divided = divide_descriptors(global, options, file_limit, config, wish); !divided.ok())
    return divided;
  config.rpc.max_connections_per_client = limits.connections_per_address(config.rpc.max_connections);
  config.rpc.max_buffered = limits.max_buffered.value_or(config.rpc.max_buffered);
  config.rpc.max_buffered_per_client = limits.max_buffered_per_address.value_or(0);
  absl::StatusOr<sockaddr_storage> listen = resolve_address(options.listen, nfsulb::kNfsRdmaPort);
  if (!listen.ok()) return listen.status();
  absl::StatusOr<sockaddr_storage> mount_listen = resolve_address(options.mount_listen, nfsulb::kMountTcpPort);
  if (!mount_listen.ok()) return mount_listen.status();
  config.listen = *listen;
  config.mount_listen = *mount_listen;
  absl::StatusOr<AllowList> allow = AllowList::parse(options.allow);
  if (!allow.ok()) return allow.status();
  config.rpc.admits = config.mount.admits = filter_of(*allow);
  return config;
}

// metrics: null for none.
void drive(serve::ServeApp& app, metrics::MetricsEndpoint* metrics, const StopSignals& stop, ProgressMode mode) {
  constexpr TimePoint kBusy = TimePoint::max();
  TimePoint idle_since = kBusy;
  IdleTrim trim;
  while (!stop.requested()) {
    TimePoint now = std::chrono::steady_clock::now();
    if (metrics != nullptr && metrics->is_wanted()) metrics->deliver(app.snapshot());
    const bool has_worked = app.turn(now) != 0;
    if (trim.on_turn(now, has_worked)) trim_heap();
    if (has_worked) {
      idle_since = kBusy;
      continue;
    }
    if (mode == ProgressMode::kSpin) continue;
    idle_since = std::min(idle_since, now);
    if (now - idle_since < kSpinBeforeBlock) continue;
    app.wait(stop.fd(), trim.due(), metrics != nullptr ? metrics->fd() : -1);
    idle_since = kBusy;
  }
}

// options_fault names an option that has no effect without another one, which is missing. Empty: there is none.
std::string options_fault(const ServeOptions& options) {
  const char* const changing = options.set_id_files ? "--set-id-files" : options.devices ? "--devices" : nullptr;
  if (changing != nullptr && !options.read_write) {
    return fmt::format("{} allows more changes, and without --read-write clients change nothing. Try: --read-write {}",
                       changing, changing);
  }
  return limits_fault(options.limits);
}

int run_serve(const GlobalOptions& global, const ServeOptions& options) {
  if (const std::string fault = options_fault(options); !fault.empty()) return usage_error(fault);
  StopSignals stop;
  // A file that would grow too large is an error for the client and does not end the server.
  signal(SIGXFSZ, SIG_IGN);
  // Clients choose the permissions of new files.
  umask(0);
  bound_unused_heap();
  const std::uint64_t file_limit = raise_file_limit();
  DeviceWish wish;
  absl::StatusOr<serve::ServeConfig> config = to_config(global, options, file_limit, wish);
  if (!config.ok()) return fail(config.status());
  const auto refused = std::make_shared<RefusedPeers>(0);
  config->refused_by_device = refused;
  wish.admits = counting(config->rpc.admits, refused);
  auto device = open_device(global, wish);
  if (!device.ok()) return fail(device.status());
  auto app = serve::ServeApp::start(*config, **device);
  if (!app.ok()) return fail(app.status());
  const auto endpoint = metrics::open_endpoint(options.metrics, "serve");
  if (!endpoint.ok()) return fail(endpoint.status());
  say(stderr, "weft serve: {} ({}) as user {} for every client, at most {} open files, state in {}\n",
      (*app)->real_path(), options.read_write ? "read-write" : "read-only", serve::user_name(::geteuid()), file_limit,
      config->tree.state_dir);
  const serve::ServeScene scene{.user = ::geteuid(),
                                .read_write = options.read_write,
                                .listen = (*app)->rdma_addr(),
                                .mount_listen = (*app)->mount_addr(),
                                .allow = AllowList::parse(options.allow).value()};
  for (const std::string& warning : serve::start_warnings(scene)) say(stderr, "weft serve: warning: {}\n", warning);
  std::optional<RpcbindRegistration> registration;
  if (options.rpcbind) {
    constexpr ProgramVersion kPrograms[] = {{nfsulb::kNfsProgram, nfsulb::kNfsV3}};
    RpcbindRegistration::Config places;
    places.stop_fd = stop.fd();
    registration.emplace((*app)->rdma_addr(), kPrograms, places);
  }
  print_ready(fmt::format("rdma={} mount={}{}", address_str((*app)->rdma_addr()), address_str((*app)->mount_addr()),
                          metrics::ready_text(endpoint->get())));
  drive(**app, endpoint->get(), stop, global.progress_or(ProgressMode::kBlock));
  spdlog::info("serve: {}", (*app)->summary());
  return kExitDone;
}

}  // namespace

void register_serve_command(CLI::App& root, CommandContext& context) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* serve =
      root.add_subcommand("serve", "Serve a directory as NFSv3 over RPC-over-RDMA (and MOUNT v3 over TCP).");
  serve->add_option("directory", options->directory, "directory to export, under the name /")
      ->required()
      ->check(empty_fault)
      ->type_name("DIR");
  serve->add_option("--listen", options->listen, "the address for RDMA connections; port 0 picks one")
      ->check([](const std::string& text) { return address_fault(text, nfsulb::kNfsRdmaPort); })
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  serve->add_option("--mount-listen", options->mount_listen, "the address for MOUNT over TCP; port 0 picks one")
      ->check([](const std::string& text) { return address_fault(text, nfsulb::kMountTcpPort); })
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  serve
      ->add_option("--allow", options->allow,
                   "clients that may connect, an address or a network; may be given more than once; without it all "
                   "clients may connect")
      ->check(allow_fault)
      ->allow_extra_args(false)
      ->type_name("ADDRESS[/PREFIX]");
  serve->add_flag("--read-write", options->read_write, "let clients change files; without it they only read");
  serve->add_flag("--cross-mounts", options->cross_mounts,
                  "also serve the filesystems mounted beneath DIR; without it clients cannot enter them");
  serve->add_flag(
      "--set-id-files", options->set_id_files,
      "let clients set the set-user-ID and set-group-ID bits of files; a write clears them; needs --read-write");
  serve->add_flag("--devices", options->devices, "let clients make device files (as root); needs --read-write");
  serve
      ->add_option("--state-dir", options->state_dir,
                   "the directory for the key and the index of file handles (default $XDG_STATE_HOME/weft or "
                   "~/.local/state/weft)")
      ->check(empty_fault)
      ->type_name("DIR");
  serve->add_flag("--rpcbind", options->rpcbind,
                  "register NFS over RDMA with the rpcbind of this host, for clients to find its port");
  serve
      ->add_option("--disk-workers", options->disk_workers,
                   "threads that read and write files; threads that wait for fsync are separate")
      ->check(CLI::Range(2u, 256u))
      ->type_name("N")
      ->capture_default_str();
  metrics::add_metrics_option(*serve, options->metrics);
  add_limit_options(*serve, options->limits);
  serve->footer(
      "Example, two terminals:\n  weft serve /usr/share/doc\n  weft nfs ls nfs+rdma://127.0.0.1/\n"
      "Every request runs with the rights of this process's user. On loopback every local user has these rights, and\n"
      "on another address every host that reaches --listen. --allow admits only the hosts that it names.");
  serve->callback([options, &context] { context.exit_status = run_serve(context.options, *options); });
}

}  // namespace weft::apps
