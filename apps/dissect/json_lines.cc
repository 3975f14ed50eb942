#include "apps/dissect/json_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/dissect/check.h"

namespace weft::apps::dissect {

namespace {

using Json = nlohmann::ordered_json;

std::string_view source_str(Source source) {
  switch (source) {
    case Source::kWire: return "fpdu";
    case Source::kUlpdu: return "ulpdu";
    case Source::kMessage: return "message";
  }
  return "";
}

std::string_view use_str(Use use) {
  switch (use) {
    case Use::kCall: return "call";
    case Use::kArgument: return "argument";
    case Use::kResult: return "result";
    case Use::kReply: return "reply";
  }
  return "";
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

void append_hex(ConstBytes octets, std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const std::uint8_t octet : octets) {
    text += kDigits[octet >> 4];
    text += kDigits[octet & 0x0f];
  }
}

std::string hex(ConstBytes octets) {
  std::string text;
  append_hex(octets, text);
  return text;
}

Json served_of(const ServedCall& served) {
  Json object = {{"xid", served.xid}, {"use", use_str(served.use)}};
  if (served.use == Use::kArgument || served.use == Use::kResult) object["index"] = served.index;
  if (served.took) object["took_ns"] = served.took->count();
  return object;
}

void add_facts(const Facts& facts, Json& object) {
  if (facts.is_startup) object["startup"] = true;
  if (facts.is_terminate) object["terminate"] = true;
  if (facts.verdict) object["verdict"] = verdict_str(*facts.verdict);
  if (facts.rdma) {
    object["operation"] = facts.rdma->operation;
    object["octets"] = facts.rdma->octets;
    object["fpdus"] = facts.rdma->num_segments;
  }
  if (facts.xid) object["xid"] = *facts.xid;
  if (facts.credit) object["credits"] = *facts.credit;
  if (facts.served) object["serves"] = served_of(*facts.served);
  if (!facts.rpc) return;
  object["rpc"] = facts.rpc->is_reply ? "reply" : "call";
  object["procedure"] = facts.rpc->procedure;
  if (facts.rpc->is_reply) object["failed"] = facts.rpc->failed;
  if (facts.rpc->truncated) object["truncated"] = true;
  if (facts.rpc->latency) object["latency_ns"] = facts.rpc->latency->count();
}

Json violation_of(const Frame& frame, const Finding& finding) {
  const ConstBytes octets = octets_at(frame, finding.place);
  Json object = {{"requirement", finding.requirement},
                 {"section", section_of(finding.requirement)},
                 {"what", finding.what},
                 {"effect", finding.effect.text},
                 {"by", side_str(culprit(frame, finding))},
                 {"source", source_str(finding.place.source)},
                 {"offset", finding.place.at},
                 {"octets", finding.place.len},
                 {"hex", hex(octets.first(std::min(octets.size(), JsonLines::kMaxFindingHex)))}};
  if (finding.is_blame) object["told_by"] = side_str(frame.from);
  if (finding.verdict) object["verdict"] = verdict_str(*finding.verdict);
  if (finding.confirms) object["confirms_frame"] = finding.confirms->frame;
  return object;
}

// The value is a number where it is one; its text says more if it differs.
Json object_of(const Field& field) {
  Json object = {{"name", field.name}};
  if (field.number) {
    object["value"] = *field.number;
    if (std::to_string(*field.number) != field.value) object["text"] = field.value;
  } else {
    object["value"] = field.value;
  }
  object["source"] = source_str(field.source);
  object["offset"] = field.at;
  object["octets"] = field.len;
  return object;
}

Json counters_of(const TcpHalf::Counters& counters) {
  return {{"octets", counters.octets},
          {"retransmitted_segments", counters.retransmitted},
          {"out_of_order_segments", counters.out_of_order},
          {"lost_octets", counters.lost},
          {"cut_octets", counters.cut}};
}

// Where `part` stands in `whole`. Empty: elsewhere, as octets between Markers or in several FPDUs.
std::optional<std::size_t> place_in(ConstBytes whole, ConstBytes part) {
  const std::less_equal<const std::uint8_t*> not_behind;
  const bool is_inside =
      not_behind(whole.data(), part.data()) && not_behind(part.data() + part.size(), whole.data() + whole.size());
  return is_inside ? std::optional(static_cast<std::size_t>(part.data() - whole.data())) : std::nullopt;
}

}  // namespace

void JsonLines::put(std::string_view text) {
  constexpr std::size_t kEnough = 1 << 16;
  text_ += text;
  if (text_.size() < kEnough) return;
  std::fwrite(text_.data(), 1, text_.size(), out_);
  text_.clear();
}

void JsonLines::end_line() {
  text_ += '\n';
  std::fwrite(text_.data(), 1, text_.size(), out_);
  text_.clear();
}

void JsonLines::on_connection(const Connection& connection) {
  ++num_connections_;
  put(dump({{"connection", connection.id},
            {"client", connection.client},
            {"server", connection.server},
            {"from_the_start", connection.saw_start}}));
  end_line();
}

// A message of 1 MiB has many fields: they are written one by one.
void JsonLines::on_frame(const Frame& frame) {
  ++num_frames_;
  Json object = {{"frame", frame.number},
                 {"packet", frame.arrival.packet},
                 {"time_ns", frame.arrival.time.count()},
                 {"connection", frame.connection},
                 {"from", side_str(frame.from)},
                 {"fpdu_octets", frame.wire_len},
                 {"captured_octets", frame.wire.size()}};
  add_facts(frame.facts, object);
  if (!frame.findings.empty()) {
    Json& violations = object["violations"] = Json::array();
    for (const Finding& finding : frame.findings) violations.push_back(violation_of(frame, finding));
    num_violations_ += num_violations(frame);
  }
  std::string begin = dump(object);
  begin.pop_back();  // "}"
  put(begin);
  put_layers(frame);
  put_octets(frame);
  put("}");
  end_line();
}

void JsonLines::put_layers(const Frame& frame) {
  std::size_t num_fields = 0;
  put(",\"layers\":[");
  for (const Layer& layer : frame.layers) {
    std::string begin = dump({{"layer", layer_str(layer.kind)}, {"text", layer.line.str()}});
    begin.back() = ',';
    put(&layer == frame.layers.begin() ? "" : ",");
    put(begin);
    put("\"fields\":[");
    for (const Field& field : layer.fields) {
      if (num_fields++ >= kMaxFields) continue;
      put(&field == layer.fields.data() ? "" : ",");
      put(dump(object_of(field)));
    }
    put("]}");
  }
  put("]");
  if (num_fields > kMaxFields) put(",\"fields_left_out\":" + std::to_string(num_fields - kMaxFields));
}

// The octets of the ULPDU and of the message stand in the FPDU mostly, at a place that is told instead.
void JsonLines::put_octets(const Frame& frame) {
  put_hex("fpdu_hex", frame.wire);
  const auto put_part = [&](ConstBytes part, std::string_view at_key, std::string_view hex_key) {
    if (part.empty()) return;
    const auto at = place_in(frame.wire, part);
    if (!at) return put_hex(hex_key, part);
    put(",\"" + std::string(at_key) + "\":" + std::to_string(*at));
  };
  put_part(frame.ulpdu, "ulpdu_at", "ulpdu_hex");
  put_part(frame.message, "message_at", "message_hex");
}

void JsonLines::put_hex(std::string_view key, ConstBytes octets) {
  constexpr std::size_t kPiece = 1 << 14;
  put(",\"" + std::string(key) + "\":\"");
  for (ConstBytes rest = octets; !rest.empty();) {
    const std::size_t len = std::min(rest.size(), kPiece);
    append_hex(rest.first(len), text_);
    put("");
    rest = rest.subspan(len);
  }
  put("\"");
}

void JsonLines::on_connection_end(std::uint32_t connection, const TcpCounters& counters) {
  put(dump({{"connection_end", connection},
            {"client_tcp", counters_of(counters.client)},
            {"server_tcp", counters_of(counters.server)}}));
  end_line();
}

void JsonLines::on_comment(const Comment& comment) {
  put(dump({{"comment", comment.text},
            {"packet", comment.arrival.packet},
            {"time_ns", comment.arrival.time.count()},
            {"connection", comment.connection},
            {"from", side_str(comment.from)}}));
  end_line();
}

void JsonLines::on_unjudged(const Unjudged& unjudged) {
  put(dump({{"unjudged",
             {{"connection", unjudged.connection},
              {"packet", unjudged.packet},
              {"what", unjudged.what},
              {"why", unjudged.why}}}}));
  end_line();
}

void JsonLines::on_capture_end(const CaptureEnd& end) {
  Json totals = {{"packets", end.packets},
                 {"unread_packets", end.unread_packets},
                 {"dropped_packets", end.dropped_packets},
                 {"tcp_segments", end.tcp_segments},
                 {"ip_fragments", end.fragments},
                 {"connections", num_connections_},
                 {"given_up_connections", end.given_up},
                 {"frames", num_frames_},
                 {"violations", num_violations_}};
  if (!end.error.empty()) totals["error"] = end.error;
  put(dump({{"capture_end", std::move(totals)}}));
  end_line();
}

}  // namespace weft::apps::dissect
