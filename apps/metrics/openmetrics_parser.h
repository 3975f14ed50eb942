#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::metrics {

// Sample is one line of OpenMetrics text.
struct Sample {
  std::map<std::string, std::string> labels;
  double value = 0;

  // The value of a label; empty if there is none.
  std::string_view label(const std::string& name) const;
};

// Scrape: the samples of one answer, by their whole name ("weft_rpc_duration_seconds_bucket").
class Scrape {
 public:
  const std::vector<Sample>& samples(const std::string& name) const;
  // The first sample with these labels, whatever other labels it has; 0 if there is none.
  double value(const std::string& name, const std::map<std::string, std::string>& labels = {}) const;

 private:
  friend absl::StatusOr<Scrape> parse_openmetrics(std::string_view text);
  std::map<std::string, std::vector<Sample>> samples_;
};

// The most samples, and labels of one sample, that parse_openmetrics takes.
inline constexpr std::size_t kMaxSamples = 40'000, kMaxLabels = 16;

// The largest value, with either sign: our numbers are counts of 64 bits and seconds. +Inf and NaN, which OpenMetrics
// allows, are refused; the bound of a bucket is a label.
inline constexpr double kMaxValue = 18446744073709551616.0;

// parse_openmetrics reads the text format of OpenMetrics 1.0, as far as samples without exemplars. The text comes from
// another program: an error names the line that is wrong. The text must end with "# EOF".
absl::StatusOr<Scrape> parse_openmetrics(std::string_view text);

}  // namespace weft::metrics
