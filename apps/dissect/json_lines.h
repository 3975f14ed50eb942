#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// JsonLines writes each connection and each frame as one JSON object in a line, with every field, and one line at the
// end of the capture. docs/dissect.md lists the keys. It holds a part of a line. An error stays with the stream
// (ferror).
class JsonLines final : public Listener {
 public:
  static constexpr std::size_t kMaxFields = 16384;    // of a frame; the others are counted
  static constexpr std::size_t kMaxFindingHex = 256;  // octets of a violation's place

  explicit JsonLines(std::FILE* out) : out_(out) {}

  void on_connection(const Connection& connection) override;
  void on_frame(const Frame& frame) override;
  void on_connection_end(std::uint32_t connection, const TcpCounters& counters) override;
  void on_comment(const Comment& comment) override;
  void on_unjudged(const Unjudged& unjudged) override;
  void on_capture_end(const CaptureEnd& end) override;

 private:
  void put(std::string_view text);
  void put_layers(const Frame& frame);
  void put_octets(const Frame& frame);
  void put_hex(std::string_view key, ConstBytes octets);
  void end_line();

  std::FILE* out_;
  std::string text_;  // not written yet
  std::uint64_t num_frames_ = 0, num_connections_ = 0, num_violations_ = 0;
};

}  // namespace weft::apps::dissect
