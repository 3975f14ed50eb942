#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// Printer writes one line for each message, indented by layer; with fields, every field and its octets as well.
class Printer final : public Listener {
 public:
  struct Config {
    bool fields = false;
    bool color = false;
    bool live = false;  // write each frame at once
  };
  Printer(std::FILE* out, const Config& config) : out_(out), config_(config) {}
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;
  ~Printer() override { flush(); }

  void on_connection(const Connection& connection) override;
  void on_frame(const Frame& frame) override;
  void on_connection_end(std::uint32_t, const TcpCounters&) override {}
  void on_comment(const Comment& comment) override;

 private:
  void make_prefix(std::uint32_t connection, Side from, const Arrival& arrival);
  void end_message();
  void print_line(std::string_view line, std::size_t depth);
  void print_layer(const Frame& frame, const Layer& layer, std::size_t depth);
  void print_fields(const Frame& frame, const Layer& layer, std::size_t depth);

  std::FILE* out_;
  Config config_;
  void flush();

  // Prefix: what stands before each line of a message.
  struct Prefix {
    std::uint32_t connection = 0;
    Side from = Side::kClient;
    Timestamp time{};
    friend bool operator==(const Prefix&, const Prefix&) = default;
  };

  std::optional<Timestamp> first_;
  // Of prefix_words_, and then blanks: a line begins with a move of its first octets, however long it is.
  static constexpr std::size_t kMoved = 48;
  std::string prefix_;
  std::size_t prefix_len_ = 0;  // without the blanks
  Prefix prefix_words_;
  Line text_;  // not written yet
};

}  // namespace weft::apps::dissect
