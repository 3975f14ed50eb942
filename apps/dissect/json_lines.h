#pragma once

#include <cstdio>

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// JsonLines writes each connection and each frame as one JSON object in a line, with every field.
class JsonLines final : public Listener {
 public:
  explicit JsonLines(std::FILE* out) : out_(out) {}

  void on_connection(const Connection& connection) override;
  void on_frame(const Frame& frame) override;
  void on_connection_end(std::uint32_t connection, const TcpCounters& counters) override;

 private:
  std::FILE* out_;
};

}  // namespace weft::apps::dissect
