#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace weft::verbs {

// LogLevel says how much a line matters: kDebug is for a developer, kInfo tells of ordinary events, kWarn of events
// that an operator may want to act on.
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn };

// A device or an engine writes its lines to a Log. The default Log discards them: a library has no business with the
// standard streams of its program.
struct Log {
  // Takes one line: UTF-8, without a line feed, valid during the call. A device with workers calls it from any of its
  // threads, also from several at once. It returns soon, does not throw, and calls nothing of the device or engine.
  // Peers can cause at most 50 lines at once and 10 lines a second in the long run.
  std::function<void(LogLevel level, std::string_view line)> sink;
  // The least level that reaches `sink`.
  LogLevel least = LogLevel::kInfo;

  bool wants(LogLevel level) const { return sink != nullptr && level >= least; }
};

}  // namespace weft::verbs
