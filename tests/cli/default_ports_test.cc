// The ports of a server whose options name none. Its message tells them where another program has the port.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/loopback_listener.h"
#include "tests/cli/process.h"

namespace weft::testing {
namespace {

struct DefaultPorts : ::testing::Test {
  DefaultPorts() : dir_(::mkdtemp(name_.data())) {}
  ~DefaultPorts() override {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
  Outcome serve(const std::string& listen, const std::string& mount_listen) const {
    return run_weft(
        {"serve", dir_, "--state-dir", dir_ + "/state", "--listen", listen, "--mount-listen", mount_listen});
  }

  std::string name_ = ::testing::TempDir() + "weft-ports-XXXXXX";
  std::string dir_;
};

// 20049 is IANA's number for NFS over RDMA; 20048 is the port of Linux's MOUNT service.
TEST_F(DefaultPorts, OfServe) {
  for (const auto& [listen, mount_listen, port] :
       {std::tuple{"127.0.0.1", "127.0.0.1:0", 20049}, std::tuple{"127.0.0.1:0", "127.0.0.1", 20048}}) {
    const LoopbackListener other(static_cast<std::uint16_t>(port));  // or another program has it already
    const Outcome outcome = serve(listen, mount_listen);
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_NE(outcome.err.find("127.0.0.1:" + std::to_string(port)), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace weft::testing
