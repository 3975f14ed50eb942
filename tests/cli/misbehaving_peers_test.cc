// Peers that fall silent, or take places and keep them: the command says so and ends, and others are served.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/cli/process.h"
#include "tests/cli/raw_clients.h"
#include "tests/cli/silent_server.h"

namespace weft::testing {
namespace {

using Words = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The Hello of perf: magic, op write, no flags, depth 1, a size.
std::string hello_of_write(std::uint32_t size) {
  std::string hello("\x77\x70\x66\x01\0\x02\0\0\0\0\0\x01\0\0\0\0", 16);
  for (int shift = 24; shift >= 0; shift -= 8) hello += static_cast<char>(size >> shift & 0xff);
  return hello;
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

// The listener is stopped in the middle. Its machine still acknowledges what TCP brings.
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
  EXPECT_TRUE(silent_ping.is_ended());

  WeftListener perf({"perf", "--listen", "127.0.0.1:0", "--timeout", "0.3"});
  RawClients silent_perf("127.0.0.1", port_in(perf.address("rdma")));
  ASSERT_TRUE(silent_perf.connect_mpa(hello_of_write(4096)));
  EXPECT_TRUE(silent_perf.is_ended());
  RawClients silent_tcp("127.0.0.1", port_in(perf.address("tcp")));
  silent_tcp.connect_silently();
  EXPECT_TRUE(silent_tcp.is_ended());
}

// As many connections as there are places, and more, from one address: another address is served all the same.
TEST(OneAddress, DoesNotTakeAllPlacesOfAPingListener) {
  WeftListener listener({"ping", "--listen", "0.0.0.0:0", "--timeout", "3600"});
  const std::uint16_t port = port_in(listener.address("rdma"));
  RawClients greedy("127.0.0.9", port);
  int num_accepted = 0;
  for (int i = 0; i < 70; ++i) num_accepted += greedy.connect_mpa() ? 1 : 0;
  EXPECT_EQ(num_accepted, 48);
  const Outcome outcome = run_weft({"ping", "127.0.0.1:" + std::to_string(port), "-C", "3", "-V"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST(OneAddress, DoesNotTakeAllPlacesOfAPerfListener) {
  WeftListener listener({"perf", "--listen", "0.0.0.0:0", "--timeout", "3600"});
  const std::uint16_t port = port_in(listener.address("rdma")), tcp = port_in(listener.address("tcp"));
  RawClients greedy("127.0.0.9", port), greedy_tcp("127.0.0.9", tcp);
  int num_accepted = 0;
  for (int i = 0; i < 20; ++i) {
    num_accepted += greedy.connect_mpa(hello_of_write(4096)) ? 1 : 0;
    greedy_tcp.connect_silently();
  }
  EXPECT_EQ(num_accepted, 12);
  EXPECT_TRUE(greedy_tcp.is_ended());
  const std::string address = "127.0.0.1:" + std::to_string(port);
  for (const char* op : {"write", "rpc-null", "tcp"}) {
    const Outcome outcome = run_weft({"perf", address, "--op", op, "--seconds", "0.02"});
    EXPECT_EQ(outcome.status, 0) << op << outcome.err;
  }
}

// The busiest client of a listener does not take its loop from others.
TEST(OneAddress, ABusyClientLeavesRoomForAnother) {
  WeftListener listener({"perf", "--listen", "127.0.0.1:0"});
  const std::string address = listener.address("rdma");
  RunningWeft busy({"perf", address, "--op", "send", "--seconds", "3600", "--log-level", "info"});
  ASSERT_TRUE(busy.wait_for("perf: measuring"));
  for (const char* op : {"send", "read", "rpc-null"}) {
    const Outcome outcome = run_weft({"perf", address, "--op", op, "--seconds", "0.02"});
    EXPECT_EQ(outcome.status, 0) << op << outcome.err;
  }
}

// A terminal obeys what it is shown: nothing of a name that a server chose may reach it. Programs get names as they
// are.
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
