#include "apps/dissect/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/common/output.h"
#include "apps/common/say.h"

namespace weft::apps::dissect {

namespace {

constexpr std::size_t kMaxFrameHex = 48;  // octets of a frame that are printed

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

std::string_view source_name(const Frame& frame, Source source) {
  switch (source) {
    case Source::kWire: return frame.ulpdu.empty() ? "frame" : "FPDU";
    case Source::kUlpdu: return "ULPDU";
    case Source::kMessage: return "message";
  }
  return "";
}

}  // namespace

std::string section_of(std::string_view requirement) {
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
  num_violations_ += dissect::num_violations(frame);
  for (const Finding& finding : frame.findings) {
    const Side side = culprit(frame, finding);
    say(out_, "packet {}, connection {}, {}{}: {} ({}): {}\n", frame.arrival.packet, frame.connection, side_str(side),
        finding.is_blame ? fmt::format(" (the {} says so)", side_str(other(side))) : "", finding.requirement,
        section_of(finding.requirement), finding.what);
    if (finding.is_blame && finding.verdict == Verdict::kUnseen) {
      say(out_, "    the capture neither confirms nor refutes it\n");
    }
    if (finding.confirms) {
      say(out_, "    the same violation as that of packet {}, and not counted again\n", finding.confirms->packet);
    }
    if (!finding.effect.text.empty()) say(out_, "    {}\n", finding.effect.text);
    tell_place(frame, finding.place);
  }
}

// "    ULPDU [10:4] 00 00 00 03": the octets that break the rule, and how far from the start they are.
void Check::tell_place(const Frame& frame, const Place& place) {
  const ConstBytes octets = octets_at(frame, place);
  if (octets.empty()) return;
  std::string hex;
  for (const std::uint8_t octet : octets.first(std::min(octets.size(), kMaxFrameHex))) {
    fmt::format_to(std::back_inserter(hex), " {:02x}", octet);
  }
  say(out_, "    {} [{}:{}]{}{}\n", source_name(frame, place.source), place.at, place.len, hex,
      octets.size() > kMaxFrameHex ? " ..." : "");
}

void Check::on_unjudged(const Unjudged& unjudged) {
  if (num_unjudged_++ < kMaxUnjudged) unjudged_.push_back(unjudged);
}

void Check::on_capture_end(const CaptureEnd&) {
  for (const Unjudged& one : unjudged_) {
    say(out_, "connection {}: {} are not judged from packet {} on: {}\n", one.connection, one.what, one.packet,
        one.why);
  }
  if (num_unjudged_ > unjudged_.size()) {
    say(out_, "and {} more lines about rules that are not judged\n", num_unjudged_ - unjudged_.size());
  }
  say(out_, "{} in {} of {}\n", counted(num_violations_, "violation"), counted(num_frames_, "MPA frame"),
      counted(num_connections_, "iWARP connection"));
}

}  // namespace weft::apps::dissect
