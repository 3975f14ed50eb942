#include "apps/gateway/loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <boost/asio/post.hpp>
#include <csignal>

namespace weft::gateway {
namespace {

// An engine that asks for the end of the loop once it has had some turns.
struct CountingEngine {
  explicit CountingEngine(int turns) : left(turns) {}
  ~CountingEngine() { ::close(event); }
  std::size_t process(TimePoint) {
    if (--left == 0) std::raise(SIGTERM);
    return 1;
  }
  std::optional<TimePoint> next_timeout() const { return {}; }
  int fd() const { return event; }
  metrics::Snapshot snapshot() const { return {}; }

  int left;
  int event = ::eventfd(0, EFD_CLOEXEC);
};

TEST(Drive, SocketsThatAlwaysHaveMoreLeaveTheEngineItsTurns) {
  apps::StopSignals stop;
  boost::asio::io_context io(1);
  CountingEngine engine(3);
  int num_handlers = 0;
  std::function<void()> again = [&] {
    if (++num_handlers < 1'000'000) boost::asio::post(io, again);
  };
  boost::asio::post(io, again);
  drive(io, engine, stop, apps::ProgressMode::kBlock);
  EXPECT_LE(engine.left, 0);
  EXPECT_LT(num_handlers, 10'000);
}

}  // namespace
}  // namespace weft::gateway
