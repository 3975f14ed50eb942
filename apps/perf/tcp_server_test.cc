#include "apps/perf/tcp_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/soft/testing/failing_calls.h"

namespace weft::apps::perf {
namespace {

using verbs::testing::FailCalls;
using verbs::testing::FailingCall;

sockaddr_storage loopback() {
  sockaddr_storage storage{};
  storage.ss_family = AF_INET;
  reinterpret_cast<sockaddr_in&>(storage).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return storage;
}

// A client whose Hello is answered.
void expect_served(const TcpServer& server) {
  const auto fd = tcp_connect(server.local_addr(), "", std::chrono::seconds(10));
  ASSERT_TRUE(fd.ok()) << fd.status();
  Waiter waiter(ProgressMode::kBlock, PeerPlace::kThisMachine, std::chrono::seconds(10), nullptr);
  waiter.prepare(fd->get());
  ASSERT_EQ(send_all(fd->get(), emit_hello({.op = Op::kTcp, .size = 64}), waiter), IoResult::kDone);
  std::vector<std::uint8_t> octets(kReadyLen);
  ASSERT_EQ(recv_all(fd->get(), octets, waiter), IoResult::kDone);
  const std::optional<Ready> ready = parse_ready(octets);
  ASSERT_TRUE(ready.has_value());
  EXPECT_EQ(ready->error, "");
}

TEST(TcpServer, GoesOnWhenThereAreDescriptorsAgain) {
  const FailCalls none_left(FailingCall::kAccept, EMFILE, 3);
  const auto server = TcpServer::start(loopback(), {});
  ASSERT_TRUE(server.ok()) << server.status();
  expect_served(**server);
  expect_served(**server);
  EXPECT_EQ(none_left.num_failed(), 3);
}

TEST(TcpServer, AShortageOfDescriptorsCostsFewLines) {
  ::testing::internal::CaptureStdout();  // where spdlog writes unless it is told otherwise
  {
    const FailCalls none_left(FailingCall::kAccept, EMFILE, 1000);
    TcpServerConfig config;
    config.accept_pause = std::chrono::milliseconds(0);
    const auto server = TcpServer::start(loopback(), config);
    ASSERT_TRUE(server.ok()) << server.status();
    expect_served(**server);
    EXPECT_EQ(none_left.num_failed(), 1000);
  }
  const std::string lines = ::testing::internal::GetCapturedStdout();
  EXPECT_LE(std::ranges::count(lines, '\n'), verbs::LogBudget::kBurst + 10 * verbs::LogBudget::kPerSecond);
  EXPECT_NE(lines.find("perf: TCP client: cannot accept a connection: Too many open files"), std::string::npos);
}

}  // namespace
}  // namespace weft::apps::perf
