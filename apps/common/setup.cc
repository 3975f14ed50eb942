#include "apps/common/setup.h"

#include <spdlog/details/os.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "apps/common/command.h"
#include "apps/common/option_words.h"
#include "apps/common/printable.h"
#include "apps/common/trace_target.h"
#include "verbs-shim/ibv/device.h"
#include "verbs-shim/soft/device.h"

namespace weft::apps {

namespace {

verbs::Rtr rtr_of(const std::string& name) {
  if (name == "none") return verbs::Rtr::kNone;
  if (name == "send") return verbs::Rtr::kSend;
  if (name == "write") return verbs::Rtr::kWrite;
  if (name == "read") return verbs::Rtr::kRead;
  return verbs::Rtr::kAuto;
}

// PrintablePayload writes the text of a log line, which may hold a peer's text.
class PrintablePayload : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text = printable(in_options({message.payload.data(), message.payload.size()}));
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintablePayload>(); }
};

}  // namespace

void set_up_logging(const std::string& level) {
  // A test process runs commands one after the other: each set-up replaces the one before.
  spdlog::drop("weft");
  // spdlog would ask stderr for its descriptor, and an output stream has none.
  const bool colored = ::isatty(STDERR_FILENO) == 1 && spdlog::details::os::is_color_terminal();
  auto logger = spdlog::stderr_color_mt("weft", colored ? spdlog::color_mode::always : spdlog::color_mode::never);
  logger->set_level(spdlog::level::from_str(level));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintablePayload>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %*");
  logger->set_formatter(std::move(formatter));
  spdlog::set_default_logger(std::move(logger));
}

verbs::Log program_log() {
  verbs::Log log;
  log.sink = [](verbs::LogLevel level, std::string_view line) {
    const auto to = level == verbs::LogLevel::kWarn   ? spdlog::level::warn
                    : level == verbs::LogLevel::kInfo ? spdlog::level::info
                                                      : spdlog::level::debug;
    spdlog::log(to, "{}", line);
  };
  const auto least = spdlog::get_level();
  log.least = least <= spdlog::level::debug  ? verbs::LogLevel::kDebug
              : least == spdlog::level::info ? verbs::LogLevel::kInfo
                                             : verbs::LogLevel::kWarn;
  return log;
}

std::uint64_t raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur == limit.rlim_max) return limit.rlim_cur;
  rlimit raised = limit;
  raised.rlim_cur = raised.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

verbs::SoftConfig soft_config(const GlobalOptions& options, const DeviceWish& wish) {
  verbs::SoftConfig config;
  config.mpa_revision = options.mpa_revision;
  config.crc = options.crc;
  config.markers = options.markers;
  config.rtr = rtr_of(options.rtr);
  config.peer = options.peer;
  config.nudge = options.nudge;
  config.ird = options.ird;
  config.ord = options.ord;
  config.fpdu_limit = options.fpdu_limit;
  config.direct_placement = options.direct_placement;
  config.port_map.ask = config.port_map.answer = options.port_map;
  config.num_workers = options.num_workers;
  config.congestion_control = options.congestion_control.empty() ? wish.congestion_control : options.congestion_control;
  config.log = program_log();
  if (wish.answer_timeout.count() > 0) {
    config.connect_timeout = std::min(config.connect_timeout, wish.answer_timeout);
    config.reply_timeout = std::min(config.reply_timeout, wish.answer_timeout);
  }
  config.max_silent = wish.max_silent.value_or(config.max_silent);
  config.max_lingering = wish.max_lingering.value_or(config.max_lingering);
  config.admits = wish.admits;
  return config;
}

absl::StatusOr<std::unique_ptr<verbs::Device>> open_device(const GlobalOptions& options, const DeviceWish& wish) {
  if (!options.is_soft()) {
    auto device =
        verbs::open_ibv_device({.name = options.device, .ird = options.ird, .ord = options.ord, .log = program_log()});
    if (!device.ok()) return to_status(device.error(), "cannot open an RDMA device");
    return std::move(device.value());
  }
  verbs::SoftConfig config = soft_config(options, wish);
  if (!options.trace.file.empty()) {
    verbs::TraceConfig traced = trace_config(options.trace);
    for (const std::string& path : verbs::trace_paths(traced)) {
      if (const absl::Status status = check_trace_target(path, wish.files); !status.ok()) return status;
    }
    traced.log = program_log();
    traced.in_words = in_options;
    auto trace = verbs::open_trace(traced);
    if (!trace.ok()) return to_status(trace.error(), "cannot write the trace");
    config.trace = std::move(trace.value());
  }
  auto device = verbs::open_soft_device(config);
  if (!device.ok()) return to_status(device.error(), "cannot open the soft RNIC");
  return options.wrap_device ? options.wrap_device(std::move(device.value())) : std::move(device.value());
}

}  // namespace weft::apps
