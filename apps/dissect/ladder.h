#pragma once

#include <cstdint>
#include <cstdio>
#include <map>

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// Ladder draws each message as an arrow between two lines: the client's at the left, the server's at the right.
class Ladder final : public Listener {
 public:
  explicit Ladder(std::FILE* out) : out_(out) {}

  void on_connection(const Connection& connection) override;
  void on_frame(const Frame& frame) override;
  void on_connection_end(std::uint32_t connection, const TcpCounters&) override { last_.erase(connection); }

 private:
  std::FILE* out_;
  std::map<std::uint32_t, Timestamp> last_;  // of each open connection
  std::uint32_t shown_ = 0;                  // the connection of the last arrow
};

}  // namespace weft::apps::dissect
