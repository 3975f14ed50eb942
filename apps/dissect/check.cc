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
    {"SEC", "RFC 5042"},
    {"U1", "RFC 8267"},
    {"R2", "draft-cel-nfsv4-rpcrdma-version-two-05"},
    {"W2", "draft-ietf-nfsv4-rpcrdma-version-two-07"},
};

// The ids of version 1 of RPC-over-RDMA have the sections of a later draft.
struct Section {
  std::string_view of_id, place;
};
constexpr Section kVersion1Sections[] = {
    {"3.1.2", "RFC 8166 section 2.2.2"}, {"4.3.1", "RFC 8166 section 3.3.1"},
    {"4.3.2", "RFC 8797 section 4.1"},   {"4.3.3", "RFC 8166 section 3.3.3"},
    {"7.2.1", "RFC 8167 section 4.1"},   {"4.4.6.1", "RFC 8166 section 3.4.6.2"},
    {"4.4.5", "RFC 8166 section 3.4.5"}, {"4.4.4.1", "RFC 8166 section 3.4.5.2"},
    {"4.4.6", "RFC 8166 section 3.4.6"}, {"4.5.3", "RFC 8166 section 3.5.3"},
    {"5.2.1", "RFC 8166 section 4.2.1"}, {"5.2.2", "RFC 8166 section 4.2.2"},
    {"5.2.4", "RFC 8166 section 4.2.4"}, {"5.3", "RFC 8166 section 4.3"},
    {"5.3.1", "RFC 8166 section 4.3.1"}, {"5.3.3", "RFC 8166 section 4.3.3"},
    {"5.5", "RFC 8166 section 4.5"},     {"5.5.2", "RFC 8166 section 4.5.2"},
    {"5.6.1", "RFC 8166 section 4.6.1"}, {"5.6.2", "RFC 8166 section 4.6.2"},
    {"8.1.1", "RFC 8166 section 6.1"},
};

}  // namespace

std::string place_of(std::string_view requirement) {
  const std::size_t first = requirement.find('-');
  const std::size_t last = requirement.rfind('-');
  if (requirement.starts_with("R1-")) {
    const auto section =
        std::ranges::find(kVersion1Sections, requirement.substr(first + 1, last - first - 1), &Section::of_id);
    return section == std::end(kVersion1Sections) ? "RFC 8166" : std::string(section->place);
  }
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
