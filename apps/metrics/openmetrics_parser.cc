#include "apps/metrics/openmetrics_parser.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "fmt/format.h"

namespace weft::metrics {
namespace {

bool is_name(char c, bool is_first) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':') return true;
  return !is_first && c >= '0' && c <= '9';
}

// Line reads one line from the left.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view take_name() {
    std::size_t len = 0;
    while (len < rest_.size() && is_name(rest_[len], len == 0)) ++len;
    const std::string_view name = rest_.substr(0, len);
    rest_.remove_prefix(len);
    return name;
  }

  // A label's value with its quotation marks.
  std::optional<std::string> take_quoted() {
    if (!take('"')) return {};
    std::string value;
    while (!rest_.empty()) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return value;
      if (c == '\\') {
        if (rest_.empty()) return {};
        c = rest_.front() == 'n' ? '\n' : rest_.front();
        rest_.remove_prefix(1);
      }
      value += c;
    }
    return {};
  }

  // The value, and a time behind it that is left out.
  std::optional<double> take_value() {
    const std::string_view text = rest_.substr(0, rest_.find(' '));
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(std::abs(value) <= kMaxValue)) return {};
    return value;
  }

 private:
  std::string_view rest_;
};

bool parse_labels(Line& line, std::map<std::string, std::string>& labels) {
  if (!line.take('{')) return true;
  if (line.take('}')) return true;
  do {
    const std::string name(line.take_name());
    if (name.empty() || !line.take('=')) return false;
    auto value = line.take_quoted();
    if (!value || labels.size() >= kMaxLabels || !labels.emplace(name, std::move(*value)).second) return false;
  } while (line.take(','));
  return line.take('}');
}

bool parse_sample(std::string_view text, std::string& name, Sample& sample) {
  Line line(text);
  name = line.take_name();
  if (name.empty() || !parse_labels(line, sample.labels) || !line.take(' ')) return false;
  const auto value = line.take_value();
  sample.value = value.value_or(0);
  return value.has_value();
}

}  // namespace

std::string_view Sample::label(const std::string& name) const {
  const auto at = labels.find(name);
  return at == labels.end() ? std::string_view() : at->second;
}

const std::vector<Sample>& Scrape::samples(const std::string& name) const {
  static const std::vector<Sample> kNone;
  const auto at = samples_.find(name);
  return at == samples_.end() ? kNone : at->second;
}

double Scrape::value(const std::string& name, const std::map<std::string, std::string>& labels) const {
  for (const Sample& sample : samples(name)) {
    const bool fits =
        std::ranges::all_of(labels, [&](const auto& wanted) { return sample.label(wanted.first) == wanted.second; });
    if (fits) return sample.value;
  }
  return 0;
}

absl::StatusOr<Scrape> parse_openmetrics(std::string_view text) {
  Scrape scrape;
  std::size_t num_lines = 0, num_samples = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++num_lines;
    if (line == "# EOF") {
      if (text.empty()) return scrape;
      break;
    }
    if (line.starts_with('#')) continue;
    std::string name;
    Sample sample;
    if (++num_samples > kMaxSamples || !parse_sample(line, name, sample)) {
      return absl::InvalidArgumentError(fmt::format("line {} of the metrics is wrong", num_lines));
    }
    scrape.samples_[name].push_back(std::move(sample));
  }
  return absl::InvalidArgumentError("the metrics do not end with # EOF");
}

}  // namespace weft::metrics
