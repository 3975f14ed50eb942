#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/process.h"
#include "tests/cli/raw_clients.h"

namespace weft::testing {
namespace {

// The tree grows until the command takes long enough to tell of its progress.
TEST(NfsProgress, OfATreeReachesATerminal) {
  constexpr int kMostFiles = 10000;
  std::string name = ::testing::TempDir() + "weft-progress-XXXXXX";
  const std::filesystem::path dir = ::mkdtemp(name.data());
  std::filesystem::create_directories(dir / "export" / "tree");
  {
    WeftListener server({"serve", dir / "export", "--listen", "127.0.0.1:0", "--mount-listen", "127.0.0.1:0",
                         "--state-dir", dir / "state"});
    const std::string url =
        "nfs+rdma://" + server.address("rdma") + "/tree?mountport=" + std::to_string(port_in(server.address("mount")));
    std::string told;
    for (int num_made = 0, num = 300; told.find(" left") == std::string::npos && num < kMostFiles; num *= 2) {
      while (num_made < num) std::ofstream(dir / "export" / "tree" / std::to_string(num_made++)) << "some bytes";
      const Outcome outcome = run_weft_on_terminal({"nfs", "get", "-r", "-j", "1", url, dir / std::to_string(num)});
      EXPECT_EQ(outcome.status, 0) << outcome.out;
      told = outcome.out;
    }
    EXPECT_THAT(told,
                ::testing::ContainsRegex(
                    "[0-9]+ of [0-9]+ files, [0-9.]+ [A-Za-z]+, [0-9.]+ [a-zA-Z/]+, [0-9]+ files/s, [0-9]+ s left"));
    EXPECT_TRUE(told.ends_with("\r\x1b[K")) << "the line is gone at the end";
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace weft::testing
