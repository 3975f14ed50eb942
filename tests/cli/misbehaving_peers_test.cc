// Peers that fall silent, break the protocol, or take places and keep them: the command says so and ends, and others
// are served.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/cli/noisy_server.h"
#include "tests/cli/process.h"
#include "tests/cli/raw_clients.h"
#include "tests/cli/silent_server.h"

namespace weft::testing {
namespace {

// The Hello of perf: magic, op, no flags, depth, size.
constexpr char kSend = 1, kWrite = 2;
std::string hello(char op, std::uint32_t depth, std::uint32_t size) {
  return std::string("\x77\x70\x66\x01\0", 5) + op + std::string(2, '\0') + be32(depth) + be32(0) + be32(size);
}

// rping's description of a buffer of 65,536 octets: address, STag, length.
const std::string kBuffer = std::string(8, '\0') + be32(1) + be32(65536);

// A client that behaves well, on 127.0.0.1, is served in time.
void expect_ping_served(std::uint16_t port) {
  const Outcome outcome = run_weft({"ping", "127.0.0.1:" + std::to_string(port), "-C", "3", "-V", "--timeout", "5"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}
void expect_perf_served(std::uint16_t port, const Words& ops) {
  for (const std::string& op : ops) {
    const Outcome outcome =
        run_weft({"perf", "127.0.0.1:" + std::to_string(port), "--op", op, "--seconds", "0.02", "--timeout", "5"});
    EXPECT_EQ(outcome.status, 0) << op << outcome.err;
  }
}

// A server that takes connections and never says a word ends every command, soon and with a reason.
TEST(SilentPeers, AServerThatNeverAnswersIsGivenUp) {
  SilentServer silent;
  for (const Words& words : {Words{"ping", silent.address()},
                             {"perf", silent.address()},
                             {"perf", silent.address(), "--op", "rpc-read"},
                             {"perf", silent.address(), "--op", "tcp", "--tcp-port", silent.port()},
                             {"perf", silent.url("/file"), "--op", "rpc-read"},
                             {"nfs", "ls", silent.url("/")},
                             {"nfs", "get", silent.url("/file"), "/nonexistent"}}) {
    Words with_timeout = words;
    with_timeout.insert(with_timeout.end(), {"--timeout", "0.3"});
    const Outcome outcome = run_weft(with_timeout);
    EXPECT_EQ(outcome.status, 1) << ::testing::PrintToString(words);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(contains(outcome.err, "no answer") || contains(outcome.err, "no whole MPA Reply within 0.3 s"))
        << outcome.err;
  }
}

// The listener is stopped in the middle. Its machine still acknowledges TCP segments.
TEST(SilentPeers, AClientWhoseListenerFallsSilentSaysSoAndEnds) {
  for (const Words& words : {Words{"ping"},
                             {"perf", "--op", "send"},
                             {"perf", "--op", "send", "--lat"},
                             {"perf", "--op", "write"},
                             {"perf", "--op", "read"},
                             {"perf", "--op", "rpc-null"},
                             {"perf", "--op", "rpc-write"},
                             {"perf", "--op", "tcp"},
                             {"perf", "--op", "tcp-lat"},
                             {"perf", "--op", "tcp-batch"}}) {
    WeftListener listener({words[0], "--listen", "127.0.0.1:0"});
    Words all = words;
    all.insert(all.begin() + 1, listener.address("rdma"));
    all.insert(all.end(), {"--timeout", "0.3", "--log-level", "info"});
    if (words[0] == "perf") all.insert(all.end(), {"--seconds", "3600"});
    RunningWeft client(all);
    ASSERT_TRUE(client.wait_for(words[0] == "perf" ? "perf: measuring" : "ping: connected"));
    listener.send_signal(SIGSTOP);
    const Outcome outcome = client.finish();
    EXPECT_EQ(outcome.status, 1) << ::testing::PrintToString(words);
    EXPECT_TRUE(contains(outcome.err, "does not respond")) << ::testing::PrintToString(words) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "--timeout")) << outcome.err;
  }
}

TEST(SilentPeers, AListenerEndsClientsThatFallSilent) {
  WeftListener ping({"ping", "--listen", "127.0.0.1:0", "--timeout", "0.3"});
  RawClients silent_ping("127.0.0.1", port_in(ping.address("rdma")));
  ASSERT_TRUE(silent_ping.connect_mpa());
  expect_ping_served(port_in(ping.address("rdma")));
  EXPECT_TRUE(silent_ping.is_ended());

  WeftListener perf({"perf", "--listen", "127.0.0.1:0", "--timeout", "0.3"});
  RawClients silent_perf("127.0.0.1", port_in(perf.address("rdma")));
  ASSERT_TRUE(silent_perf.connect_mpa(hello(kWrite, 1, 4096)));
  RawClients silent_tcp("127.0.0.1", port_in(perf.address("tcp")));
  silent_tcp.connect_silently();
  expect_perf_served(port_in(perf.address("rdma")), {"write", "tcp"});
  EXPECT_TRUE(silent_perf.is_ended());
  EXPECT_TRUE(silent_tcp.is_ended());
}

// A server that breaks the protocol is given up at once, not after the time for an answer.
TEST(NoisyPeers, NfsCatGivesUpAServerThatBreaksTheProtocol) {
  char directory[] = "/tmp/weft_noise_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::filesystem::path dir = directory;
  std::filesystem::create_directory(dir / "export");
  std::ofstream(dir / "export" / "file") << "never read\n";
  std::string sends, no_frames;
  for (std::uint32_t msn = 1; msn <= 200; ++msn) sends += one_send(msn, std::string(16, 'x'));
  for (std::uint32_t i = 0; i < 1024; ++i) no_frames += be32(i * 2654435761u);
  {
    WeftListener mount({"serve", dir / "export", "--listen", "127.0.0.1:0", "--mount-listen", "127.0.0.1:0",
                        "--state-dir", dir / "state"});
    for (const std::string& noise : {sends, no_frames}) {
      NoisyServer noisy(noise);
      const std::string url =
          "nfs+rdma://127.0.0.1:" + noisy.port() + "/file?mountport=" + std::to_string(port_in(mount.address("mount")));
      const Outcome outcome = run_weft({"nfs", "cat", url, "--mpa-rev", "1", "--timeout", "3600"});
      EXPECT_EQ(outcome.status, 1);
      EXPECT_EQ(outcome.out, "");
      EXPECT_TRUE(contains(outcome.err, "sent a Terminate")) << outcome.err;
      EXPECT_TRUE(contains(outcome.err, "given up")) << outcome.err;
    }
  }
  std::filesystem::remove_all(dir);
}

// As many connections as there are places, and more, from one address: another address is served all the same.
TEST(OneAddress, DoesNotTakeAllPlacesOfAPingListener) {
  WeftListener listener({"ping", "--listen", "0.0.0.0:0", "--timeout", "3600"});
  const std::uint16_t port = port_in(listener.address("rdma"));
  RawClients greedy("127.0.0.9", port);
  for (int i = 0; i < 70; ++i) greedy.connect_mpa();
  EXPECT_EQ(greedy.num_open(48), 48u);
  expect_ping_served(port);
}

TEST(OneAddress, DoesNotTakeAllPlacesOfAPerfListener) {
  WeftListener listener({"perf", "--listen", "0.0.0.0:0", "--timeout", "3600"});
  const std::uint16_t port = port_in(listener.address("rdma")), tcp = port_in(listener.address("tcp"));
  RawClients greedy("127.0.0.9", port), greedy_tcp("127.0.0.9", tcp);
  for (int i = 0; i < 20; ++i) {
    greedy.connect_mpa(hello(kWrite, 1, 4096));
    greedy_tcp.connect_silently();
  }
  EXPECT_EQ(greedy.num_open(12), 12u);
  EXPECT_EQ(greedy_tcp.num_open(12), 12u);
  expect_perf_served(port, {"write", "rpc-null", "tcp"});
}

// The busiest client of a listener does not take its loop from others.
TEST(OneAddress, ABusyClientLeavesRoomForAnother) {
  WeftListener listener({"perf", "--listen", "127.0.0.1:0"});
  const std::string address = listener.address("rdma");
  RunningWeft busy({"perf", address, "--op", "send", "--seconds", "3600", "--log-level", "info"});
  ASSERT_TRUE(busy.wait_for("perf: measuring"));
  expect_perf_served(port_in(address), {"send", "read", "rpc-null"});
}

// Each address has its share, and there are no places beside the two shares.
TEST(TwoAddresses, TogetherDoNotTakeAllPlacesOfAPingListener) {
  WeftListener listener({"ping", "--listen", "0.0.0.0:0", "--timeout", "3600"});
  const std::uint16_t port = port_in(listener.address("rdma"));
  RawClients many("127.0.0.9", port), few("127.0.0.8", port);
  for (int i = 0; i < 48; ++i) EXPECT_TRUE(many.connect_mpa());
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(few.connect_mpa());
  expect_ping_served(port);
}

TEST(TwoAddresses, TogetherDoNotTakeAllPlacesOfAPerfListener) {
  WeftListener listener({"perf", "--listen", "0.0.0.0:0", "--timeout", "3600"});
  const std::uint16_t port = port_in(listener.address("rdma")), tcp = port_in(listener.address("tcp"));
  RawClients many("127.0.0.9", port), few("127.0.0.8", port), many_tcp("127.0.0.9", tcp), few_tcp("127.0.0.8", tcp);
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(many.connect_mpa(hello(kWrite, 1, 4096)));
    many_tcp.connect_silently();
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(few.connect_mpa(hello(kWrite, 1, 4096)));
    few_tcp.connect_silently();
  }
  expect_perf_served(port, {"write", "rpc-null", "tcp"});
}

// Requests that come before the last was answered, more than there are Receives.
TEST(BusyPeers, APingClientThatAsksOutOfTurnEndsAlone) {
  WeftListener listener({"ping", "--listen", "0.0.0.0:0", "--timeout", "3600"});
  const std::uint16_t port = port_in(listener.address("rdma"));
  RawClients greedy("127.0.0.9", port);
  ASSERT_TRUE(greedy.connect_mpa());
  for (int i = 0; i < 20; ++i) greedy.send_message(kBuffer);
  EXPECT_TRUE(greedy.is_ended());
  expect_ping_served(port);
}

TEST(BusyPeers, ReadsThatAreNeverAnsweredHoldUpNoOtherPing) {
  WeftListener listener({"ping", "--listen", "0.0.0.0:0", "--timeout", "3600"});
  const std::uint16_t port = port_in(listener.address("rdma"));
  RawClients greedy("127.0.0.9", port), too_greedy("127.0.0.9", port);
  ASSERT_TRUE(too_greedy.connect_mpa());
  too_greedy.send_message(std::string(8, '\0') + be32(1) + be32(65537));
  EXPECT_TRUE(too_greedy.is_ended());
  for (int i = 0; i < 48; ++i) {
    ASSERT_TRUE(greedy.connect_mpa());
    greedy.send_message(kBuffer);
  }
  expect_ping_served(port);
}

TEST(BusyPeers, AllReceivesThatPerfClientsMayHaveLeaveSomeToOthers) {
  WeftListener listener({"perf", "--listen", "0.0.0.0:0", "--timeout", "3600"});
  const std::uint16_t port = port_in(listener.address("rdma"));
  RawClients greedy("127.0.0.9", port);
  EXPECT_FALSE(greedy.connect_mpa(hello(kSend, 4097, 64))) << "more than there may be";
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(greedy.connect_mpa(hello(kSend, 4096, 64)));
  expect_perf_served(port, {"send"});
}

// A terminal obeys control characters. A control character in a server's name must not reach it. Programs get names as
// they are.
TEST(HostileNames, AreShownWithoutControlsOnATerminalAndExactlyInAPipe) {
  char directory[] = "/tmp/weft_names_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::filesystem::path dir = directory;
  std::filesystem::create_directory(dir / "export");
  const std::string name = "\x1b]0;x\x07\xc2\x9b\xe2\x80\xae\xff\ngr\xc3\xbc\xc3\x9f";
  const std::string shown = "\\x1b]0;x\\x07\\u009b\\u202e\\xff\\x0agr\xc3\xbc\xc3\x9f";
  std::filesystem::create_symlink(name, dir / "export" / name);
  {
    WeftListener server({"serve", dir / "export", "--listen", "127.0.0.1:0", "--mount-listen", "127.0.0.1:0",
                         "--state-dir", dir / "state"});
    const std::string url =
        "nfs+rdma://" + server.address("rdma") + "/?mountport=" + std::to_string(port_in(server.address("mount")));
    EXPECT_EQ(run_weft_on_terminal({"nfs", "ls", url}).out, shown + "\r\n");
    const std::string long_form = run_weft_on_terminal({"nfs", "ls", "-l", url}).out;
    EXPECT_TRUE(long_form.ends_with(" " + shown + " -> " + shown + "\r\n")) << long_form;
    EXPECT_EQ(run_weft({"nfs", "ls", url}).out, name + "\n");
    const std::string json = run_weft({"nfs", "ls", "--json", url}).out;
    EXPECT_TRUE(std::all_of(json.begin(), json.end() - 1, [](char c) { return c < 0 || c >= ' '; })) << json;
    EXPECT_TRUE(contains(json, "\\u001b]0;x\\u0007\\u009b\\u202e")) << json;
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace weft::testing
