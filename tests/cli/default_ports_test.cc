#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/process.h"

namespace weft::testing {
namespace {

struct DefaultPorts : ::testing::Test {
  DefaultPorts() : dir(::mkdtemp(name.data())) {}
  ~DefaultPorts() override {
    std::error_code ignored;
    for (const char* part : {"", "-state"}) std::filesystem::remove_all(dir + part, ignored);
  }
  // An address of this process alone: other programs may have these ports at 127.0.0.1.
  static std::string own_host() {
    const auto pid = static_cast<unsigned>(::getpid());
    return "127." + std::to_string(128 + (pid >> 16) % 64) + "." + std::to_string(pid >> 8 & 255) + "." +
           std::to_string(1 + pid % 254);
  }

  std::string name = ::testing::TempDir() + "weft-ports-XXXXXX";
  std::string dir;
};

// 20049 is IANA's number for NFS over RDMA, 20048 the port of Linux's MOUNT service.
TEST_F(DefaultPorts, OfServe) {
  const WeftListener server(
      {"serve", dir, "--state-dir", dir + "-state", "--listen", own_host(), "--mount-listen", own_host()});
  EXPECT_EQ(server.address("rdma"), own_host() + ":20049");
  EXPECT_EQ(server.address("mount"), own_host() + ":20048");
}

// The client's URL names neither port.
TEST_F(DefaultPorts, OfTheNfsClientAreThoseOfServe) {
  const WeftListener server(
      {"serve", dir, "--state-dir", dir + "-state", "--listen", own_host(), "--mount-listen", own_host()});
  const Outcome outcome = run_weft({"nfs", "ls", "nfs+rdma://" + own_host() + "/"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(DefaultPorts, OfMetricsAndTop) {
  const WeftListener server({"serve", dir, "--state-dir", dir + "-state", "--listen", own_host() + ":0",
                             "--mount-listen", own_host() + ":0", "--metrics", own_host()});
  EXPECT_EQ(server.address("metrics"), own_host() + ":9450");
  const Outcome outcome = run_weft({"top", own_host(), "--once"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(own_host()), std::string::npos) << outcome.out;
}

// 7174 is rping's.
TEST_F(DefaultPorts, OfPing) {
  const WeftListener listener({"ping", "--listen", own_host()});
  EXPECT_EQ(listener.address("rdma"), own_host() + ":7174");
  EXPECT_EQ(run_weft({"ping", own_host(), "-C", "1"}).status, 0);
}

}  // namespace
}  // namespace weft::testing
