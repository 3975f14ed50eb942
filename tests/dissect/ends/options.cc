#include "tests/dissect/ends/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>
#include <stdexcept>

namespace weft::ends {
namespace {

// The parts of NAME:FIELD:...:FIELD. The last one may hold colons.
std::vector<std::string> split(const std::string& text, std::size_t most) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':' && parts.size() < most) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::uint64_t hex(const std::string& text) {
  return std::stoull(text, nullptr, 16);
}

std::uint32_t stag(const std::string& text) {
  return static_cast<std::uint32_t>(hex(text));
}

Memory memory_of(const std::string& text) {
  static const std::map<std::string, Rights> kRights = {
      {"read", Rights::kRead}, {"write", Rights::kWrite}, {"sink", Rights::kSink}, {"foreign", Rights::kForeign}};
  const auto parts = split(text, 3);
  return {stag(parts.at(0)), hex(parts.at(1)), kRights.at(parts.at(2))};
}

Step step_of(const std::string& text) {
  const std::string name = split(text, 2).front();
  const auto parts = split(text, name == "send" ? 2 : 4);
  if (name == "receive") return {.kind = Step::Kind::kReceive};
  if (name == "done") return {.kind = Step::Kind::kDone};
  if (name == "send") return {.kind = Step::Kind::kSend, .text = parts.at(1)};
  if (name == "write") {
    return {.kind = Step::Kind::kWrite, .text = parts.at(3), .stag = stag(parts.at(1)), .to = hex(parts.at(2))};
  }
  if (name == "read") {
    return {.kind = Step::Kind::kRead, .stag = stag(parts.at(1)), .to = hex(parts.at(2)), .sink = hex(parts.at(3))};
  }
  throw std::invalid_argument("no such step");
}

template <typename Value, typename Parse>
void read_all(const std::vector<std::string>& texts, std::vector<Value>& out, Parse parse) {
  for (const std::string& text : texts) {
    try {
      out.push_back(parse(text));
    } catch (const std::exception& e) {
      throw CLI::ValidationError(text, e.what());
    }
  }
}

}  // namespace

Options parse(int argc, char** argv) {
  Options options;
  std::vector<std::string> memory, steps;
  CLI::App app("One end of one iWARP connection, whose STags, addresses and actions are given.");
  app.add_flag("--listen", options.listen, "wait for the connection; prints its port");
  app.add_option("--trace", options.trace, "write the messages as a capture")->required();
  app.add_option("--ird", options.ird, "RDMA Reads of the peer at once");
  app.add_option("--ord", options.ord, "RDMA Reads of this end at once");
  app.add_option("--receives", options.receives, "number of Receives; a used one is not replaced");
  app.add_option("--receive-len", options.receive_len, "bytes of a Receive");
  app.add_flag("--markers", options.markers, "ask the peer for Markers");
  app.add_option("--max-fpdu", options.max_fpdu, "the largest FPDU to send");
  app.add_option("--memory", memory, "STAG:ADDRESS:read|write|sink|foreign, 64 bytes; numbers are hexadecimal")
      ->allow_extra_args(false);
  app.add_option("address", options.address)->required();
  app.add_option("port", options.port)->required();
  app.add_option("steps", steps, "receive, done, send:TEXT, write:STAG:TO:TEXT, read:STAG:TO:SINK (16 bytes)");
  try {
    app.parse(argc, argv);
    read_all(memory, options.memory, memory_of);
    read_all(steps, options.steps, step_of);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  return options;
}

}  // namespace weft::ends
