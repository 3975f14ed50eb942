#include "apps/dissect/ladder.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "apps/common/output.h"
#include "apps/dissect/say.h"

namespace weft::apps::dissect {

namespace {

constexpr std::size_t kWidth = 72;  // between the two lines

// The shaft of an arrow, with a text in it as far as it fits.
std::string shaft(std::string_view text, bool to_right) {
  const std::string_view fits = text.substr(0, kWidth - 6);
  const std::string dashes(kWidth - 4 - fits.size(), '-');
  return to_right ? fmt::format("- {} {}>", fits, dashes) : fmt::format("<{} {} -", dashes, fits);
}

}  // namespace

void Ladder::on_connection(const Connection& connection) {
  say(out_, "connection {}: client {}, server {}\n", connection.id, connection.client, connection.server);
}

void Ladder::on_frame(const Frame& frame) {
  std::vector<std::string_view> lines;
  for (const Layer& layer : frame.layers) {
    if (!layer.line.empty()) lines.push_back(layer.line);
  }
  if (lines.empty()) return;
  const auto before = last_.try_emplace(frame.connection, frame.arrival.time).first;
  const Timestamp passed = frame.arrival.time - before->second;
  before->second = frame.arrival.time;
  if (shown_ != frame.connection)
    say(out_, "{:>13} |{:^{}}|\n", "", fmt::format("connection {}", frame.connection), kWidth);
  shown_ = frame.connection;
  // The highest layer names the message; the layers below it stand beneath the arrow.
  say(out_, "{:>13} |{}|\n", "+" + format_duration_ns(static_cast<double>(passed.count())),
      shaft(lines.back(), frame.from == Side::kClient));
  lines.pop_back();
  for (const std::string_view line : lines)
    say(out_, "{:>13} |  {:<{}}|\n", "", line.substr(0, kWidth - 2), kWidth - 2);
  for (const Finding& finding : frame.findings) {
    say(out_, "{:>13} |  {:<{}}|\n", "",
        fmt::format("VIOLATION {}: {}", finding.requirement, finding.what).substr(0, kWidth - 2), kWidth - 2);
  }
}

}  // namespace weft::apps::dissect
