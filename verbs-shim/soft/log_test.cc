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
#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/testing/failing_calls.h"

namespace weft::verbs::testing {
namespace {

using std::chrono::seconds;

// LoggingListener is a soft RNIC that listens, and its clients: each speaks HTTP and is turned away, which is worth a
// warning.
class LoggingListener {
 public:
  explicit LoggingListener(const SoftConfig& config) : device_(std::move(open_soft_device(config).value())) {
    cm_ = std::move(device_->create_event_channel().value());
    id_ = std::move(cm_->create_id().value());
    EXPECT_TRUE(id_->bind_addr(loopback(AF_INET, 0)).ok());
    EXPECT_TRUE(id_->listen(1).ok());
  }
  Fd connect() {
    const sockaddr_storage to = id_->local_addr();
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0);
    return fd;
  }
  void turn_away(const Fd& client) {
    const std::string_view http = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    ASSERT_EQ(::send(client.get(), http.data(), http.size(), MSG_NOSIGNAL), static_cast<ssize_t>(http.size()));
    const auto deadline = std::chrono::steady_clock::now() + seconds(10);
    char heard = 0;
    while (::recv(client.get(), &heard, 1, MSG_DONTWAIT) < 0 && errno != ECONNRESET) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      process();
    }
  }
  void process() { device_->process(now); }

  // The device's time. It stands still, and is ahead of the clock, to which the device would go on otherwise.
  TimePoint now = std::chrono::steady_clock::now() + std::chrono::hours(1);

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<CmChannel> cm_;
  std::unique_ptr<CmId> id_;
};

void turn_a_client_away(const SoftConfig& config) {
  LoggingListener listener(config);
  listener.turn_away(listener.connect());
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

TEST(LogTest, AFloodOfFailedConnectionsMeetsTheBudget) {
  std::vector<std::string> lines;
  SoftConfig config;
  config.log.sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
  LoggingListener listener(config);
  constexpr std::size_t kBurst = LogBudget::kBurst;
  for (std::size_t i = 0; i < kBurst + 7; ++i) listener.turn_away(listener.connect());
  EXPECT_EQ(lines.size(), kBurst);
  // The lines of missing descriptors come out of the same budget.
  const Fd waiting = listener.connect();
  {
    const FailCalls none_left(FailingCall::kAccept, EMFILE, 1);
    listener.process();
    EXPECT_EQ(none_left.num_failed(), 1);
  }
  EXPECT_EQ(lines.size(), kBurst);
  listener.now += seconds(1);
  listener.turn_away(waiting);
  ASSERT_EQ(lines.size(), kBurst + 2);
  EXPECT_EQ(lines[kBurst], "8 more connection ends were not logged");
  EXPECT_THAT(lines[kBurst + 1], ::testing::StartsWith("connection from 127.0.0.1:"));
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
