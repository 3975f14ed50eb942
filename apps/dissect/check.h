#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// Check prints each violation: the rule, where it stands, the octets, and what a receiver does.
class Check final : public Listener {
 public:
  explicit Check(std::FILE* out) : out_(out) {}

  void on_connection(const Connection& connection) override;
  void on_frame(const Frame& frame) override;
  void on_connection_end(std::uint32_t, const TcpCounters&) override {}
  void on_unjudged(const Unjudged& unjudged) override;
  void on_capture_end(const CaptureEnd& end) override;

  std::uint64_t num_violations() const { return num_violations_; }
  std::uint64_t num_connections() const { return num_connections_; }

 private:
  static constexpr std::size_t kMaxUnjudged = 16;  // connections that are named

  void tell_place(const Frame& frame, const Place& place);

  std::FILE* out_;
  std::vector<Unjudged> unjudged_;
  std::uint64_t num_unjudged_ = 0;
  std::uint64_t num_violations_ = 0;
  std::uint64_t num_frames_ = 0;
  std::uint64_t num_connections_ = 0;
};

// section_of says where a requirement stands: "RFC 5041 section 7.1" for "DDP-7.1-09". Empty for an unknown document.
std::string section_of(std::string_view requirement);

}  // namespace weft::apps::dissect
