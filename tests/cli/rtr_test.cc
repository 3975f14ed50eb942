#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/cli/process.h"

// Every listener of `weft` takes every ready-to-receive indication (RFC 6581 section 9.2), whether or not its program
// serves RDMA Reads: the only one that Chelsio's RNICs offer is a Read.
namespace weft::testing {
namespace {

// The options of the clients.
const Words kClients[] = {
    {},
    {"--peer", "cxgb4"},
    {"--peer", "cxgb4", "--mpa-rev", "1"},
    {"--peer", "irdma"},
    {"--rtr", "send"},
    {"--rtr", "write"},
    {"--rtr", "read"},
    {"--rtr", "read", "--ord", "0", "--ird", "1"},
    {"--peer", "cxgb4", "--rtr", "write"},
};
// The options of the listeners.
const Words kListeners[] = {{}, {"--progress", "threads=2"}, {"--peer", "cxgb4"}};

std::string str(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

class RtrCli : public ::testing::Test {
 protected:
  RtrCli() {
    std::string name = std::filesystem::temp_directory_path() / "weft-rtr-XXXXXX";
    directory_ = mkdtemp(name.data());
    std::filesystem::create_directory(directory_ / "export");
    std::ofstream(directory_ / "export" / "file") << "the words of the file\n";
  }
  ~RtrCli() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<WeftListener> serve(const Words& more) {
    return std::make_unique<WeftListener>(Words{"serve", directory_ / "export", "--listen", "127.0.0.1:0",
                                                "--mount-listen", "127.0.0.1:0", "--state-dir", directory_ / "state"} +
                                          more);
  }
  static void expect_cat(const std::string& rdma, const std::string& mount, const Words& client) {
    const std::string url = "nfs+rdma://" + rdma + "/file?mountport=" + port_of(mount);
    const Outcome cat = run_weft(Words{"nfs", "cat", url} + client);
    EXPECT_EQ(cat.status, 0) << str(client) << cat.err;
    EXPECT_EQ(cat.out, "the words of the file\n") << str(client) << cat.err;
  }

  std::filesystem::path directory_;
};

TEST_F(RtrCli, ServeTakesEveryKindAndRevision) {
  RecordProperty("proves", "MPA2-9.1-08 MPA2-9.2-03");
  for (const Words& listener : kListeners) {
    const auto server = serve(listener);
    for (const Words& client : kClients) {
      SCOPED_TRACE(str(listener));
      expect_cat(server->address("rdma"), server->address("mount"), client);
    }
  }
}

TEST_F(RtrCli, ServeTakesAReadFromRdmacPeers) {
  const auto server = serve({"--mpa-rev", "0"});
  expect_cat(server->address("rdma"), server->address("mount"), {"--peer", "cxgb4", "--mpa-rev", "0"});
}

TEST_F(RtrCli, PingTakesEveryKindAndRevision) {
  for (const Words& listener : kListeners) {
    const WeftListener server(Words{"ping", "--listen", "127.0.0.1:0"} + listener);
    for (const Words& client : kClients) {
      // A ping is an RDMA Read of the client's memory: the client's --ird is for it, its --ord for nothing.
      const Outcome ping = run_weft(Words{"ping", server.address("rdma"), "-C", "2", "-V"} + client);
      EXPECT_EQ(ping.status, 0) << str(listener) << "| " << str(client) << ping.err;
    }
  }
}

TEST_F(RtrCli, PerfTakesEveryKindAndRevision) {
  for (const Words& listener : kListeners) {
    const WeftListener server(Words{"perf", "--listen", "127.0.0.1:0"} + listener);
    for (const Words& client : kClients) {
      for (const char* op : {"send", "rpc-null"}) {
        const Outcome perf = run_weft(Words{"perf", server.address("rdma"), "--op", op, "--seconds", "0.01"} + client);
        EXPECT_EQ(perf.status, 0) << op << " " << str(listener) << "| " << str(client) << perf.err;
      }
    }
  }
}

// A gateway before another one that goes back to RDMA, so that both kinds of its listener stand in the way.
TEST_F(RtrCli, GatewaysTakeAndSendEveryKindAndRevision) {
  const auto server = serve({});
  for (const Words& client : kClients) {
    const WeftListener to_rdma(
        Words{"gateway", "--listen", "tcp://127.0.0.1:0", "--connect", "rdma://" + server->address("rdma")} + client);
    const std::string tcp = to_rdma.address("listen");
    const WeftListener to_tcp({"gateway", "--listen", "rdma://127.0.0.1:0", "--connect", tcp});
    const std::string rdma = to_tcp.address("listen");
    ASSERT_TRUE(rdma.starts_with("rdma://")) << to_tcp.ready_line();
    expect_cat(rdma.substr(7), server->address("mount"), client);
  }
}

}  // namespace
}  // namespace weft::testing
