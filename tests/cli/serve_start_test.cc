// What `weft serve` says when it starts, and what it refuses to export.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/process.h"

namespace weft::testing {
namespace {

struct ServeStart : ::testing::Test {
  ServeStart() : dir(::mkdtemp(name.data())) {}
  ~ServeStart() override {
    std::error_code ignored;
    for (const char* part : {"", "-state"}) std::filesystem::remove_all(dir + part, ignored);
  }
  // Standard error of a server from its start to its end.
  std::string said(const std::string& listen, const std::string& mount_listen) const {
    RunningWeft server(
        {"serve", dir, "--state-dir", dir + "-state", "--listen", listen, "--mount-listen", mount_listen});
    EXPECT_TRUE(server.wait_for("ready "));
    server.send_signal(SIGTERM);
    return server.finish().err;
  }

  std::string name = ::testing::TempDir() + "weft-start-XXXXXX";
  std::string dir;
};

TEST_F(ServeStart, TheWarningsAreTold) {
  const bool is_root = ::geteuid() == 0;
  const std::string here = said("127.0.0.1:0", "127.0.0.1:0");
  EXPECT_EQ(contains(here, "warning: requests run as root"), is_root) << here;
  EXPECT_FALSE(contains(here, "is reached from other hosts")) << here;
  const std::string rdma = said("0.0.0.0:0", "127.0.0.1:0"), mount = said("127.0.0.1:0", "0.0.0.0:0");
  EXPECT_TRUE(contains(rdma, "is reached from other hosts: every user of every host that reaches it reads files"))
      << rdma;
  EXPECT_TRUE(contains(mount, "every user of every host that reaches it gets the handle of the root")) << mount;
}

// The key of all handles lies there.
TEST_F(ServeStart, TheStateDirectoryIsNotExported) {
  RunningWeft server({"serve", dir, "--state-dir", dir, "--listen", "127.0.0.1:0", "--mount-listen", "127.0.0.1:0"});
  ASSERT_FALSE(server.wait_for("ready "));
  const Outcome outcome = server.finish();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("weft: " + dir + " is the state directory, which holds the key of all handles"))
      << outcome.err;
}

}  // namespace
}  // namespace weft::testing
