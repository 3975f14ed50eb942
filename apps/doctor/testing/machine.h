#pragma once

#include "apps/doctor/facts.h"

namespace weft::apps::doctor::testing {

inline constexpr const char* kRelease = "6.1.0-28-amd64";

// A machine on which everything is as it should be.
inline Facts good_machine() {
  Facts facts;
  facts.kernel = kRelease;
  facts.version = "1.2.3";
  facts.backends = {"soft", "ibv"};
  facts.crc32c_instruction = true;
  facts.congestion_control = "cubic";
  facts.congestion_controls = {"reno", "cubic"};
  facts.allowed_congestion_controls = {"reno", "cubic"};
  facts.tcp_rmem_max = facts.tcp_wmem_max = 6 << 20;
  facts.modules_known = true;
  for (const char* name : kModules) facts.modules[name] = ModuleState::kLoaded;
  facts.rdma_devices = {{"siw0", "iWARP", "ACTIVE", "eth0"}};
  facts.device_nodes = {{"/dev/infiniband/rdma_cm", true}, {"/dev/infiniband/uverbs0", true}};
  for (const char* name : kPrograms) facts.programs.insert(name);
  facts.libibverbs = facts.siw_provider = true;
  facts.nfsd_rdma = true;
  facts.soft_atomics = facts.soft_windows = true;
  facts.soft_max_qp_wr = 4096;
  facts.nofile_soft = 1024;
  facts.nofile_hard = 1048576;
  facts.memlock = 8 << 20;
  facts.addresses = {{"lo", "127.0.0.1", true}, {"eth0", "192.0.2.1"}, {"eth0", "fe80::1", false, true}};
  facts.tcp_ports = {{kNfsRdmaPort, PortState::kFree}, {kMountPort, PortState::kFree}, {kRpingPort, PortState::kFree}};
  facts.iwpm_port = PortState::kFree;
  return facts;
}

}  // namespace weft::apps::doctor::testing
