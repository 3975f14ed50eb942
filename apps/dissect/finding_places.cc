#include "apps/dissect/finding_places.h"

#include <algorithm>
#include <optional>

namespace weft::apps::dissect {

namespace {

// Of which kind of DDP segment a row speaks.
enum class Model : std::uint8_t { kAny, kTagged, kUntagged };

// kToEnd: up to the end of the octets that the row counts in.
constexpr std::uint32_t kToEnd = UINT32_MAX;

struct PlaceRow {
  std::string_view requirement;
  Place place;
  Model model = Model::kAny;
};

constexpr Place startup(std::uint32_t at, std::uint32_t len) {
  return {Source::kWire, at, len};
}
constexpr Place segment(std::uint32_t at, std::uint32_t len) {
  return {Source::kUlpdu, at, len};
}
constexpr Place message(std::uint32_t at, std::uint32_t len) {
  return {Source::kMessage, at, len};
}

constexpr Place kKey = startup(0, 16), kFlags = startup(16, 1), kRev = startup(17, 1), kPdLength = startup(18, 2);
constexpr Place kIrdAndOrd = startup(20, 4), kOrd = startup(22, 2);
constexpr Place kDdpControl = segment(0, 1), kRdmapControl = segment(1, 1);
constexpr Place kStag = segment(2, 4), kTo = segment(6, 8), kStagAndTo = segment(2, 12);
constexpr Place kRsvdUlp = segment(2, 4), kQn = segment(6, 4), kMsn = segment(10, 4), kMo = segment(14, 4);
constexpr Place kMessage = message(0, kToEnd);
constexpr Place kSourceStag = message(16, 4), kSourceTo = message(20, 8);
constexpr Place kAtomicTo = message(12, 8);
constexpr Place kXid = message(0, 4), kVersion = message(4, 4), kCredit = message(8, 4), kType = message(12, 4);
constexpr Place kXidAndVersion = message(0, 8), kDirection = message(16, 4);

// Rules whose checks do not say the octets themselves.
constexpr PlaceRow kPlaceRows[] = {
    {"MPA-7.1.2-15", kKey},
    {"MPA-7.1.2-18", kKey},
    {"MPA-7.1.1-11", kFlags},
    {"MPA-7.1.1-13", kFlags},
    {"MPA2-10-01", kFlags},
    {"MPA2-10-02", kFlags},
    {"MPA-7.1.1-16", kRev},
    {"MPA-7.1.1-17", kRev},
    {"MPA-7.1.1-22", kPdLength},
    {"MPA2-9.2-04", kIrdAndOrd},
    {"MPA2-9.2-08", kIrdAndOrd},
    {"MPA2-9.2-12", kIrdAndOrd},
    {"MPA2-9.1-09", kOrd},
    {"DDP-4.1-10", kDdpControl},
    {"DDP-7.2-07", kDdpControl},
    {"DDP-7.2-13", kDdpControl},
    {"RDMAP-4.1-09", kRdmapControl},
    {"RDMAP-7.2-02", kRdmapControl},
    {"RDMAP-7.2-03", kRdmapControl},
    {"RDMAP-5.2.2-05", kRdmapControl},
    {"RDMAP-5.4-09", kRdmapControl},
    {"DDP-4.2-08", kStag, Model::kTagged},
    {"DDP-5.2-09", kTo, Model::kTagged},
    {"DDP-7.1-11", kStag, Model::kTagged},
    {"DDP-7.1-14", kTo, Model::kTagged},
    {"DDP-7.1-15", kTo, Model::kTagged},
    {"DDP-5.3-02", kTo, Model::kTagged},
    {"RDMAP-5.2.2-08", kStagAndTo, Model::kTagged},
    {"DDP-4.3-05", kRsvdUlp, Model::kUntagged},
    {"RDMAP-4.1-11", kRsvdUlp, Model::kUntagged},
    {"EXT-4.1-07", kRsvdUlp, Model::kUntagged},
    {"R2-7.2.3-3", kRsvdUlp, Model::kUntagged},
    {"R2-7.2.3-4", kRsvdUlp, Model::kUntagged},
    {"W2-6.5-2", kRsvdUlp, Model::kUntagged},
    {"R1-4.3.2-16", kRsvdUlp, Model::kUntagged},
    {"R1-4.3.2-17", kRsvdUlp, Model::kUntagged},
    {"DDP-7.1-01", kQn, Model::kUntagged},
    {"DDP-7.1-02", kMsn, Model::kUntagged},
    {"DDP-7.1-09", kMsn, Model::kUntagged},
    {"DDP-5.3-02", kMo, Model::kUntagged},
    {"DDP-7.1-07", kMo, Model::kUntagged},
    {"RDMAP-4.4-01", kMessage},
    {"DDP-7.1-08", kMessage},
    {"EXT-4.2-01", kMessage},
    {"EXT-5.2.2-06", kMessage},
    {"EXT-6.3-04", kMessage},
    {"RDMAP-7.2-06", kSourceStag},
    {"RDMAP-7.2-08", kSourceTo},
    {"RDMAP-7.2-09", kSourceTo},
    {"EXT-5.1.1-04", kAtomicTo},
    {"EXT-5.1.2-04", kAtomicTo},
    {"EXT-5.2.1-13", message(0, 4)},
    {"EXT-5.2.1-05", message(0, 4)},
    {"R1-3.1.2-01", kXid},
    {"R1-5.5-04", kXid},
    {"R2-6.3.3-2", kXid},
    {"W2-6.3.2-1", kXid},
    {"W2-7-2", kXidAndVersion},
    {"R1-5.5-05", kVersion},
    {"R2-8.3-1", kVersion},
    {"R2-7.2.2-10", kCredit},
    {"W2-4.2.1-8", kCredit},
    {"W2-4.2.1-10", kCredit},
    {"W2-7.1.3-2", kType},
    {"R2-7.2.2-5", kDirection},
    {"R1-5.2.1-01", kXid},
    {"W2-7.2-1", kXid},
    {"R1-5.2.2-01", kVersion},
    {"R2-7.2.4-8", kVersion},
    {"W2-7.1.1-1", kVersion},
    {"R1-4.3.1-04", kCredit},
    {"R1-4.3.1-05", kCredit},
    {"R1-5.2.4-02", kType},
    {"R1-5.2.4-03", kType},
    {"R1-5.5.2-02", kType},
    {"R1-5.6.1-01", kType},
    {"R1-5.6.2-01", kType},
    {"R2-7.2.4-4", kType},
    {"W2-7.1.3-1", kType},
};

// Rules about the chunk lists of an RPC-over-RDMA header, which stand behind its fixed words.
constexpr std::string_view kListRules[] = {
    "R1-4.4.4.1-03", "R1-4.4.5-05",  "R1-4.4.6-04",    "R1-4.4.6-05", "R1-4.4.6-09", "R1-4.4.6.1-02", "R1-4.4.6.1-03",
    "R1-4.5.3-09",   "R1-10.2.2-01", "R1-10.2.2.3-01", "R1-5.3-01",   "R1-5.3.1-02", "R1-5.3.3-05",   "R1-5.5-02",
    "R1-8.1.1-01",   "R1-8.1.1-03",  "R1-8.1.1-04",    "W2-4.4.2-1",  "W2-4.5.1-2",  "W2-4.5.2.1-2",  "W2-4.5.2.4-2",
    "W2-4.5.3-1",    "W2-4.5.3.1-2", "W2-6.3.8-2",     "W2-6.6.1-1",  "W2-11.2.2-1", "W2-11.2.2.3-1", "W2-A.1-1",
};
// Rules about the STag that a Call of version 2 names. It is the last word before the chunk lists.
constexpr std::string_view kNamedStagRules[] = {"R2-7.2.3-1", "W2-6.5-1"};
constexpr std::uint32_t kListsAt = 16;  // of version 1, whose header may have a fault
constexpr std::uint32_t kErrorAt = 16;  // the error code of an RPC-over-RDMA error, and what goes with it

bool suits(Model model, const Frame& frame) {
  constexpr std::uint8_t kTaggedBit = 0x80;
  if (model == Model::kAny) return true;
  if (frame.ulpdu.empty()) return false;
  return ((frame.ulpdu.front() & kTaggedBit) != 0) == (model == Model::kTagged);
}

// A rule without a row is about the header of RPC-over-RDMA, if the message has one.
std::optional<Place> place_in_header(std::string_view requirement, const Facts& facts) {
  const auto is_one_of = [requirement](const auto& rules) {
    return std::ranges::find(rules, requirement) != std::end(rules);
  };
  const std::uint32_t end = facts.header_len;
  if (is_one_of(kListRules)) {
    const std::uint32_t at = end == 0 ? kListsAt : facts.lists_at;
    return message(at, end == 0 ? kToEnd : end - std::min(at, end));
  }
  if (is_one_of(kNamedStagRules)) return message(facts.lists_at - 4, 4);
  const bool is_about_header =
      requirement.starts_with("R1-") || requirement.starts_with("R2-") || requirement.starts_with("W2-");
  if (!is_about_header || end == 0) return std::nullopt;
  return facts.is_rpcrdma_error ? message(kErrorAt, end - std::min(kErrorAt, end)) : message(0, end);
}

std::optional<Place> place_of_rule(std::string_view requirement, const Frame& frame) {
  for (const PlaceRow& row : kPlaceRows) {
    if (row.requirement == requirement && suits(row.model, frame)) return row.place;
  }
  return place_in_header(requirement, frame.facts);
}

}  // namespace

void place_findings(Frame& frame) {
  for (Finding& finding : frame.findings) {
    if (finding.place.len == 0) {
      if (const auto place = place_of_rule(finding.requirement, frame)) finding.place = *place;
    }
    // What the capture has of it; or all of the frame that it has.
    const std::size_t len = octets_at(frame, finding.place).size();
    if (len == 0) {
      finding.place = {Source::kWire, 0, static_cast<std::uint32_t>(frame.wire.size())};
    } else {
      finding.place.len = static_cast<std::uint32_t>(len);
    }
  }
}

}  // namespace weft::apps::dissect
