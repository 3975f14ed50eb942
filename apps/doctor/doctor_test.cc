#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/doctor/findings.h"

namespace weft::apps::doctor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRelease = "6.1.0-28-amd64";

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

// ---- the findings

// A machine on which everything is as it should be.
Facts good_machine() {
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

// The whole report of that machine: each changed word shows here.
TEST(Report, OfAGoodMachine) {
  EXPECT_EQ(to_text(examine(good_machine())),
            R"(build
  ok       version   weft 1.2.3
  ok       backends  soft, ibv

soft backend
  ok       soft RNIC   opens: RDMA Read and Write, memory windows, atomics, up to 4096 requests a queue
  ok       CRC32c      the CPU has an instruction for it
  ok       open files  1024, raised up to 1048576 by weft serve
  ok       memory      the soft RNIC pins nothing: neither memlock (8.00 MiB) nor hugepages matter

network
  ok       addresses           192.0.2.1 (eth0); others reach a --listen at these
  ok       TCP port 20049      free for weft serve
  ok       TCP port 20048      free for weft serve's MOUNT
  ok       TCP port 7174       free for weft ping --listen
  ok       port mapper         iwpmd does not run: TCP ports are what they say
  ok       congestion control  cubic by default; reno, cubic can be had, without privilege reno, cubic (--cc)
  ok       socket buffers      TCP grows them to 6.00 MiB for receiving, 6.00 MiB for sending

kernel
  ok       siw        loaded: software iWARP
  ok       rdma_rxe   loaded: software RoCE, which does not talk to iWARP
  ok       iw_cm      loaded: the kernel's iWARP connection manager
  ok       rdma_cm    loaded: the kernel's RDMA connection manager
  ok       rdma_ucm   loaded: its part for programs, which --backend ibv needs
  ok       ib_uverbs  loaded: verbs for programs, which --backend ibv needs
  ok       rpcrdma    loaded: NFS over RDMA, client and server
  ok       nfs        loaded: NFS client
  ok       nfsv3      loaded: its version 3, which weft serve speaks
  ok       nfsd       loaded: NFS server

RDMA devices
  ok       siw0                     iWARP on eth0, port 1 ACTIVE
  ok       /dev/infiniband/rdma_cm  usable by this user
  ok       /dev/infiniband/uverbs0  usable by this user

programs
  ok       mount.nfs    mounts NFS
  ok       exportfs     runs the kernel's NFS server
  ok       rping        the other end of weft ping
  ok       rdma         makes siw devices
  ok       ibv_devices  lists what libibverbs finds
  ok       tshark       takes iWARP captures apart
  ok       tcpdump      makes captures
  ok       libibverbs   installed, with siw's provider

what will work
)" + std::string("  ok       weft to weft                            yes: needs nothing of the kernel but TCP; with: "
                 "weft serve DIR; weft nfs ls nfs+rdma://HOST/\n"
                 "  ok       this kernel mounts from weft serve      yes: as root; with: mount -t nfs -o "
                 "vers=3,proto=rdma,port=20049,nolock,mountproto=tcp,mountport=20048 HOST:/ /mnt\n"
                 "  ok       weft nfs with this kernel's NFS server  yes: its RDMA listener is on\n"
                 "  ok       weft with a Linux siw host              yes: at that host siw, at weft nothing but the "
                 "defaults; rping and NFS over RDMA on both sides\n"
                 "  ok       --backend ibv                           yes: through siw0\n"
                 "  ok       captures                                yes: tcpdump -w makes them, as root, and tshark "
                 "reads them\n"));
}

TEST(Report, JsonHasOneObjectPerFinding) {
  Facts facts = good_machine();
  facts.rdma_devices[0].name = "odd\"\xff\n";
  const auto findings = examine(facts);
  std::istringstream lines(to_json(findings));
  std::size_t num = 0;
  for (std::string line; std::getline(lines, line); ++num) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    ASSERT_LT(num, findings.size());
    EXPECT_EQ(object["section"], findings[num].section);
    EXPECT_EQ(object["mark"], mark_name(findings[num].mark));
    EXPECT_TRUE(object.contains("name") && object.contains("text") && object.contains("fix"));
  }
  EXPECT_EQ(num, findings.size());
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
  EXPECT_EQ(look(facts, "TCP port 7174").text, "could not be tried");
}

