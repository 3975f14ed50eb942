#include "apps/perf/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/common/output.h"

namespace weft::apps::perf {

void take_quantiles(Measured& measured, Samples& samples) {
  measured.p50_ns = samples.quantile(0.5);
  measured.p99_ns = samples.quantile(0.99);
}

std::string to_line(const Measured& measured) {
  double seconds = measured.seconds > 0 ? measured.seconds : 1;
  std::string line =
      fmt::format("{:<14} size {:<8} depth {:<4} {:>12} {:>12.0f} op/s", op_name(measured.op), measured.size,
                  measured.depth, format_rate(double(measured.octets) / seconds), double(measured.ops) / seconds);
  if (measured.p50_ns) {
    line += fmt::format("  round trip median {} p99 {}", format_duration_ns(double(*measured.p50_ns)),
                        format_duration_ns(double(*measured.p99_ns)));
  }
  line += fmt::format("  {:.2f} s  cc {}", measured.seconds, measured.congestion_control);
  if (measured.peer_congestion_control != measured.congestion_control) {
    line += fmt::format(" (peer {})", measured.peer_congestion_control);
  }
  if (is_tcp(measured.op)) {
    line += fmt::format("  mss {}", measured.mss.value_or(0));
  } else if (measured.crc) {
    line += *measured.crc ? "  crc on" : "  crc off";
  }
  line += "  " + measured.waiting.str();
  if (measured.interrupted) line += "  (interrupted)";
  return line;
}

std::string to_json(const Measured& measured) {
  double seconds = measured.seconds > 0 ? measured.seconds : 1;
  nlohmann::ordered_json json;
  json["op"] = op_name(measured.op);
  json["size"] = measured.size;
  json["depth"] = measured.depth;
  json["seconds"] = measured.seconds;
  json["octets"] = measured.octets;
  json["ops"] = measured.ops;
  json["octets_per_s"] = double(measured.octets) / seconds;
  json["ops_per_s"] = double(measured.ops) / seconds;
  if (measured.p50_ns) json["p50_ns"] = *measured.p50_ns;
  if (measured.p99_ns) json["p99_ns"] = *measured.p99_ns;
  json["cc"] = measured.congestion_control;
  json["peer_cc"] = measured.peer_congestion_control;
  if (is_tcp(measured.op)) {
    json["mss"] = measured.mss.value_or(0);
  } else if (measured.crc) {
    json["crc"] = *measured.crc;
  }
  json["progress"] = measured.waiting.progress;
  json["sleep_share"] = measured.waiting.sleep_share;
  json["interrupted"] = measured.interrupted;
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

void print(const Measured& measured, bool json) {
  std::printf("%s\n", (json ? to_json(measured) : to_line(measured)).c_str());
  std::fflush(stdout);
}

}  // namespace weft::apps::perf
