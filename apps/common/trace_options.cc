#include "apps/common/trace_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

#include "apps/common/option_checks.h"

namespace weft::apps {

namespace {

constexpr const char* kTraceGroup = "Options of every command";

std::string trace_fault(const std::string& path) {
  if (path == "-") return "standard output has the results; a FIFO is one way to a reader (mkfifo), ./- is a file";
  return empty_fault(path);
}

std::string limit_fault(const std::string& value) {
  const auto size = parse_size(value);
  if (size && *size >= verbs::TraceConfig::kMinFile) return "";
  return "must be a size of at least 128K, such as 100M, not '" + value + "'";
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMG";
  unsigned shift = 0;
  if (const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
      unit != std::string_view::npos) {
    shift = 10 * static_cast<unsigned>(unit + 1);
    text.remove_suffix(1);
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > UINT64_MAX >> shift) return std::nullopt;
  return number << shift;
}

void add_trace_options(CLI::App& root, TraceOptions& options) {
  root.add_option(
          "--trace", options.file,
          "write the sent and received messages as a capture (pcapng), with the first 256 bytes of each RDMA Write and "
          "Read Response (32 of each further FPDU) and 4608 of other frames; a file or a FIFO, not -: standard output "
          "has the results")
      ->check(trace_fault)
      ->type_name("FILE")
      ->group(kTraceGroup);
  root.add_option_function<std::string>(
          "--trace-limit", [&options](const std::string& value) { options.limit = *parse_size(value); },
          "the trace ends when its file has this size (such as 100M; at least 128K); it then keeps 9216 bytes of each "
          "RDMA Write and Read Response")
      ->check(CLI::Validator(limit_fault, "", "size"))
      ->type_name("SIZE")
      ->group(kTraceGroup);
  root.add_option("--trace-ring", options.ring,
                  "write N files of --trace-limit in turns: FILE with _1 to _N before its ending; a new file replaces "
                  "the oldest one")
      ->check(CLI::Range(std::size_t{2}, verbs::TraceConfig::kMaxFiles))
      ->type_name("N")
      ->group(kTraceGroup);
  root.add_option("--trace-snaplen", options.snaplen,
                  "bytes that the trace keeps of each frame, RDMA Writes and Read Responses too; 0: all")
      ->check(CLI::Range(0, 65535))
      ->type_name("BYTES")
      ->group(kTraceGroup);
}

void check_trace_options(const TraceOptions& options) {
  const auto needs = [](const std::string& option, const char* other) {
    throw CLI::ValidationError(option + " needs " + other);
  };
  if (options.file.empty()) {
    if (options.limit != 0) needs("--trace-limit", "--trace");
    if (options.ring != 0) needs("--trace-ring", "--trace");
    if (options.snaplen) needs("--trace-snaplen", "--trace");
  }
  if (options.ring != 0 && options.limit == 0) needs("--trace-ring", "--trace-limit, the size of each file");
}

verbs::TraceConfig trace_config(const TraceOptions& options) {
  verbs::TraceConfig config;
  config.path = options.file;
  config.max_file = options.limit;
  config.num_files = options.ring;
  if (options.snaplen || options.limit != 0) {
    config.tagged_len = config.tagged_more_len = options.snaplen.value_or(kTraceTaggedWithLimit);
    config.other_len = options.snaplen.value_or(std::max(config.other_len, kTraceTaggedWithLimit));
  }
  return config;
}

}  // namespace weft::apps
