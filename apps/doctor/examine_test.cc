#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "apps/doctor/findings.h"
#include "apps/doctor/testing/machine.h"

namespace weft::apps::doctor {
namespace {

using ::testing::AllOf;
using testing::good_machine;
using ::testing::HasSubstr;
using testing::kRelease;
using ::testing::Not;

const Finding& find(const std::vector<Finding>& findings, const std::string& name) {
  for (const Finding& finding : findings)
    if (finding.name == name) return finding;
  ADD_FAILURE() << name;
  static const Finding none;
  return none;
}
Finding look(const Facts& facts, const std::string& name) {
  return find(examine(facts), name);
}

TEST(Examine, AGoodMachineHasNothingToBeDone) {
  for (const Finding& finding : examine(good_machine())) {
    EXPECT_EQ(finding.mark, Mark::kOk) << finding.name << ": " << finding.text;
    EXPECT_EQ(finding.fix, "") << finding.name;
    EXPECT_FALSE(finding.text.empty()) << finding.name;
  }
  EXPECT_TRUE(anything_works(good_machine()));
}

TEST(Examine, WithoutTheSoftRnicNothingOfOursWorks) {
  Facts facts = good_machine();
  facts.soft_error = "cannot open the soft RNIC: epoll: Operation not permitted";
  EXPECT_EQ(look(facts, "soft RNIC").mark, Mark::kProblem);
  EXPECT_EQ(look(facts, "weft to weft").mark, Mark::kProblem);
  EXPECT_TRUE(anything_works(facts)) << "ibv does";
  facts.backends = {"soft"};
  EXPECT_FALSE(anything_works(facts));
}

TEST(Examine, PortsInUseAreNotesWithAWayOut) {
  Facts facts = good_machine();
  facts.tcp_ports[kNfsRdmaPort] = PortState::kInUse;
  facts.tcp_ports[kMountPort] = PortState::kForbidden;
  facts.iwpm_port = PortState::kInUse;
  EXPECT_EQ(look(facts, "TCP port 20049").mark, Mark::kNote);
  EXPECT_THAT(look(facts, "TCP port 20049").fix, HasSubstr("--listen"));
  EXPECT_THAT(look(facts, "TCP port 20048").fix, HasSubstr("--mount-listen"));
  EXPECT_THAT(look(facts, "port mapper").text, HasSubstr("iwpmd runs here"));
  EXPECT_THAT(look(facts, "port mapper").fix, HasSubstr("--port-map"));
  facts.tcp_ports.clear();
  EXPECT_EQ(look(facts, "TCP port 7174").text, "could not be tested");
}

TEST(Examine, ModulesThatAreNotLoadedSayHow) {
  Facts facts = good_machine();
  facts.modules["siw"] = ModuleState::kAvailable;
  facts.modules["nfsd"] = ModuleState::kMissing;
  EXPECT_EQ(look(facts, "siw").fix, "modprobe siw");
  EXPECT_THAT(look(facts, "nfsd").text, HasSubstr(kRelease));
  EXPECT_THAT(look(facts, "nfsd").fix, HasSubstr("CONFIG_NFSD"));
}

TEST(Examine, AContainerWithoutModulesSaysSoOnce) {
  Facts facts = good_machine();
  facts.modules_known = false;
  facts.container = true;
  for (auto& [name, state] : facts.modules) state = ModuleState::kMissing;
  EXPECT_THAT(look(facts, "modules").text, AllOf(HasSubstr("unknown"), HasSubstr("ask the host")));
  // The report does not claim that the kernel lacks them.
  const Finding mount = look(facts, "this kernel mounts from weft serve");
  EXPECT_THAT(mount.text, AllOf(HasSubstr("module rpcrdma not loaded"), Not(HasSubstr("no kernel module"))));
  EXPECT_THAT(mount.fix, HasSubstr("modprobe rpcrdma at this container's host"));
  const auto findings = examine(facts);
  EXPECT_EQ(std::ranges::count(findings, std::string("kernel"), &Finding::section), 1);
}

TEST(Examine, AMountNeedsModulesADeviceAndTheHelper) {
  Facts facts = good_machine();
  const char* const kName = "this kernel mounts from weft serve";
  facts.rdma_devices.clear();
  EXPECT_EQ(look(facts, kName).mark, Mark::kOk);
  EXPECT_THAT(look(facts, kName).text, HasSubstr("rdma link add siw0 type siw"));
  facts.modules["rpcrdma"] = ModuleState::kAvailable;
  EXPECT_THAT(look(facts, kName).text, HasSubstr("modprobe rpcrdma"));
  facts.modules["siw"] = ModuleState::kMissing;
  EXPECT_EQ(look(facts, kName).mark, Mark::kNote);
  EXPECT_THAT(look(facts, kName).text, HasSubstr("no kernel module siw"));
  EXPECT_THAT(look(facts, kName).fix, AllOf(HasSubstr("CONFIG_RDMA_SIW"), Not(HasSubstr("rdma link add"))));
  // A hardware RNIC serves as well as siw.
  facts.rdma_devices = {{"cxgb4_0", "iWARP", "ACTIVE", "eth2"}};
  EXPECT_EQ(look(facts, kName).mark, Mark::kOk);
  facts.programs.erase("mount.nfs");
  EXPECT_THAT(look(facts, kName).text, HasSubstr("no mount.nfs"));
  EXPECT_THAT(look(facts, kName).fix, HasSubstr("nfs-common"));
}

TEST(Examine, TheKernelsServerNeedsItsRdmaListener) {
  Facts facts = good_machine();
  facts.nfsd_rdma = false;
  EXPECT_THAT(look(facts, "weft nfs with this kernel's NFS server").text, HasSubstr("echo rdma 20049"));
}

TEST(Examine, IbvNeedsABuildALibraryADeviceAndItsNodes) {
  const auto lacks = [](const std::function<void(Facts&)>& change) {
    Facts facts = good_machine();
    change(facts);
    const Finding finding = look(facts, "--backend ibv");
    EXPECT_EQ(finding.mark == Mark::kOk, finding.fix.empty()) << finding.text;
    return finding.mark == Mark::kOk ? std::string() : finding.text;
  };
  EXPECT_EQ(lacks([](Facts&) {}), "");
  EXPECT_THAT(lacks([](Facts& f) { f.backends = {"soft"}; }), HasSubstr("built without it"));
  EXPECT_THAT(lacks([](Facts& f) { f.libibverbs = false; }), HasSubstr("no libibverbs"));
  EXPECT_THAT(lacks([](Facts& f) { f.rdma_devices[0].state = "DOWN"; }), HasSubstr("no active RDMA device"));
  EXPECT_THAT(lacks([](Facts& f) { f.device_nodes[1].usable = false; }), HasSubstr("this user may use"));
}

TEST(Examine, LittleThingsAreNoted) {
  Facts facts = good_machine();
  facts.crc32c_instruction = false;
  facts.nofile_hard = 1024;
  facts.tcp_rmem_max = 212992;
  facts.addresses = {{"lo", "127.0.0.1", true}};
  for (const char* name : {"CRC32c", "open files", "socket buffers", "addresses"}) {
    EXPECT_EQ(look(facts, name).mark, Mark::kNote) << name;
    EXPECT_NE(look(facts, name).fix, "") << name;
  }
  facts.addresses.clear();
  EXPECT_EQ(look(facts, "loopback").mark, Mark::kProblem);
}

TEST(Examine, EnoughIsEnough) {
  Facts facts = good_machine();
  facts.nofile_hard = 4096;
  facts.tcp_rmem_max = facts.tcp_wmem_max = 4 << 20;
  EXPECT_EQ(look(facts, "open files").mark, Mark::kOk);
  EXPECT_EQ(look(facts, "socket buffers").mark, Mark::kOk);
  facts.nofile_hard = 4095;
  facts.tcp_wmem_max = (4 << 20) - 1;
  EXPECT_EQ(look(facts, "open files").mark, Mark::kNote);
  EXPECT_EQ(look(facts, "socket buffers").mark, Mark::kNote);
  facts.tcp_wmem_max.reset();
  EXPECT_THAT(look(facts, "socket buffers").text, HasSubstr("unknown"));
  facts = good_machine();
  facts.tcp_rmem_max.reset();
  EXPECT_THAT(look(facts, "socket buffers").text, HasSubstr("unknown"));
}

TEST(Examine, AKernelThatSaysSomethingIsNotUnknown) {
  Facts facts = good_machine();
  facts.modules_known = false;
  for (auto& [name, state] : facts.modules) state = ModuleState::kMissing;
  EXPECT_THAT(look(facts, "modules").text, Not(HasSubstr("container"))) << "it is none";
  EXPECT_THAT(look(facts, "weft nfs with this kernel's NFS server").fix,
              AllOf(HasSubstr("modprobe nfsd;"), Not(HasSubstr("host"))));
  facts.modules["siw"] = ModuleState::kLoaded;
  EXPECT_EQ(look(facts, "siw").mark, Mark::kOk);
  EXPECT_EQ(look(facts, "nfsd").mark, Mark::kNote);
}

// The backend ibv takes any RDMA device that is up, the kernel's iWARP only a device of that kind.
TEST(Examine, WhichDevicesAreOfUse) {
  Facts facts = good_machine();
  facts.modules["siw"] = ModuleState::kMissing;
  facts.rdma_devices = {{"mlx5_0", "InfiniBand", "DOWN", ""}, {"mlx5_1", "RoCE", "ACTIVE", "eth1"}};
  EXPECT_EQ(look(facts, "--backend ibv").text, "yes: through mlx5_1");
  EXPECT_THAT(look(facts, "this kernel mounts from weft serve").text, HasSubstr("no kernel module siw"));
  EXPECT_EQ(look(facts, "mlx5_0").text, "InfiniBand, port 1 DOWN");
  EXPECT_EQ(look(facts, "mlx5_0").fix, "");
  facts.rdma_devices[1].state.clear();
  EXPECT_EQ(look(facts, "mlx5_1").text, "RoCE on eth1, port 1 in an unknown state");
  EXPECT_EQ(look(facts, "mlx5_1").fix, "ip link set eth1 up, and its cable");
  facts.device_nodes[0].usable = false;
  EXPECT_EQ(look(facts, "/dev/infiniband/rdma_cm").mark, Mark::kNote);
  EXPECT_THAT(look(facts, "--backend ibv").fix, HasSubstr("membership in the group that owns them, or root"));
}

TEST(Examine, WhatTheReportLeavesOut) {
  Facts facts = good_machine();
  facts.addresses = {{"lo", "127.0.0.1", true}, {"eth0", "192.0.2.1"}, {"eth0", "2001:db8::1"}, {"eth1", "192.0.2.9"}};
  facts.addresses[3].up = false;
  EXPECT_EQ(look(facts, "addresses").text,
            "192.0.2.1 (eth0), 2001:db8::1 (eth0); other hosts reach a --listen on these");
  facts.addresses[0].up = false;
  EXPECT_EQ(look(facts, "loopback").mark, Mark::kProblem);
  facts.allowed_congestion_controls.clear();
  EXPECT_EQ(look(facts, "congestion control").text, "cubic by default; available: reno, cubic (--cc)");
  facts.congestion_controls.clear();
  EXPECT_EQ(look(facts, "congestion control").mark, Mark::kNote);
  facts.soft_windows = false;
  EXPECT_EQ(look(facts, "soft RNIC").text, "opens: RDMA Read and Write, atomics, up to 4096 requests a queue");
  facts.soft_atomics = false;
  EXPECT_EQ(look(facts, "soft RNIC").text, "opens: RDMA Read and Write, up to 4096 requests a queue");
  facts.memlock = facts.nofile_hard = kNoLimit;
  EXPECT_THAT(look(facts, "memory").text, HasSubstr("memlock (no limit)"));
  EXPECT_EQ(look(facts, "open files").text, "1024, raised up to no limit by weft serve");
  facts.siw_provider = false;
  EXPECT_EQ(look(facts, "libibverbs").text, "installed");
  facts.crc32c_instruction.reset();
  EXPECT_THAT(look(facts, "CRC32c").text, HasSubstr("is unknown"));
  EXPECT_EQ(look(facts, "CRC32c").fix, "");
  facts.nfsd_rdma.reset();
  EXPECT_THAT(look(facts, "weft nfs with this kernel's NFS server").text, HasSubstr("yes: as root; with: echo rdma"));
}

}  // namespace
}  // namespace weft::apps::doctor
