#include "apps/dissect/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/dissect/say.h"

namespace weft::apps::dissect {

namespace {

constexpr std::size_t kMaxHex = 48;  // octets of a frame that are printed

struct Document {
  std::string_view prefix, name;
};
constexpr Document kDocuments[] = {
    {"MPA", "RFC 5044"},
    {"MPA2", "RFC 6581"},
    {"DDP", "RFC 5041"},
    {"RDMAP", "RFC 5040"},
    {"EXT", "RFC 7306"},
    {"R1", "RFC 8166"},
    {"R2", "draft-cel-nfsv4-rpcrdma-version-two-05"},
    {"W2", "draft-ietf-nfsv4-rpcrdma-version-two-07"},
};

}  // namespace

std::string place_of(std::string_view requirement) {
  const std::size_t first = requirement.find('-');
  const std::size_t last = requirement.rfind('-');
  const auto document = std::ranges::find(kDocuments, requirement.substr(0, first), &Document::prefix);
  if (document == std::end(kDocuments) || first == last) return "";
  return fmt::format("{} section {}", document->name, requirement.substr(first + 1, last - first - 1));
}

void Check::on_connection(const Connection&) {
  ++num_connections_;
}

void Check::on_frame(const Frame& frame) {
  ++num_frames_;
  for (const Finding& finding : frame.findings) {
    ++num_violations_;
    say(out_, "packet {}, connection {}, {}: {} ({}): {}\n", frame.arrival.packet, frame.connection,
        frame.from == Side::kClient ? "client" : "server", finding.requirement, place_of(finding.requirement),
        finding.what);
    if (!finding.effect.empty()) say(out_, "    {}\n", finding.effect);
    if (frame.wire.empty()) continue;
    std::string hex;
    for (const std::uint8_t octet : frame.wire.first(std::min(frame.wire.size(), kMaxHex))) {
      fmt::format_to(std::back_inserter(hex), " {:02x}", octet);
    }
    say(out_, "   {}{}\n", hex, frame.wire.size() > kMaxHex ? " ..." : "");
  }
}

void Check::finish() {
  say(out_, "{} violations in {} MPA frames of {} iWARP connections\n", num_violations_, num_frames_, num_connections_);
}

}  // namespace weft::apps::dissect
