#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "apps/doctor/findings.h"
#include "apps/doctor/testing/machine.h"

namespace weft::apps::doctor {
namespace {

using ::testing::ElementsAre;
using testing::kRelease;

// A made-up machine: a folder with the files that a test puts there.
class SystemTest : public ::testing::Test {
 protected:
  SystemTest() {
    std::string name = std::filesystem::temp_directory_path() / "weft-doctor-XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~SystemTest() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path at = root_ + path;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  Facts read() {
    Facts facts;
    read_system(root_, kRelease, facts);
    return facts;
  }
  void put_modules() {
    put(std::string("/lib/modules/") + kRelease + "/modules.dep",
        "kernel/drivers/infiniband/sw/siw/siw.ko: kernel/drivers/infiniband/core/ib_core.ko\n"
        "kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz: kernel/net/sunrpc/sunrpc.ko.xz\n"
        "kernel/drivers/infiniband/core/ib-uverbs.ko.zst:\n");
    put(std::string("/lib/modules/") + kRelease + "/modules.builtin", "kernel/fs/nfs/nfs.ko\n");
    put("/proc/modules", "rpcrdma 1 0 - Live 0x0\nsiw_other 1 0 - Live 0x0\n");
    put("/sys/module/rdma_cm/refcnt", "1\n");
  }
  void put_device(const std::string& name, const std::string& node_type, const std::string& state,
                  const std::string& link_layer, const std::string& netdev) {
    const std::string at = "/sys/class/infiniband/" + name;
    put(at + "/node_type", node_type + "\n");
    put(at + "/ports/1/state", state + "\n");
    put(at + "/ports/1/link_layer", link_layer + "\n");
    if (!netdev.empty()) put(at + "/ports/1/gid_attrs/ndevs/0", netdev + "\n");
  }

