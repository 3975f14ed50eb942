#include "apps/dissect/json_lines.h"

#include <nlohmann/json.hpp>
#include <string>

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

Json fields_of(const Layer& layer) {
  Json fields = Json::array();
  for (const Field& field : layer.fields) {
    fields.push_back({{"name", field.name},
                      {"value", field.value},
                      {"source", source_str(field.source)},
                      {"offset", field.at},
                      {"octets", field.len}});
  }
  return fields;
}

Json layers_of(const Frame& frame) {
  Json layers = Json::array();
  for (const Layer& layer : frame.layers) {
    layers.push_back({{"layer", layer_str(layer.kind)}, {"text", layer.line}, {"fields", fields_of(layer)}});
  }
  return layers;
}

void add_facts(const Facts& facts, Json& object) {
  if (facts.rdma) {
    object["operation"] = facts.rdma->operation;
    object["octets"] = facts.rdma->octets;
    object["fpdus"] = facts.rdma->num_segments;
  }
  if (facts.xid) object["xid"] = *facts.xid;
  if (facts.credit) object["credits"] = *facts.credit;
  if (!facts.rpc) return;
  object["rpc"] = facts.rpc->is_reply ? "reply" : "call";
  object["procedure"] = facts.rpc->procedure;
  if (facts.rpc->latency) object["latency_ns"] = facts.rpc->latency->count();
}

Json counters_of(const TcpHalf::Counters& counters) {
  return {{"octets", counters.octets},
          {"retransmitted_segments", counters.retransmitted},
          {"out_of_order_segments", counters.out_of_order},
          {"lost_octets", counters.lost},
          {"cut_octets", counters.cut}};
}

void write(const Json& object, std::FILE* out) {
  const std::string line = object.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  std::fwrite(line.data(), 1, line.size(), out);
}

}  // namespace

void JsonLines::on_connection(const Connection& connection) {
  write({{"connection", connection.id},
         {"client", connection.client},
         {"server", connection.server},
         {"from_the_start", connection.saw_start}},
        out_);
}

void JsonLines::on_frame(const Frame& frame) {
  Json object = {{"frame", frame.number},
                 {"packet", frame.arrival.packet},
                 {"time_ns", frame.arrival.time.count()},
                 {"connection", frame.connection},
                 {"from", frame.from == Side::kClient ? "client" : "server"},
                 {"fpdu_octets", frame.wire.size()}};
  add_facts(frame.facts, object);
  object["layers"] = layers_of(frame);
  Json violations = Json::array();
  for (const Finding& finding : frame.findings) {
    violations.push_back({{"requirement", finding.requirement}, {"what", finding.what}});
  }
  if (!violations.empty()) object["violations"] = std::move(violations);
  write(object, out_);
}

void JsonLines::on_connection_end(std::uint32_t connection, const TcpCounters& counters) {
  write({{"connection_end", connection},
         {"client_tcp", counters_of(counters.client)},
         {"server_tcp", counters_of(counters.server)}},
        out_);
}

}  // namespace weft::apps::dissect
