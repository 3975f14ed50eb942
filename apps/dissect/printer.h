#pragma once

#include <cstdio>
#include <map>
#include <optional>

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// Printer writes one line for each message, indented by layer; with fields, every field and its octets as well.
class Printer final : public Listener {
 public:
  struct Config {
    bool fields = false;
    bool color = false;
  };
  Printer(std::FILE* out, const Config& config) : out_(out), config_(config) {}

  void on_connection(const Connection& connection) override;
  void on_frame(const Frame& frame) override;
  void on_connection_end(std::uint32_t, const TcpCounters&) override {}

 private:
  void print_layer(const Frame& frame, const Layer& layer, int depth);
  void print_fields(const Frame& frame, const Layer& layer, int depth);

  std::FILE* out_;
  Config config_;
  std::optional<Timestamp> first_;
  std::string line_;
};

}  // namespace weft::apps::dissect