  std::string root_;
};

TEST_F(SystemTest, AnEmptyMachineIsUnknownAndNoError) {
  const Facts facts = read();
  EXPECT_FALSE(facts.crc32c_instruction);
  EXPECT_FALSE(facts.modules_known);
  EXPECT_EQ(facts.module("siw"), ModuleState::kMissing);
  EXPECT_TRUE(facts.rdma_devices.empty() && facts.device_nodes.empty() && facts.programs.empty());
  EXPECT_FALSE(facts.tcp_rmem_max || facts.nfsd_rdma || facts.libibverbs || facts.container);
  EXPECT_FALSE(examine(facts).empty());
}

TEST_F(SystemTest, ModulesAreLoadedBuiltInAvailableOrMissing) {
  put_modules();
  const Facts facts = read();
  EXPECT_TRUE(facts.modules_known);
  EXPECT_EQ(facts.module("siw"), ModuleState::kAvailable);
  EXPECT_EQ(facts.module("rpcrdma"), ModuleState::kLoaded);
  EXPECT_EQ(facts.module("ib_uverbs"), ModuleState::kAvailable) << "a dash is an underscore";
  EXPECT_EQ(facts.module("nfs"), ModuleState::kLoaded) << "built in";
  EXPECT_EQ(facts.module("rdma_cm"), ModuleState::kLoaded) << "by /sys/module";
  EXPECT_EQ(facts.module("nfsd"), ModuleState::kMissing);
}

TEST_F(SystemTest, DevicesAreToldApart) {
  put_device("siw0", "4: RNIC", "4: ACTIVE", "Ethernet", "eth0");
  put_device("mlx5_0", "1: CA", "1: DOWN", "InfiniBand", "");
  put_device("rxe0", "1: CA", "4: ACTIVE", "Ethernet", "eth1");
  std::filesystem::create_directories(root_ + "/sys/class/infiniband/odd0");
  put("/dev/infiniband/uverbs0", "");
  put("/dev/infiniband/rdma_cm", "");
  put("/dev/infiniband/umad0", "");
  const Facts facts = read();
  ASSERT_EQ(facts.rdma_devices.size(), 4u);
  const auto text = [&](std::size_t i) {
    const RdmaDevice& d = facts.rdma_devices[i];
    return d.name + " " + d.transport + " " + d.state + " " + d.netdev;
  };
  EXPECT_EQ(text(0), "mlx5_0 InfiniBand DOWN ");
  EXPECT_EQ(text(1), "odd0 unknown  ");
  EXPECT_EQ(text(2), "rxe0 RoCE ACTIVE eth1");
  EXPECT_EQ(text(3), "siw0 iWARP ACTIVE eth0");
  ASSERT_EQ(facts.device_nodes.size(), 2u);
  EXPECT_EQ(facts.device_nodes[0].path, "/dev/infiniband/rdma_cm");
  EXPECT_TRUE(facts.device_nodes[0].usable);
}

TEST_F(SystemTest, ReadsTheRest) {
  put("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse4_2 avx2\n\nprocessor\t: 1\nflags\t\t: fpu\n");
  put("/proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
  put("/proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic bbr\n");
  put("/proc/sys/net/ipv4/tcp_allowed_congestion_control", "reno cubic\n");
  put("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
  put("/proc/sys/net/ipv4/tcp_wmem", "4096 nonsense\n");
  put("/proc/fs/nfsd/portlist", "tcp 2049\nrdma 20049\n");
  put("/usr/sbin/mount.nfs", "");
  put("/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "");
  put("/etc/libibverbs.d/siw.driver", "driver siw\n");
  put("/.dockerenv", "");
  const Facts facts = read();
  EXPECT_EQ(facts.crc32c_instruction, true);
  EXPECT_EQ(facts.congestion_control, "cubic");
  EXPECT_THAT(facts.congestion_controls, ElementsAre("reno", "cubic", "bbr"));
  EXPECT_THAT(facts.allowed_congestion_controls, ElementsAre("reno", "cubic"));
  EXPECT_EQ(facts.tcp_rmem_max, 6291456u);
  EXPECT_FALSE(facts.tcp_wmem_max);
  EXPECT_EQ(facts.nfsd_rdma, true);
  EXPECT_THAT(facts.programs, ElementsAre("mount.nfs"));
  EXPECT_TRUE(facts.libibverbs && facts.siw_provider && facts.container);
}

// A container or a broken driver may put other things in the place of a file.
TEST_F(SystemTest, OddFilesNeitherHangNorCrash) {
  std::filesystem::create_directories(root_ + "/proc/modules");
  std::filesystem::create_directories(root_ + "/sys/class");
  put("/sys/class/infiniband", "not a folder");
  ASSERT_EQ(mkfifo((root_ + "/proc/cpuinfo").c_str(), 0600), 0);
  put("/proc/fs/nfsd/portlist", std::string("\0\xff", 2));
  put(std::string("/lib/modules/") + kRelease + "/modules.dep", std::string(100000, ':'));
  const Facts facts = read();
  EXPECT_TRUE(facts.modules_known);
  EXPECT_TRUE(facts.rdma_devices.empty());
  EXPECT_FALSE(facts.crc32c_instruction);
}

// Each place where a program or the library can be, alone.
TEST_F(SystemTest, ProgramsAndTheLibraryAreFoundInEachUsualFolder) {
  for (const char* folder : {"/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"}) {
    put(std::string(folder) + "/rping", "");
    EXPECT_THAT(read().programs, ElementsAre("rping")) << folder;
    std::filesystem::remove(root_ + folder + "/rping");
  }
  for (const char* program : kPrograms) {
    put(std::string("/usr/bin/") + program, "");
    EXPECT_TRUE(read().has_program(program)) << program;
  }
  EXPECT_FALSE(read().libibverbs);
  for (const char* folder : {"/usr/lib", "/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/aarch64-linux-gnu"}) {
    put(std::string(folder) + "/libibverbs.so.1", "");
    EXPECT_TRUE(read().libibverbs) << folder;
    std::filesystem::remove(root_ + folder + "/libibverbs.so.1");
  }
  put("/usr/lib/elsewhere/libibverbs.so.1", "");
  const Facts facts = read();
  EXPECT_FALSE(facts.libibverbs || facts.siw_provider);
}

TEST_F(SystemTest, TheCpusInstructionHasTwoNames) {
  put("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd crc32\n");
  EXPECT_EQ(read().crc32c_instruction, true);
  put("/proc/cpuinfo", "model name\t: sse4_2\nflags\t\t: fpu avx2\n\nflags\t\t: fpu sse4_2\n");
  EXPECT_EQ(read().crc32c_instruction, false) << "the first CPU speaks for all";
  put("/proc/cpuinfo", "model name\t: a CPU\n");
  EXPECT_EQ(read().crc32c_instruction, std::nullopt);
}

TEST_F(SystemTest, TheLimitsOfTcpsBuffersAreTheThirdNumbers) {
  put("/proc/sys/net/ipv4/tcp_rmem", "1 2 3\n");
  put("/proc/sys/net/ipv4/tcp_wmem", "4 5 6\n");
  EXPECT_EQ(read().tcp_rmem_max, 3u);
  EXPECT_EQ(read().tcp_wmem_max, 6u);
  for (const char* odd : {"1 2\n", "1 2 3 4\n", "1 2 x\n", "1 2 99999999999999999999\n"}) {
    put("/proc/sys/net/ipv4/tcp_rmem", odd);
    EXPECT_EQ(read().tcp_rmem_max, std::nullopt) << odd;
  }
}

TEST_F(SystemTest, ADeviceWithoutAGidsInterfaceHasThatOfItsBus) {
  put_device("cxgb4_0", "4: RNIC", "ACTIVE", "Ethernet", "");
  put("/sys/class/infiniband/cxgb4_0/device/net/eth3/address", "");
  put("/sys/class/infiniband/cxgb4_0/device/net/eth2/address", "");
  put("/sys/class/infiniband/cxgb4_0/device/net/.hidden", "");
  put_device("usnic0", "6: usNIC UDP", "4: ACTIVE", "Ethernet", "");
  const Facts facts = read();
  ASSERT_EQ(facts.rdma_devices.size(), 2u);
  EXPECT_EQ(facts.rdma_devices[0].netdev, "eth2");
  EXPECT_EQ(facts.rdma_devices[0].state, "ACTIVE") << "without a number";
  EXPECT_EQ(facts.rdma_devices[1].transport, "usNIC UDP") << "the kernel's word";
  EXPECT_EQ(facts.rdma_devices[1].netdev, "");
}

TEST_F(SystemTest, TheServersPortForRdmaMayBeAnyOfItsPorts) {
  for (const auto& [ports, listens] : {std::pair{"rdma 20049\n", true},
                                       {"tcp 2049\nrdma 20049\ntcp 2050\n", true},
                                       {"tcp 2049\n", false},
                                       {"tcp 2049\nno-rdma 20049\n", false},
                                       {"", false}}) {
    put("/proc/fs/nfsd/portlist", ports);
    EXPECT_EQ(read().nfsd_rdma, listens) << ports;
  }
}

TEST_F(SystemTest, EitherFileMarksAContainer) {
  for (const char* mark : {"/.dockerenv", "/run/.containerenv"}) {
    put(mark, "");
    EXPECT_TRUE(read().container) << mark;
    std::filesystem::remove(root_ + mark);
  }
}

// Modules that are loaded show without the kernel's list: /proc/modules and /sys belong to the host of a container.
TEST_F(SystemTest, LoadedModulesShowWithoutTheKernelsList) {
  put("/proc/modules", "siw 1 0 - Live 0x0\n");
  put("/sys/module/nfsd/refcnt", "1\n");
  const Facts facts = read();
  EXPECT_FALSE(facts.modules_known);
  for (const char* name : kModules) {
    const bool loaded = name == std::string("siw") || name == std::string("nfsd");
    EXPECT_EQ(facts.module(name), loaded ? ModuleState::kLoaded : ModuleState::kMissing) << name;
  }
}

// Root may use every file that exists.
TEST_F(SystemTest, ANodeThatLeadsNowhereIsNotUsable) {
  std::filesystem::create_directories(root_ + "/dev/infiniband");
  std::filesystem::create_symlink("/nowhere", root_ + "/dev/infiniband/uverbs0");
  const Facts facts = read();
  ASSERT_EQ(facts.device_nodes.size(), 1u);
  EXPECT_FALSE(facts.device_nodes[0].usable);
}

}  // namespace
}  // namespace weft::apps::doctor
