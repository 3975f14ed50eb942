#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>
#include <optional>

#include "apps/common/global_options.h"
#include "apps/common/signals.h"
#include "verbs-shim/api/types.h"

namespace weft::gateway {

// Readiness arms an io_context with a descriptor that somebody else reads: once it is readable, run_one returns.
class Readiness {
 public:
  Readiness(boost::asio::io_context& io, int fd) : descriptor_(io, ::dup(fd)) {}
  void arm() {
    if (armed_) return;
    armed_ = true;
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                           [this](const boost::system::error_code&) { armed_ = false; });
  }

 private:
  boost::asio::posix::stream_descriptor descriptor_;
  bool armed_ = false;
};

// drive runs an engine (process, next_timeout and fd, as rpcrdma::Server has them) and the sockets of an io_context in
// one thread, until a signal comes.
template <typename Engine>
void drive(boost::asio::io_context& io, Engine& engine, const apps::StopSignals& stop, apps::ProgressMode mode) {
  // Waking a core that went to sleep costs more than looking again for so long.
  constexpr std::chrono::microseconds kSpinBeforeBlock{50};
  // Sockets that always have more do not keep the engine waiting.
  constexpr int kHandlersPerTurn = 256;
  Readiness engine_ready(io, engine.fd()), stopped(io, stop.fd());
  bool idle = false;
  verbs::TimePoint idle_since{};  // where idle
  while (!stop.requested()) {
    const verbs::TimePoint now = std::chrono::steady_clock::now();
    io.restart();
    std::size_t moved = engine.process(now);
    for (int i = 0; i < kHandlersPerTurn && io.poll_one() > 0; ++i) ++moved;
    if (moved > 0) {
      idle = false;
      continue;
    }
    if (mode == apps::ProgressMode::kSpin) continue;
    if (!idle) idle_since = now;
    idle = true;
    if (now - idle_since < kSpinBeforeBlock) continue;
    idle = false;
    engine_ready.arm();
    stopped.arm();
    io.restart();
    if (const auto until = engine.next_timeout()) {
      io.run_one_until(*until);
    } else {
      io.run_one();
    }
  }
}

}  // namespace weft::gateway
