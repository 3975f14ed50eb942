#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "apps/common/output.h"
#include "apps/doctor/findings.h"

namespace weft::apps::doctor {
namespace {

// With fewer a server runs out of descriptors at a few hundred clients, each of which takes one.
constexpr std::uint64_t kManyDescriptors = 4096;
// A smaller buffer holds a single connection back on a fast network.
constexpr std::uint64_t kLargeBuffer = std::uint64_t{4} << 20;

// Report collects the findings of one section after the other.
class Report {
 public:
  explicit Report(std::vector<Finding>& findings) : findings_(findings) {}
  void section(std::string name) { section_ = std::move(name); }
  void ok(std::string name, std::string text) { add(std::move(name), Mark::kOk, std::move(text), {}); }
  void note(std::string name, std::string text, std::string fix = {}) {
    add(std::move(name), Mark::kNote, std::move(text), std::move(fix));
  }
  void problem(std::string name, std::string text, std::string fix) {
    add(std::move(name), Mark::kProblem, std::move(text), std::move(fix));
  }

 private:
  void add(std::string name, Mark mark, std::string text, std::string fix) {
    findings_.push_back({section_, std::move(name), mark, std::move(text), std::move(fix)});
  }
  std::vector<Finding>& findings_;
  std::string section_;
};

std::string join(const std::vector<std::string>& words, std::string_view between = ", ") {
  return fmt::format("{}", fmt::join(words, between));
}

std::string limit_str(std::uint64_t limit) {
  return limit == kNoLimit ? "no limit" : std::to_string(limit);
}

bool has_backend(const Facts& facts, const char* name) {
  return std::ranges::find(facts.backends, name) != facts.backends.end();
}

const RdmaDevice* active_device(const Facts& facts, const char* transport) {
  for (const RdmaDevice& device : facts.rdma_devices) {
    if (device.state == "ACTIVE" && (transport == nullptr || device.transport == transport)) return &device;
  }
  return nullptr;
}

// ---- sections

void examine_build(const Facts& facts, Report& report) {
  report.section("build");
  report.ok("version", "weft " + facts.version);
  report.ok("backends", join(facts.backends));
}

void examine_soft(const Facts& facts, Report& report) {
  report.section("soft backend");
  if (facts.soft_error) {
    report.problem("soft RNIC", *facts.soft_error,
                   "epoll, timerfd, eventfd and sockets have to be allowed: a sandbox may forbid them");
  } else {
    std::vector<std::string> can = {"RDMA Read and Write"};
    if (facts.soft_windows) can.emplace_back("memory windows");
    if (facts.soft_atomics) can.emplace_back("atomics");
    report.ok("soft RNIC", fmt::format("opens: {}, up to {} requests a queue", join(can), facts.soft_max_qp_wr));
  }
  if (!facts.crc32c_instruction) {
    report.note("CRC32c", "whether the CPU has an instruction for it is unknown (/proc/cpuinfo does not say)");
  } else if (*facts.crc32c_instruction) {
    report.ok("CRC32c", "the CPU has an instruction for it");
  } else {
    report.note("CRC32c", "the CPU has no instruction for it: transfers cost several times the CPU time",
                "--crc off at both ends, where something else protects the data; in a virtual machine a CPU model with "
                "SSE4.2");
  }
  if (facts.nofile_hard < kManyDescriptors) {
    report.note("open files", fmt::format("{} at most: one for each connection", limit_str(facts.nofile_hard)),
                "a higher limit (ulimit -Hn, LimitNOFILE=) for a server with many clients");
  } else {
    report.ok("open files", fmt::format("{}, raised up to {} by weft serve", limit_str(facts.nofile_soft),
                                        limit_str(facts.nofile_hard)));
  }
  report.ok("memory", fmt::format("the soft RNIC pins nothing: neither memlock ({}) nor hugepages matter",
                                  facts.memlock == kNoLimit ? "no limit" : format_octets(double(facts.memlock))));
}

void examine_buffers(const Facts& facts, Report& report) {
  if (!facts.tcp_rmem_max || !facts.tcp_wmem_max) {
    return report.note("socket buffers", "unknown: /proc/sys/net/ipv4/tcp_rmem and tcp_wmem do not say");
  }
  const std::string text =
      fmt::format("TCP grows them to {} for receiving, {} for sending", format_octets(double(*facts.tcp_rmem_max)),
                  format_octets(double(*facts.tcp_wmem_max)));
  if (std::min(*facts.tcp_rmem_max, *facts.tcp_wmem_max) < kLargeBuffer) {
    report.note("socket buffers", text + ": enough for a LAN, little for long fast paths",
                "sysctl net.ipv4.tcp_rmem and net.ipv4.tcp_wmem, the last of the three numbers");
  } else {
    report.ok("socket buffers", text);
  }
}

void examine_tcp(const Facts& facts, Report& report) {
  if (facts.congestion_controls.empty()) {
    report.note("congestion control", "unknown: /proc/sys/net/ipv4/tcp_available_congestion_control does not say");
    return;
  }
  std::string text =
      fmt::format("{} by default; available: {}", facts.congestion_control, join(facts.congestion_controls));
  if (!facts.allowed_congestion_controls.empty()) {
    text += fmt::format("; without privilege: {}", join(facts.allowed_congestion_controls));
  }
  report.ok("congestion control", text + " (--cc)");
}

void examine_port(const Facts& facts, std::uint16_t port, const char* program, const char* option, Report& report) {
  const auto at = facts.tcp_ports.find(port);
  const PortState state = at == facts.tcp_ports.end() ? PortState::kUnknown : at->second;
  const std::string name = fmt::format("TCP port {}", port);
  switch (state) {
    case PortState::kFree: return report.ok(name, fmt::format("free for {}", program));
    case PortState::kInUse:
      return report.note(name, fmt::format("another program listens on it, so {} cannot", program),
                         fmt::format("another port ({}), or stop what 'ss -ltnp' shows there", option));
    case PortState::kForbidden:
      return report.note(name, fmt::format("this process may not bind it, so {} cannot listen on it", program),
                         fmt::format("another port ({})", option));
    case PortState::kUnknown: return report.note(name, "could not be tested");
  }
}

void examine_network(const Facts& facts, Report& report) {
  report.section("network");
  std::vector<std::string> reachable, loopback;
  for (const Address& address : facts.addresses) {
    if (!address.up || address.link_local) continue;
    (address.loopback ? loopback : reachable).push_back(fmt::format("{} ({})", address.text, address.interface));
  }
  if (!reachable.empty()) {
    report.ok("addresses", join(reachable) + "; other hosts reach a --listen on these");
  } else {
    report.note("addresses", "none but the loopback's: other machines cannot reach this one",
                "an address on an interface that is up ('ip addr')");
  }
  if (loopback.empty()) report.problem("loopback", "it has no address", "ip link set lo up");
  examine_port(facts, kNfsRdmaPort, "weft serve", "--listen", report);
  examine_port(facts, kMountPort, "weft serve's MOUNT", "--mount-listen", report);
  examine_port(facts, kRpingPort, "weft ping --listen", "--listen ADDR:PORT", report);
  if (facts.iwpm_port == PortState::kInUse) {
    report.note("port mapper",
                "UDP 3935 is taken: iwpmd runs here (or weft --port-map), and hardware RNICs of this machine listen on "
                "TCP ports that it chose",
                "--port-map for a weft that connects to one of these RNICs, or stop iwpmd before its program listens");
  } else {
    report.ok("port mapper", "iwpmd does not run, so TCP ports are not mapped");
  }
  examine_tcp(facts, report);
  examine_buffers(facts, report);
}

struct ModuleInfo {
  const char* name;
  const char* purpose;
  const char* fix;  // shown where the kernel lacks the module; may be empty
};
constexpr ModuleInfo kModuleInfos[] = {
    {"siw", "software iWARP", "a kernel with CONFIG_RDMA_SIW (Debian's leaves it out)"},
    {"rdma_rxe", "software RoCE, which does not talk to iWARP", ""},
    {"iw_cm", "the kernel's iWARP connection manager", ""},
    {"rdma_cm", "the kernel's RDMA connection manager", ""},
    {"rdma_ucm", "its part for programs, which --backend ibv needs", ""},
    {"ib_uverbs", "verbs for programs, which --backend ibv needs", ""},
    {"rpcrdma", "NFS over RDMA, client and server", "a kernel with CONFIG_SUNRPC_XPRT_RDMA"},
    {"nfs", "NFS client", "a kernel with CONFIG_NFS_FS"},
    {"nfsv3", "its version 3, which weft serve speaks", "a kernel with CONFIG_NFS_V3"},
    {"nfsd", "NFS server", "a kernel with CONFIG_NFSD"},
};

void examine_kernel(const Facts& facts, Report& report) {
  report.section("kernel");
  const bool nothing =
      std::ranges::all_of(facts.modules, [](const auto& m) { return m.second == ModuleState::kMissing; });
  if (!facts.modules_known && nothing) {
    const char* where = facts.container ? " (in a container that is usual: ask the host)" : "";
    report.note("modules", fmt::format("unknown: there is no /lib/modules/{}/modules.dep{}", facts.kernel, where));
    return;
  }
  for (const ModuleInfo& info : kModuleInfos) {
    switch (facts.module(info.name)) {
      case ModuleState::kLoaded: report.ok(info.name, fmt::format("loaded: {}", info.purpose)); break;
      case ModuleState::kAvailable:
        report.note(info.name, fmt::format("not loaded: {}", info.purpose), fmt::format("modprobe {}", info.name));
        break;
      case ModuleState::kMissing:
        report.note(info.name, fmt::format("not in kernel {}: {}", facts.kernel, info.purpose), info.fix);
        break;
    }
  }
}

void examine_devices(const Facts& facts, Report& report) {
  report.section("RDMA devices");
  if (facts.rdma_devices.empty()) report.note("devices", "none: the soft backend needs none");
  for (const RdmaDevice& device : facts.rdma_devices) {
    const std::string on = device.netdev.empty() ? "" : " on " + device.netdev;
    const std::string text = fmt::format("{}{}, port 1 {}", device.transport, on,
                                         device.state.empty() ? "in an unknown state" : device.state);
    if (device.state == "ACTIVE") {
      report.ok(device.name, text);
    } else {
      report.note(device.name, text, on.empty() ? "" : fmt::format("ip link set {} up, and its cable", device.netdev));
    }
  }
  for (const DeviceNode& node : facts.device_nodes) {
    if (node.usable) {
      report.ok(node.path, "usable by this user");
    } else {
      report.note(node.path, "not usable by this user",
                  "membership in the group that owns it, or a udev rule (rdma-core)");
    }
  }
}

struct ProgramInfo {
  const char* name;
  const char* what;
  const char* package;  // Debian's package
};
constexpr ProgramInfo kProgramInfos[] = {
    {"mount.nfs", "mounts NFS", "nfs-common"},
    {"exportfs", "runs the kernel's NFS server", "nfs-kernel-server"},
    {"rping", "the other end of weft ping", "rdmacm-utils"},
    {"rdma", "makes siw devices", "iproute2"},
    {"ibv_devices", "lists what libibverbs finds", "ibverbs-utils"},
    {"tshark", "takes iWARP captures apart", "tshark"},
    {"tcpdump", "makes captures", "tcpdump"},
};

void examine_programs(const Facts& facts, Report& report) {
  report.section("programs");
  for (const ProgramInfo& info : kProgramInfos) {
    if (facts.has_program(info.name)) {
      report.ok(info.name, info.what);
    } else {
      report.note(info.name, fmt::format("not installed: {}", info.what),
                  fmt::format("apt-get install {}", info.package));
    }
  }
  if (facts.libibverbs) {
    report.ok("libibverbs", facts.siw_provider ? "installed, with siw's provider" : "installed");
  } else {
    report.note("libibverbs", "not installed: --backend ibv needs it",
                "apt-get install libibverbs1 librdmacm1 ibverbs-providers");
  }
}

// ---- set-ups

// Need collects the missing parts of a set-up: the facts that bar it, in their order, and the remaining steps.
struct Need {
  std::vector<std::string> missing;
  std::vector<std::string> steps;

