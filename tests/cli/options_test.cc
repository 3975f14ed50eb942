#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/cli/loopback_listener.h"
#include "tests/cli/process.h"

namespace weft::testing {
namespace {

std::ptrdiff_t num_lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST(Cli, VersionAndHelpGoToStdoutAndAreNoErrors) {
  Outcome version = run_weft({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_TRUE(version.out.starts_with("weft ")) << version.out;
  EXPECT_EQ(version.err, "");
  Outcome help = run_weft({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* command : {"serve", "nfs", "ping", "perf", "gateway", "dissect", "doctor", "--backend", "--crc"}) {
    EXPECT_TRUE(contains(help.out, command)) << command;
  }
}

TEST(Cli, EveryCommandHasHelpWithAnExample) {
  for (const char* command : {"serve", "nfs", "ping", "perf", "gateway", "dissect", "doctor"}) {
    Outcome help = run_weft({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_TRUE(contains(help.out, "Example")) << command << ":\n" << help.out;
    EXPECT_TRUE(contains(help.out, std::string("weft ") + command)) << command;
    EXPECT_EQ(help.err, "") << command;
  }
}

TEST(Cli, UsageErrorsExitTwo) {
  const std::vector<std::vector<std::string>> kWrong = {
      {},
      {"no-such-command"},
      {"perf"},
      {"ping"},
      {"perf", "127.0.0.1:1", "--no-such-option"},
      {"perf", "127.0.0.1:1", "--op", "nonsense"},
      {"perf", "127.0.0.1:1", "--listen", "127.0.0.1:0"},
      {"perf", "--listen", "127.0.0.1:0", "--op", "write"},
      {"perf", "--listen", "garbage"},
      {"perf", "127.0.0.1:1", "--file", "/etc/hosts"},
      {"perf", "127.0.0.1:99999"},
      {"perf", "nfs+rdma:/path"},
      {"perf", "nfs+rdma://", "--op", "rpc-null"},
      {"perf", "127.0.0.1:1", "--op", "write", "--lat"},
      {"ping", "127.0.0.1:99999"},
      {"ping", "--listen", "127.0.0.1:0", "-V"},
      {"perf", "127.0.0.1:1", "--op", "rpc-read", "--size", "4194305"},
      {"ping", "127.0.0.1:1", "-S", "65537"},
      {"ping", "127.0.0.1:1", "--crc", "perhaps"},
      {"ping", "127.0.0.1:1", "--progress", "threads=0"},
      {"ping", "127.0.0.1:1", "--rtr", "send", "--mpa-rev", "1"},
      {"ping", "127.0.0.1:1", "--ird", "256"},
      {"ping", "127.0.0.1:1", "--port-map", "--backend", "ibv"},
      {"ping", "127.0.0.1:1", "--credits", "1025"},
      {"ping", "127.0.0.1:1", "--inline", "1025"},
      {"ping", "127.0.0.1:1", "--inline", "263168"},
      {"perf", "--listen", "127.0.0.1:0", "--tcp-port", "65536"},
      {"ping", "127.0.0.1:1", "--timeout", "nan"},
      {"perf", "127.0.0.1:1", "--seconds", "nan"},
      {"serve", "/", "--listen", "127.0.0.1:65536"},
      {"serve", "/", "--listen", "127.0.0.1:http"},
      {"serve", "/", "--mount-listen", "127.0.0.1:-1"},
      {"serve", "/", "--metrics", "127.0.0.1:65536"},
      {"serve", "/", "--set-id-files"},
      {"serve", "/", "--devices"},
      {"serve", "/", "--max-connections", "9", "--max-connections-per-address", "10"},
      {"serve", "/", "--max-buffered", "64", "--max-buffered-per-address", "65"},
      {"ping", "127.0.0.1:1", "--fpdu", "1"},
      {"dissect", "/dev/null", "--trace", "/dev/null"},
      {"--markers", "doctor"},
      {"top", "127.0.0.1:1", "--once", "--backend", "soft"},
      {"top"},
      {"top", "127.0.0.1:65536"},
      {"top", "127.0.0.1:1", "--interval", "0"},
      {"top", "127.0.0.1:1", "--interval", "nan"},
      {"top", "127.0.0.1:1", "--interval", "-nan", "--once"},
      {"top", "127.0.0.1:1", "--sort", "size"},
      {"top", "127.0.0.1:1"},  // without a terminal
      {"gateway", "--listen", "rdma://127.0.0.1:65536", "--connect", "tcp://127.0.0.1:2"},
      {"gateway", "--listen", "rdma://127.0.0.1:0", "--connect", "tcp://127.0.0.1:2", "--max-connections", "9",
       "--max-connections-per-address", "10"},
      {"gateway", "--listen", "tcp://127.0.0.1:0", "--connect", "rdma://127.0.0.1:2", "--max-buffered", "64",
       "--max-buffered-per-address", "65"},
      {"nfs", "ls", "nfs+rdma://127.0.0.1:65536/"},
      {"nfs", "ls", "nfs+rdma://127.0.0.1/?mountport=65536"}};
  for (const auto& words : kWrong) {
    Outcome outcome = run_weft(words);
    EXPECT_EQ(outcome.status, 2) << ::testing::PrintToString(words);
    EXPECT_EQ(outcome.out, "") << ::testing::PrintToString(words);
    EXPECT_TRUE(contains(outcome.err, "weft: ")) << outcome.err;
  }
}

// An empty name is most often a variable of a script that is not set. It must not count as an option that is not given.
TEST(Cli, EmptyNamesAreUsageErrors) {
  const std::vector<std::vector<std::string>> kEmpty = {
      {"ping", "127.0.0.1:1", "--trace", ""},
      {"ping", "127.0.0.1:1", "--device", "", "--backend", "ibv"},
      {"ping", "127.0.0.1:1", "--cc", ""},
      {"ping", ""},
      {"ping", "--listen", ""},
      {"perf", ""},
      {"perf", "--listen", ""},
      {"perf", "--listen", "127.0.0.1:0", "--file", ""},
      {"perf", "--listen", "127.0.0.1:0", "--sink", ""},
      {"serve", ""},
      {"serve", "/", "--state-dir", ""},
      {"serve", "/", "--listen", ""},
      {"serve", "/", "--mount-listen", ""},
      {"serve", "/", "--metrics", ""},
      {"serve", "/", "--allow", ""},
      {"gateway", "--listen", "", "--connect", "tcp://127.0.0.1:2"},
      {"gateway", "--listen", "rdma://127.0.0.1:0", "--connect", ""},
      {"gateway", "--listen", "rdma://127.0.0.1:0", "--connect", "tcp://127.0.0.1:2", "--metrics", ""},
      {"nfs", "ls", ""},
      {"nfs", "get", "nfs+rdma://127.0.0.1:1/file?mountport=1", ""},
      {"nfs", "put", "", "nfs+rdma://127.0.0.1:1/file?mountport=1"},
      {"dissect", ""},
      {"dissect", "/dev/null", "--html", ""},
      {"top", ""}};
  for (const auto& words : kEmpty) {
    const Outcome outcome = run_weft(words);
    EXPECT_EQ(outcome.status, 2) << ::testing::PrintToString(words) << outcome.err;
    EXPECT_EQ(outcome.out, "") << ::testing::PrintToString(words);
  }
}

// Options that fit alone and not together. What is at the limit fits: then only the listener is missing.
TEST(Cli, PerfSaysWhichOptionsDoNotFitTogether) {
  struct Case {
    std::vector<std::string> words;
    std::string message;  // empty: they fit
  };
  const std::string kUrl = "nfs+rdma://127.0.0.1:1/file?mountport=1", kNobody = "127.0.0.1:1";
  const Case kCases[] = {
      {{}, "perf wants a listener's ADDR:PORT, or --listen ADDR:PORT"},
      {{kUrl}, "an NFS server is measured with --op rpc-null, rpc-read or rpc-write, not write"},
      {{kUrl, "--op", "tcp"}, "an NFS server is measured with --op rpc-null, rpc-read or rpc-write, not tcp"},
      {{kUrl, "--op", "rpc-null"}, ""},
      {{kNobody, "--op", "tcp", "--lat"}, "--lat has no meaning for --op tcp"},
      {{kNobody, "--op", "read", "--lat"}, ""},
      {{kNobody, "--op", "rpc-write", "--size", "4194305"}, "--size of --op rpc-write is at most 4194304"},
      {{kNobody, "--op", "rpc-write", "--size", "4194304"}, ""},
      {{kNobody, "--op", "write", "--size", "4194305"}, ""},
      {{kNobody, "--op", "rpc-read", "--size", "262145", "--depth", "4096"},
       "--size times --depth is at most 1 GiB for --op rpc-read"},
      {{kNobody, "--op", "rpc-read", "--size", "262144", "--depth", "4096"}, ""},
      {{kNobody, "--op", "tcp-batch", "--size", "1073741824", "--depth", "2"},
       "--size times --depth is at most 1 GiB for --op tcp-batch"},
      {{kNobody, "--op", "write", "--size", "1073741824", "--depth", "2"}, ""},
  };
  for (const Case& one : kCases) {
    std::vector<std::string> words = {"perf"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    const Outcome outcome = run_weft(words);
    EXPECT_EQ(outcome.status, one.message.empty() ? 1 : 2) << ::testing::PrintToString(words) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("weft: " + one.message)) << outcome.err;
  }
}

TEST(Cli, ACommandThatThereIsNotIsNamed) {
  Outcome outcome = run_weft({"pong", "127.0.0.1:1"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(contains(outcome.err, "no such command: pong")) << outcome.err;
  EXPECT_TRUE(contains(run_weft({}).err, "a command is missing after 'weft'"));
  EXPECT_TRUE(contains(run_weft({"nfs"}).err, "a command is missing after 'weft nfs'"));
}

// The message names the wrong word, not an option that is missing because of it. --help does not hide the error.
TEST(Cli, TheWordThatIsWrongIsNamed) {
  struct Case {
    std::vector<std::string> words;
    std::string named;
  };
  const Case kCases[] = {
      {{"--frob"}, "no such option: --frob"},
      {{"--frob", "ping", "127.0.0.1:1"}, "no such option: --frob"},
      {{"nfs", "--frob"}, "no such option: --frob"},
      {{"nfs", "ls", "--frob"}, "no such option: --frob"},
      {{"ping", "--frob", "--help"}, "no such option: --frob"},
      {{"frob", "--help"}, "no such command: frob"},
      {{"nfs", "df"}, "no such command: nfs df"},
      {{"nfs", "df", "--help"}, "no such command: nfs df"},
      {{"--help", "nfs", "df"}, "no such command: nfs df"},
      {{"doctor", "surplus"}, "unexpected argument: surplus"},
      {{"nfs", "\x1b[2J"}, "no such command: nfs \\x1b[2J"},
  };
  for (const Case& one : kCases) {
    const Outcome outcome = run_weft(one.words);
    EXPECT_EQ(outcome.status, 2) << ::testing::PrintToString(one.words);
    EXPECT_EQ(outcome.out, "") << ::testing::PrintToString(one.words);
    EXPECT_TRUE(outcome.err.starts_with("weft: " + one.named + "\n")) << outcome.err;
  }
  for (const auto& words : {std::vector<std::string>{"--help"}, {"nfs", "--help"}, {"nfs", "ls", "--help"}}) {
    EXPECT_EQ(run_weft(words).status, 0) << ::testing::PrintToString(words);
  }
}

// The program takes every value that --help offers: status 1 means that the server is absent.
TEST(Cli, TheLimitsOfHelpAreThoseThatHold) {
  const std::string help = run_weft({"--help"}).out;
  EXPECT_TRUE(contains(help, "[1 - 1024]")) << help;
  for (const char* octets : {"1024", "262144"}) {
    const Outcome outcome =
        run_weft({"perf", "127.0.0.1:1", "--op", "rpc-null", "--inline", octets, "--credits", "1024"});
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "refused")) << outcome.err;
  }
  EXPECT_TRUE(contains(run_weft({"ping", "127.0.0.1:1", "--inline", "1025"}).err, "a multiple of 1024"));
  EXPECT_TRUE(contains(run_weft({"ping", "127.0.0.1:1", "--credits", "1025"}).err, "1024"));
}

TEST(Cli, TheVersionsOfRpcRdmaAreAList) {
  for (const char* list : {"auto", "1", "2-cel05", "2-wg07", "2-wg07,1", "1,2-cel05,2-wg07"}) {
    const Outcome outcome = run_weft({"perf", "127.0.0.1:1", "--op", "rpc-null", "--rpcrdma", list});
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "refused")) << outcome.err;
  }
  for (const char* list : {"", "2", "1,auto", "1,1", "1,"}) {
    const Outcome outcome = run_weft({"perf", "127.0.0.1:1", "--op", "rpc-null", "--rpcrdma", list});
    EXPECT_EQ(outcome.status, 2) << list;
    EXPECT_TRUE(contains(
        outcome.err,
        "must be auto, or one or more of 2-wg07, 2-cel05, 1 with commas between them, not '" + std::string(list) + "'"))
        << outcome.err;
  }
  EXPECT_TRUE(contains(run_weft({"--help"}).out, "auto: 2-wg07,2-cel05,1"));
}

TEST(Cli, TheCreditFormulaGoesWith2Wg07) {
  const std::vector<std::string> perf = {"perf", "127.0.0.1:1", "--op", "rpc-null", "--credit-formula", "literal"};
  auto words = perf;
  EXPECT_EQ(run_weft(words).status, 2);
  EXPECT_TRUE(contains(run_weft(words).err, "--credit-formula literal needs 2-wg07 in --rpcrdma"));
  words.insert(words.end(), {"--rpcrdma", "auto"});
  const Outcome outcome = run_weft(words);
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "refused")) << outcome.err;
}

TEST(Cli, AGatewayStandsBetweenTheTwoTransports) {
  for (const auto& words :
       {std::vector<std::string>{"gateway"},
        {"gateway", "--listen", "rdma://127.0.0.1:0", "--connect", "rdma://127.0.0.1:2"},
        {"gateway", "--listen", "tcp://127.0.0.1:0", "--connect", "udp://127.0.0.1:2"},
        {"gateway", "--listen", "tcp://127.0.0.1:0", "--connect", "rdma://127.0.0.1:2", "--reserved-port"},
        {"gateway", "--listen", "tcp://127.0.0.1:0", "--connect", "rdma://127.0.0.1:99999"}}) {
    Outcome outcome = run_weft(words);
    EXPECT_EQ(outcome.status, 2) << ::testing::PrintToString(words);
    EXPECT_TRUE(contains(outcome.err, "weft: ")) << outcome.err;
  }
  for (const std::string from : {"rdma", "tcp"}) {
    const std::string to = from == "rdma" ? "tcp" : "rdma";
    WeftListener gateway({"gateway", "--listen", from + "://127.0.0.1:0", "--connect", to + "://127.0.0.1:2"});
    EXPECT_TRUE(gateway.address("listen").starts_with(from + "://127.0.0.1:")) << gateway.address("listen");
  }
}

// The test as a server that takes a connection without CRCs and answers the first message with a Terminate.
TEST(Cli, ATerminateIsPutInWords) {
  const LoopbackListener listener;
  std::thread server([&listener] {
    int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    char octets[4096];
    EXPECT_GT(recv(fd, octets, sizeof(octets), 0), 0);
    const std::string reply = std::string("MPA ID Rep Frame") + std::string("\x10\2\0\4\0\1\0\1", 8);
    EXPECT_EQ(send(fd, reply.data(), reply.size(), MSG_NOSIGNAL), ssize_t(reply.size()));
    EXPECT_GT(recv(fd, octets, sizeof(octets), 0), 0);
    // ULPDU of 22 octets on queue 2: DDP, untagged buffer, no buffer; no pad, an unused CRC.
    const char terminate[] = "\0\x16\x41\x47\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0\0\x12\2\0\0\0\0\0";
    EXPECT_EQ(send(fd, terminate, sizeof(terminate), MSG_NOSIGNAL), ssize_t(sizeof(terminate)));
    close(fd);
  });
  Outcome outcome = run_weft({"ping", "127.0.0.1:" + std::to_string(listener.port()), "-C", "1", "--crc", "off"});
  server.join();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(num_lines(outcome.err), 1) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("0 pings of 64 bytes; ")) << "no times, where none was measured: " << outcome.out;
  for (const char* part : {"received a Terminate: DDP: ", "(1/2/02)", "[DDP-7.2-09]", "Likely cause: ", "Try: "}) {
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
  }
}

// The soft backend works wherever tests run. All else depends on the machine.
TEST(Cli, DoctorSaysWhatThisMachineCanDo) {
  Outcome text = run_weft({"doctor"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.err, "");
  for (const char* part : {"build\n", "soft backend\n", "network\n", "kernel\n", "RDMA devices\n", "programs\n",
                           "what will work\n", "weft to weft"}) {
    EXPECT_TRUE(contains(text.out, part)) << part << "\n" << text.out;
  }
  Outcome json = run_weft({"doctor", "--json"});
  EXPECT_EQ(json.status, 0) << json.err;
  std::istringstream lines(json.out);
  bool soft = false;
  for (std::string line; std::getline(lines, line);) {
    auto finding = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(finding.is_object()) << line;
    soft = soft || (finding["name"] == "soft RNIC" && finding["mark"] == "ok");
  }
  EXPECT_TRUE(soft) << json.out;
  EXPECT_EQ(run_weft({"doctor", "surplus"}).status, 2);
}

TEST(Cli, UnreachableServerIsOneClearLineAndStatusOne) {
  // Port 1 of the loopback: no program listens there.
  for (const auto& words : {std::vector<std::string>{"ping", "127.0.0.1:1", "-C", "1"},
                            {"perf", "127.0.0.1:1"},
                            {"perf", "127.0.0.1:1", "--op", "tcp"},
                            {"perf", "127.0.0.1:1", "--op", "tcp", "--tcp-port", "1"},
                            {"perf", "127.0.0.1:1", "--op", "rpc-null"},
                            {"ping", "no-such-host.invalid:7"},
                            {"perf", "127.0.0.1:1", "--cc", "no-such-cc"}}) {
    Outcome outcome = run_weft(words);
    EXPECT_EQ(outcome.status, 1) << ::testing::PrintToString(words) << outcome.err;
    EXPECT_EQ(num_lines(outcome.err), 1) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("weft: cannot ")) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

// The line of each failure names its cause and a way out.
TEST(Cli, AFailedConnectSaysWhyAndWhatToTry) {
  for (const auto& words : {std::vector<std::string>{"ping", "127.0.0.1:1", "-C", "1"}, {"perf", "127.0.0.1:1"}}) {
    Outcome outcome = run_weft(words);
    for (const char* part : {"127.0.0.1:1", "refused", "Likely cause: no program listens on that port", "Try: "}) {
      EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
    }
  }
  WeftListener perf({"perf", "--listen", "127.0.0.1:0"});
  Outcome rejected = run_weft({"ping", perf.address("rdma"), "-C", "1"});
  EXPECT_EQ(rejected.status, 1);
  EXPECT_TRUE(contains(rejected.err, "the peer rejected the connection (MPA Reply with R=1)")) << rejected.err;
  EXPECT_TRUE(contains(rejected.err, "the private data is no Hello of this version")) << rejected.err;
  EXPECT_EQ(num_lines(rejected.err), 1) << rejected.err;
}

TEST(Cli, AnAddressInUseIsOneClearLineAndStatusOne) {
  WeftListener first({"ping", "--listen", "127.0.0.1:0"});
  Outcome second = run_weft({"ping", "--listen", first.address("rdma")});
  EXPECT_EQ(second.status, 1);
  EXPECT_EQ(num_lines(second.err), 1) << second.err;
  EXPECT_TRUE(contains(second.err, first.address("rdma"))) << second.err;
}

TEST(ServeAllow, OnlyTheAddressesNamedAreServed) {
  char name[] = "/tmp/weft_allow_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string dir = name;
  const auto list = [&](const std::vector<std::string>& allow) {
    std::vector<std::string> words = {"serve",       "--listen",    "127.0.0.1:0", "--mount-listen",
                                      "127.0.0.1:0", "--state-dir", dir + "/state"};
    for (const std::string& rule : allow) words.insert(words.end(), {"--allow", rule});
    words.push_back(dir);  // behind --allow: the option takes one word, not all that follow
    WeftListener server(words);
    const std::string mount = server.address("mount");
    return run_weft(
        {"nfs", "ls", "nfs+rdma://" + server.address("rdma") + "/?mountport=" + mount.substr(mount.rfind(':') + 1)});
  };
  EXPECT_EQ(list({"192.0.2.0/24", "127.0.0.0/8"}).status, 0);
  const Outcome refused = list({"192.0.2.0/24"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err, "");
  for (const char* command : {"serve", "gateway"}) {
    const Outcome wrong = run_weft({command, "--allow", "192.0.2.7/24"});
    EXPECT_EQ(wrong.status, 2) << command;
    EXPECT_TRUE(contains(wrong.err, "beyond its prefix")) << wrong.err;
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace weft::testing
