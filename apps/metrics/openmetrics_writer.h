#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "apps/metrics/latency_histogram.h"

namespace weft::metrics {

// Label is one label of a sample.
using Label = std::pair<std::string_view, std::string_view>;
using Labels = std::initializer_list<Label>;

// OpenMetricsWriter writes the text format of OpenMetrics 1.0: families, each with its samples behind it. Values of
// labels may be any text.
class OpenMetricsWriter {
 public:
  static constexpr const char* kContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

  // Begin a family. unit: the end of the name, or empty.
  void info(std::string_view name, std::string_view help) { family(name, "info", "", help); }
  void counter(std::string_view name, std::string_view unit, std::string_view help) {
    family(name, "counter", unit, help);
  }
  void gauge(std::string_view name, std::string_view unit, std::string_view help) { family(name, "gauge", unit, help); }
  void histogram(std::string_view name, std::string_view help) { family(name, "histogram", "seconds", help); }

  // A sample of the family: the suffixes _info and _total come from here.
  void info_labels(Labels labels) { sample("_info", labels, "1"); }
  void total(Labels labels, std::uint64_t value) { sample("_total", labels, std::to_string(value)); }
  void value(Labels labels, std::uint64_t value) { sample("", labels, std::to_string(value)); }
  void value(Labels labels, double value);
  void durations(Labels labels, const LatencyHistogram& histogram);

  // The whole text, with its end mark. The writer is done.
  std::string finish();

 private:
  void family(std::string_view name, std::string_view type, std::string_view unit, std::string_view help);
  void sample(std::string_view suffix, Labels labels, std::string_view value, std::string_view le = {});
  void label(std::string_view name, std::string_view value, bool is_first);

  std::string name_;
  std::string text_;
};

}  // namespace weft::metrics
