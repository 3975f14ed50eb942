#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "verbs-shim/soft/trace.h"

namespace CLI {
class App;
}

namespace weft::apps {

// TraceOptions are the global options of captures of the traffic.
struct TraceOptions {
  std::string file;                    // empty: no trace
  std::uint64_t limit = 0;             // bytes of a file; 0: none
  std::size_t ring = 0;                // files; 0: one
  std::optional<std::size_t> snaplen;  // bytes kept of a frame, 0: all; unset: by its kind
};

// Bytes kept of each frame where the file has a limit: every FPDU of a network with an MTU of 9,000 is whole.
inline constexpr std::size_t kTraceTaggedWithLimit = 9216;

// add_trace_options puts --trace and the options with that prefix on the root. `options` outlives the parse.
void add_trace_options(CLI::App& root, TraceOptions& options);

// check_trace_options throws CLI::ValidationError if the options contradict each other.
void check_trace_options(const TraceOptions& options);

// trace_config returns what verbs::open_trace needs. The log and the words are the caller's.
verbs::TraceConfig trace_config(const TraceOptions& options);

// parse_size reads a number of bytes: digits, and K, M or G for 1024, 1024^2 or 1024^3 of them. Empty: it is none, or
// 64 bits do not hold it.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace weft::apps
