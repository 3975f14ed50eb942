#include "apps/dissect/printer.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weft::apps::dissect {

namespace {

constexpr std::size_t kMaxHex = 32;  // octets of a field that are printed

// How far the layers are indented. DDP has no line of its own unless it is wanted whole.
int depth_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::kTcp:
    case LayerKind::kMpa: return 0;
    case LayerKind::kDdp:
    case LayerKind::kRdmap: return 1;
    case LayerKind::kRpcRdma: return 2;
    case LayerKind::kRpc: return 3;
  }
  return 0;
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

ConstBytes octets_of(const Frame& frame, const Field& field) {
  const ConstBytes source = field.source == Source::kWire    ? frame.wire
                            : field.source == Source::kUlpdu ? frame.ulpdu
                                                             : frame.message;
  if (field.at > source.size()) return {};
  return source.subspan(field.at, std::min<std::size_t>(field.len, source.size() - field.at));
}

}  // namespace

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
  fmt::format_to(fmt::appender(text_), "connection {}: {} to {}{}\n", connection.id, connection.client,
                 connection.server, connection.saw_start ? "" : " (the capture begins in its middle)");
}

void Printer::on_frame(const Frame& frame) {
  constexpr std::size_t kEnough = 1 << 16;
  if (!first_) first_ = frame.arrival.time;
  make_prefix(frame);
  for (const Layer& layer : frame.layers) {
    if (!layer.line.empty() || config_.fields) print_layer(frame, layer, depth_of(layer.kind));
  }
  for (const Finding& finding : frame.findings) {
    fmt::format_to(fmt::appender(text_), "{}  VIOLATION {}: {}{}\n", config_.color ? kRed : "", finding.requirement,
                   finding.what, config_.color ? kPlain : "");
  }
  if (config_.live || text_.size() >= kEnough) flush();
}

// Seconds with six decimals, the number of the connection, and the side.
void Printer::make_prefix(const Frame& frame) {
  using std::chrono::microseconds;
  prefix_.clear();
  const auto passed = frame.arrival.time - *first_;
  const std::int64_t us = std::chrono::floor<microseconds>(passed < Timestamp() ? -passed : passed).count();
  constexpr std::int64_t kPerSecond = 1000000;
  const fmt::appender out(prefix_);
  if (passed < Timestamp()) {
    fmt::format_to(out, FMT_COMPILE("{:>4}"), fmt::format(FMT_COMPILE("-{}"), us / kPerSecond));
  } else {
    fmt::format_to(out, FMT_COMPILE("{:4}"), us / kPerSecond);
  }
  fmt::format_to(out, FMT_COMPILE(".{:06} {:>3}{} "), us % kPerSecond, frame.connection,
                 frame.from == Side::kClient ? '>' : '<');
}

void Printer::flush() {
  std::fwrite(text_.data(), 1, text_.size(), out_);
  text_.clear();
}

void Printer::print_layer(const Frame& frame, const Layer& layer, int depth) {
  constexpr std::string_view kBlanks = "      ";
  const auto add = [this](std::string_view text) { text_.append(text); };
  add({prefix_.data(), prefix_.size()});
  add(kBlanks.substr(0, 2 * static_cast<std::size_t>(depth)));
  if (config_.color) add(color_of(layer.kind));
  add(layer.line.empty() ? layer_str(layer.kind) : std::string_view(layer.line));
  if (config_.color) add(kPlain);
  text_.push_back('\n');
  if (config_.fields) print_fields(frame, layer, depth);
}

void Printer::print_fields(const Frame& frame, const Layer& layer, int depth) {
  const fmt::appender out(text_);
  for (const Field& field : layer.fields) {
    fmt::format_to(out, "{:{}}{}: {}", "", 20 + 2 * depth, field.name, field.value);
    const ConstBytes octets = octets_of(frame, field);
    if (!octets.empty()) {
      fmt::format_to(out, "  [{}:{}]", field.at, field.len);
      for (const std::uint8_t octet : octets.first(std::min(octets.size(), kMaxHex))) {
        fmt::format_to(out, FMT_COMPILE(" {:02x}"), octet);
      }
      if (octets.size() > kMaxHex) fmt::format_to(out, " ...");
    }
    text_.push_back('\n');
  }
}

}  // namespace weft::apps::dissect
