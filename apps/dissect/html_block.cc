#include "apps/dissect/html_block.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "apps/dissect/check.h"
#include "ddp/segment.h"
#include "mpa/fpdu.h"

namespace weft::apps::dissect {

namespace {

// Bits of the column "flags".
enum Flag : unsigned {
  kFromServer = 1,
  kStartup = 2,
  kTerminate = 4,
  kCall = 8,
  kReply = 16,
  kFailed = 32,
  kNoLine = 64,  // a segment that does not complete a message
};

unsigned flags_of(const Frame& frame) {
  const Facts& facts = frame.facts;
  unsigned flags = frame.from == Side::kServer ? kFromServer : 0u;
  if (facts.is_startup) flags |= kStartup;
  if (facts.is_terminate) flags |= kTerminate;
  if (facts.rpc) flags |= facts.rpc->is_reply ? kReply : kCall;
  if (facts.rpc && facts.rpc->failed) flags |= kFailed;
  if (std::ranges::all_of(frame.layers, [](const Layer& layer) { return layer.line.empty(); })) flags |= kNoLine;
  return flags;
}

// -1 for a message without a transport header, -2 for one whose credits are not known.
std::int64_t credits_of(const Frame& frame) {
  constexpr std::int64_t kNoHeader = -1, kUnknown = -2;
  if (frame.facts.credit) return *frame.facts.credit;
  const bool has_header = frame.facts.xid && std::ranges::any_of(frame.layers, [](const Layer& layer) {
                            return layer.kind == LayerKind::kRpcRdma;
                          });
  return has_header ? kUnknown : kNoHeader;
}

// A letter for each layer.
char letter_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::kTcp: return 't';
    case LayerKind::kMpa: return 'm';
    case LayerKind::kDdp: return 'd';
    case LayerKind::kRdmap: return 'r';
    case LayerKind::kRpcRdma: return 'x';
    case LayerKind::kRpc: return 'p';
  }
  return '?';
}

// The front of a text, cut between characters.
std::string front_of(std::string_view text) {
  if (text.size() <= HtmlBlock::kMaxText) return std::string(text);
  std::size_t len = HtmlBlock::kMaxText;
  while (len > 0 && (static_cast<unsigned char>(text[len]) & 0xc0) == 0x80) --len;
  return std::string(text.substr(0, len)) + " ...";
}

bool is_tagged(const Frame& frame) {
  const auto segment = ddp::parse_segment_wire(frame.ulpdu);
  return segment && std::holds_alternative<ddp::TaggedHeader>(segment->header);
}

std::string base64(ConstBytes octets, std::size_t max_len) {
  const ConstBytes kept = octets.first(std::min(octets.size(), max_len));
  const std::string chars(kept.begin(), kept.end());
  return absl::Base64Escape(chars);
}

// Fields that hold an STag are named so: "STag", "Data Sink STag", "Read segment handle".
std::optional<std::uint32_t> stag_in(const Field& field) {
  if (!field.name.ends_with("STag") && !field.name.ends_with("handle")) return std::nullopt;
  if (!field.value.starts_with("0x")) return std::nullopt;
  std::uint32_t stag = 0;
  const char* const end = field.value.data() + field.value.size();
  const auto [behind, error] = std::from_chars(field.value.data() + 2, end, stag, 16);
  if (error != std::errc() || behind != end) return std::nullopt;
  return stag;
}

}  // namespace

std::string html_json(const nlohmann::ordered_json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::size_t HtmlBlock::Strings::index_of(std::string_view text) {
  const auto [place, is_new] = indices_.try_emplace(std::string(text), indices_.size());
  if (is_new) {
    texts_.push_back(text);
    size_ += text.size() + 3;
  }
  return place->second;
}

void HtmlBlock::add_connection(const Connection& connection) {
  connections_.push_back(Json::array({connection.id, connection.client, connection.server, connection.saw_start}));
  size_ += 80;
}

void HtmlBlock::add_end(std::uint32_t connection, const TcpCounters& counters) {
  ends_.push_back(
      Json::array({connection, counters.client.octets, counters.server.octets,
                   counters.client.retransmitted + counters.server.retransmitted,
                   counters.client.out_of_order + counters.server.out_of_order,
                   counters.client.lost + counters.server.lost, counters.client.cut + counters.server.cut}));
  size_ += 80;
}

void HtmlBlock::add_message(const Frame& frame) {
  const Facts& facts = frame.facts;
  // Nanoseconds since 1970 are too long for a number of JavaScript: the first time is text, the others are differences.
  const Timestamp now = frame.arrival.time;
  if (time_.empty()) {
    time_.push_back(std::to_string(now.count()));
  } else {
    // The times of a hostile capture may be far apart: unsigned numbers wrap.
    time_.push_back(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(now.count()) - static_cast<std::uint64_t>(last_.count())));
  }
  last_ = now;
  packet_.push_back(frame.arrival.packet);
  connection_.push_back(frame.connection);
  flags_.push_back(flags_of(frame));
  operation_.push_back(list_strings_.index_of(facts.rdma ? facts.rdma->operation : ""));
  procedure_.push_back(list_strings_.index_of(facts.rpc ? front_of(facts.rpc->procedure) : ""));
  wire_octets_.push_back(frame.wire_len);
  octets_.push_back(facts.rdma ? facts.rdma->octets : 0);
  segments_.push_back(facts.rdma ? facts.rdma->num_segments : 0);
  xid_.push_back(facts.xid ? std::int64_t{*facts.xid} : -1);
  credits_.push_back(credits_of(frame));
  latency_.push_back(facts.rpc && facts.rpc->latency ? std::int64_t{facts.rpc->latency->count()} : -1);
  size_ += 100;
  add_lines(frame);
  add_findings(frame);
  add_details(frame);
}

