#include "apps/metrics/openmetrics_writer.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace weft::metrics {
namespace {

// A bound in seconds as OpenMetrics writes numbers: "0.0001", "1.0", "5e-06".
std::string bound_text(std::uint64_t ns) {
  std::string text = fmt::format("{}", static_cast<double>(ns) / 1e9);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

const std::array<std::string, LatencyHistogram::kNumBuckets>& bound_texts() {
  static const auto kTexts = [] {
    std::array<std::string, LatencyHistogram::kNumBuckets> texts;
    for (std::size_t i = 0; i < LatencyHistogram::kBounds.size(); ++i) {
      texts[i] = bound_text(LatencyHistogram::kBounds[i]);
    }
    texts.back() = "+Inf";
    return texts;
  }();
  return kTexts;
}

void append_escaped(std::string& text, std::string_view raw) {
  for (const char c : raw) {
    switch (c) {
      case '\\': text += "\\\\"; break;
      case '"': text += "\\\""; break;
      case '\n': text += "\\n"; break;
      default: text += c;
    }
  }
}

}  // namespace

void OpenMetricsWriter::family(std::string_view name, std::string_view type, std::string_view unit,
                               std::string_view help) {
  name_ = name;
  fmt::format_to(std::back_inserter(text_), "# TYPE {} {}\n", name, type);
  if (!unit.empty()) fmt::format_to(std::back_inserter(text_), "# UNIT {} {}\n", name, unit);
  fmt::format_to(std::back_inserter(text_), "# HELP {} ", name);
  append_escaped(text_, help);
  text_ += '\n';
}

void OpenMetricsWriter::label(std::string_view name, std::string_view value, bool is_first) {
  text_ += is_first ? '{' : ',';
  text_.append(name).append("=\"");
  append_escaped(text_, value);
  text_ += '"';
}

void OpenMetricsWriter::sample(std::string_view suffix, Labels labels, std::string_view value, std::string_view le) {
  text_.append(name_).append(suffix);
  bool is_first = true;
  for (const auto& [name, text] : labels) label(name, text, std::exchange(is_first, false));
  if (!le.empty()) label("le", le, std::exchange(is_first, false));
  if (!is_first) text_ += '}';
  text_.append(" ").append(value).append("\n");
}

void OpenMetricsWriter::value(Labels labels, double value) {
  sample("", labels, fmt::format("{}", value));
}

void OpenMetricsWriter::durations(Labels labels, const LatencyHistogram& histogram) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < LatencyHistogram::kNumBuckets; ++i) {
    total += histogram.counts()[i];
    sample("_bucket", labels, std::to_string(total), bound_texts()[i]);
  }
  sample("_sum", labels, fmt::format("{}", static_cast<double>(histogram.sum()) / 1e9));
  sample("_count", labels, std::to_string(total));
}

std::string OpenMetricsWriter::finish() {
  text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace weft::metrics
