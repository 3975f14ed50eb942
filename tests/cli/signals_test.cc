// Ctrl-C and SIGTERM from the outside: the files left behind, the output, and the exit status.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/process.h"
#include "tests/cli/silent_server.h"

namespace weft::testing {
namespace {

class Signals : public ::testing::Test {
 protected:
  Signals() {
    std::string name = std::filesystem::temp_directory_path() / "weft-signals-XXXXXX";
    directory_ = mkdtemp(name.data());
    std::filesystem::create_directories(directory_ / "export");
    std::filesystem::create_directories(directory_ / "local");
  }
  ~Signals() override { std::filesystem::remove_all(directory_); }

  std::vector<std::string> serve() const {
    return {"serve",          directory_ / "export", "--read-write", "--listen",          "127.0.0.1:0",
            "--mount-listen", "127.0.0.1:0",         "--state-dir",  directory_ / "state"};
  }
  static std::string url(const WeftListener& server, const std::string& path) {
    const std::string mount = server.address("mount");
    return "nfs+rdma://" + server.address("rdma") + path + "?mountport=" + mount.substr(mount.rfind(':') + 1);
  }

  std::filesystem::path directory_;
};

// A command that only looks at exit statuses would leave a shell's loop running: the process has to die by the signal.
TEST_F(Signals, EveryCommandDiesByTheSignalThatStoppedIt) {
  SilentServer silent;
  const std::string address = silent.address();
  for (const int number : {SIGINT, SIGTERM}) {
    for (const auto& words : {std::vector<std::string>{"nfs", "ls", silent.url("/")},
                              {"nfs", "get", silent.url("/file"), directory_ / "local"},
                              {"ping", address},
                              {"perf", address},
                              {"perf", address, "--op", "rpc-null"},
                              {"perf", address, "--op", "tcp", "--tcp-port", silent.port()},
                              {"perf", silent.url("/"), "--op", "rpc-null"}}) {
      const std::size_t before = silent.num_accepted();
      RunningWeft running(words);
      silent.wait_for_connection(before);
      running.send_signal(number);
      const Outcome outcome = running.finish();
      EXPECT_EQ(outcome.signal, number) << ::testing::PrintToString(words) << outcome.err;
    }
    for (const auto& words : {std::vector<std::string>{"ping", "--listen", "127.0.0.1:0"},
                              {"perf", "--listen", "127.0.0.1:0"},
                              {"gateway", "--listen", "rdma://127.0.0.1:0", "--connect", "tcp://127.0.0.1:2"},
                              {"gateway", "--listen", "tcp://127.0.0.1:0", "--connect", "rdma://127.0.0.1:2"},
                              serve()}) {
      RunningWeft running(words);
      ASSERT_TRUE(running.wait_for("ready ")) << ::testing::PrintToString(words);
      running.send_signal(number);
      EXPECT_EQ(running.finish().signal, number) << ::testing::PrintToString(words);
    }
  }
}

TEST_F(Signals, AnInterruptedPutLeavesNothingBehind) {
  WeftListener server(serve());
  for (const int number : {SIGINT, SIGTERM}) {
    // The reader of standard input waits for ever: the temporary file exists by then.
    std::array<int, 2> input{};
    ASSERT_EQ(pipe2(input.data(), O_CLOEXEC), 0);
    RunningWeft put({"nfs", "put", "-", url(server, "/file")}, input[0]);
    ASSERT_EQ(write(input[1], "x", 1), 1);
    while (std::filesystem::is_empty(directory_ / "export")) usleep(1000);
    put.send_signal(number);
    const Outcome outcome = put.finish();
    EXPECT_EQ(outcome.signal, number) << outcome.err;
    EXPECT_TRUE(std::filesystem::is_empty(directory_ / "export")) << number;
    close(input[0]);
    close(input[1]);
  }
}

// The measurement would go on for an hour.
TEST_F(Signals, AnInterruptedPerfPrintsWhatItHasMeasured) {
  WeftListener listener({"perf", "--listen", "127.0.0.1:0"});
  const std::string address = listener.address("rdma");
  for (const char* op : {"send", "write", "read", "rpc-null", "rpc-read", "tcp", "tcp-lat", "tcp-batch"}) {
    for (const bool lat : {false, true}) {
      const std::string name = op;
      if (lat && name != "send" && name != "read" && name != "rpc-null") continue;
      std::vector<std::string> words = {"perf", address,  "--op",        op,    "--seconds",
                                        "3600", "--json", "--log-level", "info"};
      if (lat) words.push_back("--lat");
      RunningWeft client(words);
      ASSERT_TRUE(client.wait_for("measuring " + name));
      client.send_signal(SIGINT);
      const Outcome outcome = client.finish();
      EXPECT_EQ(outcome.signal, SIGINT) << op << outcome.err;
      const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
      ASSERT_TRUE(json.is_object()) << op << ": " << outcome.out << outcome.err;
      EXPECT_EQ(json["op"], op);
      EXPECT_EQ(json["interrupted"], true) << op;
    }
  }
}

// `weft dissect capture | less`, and the reader has seen enough.
TEST_F(Signals, AReaderThatDoesNotReadDoesNotHoldAProgram) {
  const std::string trace = directory_ / "trace";
  const WeftListener listener({"ping", "--listen", "127.0.0.1:0"});
  ASSERT_EQ(run_weft({"ping", listener.address("rdma"), "-C", "200", "--trace", trace}).status, 0);
  for (const int number : {SIGINT, SIGTERM}) {
    for (const char* option : {"--json", "--verbose", "--html=-"}) {
      RunningWeft dissect({"dissect", option, trace}, -1, true);
      dissect.wait_written();
      dissect.send_signal(number);
      ASSERT_TRUE(dissect.ends_unread()) << option;
      EXPECT_EQ(dissect.finish().signal, number) << option;
    }
  }
}

// `weft nfs ls URL | head -1`: not a word on standard error, and the status that a shell knows.
TEST_F(Signals, AProgramWhoseReaderLeavesDiesBySigpipe) {
  const std::string trace = directory_ / "trace";
  const WeftListener listener({"ping", "--listen", "127.0.0.1:0"});
  ASSERT_EQ(run_weft({"ping", listener.address("rdma"), "-C", "200", "--trace", trace}).status, 0);
  const WeftListener server(serve());
  std::ofstream(directory_ / "export" / "file") << std::string(1 << 20, 'x');
  for (int i = 0; i < 300; ++i) std::ofstream(directory_ / "export" / (std::string(100, 'n') + std::to_string(i)));
  for (const auto& words : {std::vector<std::string>{"nfs", "ls", url(server, "/")},
                            {"nfs", "ls", "--json", url(server, "/")},
                            {"nfs", "cat", url(server, "/file")},
                            {"dissect", trace},
                            {"dissect", "--json", trace},
                            {"dissect", "--html=-", trace}}) {
    RunningWeft weft(words, -1, true);
    weft.wait_written();
    weft.leave();
    const Outcome outcome = weft.finish();
    EXPECT_EQ(outcome.signal, SIGPIPE) << ::testing::PrintToString(words) << outcome.status;
    EXPECT_EQ(outcome.err, "") << ::testing::PrintToString(words);
  }
}

// The disk of the log is full.
TEST_F(Signals, AServerServesWhereStandardErrorTakesNothing) {
  const int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  dup2(full, STDERR_FILENO);
  WeftListener server(serve());
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(full);
  EXPECT_TRUE(server.ready_line().starts_with("ready rdma=")) << server.ready_line();
  EXPECT_EQ(server.stop(SIGTERM), 143);
}

}  // namespace
}  // namespace weft::testing
