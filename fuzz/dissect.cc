// The dissector with an arbitrary capture. The input is a list of packets: raw IP as it is, or a TCP segment of one of
// a few connections, so that the octets get beyond TCP.
#include <pcap/dlt.h>

#include <cstdio>
#include <optional>
#include <span>

#include "apps/dissect/check.h"
#include "apps/dissect/dissector.h"
#include "apps/dissect/html_page.h"
#include "apps/dissect/json_lines.h"
#include "apps/dissect/ladder.h"
#include "apps/dissect/printer.h"
#include "apps/dissect/summary.h"
#include "apps/dissect/tcp_segment.h"
#include "fuzz/op_stream.h"

namespace {

using namespace weft;
using namespace weft::apps::dissect;
using fuzz::Input;
using fuzz::must;

std::FILE* nowhere() {
  static std::FILE* const file = std::fopen("/dev/null", "w");
  return file;
}

struct Printers {
  Printer printer{nowhere(), {.fields = true, .color = true}};
  JsonLines lines{nowhere()};
  Ladder ladder{nowhere()};
  Summary summary{nowhere()};
  HtmlPage page{nowhere(), "capture"};
  Check check{nowhere()};
  Listener* all[6] = {&printer, &lines, &ladder, &summary, &page, &check};
};

// Checks what listeners are told, and hands everything to every printer, if there are any.
class All final : public Listener {
 public:
  explicit All(bool prints) {
    if (prints) printers_.emplace();
  }
  void on_connection(const Connection& connection) override {
    must(connection.id == ++last_connection_);
    for (Listener* one : listeners()) one->on_connection(connection);
  }
  void on_frame(const Frame& frame) override {
    must(frame.number == ++last_frame_);
    must(frame.connection != 0 && frame.connection <= last_connection_);
    must(!frame.layers.empty());
    num_findings_ += frame.findings.size();
    for (Listener* one : listeners()) one->on_frame(frame);
  }
  void on_connection_end(std::uint32_t connection, const TcpCounters& counters) override {
    for (Listener* one : listeners()) one->on_connection_end(connection, counters);
  }
  void on_comment(const Comment& comment) override {
    must(comment.connection != 0 && comment.connection <= last_connection_);
    for (Listener* one : listeners()) one->on_comment(comment);
  }
  void on_unjudged(const Unjudged& unjudged) override {
    must(unjudged.connection != 0 && unjudged.connection <= last_connection_ && !unjudged.why.empty());
    for (Listener* one : listeners()) one->on_unjudged(unjudged);
  }
  std::uint64_t num_findings() const { return num_findings_; }
  void finish() {
    if (printers_) printers_->page.finish("");
    for (Listener* one : listeners()) one->on_capture_end({});
  }

 private:
  std::span<Listener*> listeners() { return printers_ ? std::span<Listener*>(printers_->all) : std::span<Listener*>(); }

  std::optional<Printers> printers_;
  std::uint64_t last_frame_ = 0;
  std::uint64_t num_findings_ = 0;
  std::uint32_t last_connection_ = 0;
};

// Both ways to dissect: with every field, as -v and --json, and without. The findings are the same.
class Both {
 public:
  explicit Both(bool prints) : whole_told_(prints), plain_told_(prints) {}

  void on_segment(const TcpSegment& segment) {
    whole_.on_segment(segment);
    plain_.on_segment(segment);
  }
  void finish() {
    whole_.finish();
    plain_.finish();
    whole_told_.finish();
    plain_told_.finish();
    must(whole_told_.num_findings() == plain_told_.num_findings());
  }

 private:
  All whole_told_, plain_told_;
  Dissector whole_{{.fields = true}, whole_told_};
  Dissector plain_{{.fields = false}, plain_told_};
};

// The next segment of a direction, or one that is out of order by up to 127 octets either way.
TcpSegment made_segment(Input& input, std::uint32_t (&next)[4]) {
  const std::uint8_t settings = input.u8();
  const unsigned direction = settings & 3;
  TcpSegment segment;
  segment.src.port = static_cast<std::uint16_t>(1 + direction);
  segment.dst.port = static_cast<std::uint16_t>(1 + (direction ^ 1));
  segment.syn = (settings & 0x04) != 0;
  segment.fin = (settings & 0x08) != 0;
  segment.rst = (settings & 0x10) != 0;
  segment.has_ack = (settings & 0x20) != 0;
  const bool is_moved = (settings & 0x40) != 0;
  segment.seq = next[direction] + (is_moved ? static_cast<std::uint32_t>(static_cast<std::int8_t>(input.u8())) : 0);
  segment.ack = next[direction ^ 1];
  const std::size_t cut = (settings & 0x80) != 0 ? input.u8() : 0;
  segment.payload = input.bytes(input.u16() % 2048);
  segment.payload_len = segment.payload.size() + cut;
  next[direction] = segment.seq + static_cast<std::uint32_t>(segment.payload_len);
  return segment;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  // Printers take twenty times as long as the dissector.
  constexpr std::size_t kInputsOfPrinters = 16;
  Both dissector(size % kInputsOfPrinters == 0);
  std::uint32_t next[4] = {1, 1, 0xffffff00, 1};
  std::uint64_t number = 0;
  while (!input.empty()) {
    ++number;
    if (input.u8() % 8 != 0) {
      TcpSegment segment = made_segment(input, next);
      segment.packet = number;
      segment.time = std::chrono::microseconds(number);
      dissector.on_segment(segment);
      continue;
    }
    Packet packet{.number = number, .time = std::chrono::microseconds(number), .octets = {}, .wire_len = 0};
    constexpr int kLinks[] = {DLT_RAW, DLT_EN10MB, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_NULL};
    packet.link_type = kLinks[input.u8() % std::size(kLinks)];
    packet.octets = input.bytes(input.u16() % 2048);
    packet.wire_len = packet.octets.size() + input.u8();
    if (const auto segment = parse_tcp_segment(packet)) dissector.on_segment(*segment);
  }
  dissector.finish();
  return 0;
}