void HtmlBlock::add_lines(const Frame& frame) {
  std::string letters;
  std::string lines;
  for (const Layer& layer : frame.layers) {
    if (!letters.empty()) lines += '\n';
    letters += letter_of(layer.kind);
    std::string line = front_of(layer.line.str());
    std::ranges::replace(line, '\n', ' ');
    lines += line;
  }
  size_ += lines.size() + 8;
  layers_.push_back(list_strings_.index_of(letters));
  lines_.push_back(std::move(lines));
}

void HtmlBlock::add_findings(const Frame& frame) {
  std::size_t num = 0;
  for (const Finding& finding : frame.findings) {
    if (num++ == kMaxFindings) break;
    findings_.push_back(Json::array({num_messages() - 1, finding.requirement, section_of(finding.requirement),
                                     front_of(finding.what), front_of(finding.effect.text),
                                     static_cast<int>(finding.place.source), finding.place.at, finding.place.len}));
    size_ += 80 + std::min(kMaxText, finding.what.size()) + std::min(kMaxText, finding.effect.text.size());
  }
}

void HtmlBlock::add_details(const Frame& frame) {
  // The octets of the ULPDU and of the message mostly stand in the FPDU, at a place that is told instead.
  const std::size_t max_len = is_tagged(frame) ? kTaggedOctets : kOtherOctets;
  const auto own = [&](ConstBytes of) {
    size_ += std::min(max_len, of.size()) / 3 * 4 + 16;
    return Json::array({of.size(), base64(of, max_len)});
  };
  const bool is_bare = !frame.ulpdu.empty() && frame.ulpdu.data() == frame.wire.data() + mpa::kUlpduLengthLen;
  const bool is_whole = is_bare && frame.message.size() + ddp::kUntaggedHeaderLen == frame.ulpdu.size();
  Json octets = own(frame.wire);
  octets.push_back(is_bare ? Json(mpa::kUlpduLengthLen) : own(frame.ulpdu));
  octets.push_back(is_whole ? Json(mpa::kUlpduLengthLen + ddp::kUntaggedHeaderLen) : own(frame.message));
  Json layers = Json::array();
  std::size_t num_fields = 0;
  Json stags = Json::array();
  for (const Layer& layer : frame.layers) {
    layers.push_back(layer_details(layer, num_fields));
    for (const Field& field : layer.fields) {
      const auto stag = stag_in(field);
      if (stag && stags.size() < kMaxStags) stags.push_back(*stag);
    }
  }
  if (!stags.empty()) {
    size_ += 12 * stags.size();
    stags_.push_back(Json::array({num_messages() - 1, std::move(stags)}));
  }
  messages_.push_back(Json::array({std::move(octets), std::move(layers)}));
}

// Messages of a kind have the same fields at the same places: their shape. It is written once.
HtmlBlock::Json HtmlBlock::layer_details(const Layer& layer, std::size_t& num_fields) {
  std::string shape;
  Json details = Json::array({0});
  for (const Field& field : layer.fields) {
    if (num_fields++ >= kMaxFields) break;
    shape += fmt::format("{}\t{}\t{}\t{}\n", field.name, static_cast<int>(field.source), field.at, field.len);
    details.push_back(detail_strings_.index_of(front_of(field.value)));
    size_ += 10;
  }
  details[0] = shapes_.index_of(shape);
  return details;
}

std::string HtmlBlock::list() const {
  return html_json({{"connections", connections_},
                    {"ends", ends_},
                    {"strings", list_strings_.texts()},
                    {"time", time_},
                    {"packet", packet_},
                    {"connection", connection_},
                    {"flags", flags_},
                    {"layers", layers_},
                    {"lines", lines_},
                    {"operation", operation_},
                    {"procedure", procedure_},
                    {"wire_octets", wire_octets_},
                    {"octets", octets_},
                    {"segments", segments_},
                    {"xid", xid_},
                    {"credits", credits_},
                    {"latency", latency_},
                    {"stags", stags_},
                    {"findings", findings_}});
}

std::string HtmlBlock::details() const {
  return html_json({{"strings", detail_strings_.texts()}, {"shapes", shapes_.texts()}, {"messages", messages_}});
}

}  // namespace weft::apps::dissect
