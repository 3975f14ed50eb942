#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "apps/dissect/frame.h"
#include "apps/dissect/html_block.h"

namespace weft::apps::dissect {

// HtmlPage writes one HTML page that shows everything and loads nothing. The style and the script come from html/;
// blocks of messages follow as they come. It holds one block. An error stays with the stream (ferror).
class HtmlPage final : public Listener {
 public:
  // Limits of a page that a browser still shows quickly.
  struct Limits {
    std::uint64_t messages = 200'000;
    std::uint64_t octets = 160 << 20;
    std::uint32_t connections = 4096;
  };
  // What the page has of the capture.
  struct Totals {
    std::uint64_t connections = 0, messages = 0, octets = 0;
    std::uint64_t connections_left_out = 0, messages_left_out = 0;
  };

  // title: the name of the capture.
  HtmlPage(std::FILE* out, std::string_view title) : HtmlPage(out, title, Limits()) {}
  HtmlPage(std::FILE* out, std::string_view title, const Limits& limits);

  void on_connection(const Connection& connection) override;
  void on_frame(const Frame& frame) override;
  void on_connection_end(std::uint32_t connection, const TcpCounters& counters) override;
  // The capture has ended. remark: what its reader says of it, or nothing.
  void finish(std::string_view remark);

  const Totals& totals() const { return totals_; }

 private:
  static constexpr std::size_t kBlockMessages = 1024;
  static constexpr std::size_t kBlockOctets = 1 << 20;

  void put(std::string_view text);
  void put_data(std::string_view name, std::string_view json);
  void flush_block();

  std::FILE* out_;
  const Limits limits_;
  Totals totals_;
  HtmlBlock block_;
};

// html_page_head, html_page_tail: the page around its blocks, made of html/ when Weft is built.
extern const std::span<const std::string_view> html_page_head;
extern const std::span<const std::string_view> html_page_tail;

}  // namespace weft::apps::dissect
