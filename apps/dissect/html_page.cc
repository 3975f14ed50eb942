#include "apps/dissect/html_page.h"

#include <fmt/format.h>

namespace weft::apps::dissect {

HtmlPage::HtmlPage(std::FILE* out, std::string_view title, const Limits& limits) : out_(out), limits_(limits) {
  for (const std::string_view part : html_page_head) put(part);
  put_data("capture", html_json({{"file", title},
                                 {"tagged_octets", HtmlBlock::kTaggedOctets},
                                 {"other_octets", HtmlBlock::kOtherOctets}}));
}

void HtmlPage::on_connection(const Connection& connection) {
  if (connection.id > limits_.connections) {
    ++totals_.connections_left_out;
    return;
  }
  ++totals_.connections;
  block_.add_connection(connection);
}

void HtmlPage::on_frame(const Frame& frame) {
  if (frame.connection > limits_.connections || totals_.messages >= limits_.messages ||
      totals_.octets + block_.size() >= limits_.octets) {
    ++totals_.messages_left_out;
    return;
  }
  ++totals_.messages;
  block_.add_message(frame);
  if (block_.num_messages() >= kBlockMessages || block_.size() >= kBlockOctets) flush_block();
}

void HtmlPage::on_connection_end(std::uint32_t connection, const TcpCounters& counters) {
  if (connection > limits_.connections) return;
  block_.add_end(connection, counters);
  if (block_.size() >= kBlockOctets) flush_block();
}

void HtmlPage::finish(std::string_view remark) {
  flush_block();
  put_data("end", html_json({{"messages", totals_.messages},
                             {"messages_left_out", totals_.messages_left_out},
                             {"connections_left_out", totals_.connections_left_out},
                             {"remark", remark}}));
  for (const std::string_view part : html_page_tail) put(part);
}

void HtmlPage::flush_block() {
  if (block_.empty()) return;
  put_data("list", block_.list());
  put_data("details", block_.details());
  block_ = {};
}

void HtmlPage::put_data(std::string_view name, std::string_view json) {
  put(fmt::format("<script type=\"application/json\" data-block=\"{}\">", name));
  put(json);
  put("</script>\n");
}

void HtmlPage::put(std::string_view text) {
  totals_.octets += text.size();
  std::fwrite(text.data(), 1, text.size(), out_);
}

}  // namespace weft::apps::dissect
