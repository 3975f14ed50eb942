// Each listener of a program has the address that it was given, also where that is one of IPv6.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "apps/common/address.h"
#include "base/address.h"
#include "base/fd.h"
#include "tests/cli/process.h"

namespace weft::testing {
namespace {

// Whether a TCP connection to this port of 127.0.0.1 comes about.
bool takes_ipv4(const std::string& address) {
  const std::string port = address.substr(address.rfind(':') + 1);
  const sockaddr_storage to = apps::resolve_address("127.0.0.1:" + port).value();
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(fd.get(), as_sockaddr(to), address_len(to)) == 0;
}

bool has_ipv6() {
  const sockaddr_storage any = apps::resolve_address("[::1]:0").value();
  const Fd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::bind(fd.get(), as_sockaddr(any), address_len(any)) == 0;
}

struct Ipv6 : ::testing::Test {
  Ipv6() { EXPECT_NE(::mkdtemp(folder.data()), nullptr); }
  ~Ipv6() override { std::filesystem::remove_all(folder); }
  void SetUp() override {
    if (!has_ipv6()) GTEST_SKIP() << "no IPv6 on the loopback";
    std::filesystem::create_directories(folder + "/export");
    std::ofstream(folder + "/export/file") << "text";
  }
  std::vector<std::string> serve() const {
    return {"serve",   folder + "/export", "--state-dir", folder + "/state", "--listen",
            "[::1]:0", "--mount-listen",   "[::1]:0",     "--metrics",       "[::1]:0"};
  }
  static void expect_only_ipv6(const std::string& address) {
    EXPECT_TRUE(address.starts_with("[::1]:")) << address;
    EXPECT_FALSE(takes_ipv4(address)) << address;
  }
  // The program that has its metrics there.
  static std::string program_at(const std::string& address) {
    const Outcome top = run_weft({"top", address, "--once", "--interval", "0.1"});
    EXPECT_EQ(top.status, 0) << top.err;
    return top.out.substr(0, top.out.find(' ', std::string("weft ").size()));
  }

  std::string folder = "/tmp/weft-ipv6-XXXXXX";
};

TEST_F(Ipv6, ServeListensOnTheAddressesThatItIsGiven) {
  const WeftListener server(serve());
  for (const char* listener : {"rdma", "mount", "metrics"}) expect_only_ipv6(server.address(listener));
  EXPECT_EQ(program_at(server.address("metrics")), "weft serve");
  const std::string mount = server.address("mount");
  const Outcome list = run_weft(
      {"nfs", "ls", "nfs+rdma://" + server.address("rdma") + "/?mountport=" + mount.substr(mount.rfind(':') + 1)});
  EXPECT_EQ(list.out, "file\n") << list.err;
}

TEST_F(Ipv6, GatewaysListenOnTheAddressesThatTheyAreGiven) {
  const WeftListener server(serve());
  const std::string mount = server.address("mount");
  const WeftListener to_rdma({"gateway", "--listen", "tcp://[::1]:0", "--connect", "rdma://" + server.address("rdma"),
                              "--metrics", "[::1]:0"});
  const std::string tcp = to_rdma.address("listen");
  expect_only_ipv6(tcp.substr(std::string("tcp://").size()));
  expect_only_ipv6(to_rdma.address("metrics"));
  EXPECT_EQ(program_at(to_rdma.address("metrics")), "weft gateway");
  // The other kind of gateway is the client of the first one.
  const WeftListener to_tcp({"gateway", "--listen", "rdma://[::1]:0", "--connect", tcp});
  const std::string rdma = to_tcp.address("listen").substr(std::string("rdma://").size());
  const Outcome cat =
      run_weft({"nfs", "cat", "nfs+rdma://" + rdma + "/file?mountport=" + mount.substr(mount.rfind(':') + 1)});
  EXPECT_EQ(cat.out, "text") << cat.err;
}

}  // namespace
}  // namespace weft::testing
