#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/process.h"

// No test here asserts a time or a rate. The tests assert that every op works from end to end and counts its work.
namespace weft::testing {
namespace {

nlohmann::json parse_line(const Outcome& outcome) {
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\n') + 1, outcome.out.size()) << outcome.out;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

// A measurement has another meaning if its thread slept.
void expect_share(const nlohmann::json& share) {
  ASSERT_TRUE(share.is_number()) << share;
  EXPECT_GE(share, 0.0);
  EXPECT_LE(share, 1.0);
}

class PingCli : public ::testing::Test {
 protected:
  WeftListener listener_{{"ping", "--listen", "127.0.0.1:0"}};
};

TEST_F(PingCli, VerifiesEveryPingAndReportsTheRoundTrips) {
  auto json = parse_line(run_weft({"ping", listener_.address("rdma"), "-C", "20", "-V", "--json"}));
  EXPECT_EQ(json["count"], 20);
  EXPECT_EQ(json["size"], 64);
  EXPECT_EQ(json["verified"], true);
  EXPECT_LE(json["min_ns"], json["p50_ns"]);
  EXPECT_LE(json["p50_ns"], json["p99_ns"]);
  EXPECT_EQ(json["progress"], "adapt");
  expect_share(json["sleep_share"]);
}

TEST_F(PingCli, TakesEverySizeOneAfterTheOther) {
  for (const char* size : {"26", "4096", "65536"}) {
    Outcome outcome = run_weft({"ping", listener_.address("rdma"), "-C", "3", "-V", "-S", size});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(std::string("3 pings of ") + size), std::string::npos) << outcome.out;
  }
}

TEST_F(PingCli, WorksWithoutCrcAndWithRevisionOne) {
  EXPECT_EQ(run_weft({"ping", listener_.address("rdma"), "-C", "2", "-V", "--crc", "off"}).status, 0);
  EXPECT_EQ(run_weft({"ping", listener_.address("rdma"), "-C", "2", "-V", "--mpa-rev", "1"}).status, 0);
  EXPECT_EQ(run_weft({"ping", listener_.address("rdma"), "-C", "2", "-V", "--progress", "block"}).status, 0);
}

// Where another program has UDP 3935, its mapper rejects and the port is taken as it is.
TEST(PingListener, BothEndsMayUseThePortMapper) {
  WeftListener listener({"ping", "--listen", "127.0.0.1:0", "--port-map"});
  Outcome outcome = run_weft({"ping", listener.address("rdma"), "-C", "2", "-V", "--port-map", "--log-level", "info"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("port mapper: "), std::string::npos) << outcome.err;
}

TEST(PingListener, BothEndsMayHaveWorkers) {
  const std::vector<std::string> kWorkers = {"--progress", "threads=2"};
  WeftListener listener({"ping", "--listen", "127.0.0.1:0", "--progress", "threads=2"});
  for (const std::vector<std::string>& progress : {kWorkers, std::vector<std::string>{"--progress", "spin"}}) {
    std::vector<std::string> words = {"ping", listener.address("rdma"), "-C", "50", "-V", "-S", "4096"};
    words.insert(words.end(), progress.begin(), progress.end());
    Outcome outcome = run_weft(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("50 pings of 4096"), std::string::npos) << outcome.out;
  }
  EXPECT_EQ(listener.stop(SIGTERM), 143);
}

TEST_F(PingCli, BothSignalsEndTheListener) {
  EXPECT_EQ(listener_.stop(SIGTERM), 143);
  WeftListener other({"ping", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(other.stop(SIGINT), 130);
}

TEST(PingListener, EndsAfterTheConnectionsItWasToServe) {
  WeftListener listener({"ping", "--listen", "127.0.0.1:0", "-C", "1"});
  EXPECT_EQ(run_weft({"ping", listener.address("rdma"), "-C", "1"}).status, 0);
  EXPECT_EQ(listener.stop(0), 0);
}

TEST(PingListener, TakesIpv6) {
  WeftListener listener({"ping", "--listen", "[::1]:0"});
  if (listener.ready_line().empty()) GTEST_SKIP() << "no IPv6 on the loopback";
  EXPECT_EQ(run_weft({"ping", listener.address("rdma"), "-C", "2", "-V"}).status, 0);
}

class PerfCli : public ::testing::Test {
 protected:
  PerfCli() {
    std::string name = std::filesystem::temp_directory_path() / "weft-perf-XXXXXX";
    directory_ = mkdtemp(name.data());
    std::ofstream(directory_ / "file") << std::string(3000000, 'x');
    listener_ = std::make_unique<WeftListener>(std::vector<std::string>{
        "perf", "--listen", "127.0.0.1:0", "--file", directory_ / "file", "--sink", directory_ / "sink"});
  }
  ~PerfCli() override { std::filesystem::remove_all(directory_); }

  nlohmann::json perf(std::vector<std::string> words) {
    words.insert(words.begin(), {"perf", listener_->address("rdma"), "--seconds", "0.02", "--json"});
    return parse_line(run_weft(words));
  }

  std::filesystem::path directory_;
  std::unique_ptr<WeftListener> listener_;
};

TEST_F(PerfCli, ReadyLineNamesBothPorts) {
  EXPECT_TRUE(listener_->ready_line().starts_with("ready rdma=127.0.0.1:")) << listener_->ready_line();
  EXPECT_TRUE(listener_->address("tcp").starts_with("127.0.0.1:")) << listener_->ready_line();
}

TEST_F(PerfCli, EveryOpRunsAgainstOneListener) {
  for (const char* op : {"send", "write", "read", "rpc-null", "rpc-read", "rpc-write", "tcp", "tcp-lat", "tcp-batch",
                         "tcp-file-read", "tcp-file-write"}) {
    auto json = perf({"--op", op});
    EXPECT_EQ(json["op"], op);
    EXPECT_GT(json["ops"], 0) << op;
    EXPECT_EQ(json["cc"], "reno") << op;
    EXPECT_EQ(json["peer_cc"], "reno") << op;
    EXPECT_GT(json["seconds"], 0.0) << op;
    EXPECT_TRUE(json.contains("octets_per_s") && json.contains("ops_per_s") && json.contains("octets")) << op;
    EXPECT_EQ(json["progress"], "adapt") << op;
    expect_share(json["sleep_share"]);
  }
}

// The numbers of a report add up: operations, their size, octets, seconds and rates.
TEST_F(PerfCli, WhatIsReportedAddsUp) {
  struct Expected {
    const char* op;
    std::uint64_t size;
    std::uint32_t depth;
  };
  constexpr std::uint64_t kMiB = 1 << 20;
  for (const Expected& expected : {Expected{"send", 64, 64},
                                   {"write", kMiB, 16},
                                   {"read", kMiB, 16},
                                   {"rpc-null", 0, 16},
                                   {"rpc-read", kMiB, 8},
                                   {"rpc-write", kMiB, 8},
                                   {"tcp-lat", 64, 1},
                                   {"tcp-batch", 64, 64},
                                   {"tcp-file-write", kMiB, 1}}) {
    SCOPED_TRACE(expected.op);
    const auto json = perf({"--op", expected.op});
    EXPECT_EQ(json["size"], expected.size);
    EXPECT_EQ(json["depth"], expected.depth);
    EXPECT_EQ(json["octets"], json["ops"].get<std::uint64_t>() * expected.size);
    const double seconds = json["seconds"];
    EXPECT_NEAR(json["octets_per_s"].get<double>() * seconds, json["octets"].get<double>(), 1 + 1e-6 * kMiB);
    EXPECT_NEAR(json["ops_per_s"].get<double>() * seconds, json["ops"].get<double>(), 0.01);
    EXPECT_EQ(json.contains("mss"), std::string_view(expected.op).starts_with("tcp"));
    if (json.contains("mss")) {
      EXPECT_GT(json["mss"], 0);
    }
  }
  // The file is read whole each time, in pieces of a mebibyte.
  const auto file = perf({"--op", "tcp-file-read"});
  const std::uint64_t times = file["octets"].get<std::uint64_t>() / 3000000;
  EXPECT_GE(times, 1u);
  EXPECT_EQ(file["octets"], times * 3000000);
  EXPECT_EQ(file["ops"], times * 3);
  // Without a size the stream chooses one that suits the socket, and reports it.
  EXPECT_GT(perf({"--op", "tcp"})["size"], 0);
  EXPECT_EQ(perf({"--op", "tcp", "--size", "1000"})["size"], 1000);
}

TEST(PerfNfs, RpcOpsRunAgainstAnNfsServer) {
  char name[] = "/tmp/weft_perf_nfs_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::filesystem::path dir = name;
  std::filesystem::create_directory(dir / "export");
  std::ofstream(dir / "export" / "file") << std::string(100000, 'x');
  {
    WeftListener server({"serve", (dir / "export").string(), "--read-write", "--listen", "127.0.0.1:0",
                         "--mount-listen", "127.0.0.1:0", "--state-dir", (dir / "state").string()});
    const std::string mount = server.address("mount");
    const auto url = [&](const std::string& path) {
      return "nfs+rdma://" + server.address("rdma") + path + "?mountport=" + mount.substr(mount.rfind(':') + 1);
    };
    for (const char* op : {"rpc-null", "rpc-read", "rpc-write"}) {
      auto json = parse_line(
          run_weft({"perf", url("/file"), "--op", op, "--size", "30000", "--seconds", "0.05", "--lat", "--json"}));
      EXPECT_EQ(json["op"], op);
      EXPECT_GT(json["ops"], 0) << op;
      EXPECT_EQ(json["octets"], std::string(op) == "rpc-null" ? 0 : json["ops"].get<std::uint64_t>() * 30000) << op;
    }
    // rpc-write wrote its pattern through the three whole pieces of the file, and rpc-read nothing.
    std::ifstream file(dir / "export" / "file");
    const std::string octets((std::istreambuf_iterator<char>(file)), {});
    ASSERT_EQ(octets.size(), 100000u);
    EXPECT_EQ(octets.substr(0, 30000), std::string(30000, '\x5a'));
    EXPECT_EQ(octets.substr(90000), std::string(10000, 'x'));

    const Outcome small = run_weft({"perf", url("/file"), "--op", "rpc-read", "--size", "200000"});
    EXPECT_EQ(small.status, 1);
    EXPECT_NE(small.err.find("must be a file of at least 200000 bytes"), std::string::npos) << small.err;
    EXPECT_EQ(run_weft({"perf", url("/file"), "--op", "write"}).status, 2);
    EXPECT_EQ(run_weft({"perf", url("/none"), "--op", "rpc-read"}).status, 1);
    EXPECT_EQ(server.stop(SIGTERM), 143);
  }
  // With Calls under way when the first is refused.
  WeftListener read_only({"serve", (dir / "export").string(), "--listen", "127.0.0.1:0", "--mount-listen",
                          "127.0.0.1:0", "--state-dir", (dir / "state").string()});
  const std::string mount = read_only.address("mount");
  const Outcome refused = run_weft(
      {"perf", "nfs+rdma://" + read_only.address("rdma") + "/file?mountport=" + mount.substr(mount.rfind(':') + 1),
       "--op", "rpc-write", "--size", "30000", "--depth", "64"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("WRITE: read-only file system"), std::string::npos) << refused.err;
  std::filesystem::remove_all(dir);
}

TEST_F(PerfCli, LatencyOpsReportRoundTrips) {
  for (const char* op : {"send", "read", "rpc-null", "rpc-read", "rpc-write", "tcp-lat"}) {
    auto json = perf({"--op", op, "--lat", "--size", "64"});
    EXPECT_EQ(json["depth"], 1) << op;
    EXPECT_GT(json["p50_ns"], 0) << op;
    EXPECT_LE(json["p50_ns"], json["p99_ns"]) << op;
  }
}

TEST_F(PerfCli, EveryOpRunsWhereBothEndsHaveWorkers) {
  WeftListener listener({"perf", "--listen", "127.0.0.1:0", "--progress", "threads=2"});
  const auto words = [&](const char* op) {
    return std::vector<std::string>{
        "perf", listener.address("rdma"), "--op", op, "--seconds", "0.02", "--json", "--progress", "threads=2"};
  };
  for (const char* op : {"send", "write", "read", "rpc-null", "rpc-read", "rpc-write", "tcp"}) {
    EXPECT_GT(parse_line(run_weft(words(op)))["ops"], 0) << op;
  }
  for (const char* op : {"send", "read", "rpc-null"}) {
    auto with_lat = words(op);
    with_lat.insert(with_lat.end(), {"--lat", "--size", "64"});
    EXPECT_GT(parse_line(run_weft(with_lat))["p50_ns"], 0) << op;
  }
  EXPECT_EQ(listener.stop(SIGTERM), 143);
}

TEST(PerfListener, EitherEndMayTakeTheCreditFormulaLiterally) {
  for (const std::string served : {"sane", "literal"}) {
    WeftListener listener({"perf", "--listen", "127.0.0.1:0", "--rpcrdma", "2-wg07", "--credit-formula", served});
    std::vector<std::string> words = {
        "perf",   listener.address("rdma"), "--op",   "rpc-null", "--seconds", "0.02", "--json", "--rpcrdma",
        "2-wg07", "--credit-formula",       "literal"};
    EXPECT_GT(parse_line(run_weft(words))["ops"], 0) << served;
    words[3] = "rpc-write";
    words.insert(words.end(), {"--size", "12288"});
    EXPECT_GT(parse_line(run_weft(words))["ops"], 0) << served;
    EXPECT_EQ(listener.stop(SIGTERM), 143);
  }
}

TEST(PerfListener, AClientFindsTheVersionOfItsServer) {
  for (const std::string served : {"1", "2-cel05", "2-wg07", "auto", "1,2-cel05"}) {
    WeftListener listener({"perf", "--listen", "127.0.0.1:0", "--rpcrdma", served});
    for (const std::string& wanted : {std::string("auto"), served}) {
      for (const char* op : {"rpc-null", "rpc-write"}) {
        const auto json = parse_line(run_weft(
            {"perf", listener.address("rdma"), "--op", op, "--seconds", "0.02", "--json", "--rpcrdma", wanted}));
        EXPECT_GT(json["ops"], 0) << wanted << " to " << served;
      }
    }
    EXPECT_EQ(listener.stop(SIGTERM), 143);
  }
  WeftListener listener({"perf", "--listen", "127.0.0.1:0"});
  const auto outcome = run_weft({"perf", listener.address("rdma"), "--op", "rpc-null", "--rpcrdma", "2-wg07,2-cel05"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("no version of RPC-over-RDMA in common: the server speaks 1, and --rpcrdma names "
                             "2-wg07,2-cel05; add 1 to it\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(listener.stop(SIGTERM), 143);
}

TEST_F(PerfCli, OddSizesAndDepthsWork) {
  for (const char* op : {"send", "write", "read"}) {
    for (const char* size : {"1", "1447", "100001"}) {
      for (const char* depth : {"1", "3", "64"}) {
        auto json = perf({"--op", op, "--size", size, "--depth", depth});
        EXPECT_GT(json["ops"], 0) << op << " " << size << " " << depth;
        EXPECT_EQ(json["octets"].get<std::uint64_t>(), json["ops"].get<std::uint64_t>() * std::stoull(size));
      }
    }
  }
}

TEST_F(PerfCli, CrcsAreOffOnlyWhereBothEndsSayOff) {
  EXPECT_EQ(perf({"--op", "write"})["crc"], true);
  EXPECT_EQ(perf({"--op", "write", "--crc", "off"})["crc"], true);
  EXPECT_EQ(perf({"--op", "rpc-null", "--crc", "off"})["crc"], true);
  WeftListener off({"perf", "--listen", "127.0.0.1:0", "--crc", "off"});
  auto json = parse_line(
      run_weft({"perf", off.address("rdma"), "--op", "write", "--seconds", "0.01", "--crc", "off", "--json"}));
  EXPECT_EQ(json["crc"], false);
}

TEST_F(PerfCli, BaselinesSpinOrSleep) {
  for (const char* mode : {"spin", "block"}) {
    for (const char* op : {"tcp", "tcp-file-read", "tcp-file-write"}) {
      auto json = perf({"--op", op, "--progress", mode});
      EXPECT_GT(json["octets"], 0) << op << " " << mode;
      EXPECT_EQ(json["progress"], mode) << op;
      if (std::string_view(mode) == "spin") {
        EXPECT_EQ(json["sleep_share"], 0.0) << op;
      }
    }
  }
}

TEST_F(PerfCli, TcpPortCanBeNamed) {
  std::string tcp = listener_->address("tcp");
  EXPECT_GT(perf({"--op", "tcp", "--tcp-port", tcp.substr(tcp.find(':') + 1)})["octets"], 0);
}

TEST_F(PerfCli, FileOpsWithoutAFileAreRefusedInOneLine) {
  WeftListener plain({"perf", "--listen", "127.0.0.1:0"});
  for (const char* op : {"tcp-file-read", "tcp-file-write"}) {
    Outcome outcome = run_weft({"perf", plain.address("rdma"), "--op", op});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("--"), std::string::npos) << outcome.err;
  }
}

TEST_F(PerfCli, ASignalEndsTheListener) {
  EXPECT_EQ(listener_->stop(SIGTERM), 143);
}

}  // namespace
}  // namespace weft::testing
