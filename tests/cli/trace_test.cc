// --trace as a user gives it: files that cannot be written, FIFOs, and programs that are stopped. What a trace holds is
// judged by tests/e2e/trace.sh and by the tests of verbs-shim/soft.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "tests/cli/process.h"

namespace weft::testing {
namespace {

struct TraceCli : ::testing::Test {
  TraceCli() { EXPECT_NE(::mkdtemp(folder.data()), nullptr); }
  ~TraceCli() override {
    ::unlink(file().c_str());
    ::rmdir(folder.c_str());
  }
  std::string file() const { return folder + "/trace"; }
  void make_fifo() const { ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0); }
  // A ping that traces to this file.
  Outcome ping(const std::string& path) {
    return run_weft({"ping", listener.address("rdma"), "-C", "3", "--trace", path});
  }

  WeftListener listener{{"ping", "--listen", "127.0.0.1:0"}};
  std::string folder = "/tmp/weft-trace-XXXXXX";
};

TEST_F(TraceCli, AFileThatCannotBeWrittenIsToldAtOnce) {
  for (const std::string& path : {folder + "/none/trace", folder}) {
    const Outcome outcome = ping(path);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("cannot write the trace: " + path), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(TraceCli, StandardOutputIsForTheResults) {
  const Outcome outcome = ping("-");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("--trace: standard output has the results"), std::string::npos) << outcome.err;
}

TEST_F(TraceCli, AFullDiskDoesNotStopTheProgram) {
  const Outcome outcome = ping("/dev/full");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome.err;
}

TEST_F(TraceCli, AFileThatPerfServesStays) {
  const std::uint8_t section_header[] = {0x0a, 0x0d, 0x0d, 0x0a};
  const Fd made(::open(file().c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(::write(made.get(), section_header, 4), 4);
  for (const char* option : {"--file", "--sink"}) {
    const Outcome outcome = run_weft({"perf", "--listen", "127.0.0.1:0", option, file(), "--trace", file()});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("uses this file itself"), std::string::npos) << outcome.err;
  }
}

TEST_F(TraceCli, AFifoNeedsAReader) {
  make_fifo();
  const Outcome outcome = ping(file());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("start the reader first"), std::string::npos) << outcome.err;
}

TEST_F(TraceCli, AFifoIsWrittenToItsReader) {
  make_fifo();
  const Fd reader(::open(file().c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_EQ(ping(file()).status, 0);
  std::uint8_t octets[4] = {};
  ASSERT_EQ(::read(reader.get(), octets, 4), 4);
  const std::uint8_t section_header[] = {0x0a, 0x0d, 0x0d, 0x0a};
  EXPECT_EQ(std::memcmp(octets, section_header, 4), 0);
}

TEST_F(TraceCli, AStoppedProgramLeavesAWholeFile) {
  const std::string other = file() + "2";
  for (const int number : {SIGINT, SIGTERM}) {
    WeftListener server({"perf", "--listen", "127.0.0.1:0", "--trace", file()});
    RunningWeft client(
        {"perf", server.address("rdma"), "--op", "send", "--seconds", "3600", "--trace", other, "--log-level", "info"});
    ASSERT_TRUE(client.wait_for("measuring send"));
    client.send_signal(number);
    EXPECT_EQ(client.finish().signal, number);
    EXPECT_EQ(server.stop(number), 128 + number);
    for (const std::string& path : {file(), other}) {
      const Outcome outcome = run_weft({"dissect", "--summary", path});
      EXPECT_EQ(outcome.status, 0) << path << outcome.err;
    }
    ::unlink(other.c_str());
  }
}

}  // namespace
}  // namespace weft::testing
