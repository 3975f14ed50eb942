#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "verbs-shim/api/log.h"
#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/api/log_line.h"

namespace weft::rpcrdma {

// EventLog writes the lines of one Client or Server, each event once, and no more of them than LogBudget allows,
// whatever peers do. No octet of a peer's is in a line but numbers, addresses and the connection manager's words. Not
// installed: fmt stays inside the library. One thread.
class EventLog {
 public:
  // peers: what they are called, "client" or "server"; outlives it.
  EventLog(const verbs::Log& log, std::string_view peers) : log_(log), peers_(peers) {}

  // The time of the events that follow.
  void on_time(verbs::TimePoint now) { now_ = now; }

  // One event, about the peer of this address.
  template <typename... Args>
  void line(verbs::LogLevel level, std::string_view peer, fmt::format_string<Args...> format, Args&&... args) {
    if (!log_.wants(level) || !budget_.take(now_)) return;
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    // Said in a line that the budget allows, so that it costs none of its own.
    const std::uint64_t num = budget_.take_suppressed();
    const std::string before = num == 0 ? std::string() : fmt::format(" ({} lines before this one were withheld)", num);
    verbs::log_line(log_, level, "{} {}: {}{}", peers_, peer, text, before);
  }

 private:
  verbs::Log log_;
  std::string_view peers_;
  verbs::LogBudget budget_;
  verbs::TimePoint now_{};
};

}  // namespace weft::rpcrdma
