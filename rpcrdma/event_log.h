#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "verbs-shim/api/log.h"
#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/api/log_line.h"

namespace weft::rpcrdma {

// EventLog writes the lines of one Client or Server: one line for each event, and at most as many lines as LogBudget
// allows, whatever peers do. Of a peer's octets a line contains only numbers, addresses and the connection manager's
// words. This header is not installed: fmt stays inside the library. One thread.
class EventLog {
 public:
  // peers: the name of the peers, "client" or "server"; outlives the log.
  EventLog(const verbs::Log& log, std::string_view peers) : log_(log), peers_(peers) {}

  // The time of the events that follow.
  void on_time(TimePoint now) { now_ = now; }

  // One event, about the peer of this address.
  template <typename... Args>
  void line(verbs::LogLevel level, std::string_view peer, fmt::format_string<Args...> format, Args&&... args) {
    if (!log_.wants(level) || !budget_.take(now_)) return;
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    verbs::log_line(log_, level, "{} {}: {}{}", peers_, peer, text, withheld());
  }
  // One event that is not about a single peer.
  template <typename... Args>
  void general_line(verbs::LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
    if (!log_.wants(level) || !budget_.take(now_)) return;
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    verbs::log_line(log_, level, "{}: {}{}", peers_, text, withheld());
  }

 private:
  // A line that the budget allows carries this note, so the note costs no line of its own.
  std::string withheld() {
    const std::uint64_t num = budget_.take_suppressed();
    return num == 0 ? std::string() : fmt::format(" ({} lines before this one were withheld)", num);
  }

  verbs::Log log_;
  std::string_view peers_;
  verbs::LogBudget budget_;
  TimePoint now_{};
};

}  // namespace weft::rpcrdma
