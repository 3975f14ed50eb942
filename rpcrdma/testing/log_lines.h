#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verbs-shim/api/log.h"

namespace weft::rpcrdma::testing {

// LogLines keeps the lines of a log of every level. Outlives the log.
class LogLines {
 public:
  verbs::Log log() {
    return {.sink = [this](verbs::LogLevel level, std::string_view line) { lines_.emplace_back(level, line); },
            .least = verbs::LogLevel::kDebug};
  }
  std::vector<std::string> all() const {
    std::vector<std::string> all;
    for (const auto& [level, line] : lines_) all.push_back(line);
    return all;
  }
  // The lines of level kWarn.
  std::vector<std::string> warnings() const {
    std::vector<std::string> all;
    for (const auto& [level, line] : lines_) {
      if (level == verbs::LogLevel::kWarn) all.push_back(line);
    }
    return all;
  }
  std::size_t num_with(std::string_view text) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        lines_, [text](const auto& line) { return line.second.find(text) != std::string::npos; }));
  }
  void clear() { lines_.clear(); }

 private:
  std::vector<std::pair<verbs::LogLevel, std::string>> lines_;
};

}  // namespace weft::rpcrdma::testing