  void module(const Facts& facts, const char* name) {
    const ModuleState state = facts.module(name);
    if (state == ModuleState::kMissing && !facts.modules_known) {
      missing.push_back(fmt::format("module {} not loaded", name));
      steps.push_back(fmt::format("modprobe {}{}", name, facts.container ? " at this container's host" : ""));
    } else if (state == ModuleState::kMissing) {
      missing.push_back(fmt::format("no kernel module {}", name));
      for (const ModuleInfo& info : kModuleInfos) {
        if (info.name == std::string_view(name) && *info.fix != '\0') steps.emplace_back(info.fix);
      }
    }
    if (state == ModuleState::kAvailable) steps.push_back(fmt::format("modprobe {}", name));
  }
  void program(const Facts& facts, const char* name, const char* package) {
    if (facts.has_program(name)) return;
    missing.push_back(fmt::format("no {}", name));
    steps.push_back(fmt::format("apt-get install {}", package));
  }
  // An iWARP device of the kernel: a present one, or siw over an interface.
  void iwarp_device(const Facts& facts) {
    if (active_device(facts, "iWARP") != nullptr) return;
    module(facts, "siw");
    if (facts.module("siw") != ModuleState::kMissing || !facts.modules_known)
      steps.emplace_back("rdma link add siw0 type siw netdev eth0");
  }
};

void judge(Report& report, const std::string& name, const Need& need, const std::string& works,
           const std::string& then) {
  std::vector<std::string> steps = need.steps;
  if (!then.empty()) steps.push_back(then);
  if (need.missing.empty()) {
    if (steps.empty()) return report.ok(name, "yes: " + works);
    return report.ok(name, fmt::format("yes: {}; with: {}", works, join(steps, "; ")));
  }
  report.note(name, fmt::format("no: {}", join(need.missing)), join(steps, "; "));
}

void judge_soft(const Facts& facts, Report& report) {
  if (facts.soft_error) {
    report.problem("weft to weft", "no: the soft RNIC does not open", "see the soft backend above");
    return;
  }
  report.ok("weft to weft",
            "yes: needs nothing of the kernel but TCP; with: weft serve DIR; weft nfs ls nfs+rdma://HOST/");
}

void judge_mount(const Facts& facts, Report& report) {
  Need need;
  need.iwarp_device(facts);
  need.module(facts, "rpcrdma");
  need.module(facts, "nfs");
  need.module(facts, "nfsv3");
  need.program(facts, "mount.nfs", "nfs-common");
  judge(report, "this kernel mounts from weft serve", need, "as root",
        "mount -t nfs -o vers=3,proto=rdma,port=20049,nolock,mountproto=tcp,mountport=20048 HOST:/ /mnt");
}

void judge_server(const Facts& facts, Report& report) {
  Need need;
  need.iwarp_device(facts);
  need.module(facts, "nfsd");
  need.module(facts, "rpcrdma");
  need.program(facts, "exportfs", "nfs-kernel-server");
  const bool listens = facts.nfsd_rdma.value_or(false);
  judge(report, "weft nfs with this kernel's NFS server", need, listens ? "its RDMA listener is on" : "as root",
        listens ? "" : "echo rdma 20049 > /proc/fs/nfsd/portlist");
}

void judge_siw_host(const Facts& facts, Report& report) {
  if (facts.soft_error) {
    report.problem("weft with a Linux siw host", "no: the soft RNIC does not open", "see the soft backend above");
    return;
  }
  report.ok("weft with a Linux siw host",
            "yes: at that host siw, at weft nothing but the defaults; rping and NFS over RDMA on both sides");
}

Need ibv_needs(const Facts& facts) {
  Need need;
  if (!has_backend(facts, "ibv")) {
    need.missing.emplace_back("this weft was built without it");
    need.steps.emplace_back("a build with libibverbs-dev and librdmacm-dev installed");
  }
  if (!facts.libibverbs) {
    need.missing.emplace_back("no libibverbs");
    need.steps.emplace_back("apt-get install libibverbs1 librdmacm1 ibverbs-providers");
  }
  if (active_device(facts, nullptr) == nullptr) {
    need.missing.emplace_back("no active RDMA device");
    need.iwarp_device(facts);
  }
  need.module(facts, "ib_uverbs");
  need.module(facts, "rdma_ucm");
  const auto is_usable = [&](const char* prefix) {
    return std::ranges::any_of(facts.device_nodes, [&](const DeviceNode& node) {
      return node.usable && node.path.starts_with(std::string("/dev/infiniband/") + prefix);
    });
  };
  if (!is_usable("uverbs") || !is_usable("rdma_cm")) {
    need.missing.emplace_back("no /dev/infiniband/uverbs* and rdma_cm that this user may use");
    if (!facts.device_nodes.empty()) need.steps.emplace_back("membership in the group that owns them, or root");
  }
  return need;
}

void judge_ibv(const Facts& facts, Report& report) {
  const RdmaDevice* device = active_device(facts, nullptr);
  judge(report, "--backend ibv", ibv_needs(facts), device == nullptr ? "" : "through " + device->name, "");
}

void judge_capture(const Facts& facts, Report& report) {
  Need need;
  need.program(facts, "tcpdump", "tcpdump");
  need.program(facts, "tshark", "tshark");
  judge(report, "captures", need, "tcpdump -w makes them, as root, and tshark reads them", "");
}

void examine_setups(const Facts& facts, Report& report) {
  report.section(kWillWork);
  judge_soft(facts, report);
  judge_mount(facts, report);
  judge_server(facts, report);
  judge_siw_host(facts, report);
  judge_ibv(facts, report);
  judge_capture(facts, report);
}

}  // namespace

bool anything_works(const Facts& facts) {
  return !facts.soft_error || ibv_needs(facts).missing.empty();
}

std::vector<Finding> examine(const Facts& facts) {
  std::vector<Finding> findings;
  Report report(findings);
  examine_build(facts, report);
  examine_soft(facts, report);
  examine_network(facts, report);
  examine_kernel(facts, report);
  examine_devices(facts, report);
  examine_programs(facts, report);
  examine_setups(facts, report);
  return findings;
}

}  // namespace weft::apps::doctor
