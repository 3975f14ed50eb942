#pragma once

#include <fmt/format.h>

#include <utility>

#include "verbs-shim/api/log.h"

namespace weft::verbs {

// log_line formats a line for `log` if it wants that level. The header is not installed: fmt stays inside the library.
template <typename... Args>
void log_line(const Log& log, LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log.wants(level)) log.sink(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace weft::verbs