// On a machine that lacks everything, every line names the remedy.
TEST(Report, OfAMachineThatHasNothing) {
  Facts facts;
  facts.kernel = kRelease;
  facts.version = "1.2.3";
  facts.backends = {"soft"};
  facts.soft_error = "no descriptors";
  facts.crc32c_instruction = false;
  facts.modules_known = true;
  for (const char* name : kModules) facts.modules[name] = ModuleState::kMissing;
  facts.nofile_soft = facts.nofile_hard = 256;
  facts.tcp_ports = {
      {kNfsRdmaPort, PortState::kInUse}, {kMountPort, PortState::kForbidden}, {kRpingPort, PortState::kUnknown}};
  facts.iwpm_port = PortState::kInUse;
  std::string told;
  for (const Finding& finding : examine(facts)) {
    if (finding.mark == Mark::kOk) continue;
    told +=
        std::string(mark_name(finding.mark)) + " " + finding.name + ": " + finding.text + " -> " + finding.fix + "\n";
  }
  const std::string release = kRelease;
  EXPECT_EQ(
      told,
      "problem soft RNIC: no descriptors -> epoll, timerfd, eventfd and sockets have to be allowed: a sandbox may "
      "forbid them\n"
      "note CRC32c: the CPU has no instruction for it: transfers cost several times the CPU time -> --crc off at "
      "both ends, where something else protects the data; in a virtual machine a CPU model with SSE4.2\n"
      "note open files: 256 at most: one for each connection -> a higher limit (ulimit -Hn, LimitNOFILE=) for a "
      "server with many clients\n"
      "note addresses: none but the loopback's: other machines cannot reach this one -> an address on an "
      "interface that is up ('ip addr')\n"
      "problem loopback: it has no address -> ip link set lo up\n"
      "note TCP port 20049: somebody listens there, so weft serve cannot -> another port (--listen), or stop what "
      "'ss -ltnp' shows there\n"
      "note TCP port 20048: this process may not bind it, so weft serve's MOUNT cannot listen there -> another "
      "port (--mount-listen)\n"
      "note TCP port 7174: could not be tried -> \n"
      "note port mapper: UDP 3935 is taken: iwpmd runs here (or weft --port-map), and hardware RNICs of this "
      "machine listen at TCP ports that it chose -> --port-map at a weft that connects to such a RNIC, or stop "
      "iwpmd before its program listens\n"
      "note congestion control: unknown: /proc/sys/net/ipv4/tcp_available_congestion_control does not say -> \n"
      "note socket buffers: unknown: /proc/sys/net/ipv4/tcp_rmem and tcp_wmem do not say -> \n"
      "note siw: not in kernel " +
          release +
          ": software iWARP -> a kernel with CONFIG_RDMA_SIW (Debian's leaves it out)\n"
          "note rdma_rxe: not in kernel " +
          release +
          ": software RoCE, which does not talk to iWARP -> \n"
          "note iw_cm: not in kernel " +
          release +
          ": the kernel's iWARP connection manager -> \n"
          "note rdma_cm: not in kernel " +
          release +
          ": the kernel's RDMA connection manager -> \n"
          "note rdma_ucm: not in kernel " +
          release +
          ": its part for programs, which --backend ibv needs -> \n"
          "note ib_uverbs: not in kernel " +
          release +
          ": verbs for programs, which --backend ibv needs -> \n"
          "note rpcrdma: not in kernel " +
          release +
          ": NFS over RDMA, client and server -> a kernel with CONFIG_SUNRPC_XPRT_RDMA\n"
          "note nfs: not in kernel " +
          release +
          ": NFS client -> a kernel with CONFIG_NFS_FS\n"
          "note nfsv3: not in kernel " +
          release +
          ": its version 3, which weft serve speaks -> a kernel with CONFIG_NFS_V3\n"
          "note nfsd: not in kernel " +
          release +
          ": NFS server -> a kernel with CONFIG_NFSD\n"
          "note devices: none: the soft backend needs none -> \n"
          "note mount.nfs: not installed: mounts NFS -> apt-get install nfs-common\n"
          "note exportfs: not installed: runs the kernel's NFS server -> apt-get install nfs-kernel-server\n"
          "note rping: not installed: the other end of weft ping -> apt-get install rdmacm-utils\n"
          "note rdma: not installed: makes siw devices -> apt-get install iproute2\n"
          "note ibv_devices: not installed: lists what libibverbs finds -> apt-get install ibverbs-utils\n"
          "note tshark: not installed: takes iWARP captures apart -> apt-get install tshark\n"
          "note tcpdump: not installed: makes captures -> apt-get install tcpdump\n"
          "note libibverbs: not installed: --backend ibv needs it -> apt-get install libibverbs1 librdmacm1 "
          "ibverbs-providers\n"
          "problem weft to weft: no: the soft RNIC does not open -> see the soft backend above\n"
          "note this kernel mounts from weft serve: no: no kernel module siw, no kernel module rpcrdma, no kernel "
          "module nfs, no kernel module nfsv3, no mount.nfs -> a kernel with CONFIG_RDMA_SIW (Debian's leaves it out); "
          "a kernel with CONFIG_SUNRPC_XPRT_RDMA; a kernel with CONFIG_NFS_FS; a kernel with CONFIG_NFS_V3; apt-get "
          "install nfs-common; mount -t nfs -o "
          "vers=3,proto=rdma,port=20049,nolock,mountproto=tcp,mountport=20048 HOST:/ /mnt\n"
          "note weft nfs with this kernel's NFS server: no: no kernel module siw, no kernel module nfsd, no kernel "
          "module rpcrdma, no exportfs -> a kernel with CONFIG_RDMA_SIW (Debian's leaves it out); a kernel with "
          "CONFIG_NFSD; a kernel with CONFIG_SUNRPC_XPRT_RDMA; apt-get install nfs-kernel-server; echo rdma 20049 > "
          "/proc/fs/nfsd/portlist\n"
          "problem weft with a Linux siw host: no: the soft RNIC does not open -> see the soft backend above\n"
          "note --backend ibv: no: this weft was built without it, no libibverbs, no active RDMA device, no kernel "
          "module siw, no kernel module ib_uverbs, no kernel module rdma_ucm, no /dev/infiniband/uverbs* and rdma_cm "
          "that this user may use -> a build with libibverbs-dev and librdmacm-dev installed; apt-get install "
          "libibverbs1 librdmacm1 ibverbs-providers; a kernel with CONFIG_RDMA_SIW (Debian's leaves it out)\n"
          "note captures: no: no tcpdump, no tshark -> apt-get install tcpdump; apt-get install tshark\n");
  EXPECT_FALSE(anything_works(facts));
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

// This examines the machine that runs the test.
TEST(Process, AsksWithoutPrivilegeAndSendsNothing) {
  Facts facts;
  ask_process(facts);
  EXPECT_FALSE(facts.soft_error) << *facts.soft_error;
  EXPECT_GT(facts.nofile_soft, 0u);
  EXPECT_GT(facts.soft_max_qp_wr, 0u);
  EXPECT_THAT(facts.backends, ::testing::Contains("soft"));
}

TEST(Process, TellsTheLoopbackFromOtherAddresses) {
  Facts facts;
  ask_process(facts);
  const auto at = std::ranges::find(facts.addresses, std::string("127.0.0.1"), &Address::text);
  ASSERT_NE(at, facts.addresses.end());
  EXPECT_EQ(at->interface, "lo");
  EXPECT_TRUE(at->loopback && at->up);
  EXPECT_FALSE(at->link_local);
  for (const Address& address : facts.addresses) EXPECT_EQ(address.loopback, address.interface == "lo") << address.text;
}

// Another program may have the port already. It is in use then, too.
TEST(Process, SeesThatAPortIsTaken) {
  const int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
            udp = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(kRpingPort);
  ::bind(tcp, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  address.sin_port = htons(kIwpmPort);
  ::bind(udp, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  Facts facts;
  ask_process(facts);
  EXPECT_EQ(facts.tcp_ports[kRpingPort], PortState::kInUse);
  EXPECT_EQ(facts.iwpm_port, PortState::kInUse);
  ::close(tcp);
  ::close(udp);
}

// A server's connections stay in TIME_WAIT for a minute after its end. The port is free all the same.
TEST(Process, APortOfConnectionsThatEndedIsFree) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(kMountPort);
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listener, at, sizeof(address)) != 0) GTEST_SKIP() << "another program has port " << kMountPort;
  ASSERT_EQ(::listen(listener, 1), 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(client, at, sizeof(address)), 0);
  const int server = ::accept(listener, nullptr, nullptr);
  ::close(server);
  char octet = 0;
  EXPECT_EQ(::read(client, &octet, 1), 0) << "the server ends first: the rest of the connection is at its port";
  ::close(client);
  ::close(listener);
  Facts facts;
  ask_process(facts);
  EXPECT_EQ(facts.tcp_ports[kMountPort], PortState::kFree);
}

}  // namespace
}  // namespace weft::apps::doctor
