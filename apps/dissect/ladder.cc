#include "apps/dissect/ladder.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "apps/common/say.h"
#include "apps/dissect/duration.h"

namespace weft::apps::dissect {

namespace {

// Between the two lines; with the time, a line has 78 columns.
constexpr std::size_t kWidth = 62;

// The front of a text that fits into `width` octets: up to a blank if there is one, and whole characters.
std::string_view front_line(std::string_view text, std::size_t width) {
  if (text.size() <= width) return text;
  const std::size_t blank = text.substr(0, width + 1).rfind(' ');
  if (blank != std::string_view::npos && blank >= width / 2) return text.substr(0, blank);
  std::size_t end = width;
  while (end > 1 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  return text.substr(0, end);
}

// Takes the front line off a text.
std::string_view take_line(std::string_view& text, std::size_t width) {
  const std::string_view line = front_line(text, width);
  text.remove_prefix(line.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  return line;
}

// The shaft of an arrow, with a text in it that fits.
std::string shaft(std::string_view text, bool to_right) {
  // fmt counts columns, not octets.
  return to_right ? fmt::format("- {:-<{}}>", fmt::format("{} ", text), kWidth - 3)
                  : fmt::format("<{:->{}} -", fmt::format(" {}", text), kWidth - 3);
}

// The time between two messages; at most 13 columns.
std::string passed_str(Timestamp passed) {
  constexpr Timestamp kMost = std::chrono::seconds(9999999);
  if (passed > kMost || passed < -kMost) {
    return fmt::format("{:+.2e} s", std::chrono::duration<double>(passed).count());
  }
  return (passed < Timestamp() ? "" : "+") + duration_str(passed);
}

}  // namespace

void Ladder::on_connection(const Connection& connection) {
  say(out_, "connection {}: client {}, server {}\n", connection.id, connection.client, connection.server);
}

void Ladder::on_frame(const Frame& frame) {
  std::vector<std::string_view> lines;
  for (const Layer& layer : frame.layers) {
    if (!layer.line.empty()) lines.push_back(layer.line.str());
  }
  if (lines.empty()) return;
  const auto before = last_.try_emplace(frame.connection, frame.arrival.time).first;
  const Timestamp passed = frame.arrival.time - before->second;
  before->second = frame.arrival.time;
  if (shown_ != frame.connection)
    say(out_, "{:>13} |{:^{}}|\n", "", fmt::format("connection {}", frame.connection), kWidth);
  shown_ = frame.connection;
  // The highest layer names the message; the layers below it stand beneath the arrow.
  std::string_view rest = lines.back();
  say(out_, "{:>13} |{}|\n", passed_str(passed), shaft(take_line(rest, kWidth - 6), frame.from == Side::kClient));
  const auto say_beneath = [this](std::string_view text) {
    while (!text.empty()) say(out_, "{:>13} |  {:<{}}|\n", "", take_line(text, kWidth - 2), kWidth - 2);
  };
  say_beneath(rest);
  lines.pop_back();
  for (const std::string_view line : lines) say_beneath(line);
  for (const Finding& finding : frame.findings) {
    say_beneath(fmt::format("VIOLATION {}: {}", finding.requirement, finding.what));
  }
}

}  // namespace weft::apps::dissect
