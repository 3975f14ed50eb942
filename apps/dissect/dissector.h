#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "apps/dissect/connection_decoder.h"
#include "apps/dissect/frame.h"
#include "apps/dissect/tcp_segment.h"

namespace weft::apps::dissect {

// Dissector takes the TCP segments of a capture in its order and tells its Listener of the iWARP connections in it. It
// holds at most kMaxConnections; then it forgets the half of them without traffic for the longest time. Of connections
// that have ended, it holds the last kMaxEnded: a packet of theirs that comes late begins no connection.
class Dissector {
 public:
  static constexpr std::size_t kMaxConnections = 65536;
  static constexpr std::size_t kMaxEnded = 256;

  // listener outlives the Dissector. max_connections: for tests.
  Dissector(const Options& options, Listener& listener, std::size_t max_connections = kMaxConnections);
  Dissector(const Dissector&) = delete;
  Dissector& operator=(const Dissector&) = delete;
  ~Dissector();

  void on_segment(const TcpSegment& segment);
  // The capture ends.
  void finish();

  // iWARP connections so far.
  std::uint32_t num_connections() const { return numbers_.connections; }
  // Those of them that were given up, since more than kMaxConnections were open at once.
  std::uint64_t num_given_up() const { return num_given_up_; }

 private:
  // The two ends, the lesser one first.
  using Key = std::pair<IpEndpoint, IpEndpoint>;

  void drop_oldest();
  void on_end(const Key& key);

  Options options_;
  Listener& listener_;
  const std::size_t max_connections_;
  Held held_;
  Numbers numbers_;
  std::uint64_t num_given_up_ = 0;
  std::map<Key, std::unique_ptr<ConnectionDecoder>> connections_;
  std::deque<Key> ended_;  // the oldest first
  // The connection of the last segment: the next one is likely of it, too. Null: none.
  const Key* last_key_ = nullptr;
  ConnectionDecoder* last_ = nullptr;
};

}  // namespace weft::apps::dissect
