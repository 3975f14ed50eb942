#include "apps/dissect/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "apps/dissect/say.h"

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
  say(out_, "connection {}: {} to {}{}\n", connection.id, connection.client, connection.server,
      connection.saw_start ? "" : " (the capture begins in its middle)");
}

void Printer::on_frame(const Frame& frame) {
  if (!first_) first_ = frame.arrival.time;
  for (const Layer& layer : frame.layers) {
    if (!layer.line.empty() || config_.fields) print_layer(frame, layer, depth_of(layer.kind));
  }
  for (const Finding& finding : frame.findings) {
    say(out_, "{}  VIOLATION {}: {}{}\n", config_.color ? kRed : "", finding.requirement, finding.what,
        config_.color ? kPlain : "");
  }
}

void Printer::print_layer(const Frame& frame, const Layer& layer, int depth) {
  const auto seconds = std::chrono::duration<double>(frame.arrival.time - *first_).count();
  line_.clear();
  fmt::format_to(std::back_inserter(line_), "{:11.6f} {:>3}{} {:{}}", seconds, frame.connection,
                 frame.from == Side::kClient ? '>' : '<', "", 2 * depth);
  if (config_.color) line_ += color_of(layer.kind);
  line_ += layer.line.empty() ? layer_str(layer.kind) : std::string_view(layer.line);
  if (config_.color) line_ += kPlain;
  line_ += '\n';
  std::fwrite(line_.data(), 1, line_.size(), out_);
  if (config_.fields) print_fields(frame, layer, depth);
}

void Printer::print_fields(const Frame& frame, const Layer& layer, int depth) {
  for (const Field& field : layer.fields) {
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{:{}}{}: {}", "", 20 + 2 * depth, field.name, field.value);
    const ConstBytes octets = octets_of(frame, field);
    if (!octets.empty()) {
      fmt::format_to(std::back_inserter(line_), "  [{}:{}]", field.at, field.len);
      for (const std::uint8_t octet : octets.first(std::min(octets.size(), kMaxHex))) {
        fmt::format_to(std::back_inserter(line_), " {:02x}", octet);
      }
      if (octets.size() > kMaxHex) line_ += " ...";
    }
    line_ += '\n';
    std::fwrite(line_.data(), 1, line_.size(), out_);
  }
}

}  // namespace weft::apps::dissect
