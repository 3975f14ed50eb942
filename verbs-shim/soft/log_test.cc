// Where a soft RNIC's lines go: nowhere, or to the sink of its configuration.
#include "verbs-shim/api/log.h"

#include <gmock/gmock.h>

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"

namespace weft::verbs::testing {
namespace {

using std::chrono::seconds;

// Lets a client that speaks HTTP come and be turned away, which is worth a warning.
void turn_a_client_away(const SoftConfig& config) {
  auto device = std::move(open_soft_device(config).value());
  auto cm = std::move(device->create_event_channel().value());
  auto id = std::move(cm->create_id().value());
  ASSERT_TRUE(id->bind_addr(loopback(AF_INET, 0)).ok());
  ASSERT_TRUE(id->listen(1).ok());
  const sockaddr_storage to = id->local_addr();
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0);
  const std::string_view http = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(::send(fd.get(), http.data(), http.size(), MSG_NOSIGNAL), static_cast<ssize_t>(http.size()));
  const auto deadline = std::chrono::steady_clock::now() + seconds(10);
  char heard = 0;
  while (::recv(fd.get(), &heard, 1, MSG_DONTWAIT) < 0 && errno != ECONNRESET) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    device->process(std::chrono::steady_clock::now());
  }
}

TEST(LogTest, ALibraryIsSilentByDefault) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  turn_a_client_away({});
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(LogTest, LinesGoToTheSinkOfTheConfiguration) {
  std::vector<std::pair<LogLevel, std::string>> lines;
  SoftConfig config;
  config.log.sink = [&](LogLevel level, std::string_view line) { lines.emplace_back(level, line); };
  turn_a_client_away(config);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].first, LogLevel::kWarn);
  EXPECT_THAT(lines[0].second, ::testing::StartsWith("connection from 127.0.0.1:"));
}

TEST(LogTest, LinesBelowTheLeastLevelStayAway) {
  std::vector<std::string> lines;
  Log log;
  log.sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
  log.least = LogLevel::kWarn;
  EXPECT_FALSE(log.wants(LogLevel::kInfo));
  EXPECT_TRUE(log.wants(LogLevel::kWarn));
  EXPECT_FALSE(Log{}.wants(LogLevel::kWarn));
}

}  // namespace
}  // namespace weft::verbs::testing
