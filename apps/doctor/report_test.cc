// The whole report of made-up machines: each changed word shows here.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/doctor/findings.h"
#include "apps/doctor/testing/machine.h"

namespace weft::apps::doctor {
namespace {

using testing::good_machine;
using testing::kRelease;

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
  ok       addresses           192.0.2.1 (eth0); other hosts reach a --listen on these
  ok       TCP port 20049      free for weft serve
  ok       TCP port 20048      free for weft serve's MOUNT
  ok       TCP port 7174       free for weft ping --listen
  ok       port mapper         iwpmd does not run, so TCP ports are not mapped
  ok       congestion control  cubic by default; available: reno, cubic; without privilege: reno, cubic (--cc)
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
      "note TCP port 20049: another program listens on it, so weft serve cannot -> another port (--listen), or stop "
      "what "
      "'ss -ltnp' shows there\n"
      "note TCP port 20048: this process may not bind it, so weft serve's MOUNT cannot listen on it -> another "
      "port (--mount-listen)\n"
      "note TCP port 7174: could not be tested -> \n"
      "note port mapper: UDP 3935 is taken: iwpmd runs here (or weft --port-map), and hardware RNICs of this "
      "machine listen on TCP ports that it chose -> --port-map for a weft that connects to one of these RNICs, or stop "
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

// Names of devices come from the kernel's files, and no octet of them reaches a terminal raw.
TEST(Report, AFixStandsBelowItsLineInTheColumnOfTheTexts) {
  EXPECT_EQ(to_text({{"one", "a", Mark::kOk, "fine"},
                     {"one", "longer", Mark::kNote, "less so", "do this"},
                     {"two", "x\n", Mark::kProblem, "b\x1b[2J", "c\x1b"},
                     {"two", "y", Mark::kOk, "z"}}),
            "one\n"
            "  ok       a       fine\n"
            "  note     longer  less so\n"
            "                   -> do this\n"
            "\n"
            "two\n"
            "  problem  x\\x0a  b\\x1b[2J\n"
            "                  -> c\\x1b\n"
            "  ok       y      z\n");
  EXPECT_STREQ(mark_name(static_cast<Mark>(99)), "unknown");
}

}  // namespace
}  // namespace weft::apps::doctor
