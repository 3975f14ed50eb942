// Why a connection ended is told by every command, at either end of it, also where the peer keeps TCP open.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/meddling_proxy.h"
#include "tests/cli/process.h"
#include "tests/cli/raw_clients.h"

namespace weft::testing {
namespace {

using To = MeddlingProxy::To;

// The Hello of weft perf: magic, write, no flags, depth 1, a size of 4096.
const std::string kPerfHello = std::string("\x77\x70\x66\x01\0\x02\0\0", 8) + be32(1) + be32(0) + be32(4096);

class Reasons : public ::testing::Test {
 protected:
  Reasons() {
    std::string name = std::filesystem::temp_directory_path() / "weft-reasons-XXXXXX";
    directory_ = mkdtemp(name.data());
    std::filesystem::create_directory(directory_ / "export");
    std::ofstream(directory_ / "export" / "file") << "words\n";
  }
  ~Reasons() override { std::filesystem::remove_all(directory_); }

  // A listener whose standard error goes to a file of the test's.
  std::unique_ptr<WeftListener> start(const Words& words) {
    const int kept = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    const int file = ::open(errors().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ::dup2(file, STDERR_FILENO);
    auto listener = std::make_unique<WeftListener>(words);
    ::dup2(kept, STDERR_FILENO);
    ::close(kept);
    ::close(file);
    return listener;
  }
  std::unique_ptr<WeftListener> serve() {
    return start({"serve", directory_ / "export", "--listen", "127.0.0.1:0", "--mount-listen", "127.0.0.1:0",
                  "--state-dir", directory_ / "state"});
  }
  std::filesystem::path errors() const { return directory_ / "errors"; }
  std::string said() const {
    std::ifstream file(errors());
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Whether the listener says so within ten seconds.
  bool says(const std::string& words) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (said().find(words) == std::string::npos) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  static void expect_told(const Words& words, const std::string& reason) {
    const Outcome outcome = run_weft(words);
    EXPECT_EQ(outcome.status, 1) << words[0];
    EXPECT_NE(outcome.err.find(reason), std::string::npos) << words[0] << ": " << outcome.err;
  }

  std::filesystem::path directory_;
};

const Words kProgress[] = {{}, {"--progress", "threads=2"}};

TEST_F(Reasons, ATerminateIsToldByNfs) {
  const auto server = serve();
  const MeddlingProxy proxy(server->address("rdma"), To::kClient);
  for (const Words& more : kProgress) {
    expect_told(
        Words{"nfs", "ls", "nfs+rdma://" + proxy.address() + "/?mountport=" + port_of(server->address("mount"))} + more,
        MeddlingProxy::kWords);
  }
}

TEST_F(Reasons, ATerminateIsToldByPing) {
  const auto listener = start({"ping", "--listen", "127.0.0.1:0"});
  const MeddlingProxy proxy(listener->address("rdma"), To::kClient);
  for (const Words& more : kProgress) expect_told(Words{"ping", proxy.address()} + more, MeddlingProxy::kWords);
}

TEST_F(Reasons, ATerminateIsToldByPerf) {
  const auto listener = start({"perf", "--listen", "127.0.0.1:0"});
  const MeddlingProxy proxy(listener->address("rdma"), To::kClient);
  for (const Words& more : kProgress) {
    for (const char* op : {"send", "write", "read"}) {
      expect_told(Words{"perf", proxy.address(), "--op", op} + more, MeddlingProxy::kWords);
    }
  }
}

TEST_F(Reasons, ATerminateIsToldByAGatewayToRdma) {
  const auto server =
      std::make_unique<WeftListener>(Words{"serve", directory_ / "export", "--listen", "127.0.0.1:0", "--mount-listen",
                                           "127.0.0.1:0", "--state-dir", directory_ / "state"});
  const MeddlingProxy proxy(server->address("rdma"), To::kClient);
  const auto gateway = start({"gateway", "--listen", "tcp://127.0.0.1:0", "--connect", "rdma://" + proxy.address()});
  // A NULL Call of NFS version 3 in one record.
  const unsigned char call[] = {0x80, 0, 0, 40, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0,
                                0,    3, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0,    0, 0};
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port_of(gateway->address("listen")))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::send(fd, call, sizeof(call), MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(call)));
  EXPECT_TRUE(says(MeddlingProxy::kWords)) << said();
  ::close(fd);
}

TEST_F(Reasons, AnUnusableReplyIsToldByEveryClient) {
  constexpr const char* kReason = "no RTR indication that both ends can do";
  {
    const auto server = serve();
    const MeddlingProxy proxy(server->address("rdma"), To::kReply);
    expect_told({"nfs", "ls", "nfs+rdma://" + proxy.address() + "/?mountport=" + port_of(server->address("mount")),
                 "--rtr", "send"},
                kReason);
  }
  for (const char* command : {"perf", "ping"}) {
    const auto listener = start({command, "--listen", "127.0.0.1:0"});
    const MeddlingProxy proxy(listener->address("rdma"), To::kReply);
    for (const Words& more : kProgress) {
      expect_told(Words{command, proxy.address(), "--rtr", "send"} + more, kReason);
    }
  }
}

TEST_F(Reasons, TheCommentsOfATraceNameOptions) {
  const std::string trace = directory_ / "trace";
  const auto listener = start({"ping", "--listen", "127.0.0.1:0"});
  const MeddlingProxy proxy(listener->address("rdma"), To::kReply);
  EXPECT_EQ(run_weft({"ping", proxy.address(), "--rtr", "send", "--trace", trace}).status, 1);
  const Outcome outcome = run_weft({"dissect", trace});
  EXPECT_NE(outcome.out.find("--rtr write"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("SoftConfig"), std::string::npos) << outcome.out;
}

// With and without the peer-to-peer model, in which the Terminate stands where the indication should.
TEST_F(Reasons, ATerminateIsToldByEveryListener) {
  for (const std::string rtr : {"none", "write"}) {
    SCOPED_TRACE(rtr);
    for (const Words& words : {Words{"ping", "--listen", "127.0.0.1:0"}, Words{"perf", "--listen", "127.0.0.1:0"}}) {
      const auto listener = start(words);
      const MeddlingProxy proxy(listener->address("rdma"), To::kServer);
      EXPECT_EQ(run_weft({words[0], proxy.address(), "--rtr", rtr}).status, 1);
      EXPECT_TRUE(says(MeddlingProxy::kWords)) << words[0] << ": " << said();
    }
    // RPC listeners take the connection of a ping, up to its first word.
    {
      const auto server = serve();
      const MeddlingProxy proxy(server->address("rdma"), To::kServer);
      EXPECT_EQ(run_weft({"ping", proxy.address(), "--rtr", rtr}).status, 1);
      EXPECT_TRUE(says(MeddlingProxy::kWords)) << said();
    }
    const auto gateway = start({"gateway", "--listen", "rdma://127.0.0.1:0", "--connect", "tcp://127.0.0.1:9"});
    const MeddlingProxy proxy(gateway->address("listen"), To::kServer);
    EXPECT_EQ(run_weft({"ping", proxy.address(), "--rtr", rtr}).status, 1);
    EXPECT_TRUE(says(MeddlingProxy::kWords)) << said();
  }
}

// What a client of rping's protocol may not send: the listener names it, and the client.
TEST_F(Reasons, APingListenerSaysWhyItEndsAClient) {
  const std::string stag = std::string(8, '\0') + be32(1);
  struct Case {
    std::vector<std::string> messages;
    std::string said;
  };
  for (const Case& one :
       {Case{{"abc"}, "sent a message of 3 bytes, not 16"},
        {{stag + be32(65537)}, "sent a message out of turn, or of a buffer of 65537 bytes"},
        {{stag + be32(0)}, "sent a message out of turn, or of a buffer of 0 bytes"},
        {{stag + be32(64), stag + be32(64)}, "sent a message out of turn, or of a buffer of 64 bytes"}}) {
    const auto listener = start({"ping", "--listen", "127.0.0.1:0"});
    RawClients client("127.0.0.9", port_in(listener->address("rdma")));
    ASSERT_TRUE(client.connect_mpa());
    for (const std::string& message : one.messages) client.send_message(message);
    EXPECT_TRUE(client.is_ended());
    EXPECT_TRUE(says(one.said)) << said();
    EXPECT_NE(said().find("ping: client 127.0.0.9:"), std::string::npos) << said();
  }
}

TEST_F(Reasons, AListenerSaysThatASilentClientIsGivenUp) {
  for (const char* command : {"ping", "perf"}) {
    const auto listener = start({command, "--listen", "127.0.0.1:0", "--timeout", "0.3", "--log-level", "info"});
    RawClients client("127.0.0.9", port_in(listener->address("rdma")));
    ASSERT_TRUE(client.connect_mpa(command == std::string("ping") ? "" : kPerfHello));
    EXPECT_TRUE(client.is_ended());
    EXPECT_TRUE(says("is given up, it has ")) << command << ": " << said();
    EXPECT_NE(said().find(std::string(command) + ": client 127.0.0.9:"), std::string::npos) << said();
  }
}

// A connection that its client ends in order is no lost one.
TEST_F(Reasons, OfClientsThatEndWellAListenerWarnsOfNothing) {
  {
    const auto listener = start({"perf", "--listen", "127.0.0.1:0"});
    for (const char* op : {"send", "read", "write", "rpc-null", "rpc-read", "tcp", "tcp-lat", "write"}) {
      EXPECT_EQ(run_weft({"perf", listener->address("rdma"), "--op", op, "--seconds", "0.02"}).status, 0) << op;
    }
    EXPECT_EQ(listener->stop(SIGTERM), 143);
    EXPECT_EQ(said().find("warning"), std::string::npos) << said();
  }
  const auto listener = start({"ping", "--listen", "127.0.0.1:0"});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run_weft({"ping", listener->address("rdma"), "-C", "2"}).status, 0);
  EXPECT_EQ(listener->stop(SIGTERM), 143);
  EXPECT_EQ(said().find("warning"), std::string::npos) << said();
}

}  // namespace
}  // namespace weft::testing
