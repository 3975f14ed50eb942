#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"

namespace weft::apps {

// check_trace_target refuses to write a trace over a file that a user may need: a regular file that is no capture and
// not empty, or one of `used`, the local files of the command ("-" is standard input or output). It opens no FIFO.
absl::Status check_trace_target(const std::string& path, std::span<const std::string> used);

}  // namespace weft::apps
