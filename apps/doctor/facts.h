#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

// The facts that `weft doctor` knows of a machine before it judges: plain data, so that tests can make up any machine.
namespace weft::apps::doctor {

enum class ModuleState : std::uint8_t { kMissing, kAvailable, kLoaded };

// RdmaDevice is one entry of /sys/class/infiniband.
struct RdmaDevice {
  std::string name;
  std::string transport;  // "iWARP", "RoCE", "InfiniBand", or the kernel's word
  std::string state;      // of port 1: "ACTIVE"
  std::string netdev;     // of port 1, empty if it has none
};

// DeviceNode is one entry of /dev/infiniband.
struct DeviceNode {
  std::string path;
  bool usable = false;  // by this process, to read and to write
};

// Address is one address of an interface.
struct Address {
  std::string interface;
  std::string text;
  bool loopback = false;
  bool link_local = false;
  bool up = true;
};

enum class PortState : std::uint8_t { kFree, kInUse, kForbidden, kUnknown };

struct Facts {
  // ---- from files below a root (read_system)
  std::string kernel;                      // the kernel's release
  std::optional<bool> crc32c_instruction;  // of the CPU; nothing if the CPU's description lacks it
  std::string congestion_control;          // the system's default
  std::vector<std::string> congestion_controls;
  std::vector<std::string> allowed_congestion_controls;     // allowed without privilege
  std::optional<std::uint64_t> tcp_rmem_max, tcp_wmem_max;  // octets, the limit of TCP's own growth
  bool modules_known = false;                               // the kernel's list of modules could be read
  std::map<std::string, ModuleState> modules;
  std::vector<RdmaDevice> rdma_devices;
  std::vector<DeviceNode> device_nodes;
  std::set<std::string> programs;  // the installed ones of kPrograms
  bool libibverbs = false;
  bool siw_provider = false;      // libibverbs knows siw
  std::optional<bool> nfsd_rdma;  // nfsd listens for RDMA; nothing if nfsd does not run or does not say
  bool container = false;

  // ---- from the running process (ask_process)
  std::string version;
  std::vector<std::string> backends;      // backends that were built
  std::optional<std::string> soft_error;  // the reason if the soft RNIC does not open
  bool soft_atomics = false, soft_windows = false;
  std::uint32_t soft_max_qp_wr = 0;
  std::uint64_t nofile_soft = 0, nofile_hard = 0;  // ~0: no limit
  std::uint64_t memlock = 0;                       // octets; ~0: no limit
  std::vector<Address> addresses;
  std::map<std::uint16_t, PortState> tcp_ports;  // of the loopback
  PortState iwpm_port = PortState::kUnknown;     // UDP 3935

  ModuleState module(const std::string& name) const {
    const auto at = modules.find(name);
    return at == modules.end() ? ModuleState::kMissing : at->second;
  }
  bool has_program(const std::string& name) const { return programs.contains(name); }
};

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
inline constexpr const char* kModules[] = {"siw",       "rdma_rxe", "iw_cm", "rdma_cm", "rdma_ucm",
                                           "ib_uverbs", "rpcrdma",  "nfs",   "nfsv3",   "nfsd"};
inline constexpr const char* kPrograms[] = {"rping",    "rdma",   "ibv_devices", "mount.nfs",
                                            "exportfs", "tshark", "tcpdump"};
inline constexpr std::uint16_t kNfsRdmaPort = 20049, kMountPort = 20048, kRpingPort = 7174, kIwpmPort = 3935;

// read_system reads files of /proc, /sys, /dev, /etc, /lib and the usual places of programs, each with `root` in front
// ("" for the machine itself). A fact that is missing or cannot be read is left as it is. No file is read beyond 4 MiB.
// kernel: the release whose modules count.
void read_system(const std::string& root, const std::string& kernel, Facts& facts);

// ask_process asks the running process and system for limits, addresses, the ports that the loopback can bind (nothing
// is sent, nothing listens), and whether the soft RNIC opens.
void ask_process(Facts& facts);

}  // namespace weft::apps::doctor
