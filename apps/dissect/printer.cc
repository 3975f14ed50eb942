#include "apps/dissect/printer.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

namespace weft::apps::dissect {

namespace {

constexpr std::size_t kOfLine = 32;         // octets of a field in a line
constexpr std::size_t kMaxFieldHex = 1024;  // octets of a field that are printed

// How far the layers are indented. DDP has no line of its own unless it is wanted whole.
constexpr std::size_t kMaxDepth = 3, kIndent = 2;
constexpr std::array<std::size_t, 6> kDepths = {0, 0, 1, 1, 2, kMaxDepth};  // by LayerKind
std::size_t depth_of(LayerKind kind) {
  return kDepths[static_cast<std::size_t>(kind)];
}

std::string_view color_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::kTcp:
    case LayerKind::kMpa: return "\x1b[2m";
    case LayerKind::kDdp:
    case LayerKind::kRdmap: return "\x1b[36m";
    case LayerKind::kRpcRdma: return "\x1b[33m";
    case LayerKind::kRpc: return "\x1b[32m";
  }
  return "";
}

constexpr std::string_view kRed = "\x1b[31m", kPlain = "\x1b[0m";

// Backwards puts a short text together from its end, as the digits of numbers come.
class Backwards {
 public:
  void put(char c) { text_[--at_] = c; }
  // At least width characters: `fill` stands before the sign and the digits.
  void number(std::uint64_t value, std::size_t width, char fill, bool is_negative = false) {
    const std::size_t end = at_;
    do put(static_cast<char>('0' + value % 10));
    while ((value /= 10) != 0);
    if (is_negative) put('-');
    while (end - at_ < width) put(fill);
  }
  std::string_view str() const { return {&text_[at_], text_.size() - at_}; }

 private:
  std::array<char, 64> text_;
  std::size_t at_ = text_.size();
};

}  // namespace

std::string_view verdict_str(Verdict verdict) {
  switch (verdict) {
    case Verdict::kConfirmed: return "confirmed";
    case Verdict::kRefuted: return "refuted";
    case Verdict::kUnseen: return "unseen";
  }
  return "";
}

std::string_view layer_str(LayerKind kind) {
  switch (kind) {
    case LayerKind::kTcp: return "TCP";
    case LayerKind::kMpa: return "MPA";
    case LayerKind::kDdp: return "DDP";
    case LayerKind::kRdmap: return "RDMAP";
    case LayerKind::kRpcRdma: return "RPC-over-RDMA";
    case LayerKind::kRpc: return "RPC";
  }
  return "";
}

void Printer::on_connection(const Connection& connection) {
  append(text_, FMT_COMPILE("connection {}: {} to {}{}\n"), connection.id, connection.client, connection.server,
         connection.saw_start ? "" : " (the capture begins in its middle)");
}

// The prefix goes in one move, unless the capture is very long.
inline void Printer::print_line(std::string_view line, std::size_t depth) {
  const std::size_t len = prefix_len_ + depth * kIndent;
  char* to = text_.room(std::max(len, kMoved) + line.size() + 1);
  std::memcpy(to, prefix_.data(), kMoved);
  if (len > kMoved) copy_text(to, {prefix_.data(), len});
  to = copy_text(to + len, line);
  *to = '\n';
  text_.end_at(to + 1);
}

void Printer::on_frame(const Frame& frame) {
  make_prefix(frame.connection, frame.from, frame.arrival);
  const bool is_plain = !config_.fields && !config_.color;
  for (const Layer& layer : frame.layers) {
    if (layer.line.empty() && !config_.fields) continue;
    if (is_plain) {
      print_line(layer.line.str(), depth_of(layer.kind));
    } else {
      print_layer(frame, layer, depth_of(layer.kind));
    }
  }
  for (const Finding& finding : frame.findings) {
    append(text_, FMT_COMPILE("{}  VIOLATION {}: {}{}\n"), config_.color ? kRed : "", finding.requirement, finding.what,
           config_.color ? kPlain : "");
  }
  end_message();
}

void Printer::on_comment(const Comment& comment) {
  make_prefix(comment.connection, comment.from, comment.arrival);
  append(text_, FMT_COMPILE("{}  # {}\n"), std::string_view(prefix_).substr(0, prefix_len_), comment.text);
  end_message();
}

void Printer::end_message() {
  constexpr std::size_t kEnough = 1 << 16;
  if (config_.live || text_.str().size() >= kEnough) flush();
}

// Seconds with six decimals, the number of the connection, and the side: "   0.000123   1> ". Every message has it, so
// it is put together by hand.
void Printer::make_prefix(std::uint32_t connection, Side from, const Arrival& arrival) {
  using std::chrono::microseconds;
  constexpr std::size_t kSecondsWidth = 4, kDecimals = 6, kConnectionWidth = 3;
  constexpr std::uint64_t kPerSecond = 1000000;
  if (!first_) first_ = arrival.time;
  // Many messages of a packet have the same one.
  const Prefix now{connection, from, arrival.time};
  if (!prefix_.empty() && now == prefix_words_) return;
  prefix_words_ = now;
  const auto passed = arrival.time - *first_;
  const bool is_before = passed < Timestamp();
  const auto us = static_cast<std::uint64_t>(std::chrono::floor<microseconds>(is_before ? -passed : passed).count());
  Backwards text;
  text.put(' ');
  text.put(from == Side::kClient ? '>' : '<');
  text.number(connection, kConnectionWidth, ' ');
  text.put(' ');
  text.number(us % kPerSecond, kDecimals, '0');
  text.put('.');
  text.number(us / kPerSecond, kSecondsWidth, ' ', is_before);
  prefix_ = text.str();
  prefix_len_ = prefix_.size();
  prefix_.append(kMaxDepth * kIndent + kMoved, ' ');
}

void Printer::flush() {
  std::fwrite(text_.str().data(), 1, text_.str().size(), out_);
  text_.clear();
}

void Printer::print_layer(const Frame& frame, const Layer& layer, std::size_t depth) {
  const std::string_view indented(prefix_.data(), prefix_len_ + depth * kIndent);
  const std::string_view line = layer.line.empty() ? layer_str(layer.kind) : layer.line.str();
  append(text_, FMT_COMPILE("{}{}{}{}\n"), indented, config_.color ? color_of(layer.kind) : "", line,
         config_.color ? kPlain : "");
  if (config_.fields) print_fields(frame, layer, depth);
}

void Printer::print_fields(const Frame& frame, const Layer& layer, std::size_t depth) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (const Field& field : layer.fields) {
    fmt::format_to(out, "{:{}}{}: {}", "", 20 + kIndent * depth, field.name, field.value);
    const ConstBytes octets = octets_at(frame, {field.source, field.at, field.len});
    if (!octets.empty()) fmt::format_to(out, "  [{}:{}]", field.at, field.len);
    const ConstBytes shown = octets.first(std::min(octets.size(), kMaxFieldHex));
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (i != 0 && i % kOfLine == 0) fmt::format_to(out, "\n{:{}}", "", 21 + kIndent * depth);
      fmt::format_to(out, FMT_COMPILE(" {:02x}"), shown[i]);
    }
    if (shown.size() < octets.size()) {
      fmt::format_to(out, "\n{:{}} ... {} of {} bytes are shown; --json has all", "", 21 + kIndent * depth,
                     shown.size(), octets.size());
    }
    text += '\n';
  }
  text_ += text;
}

}  // namespace weft::apps::dissect
