#pragma once

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <functional>
#include <optional>

#include "apps/common/global_options.h"
#include "apps/common/idle_trim.h"
#include "apps/common/signals.h"
#include "apps/metrics/metrics_endpoint.h"
#include "base/time.h"
#include "verbs-shim/api/types.h"

namespace weft::gateway {

// Readiness makes an io_context watch a descriptor that other code reads: once it is readable, run_one returns.
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

// drive runs an engine (with process, next_timeout, fd and snapshot, as ToTcp and ToRdma have them) and the sockets of
// an io_context in one thread, until a signal comes. metrics: null for none.
template <typename Engine>
void drive(boost::asio::io_context& io, Engine& engine, const apps::StopSignals& stop, apps::ProgressMode mode,
           metrics::MetricsEndpoint* metrics = nullptr) {
  // Waking a sleeping core costs more than polling for this time.
  constexpr std::chrono::microseconds kSpinBeforeBlock{50};
  // Busy sockets must not keep the engine waiting.
  constexpr int kHandlersPerTurn = 256;
  Readiness engine_ready(io, engine.fd()), stopped(io, stop.fd());
  std::optional<Readiness> metrics_wanted;
  if (metrics != nullptr) metrics_wanted.emplace(io, metrics->fd());
  bool idle = false;
  TimePoint idle_since{};  // valid if idle
  apps::IdleTrim trim;
  while (!stop.requested()) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (metrics != nullptr && metrics->is_wanted()) metrics->deliver(engine.snapshot());
    io.restart();
    std::size_t moved = engine.process(now);
    for (int i = 0; i < kHandlersPerTurn && io.poll_one() > 0; ++i) ++moved;
    if (trim.on_turn(now, moved > 0)) apps::trim_heap();
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
    if (metrics_wanted) metrics_wanted->arm();
    io.restart();
    if (const auto until = earliest(engine.next_timeout(), trim.due())) {
      io.run_one_until(*until);
    } else {
      io.run_one();
    }
  }
}

}  // namespace weft::gateway
