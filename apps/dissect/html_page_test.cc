#include "apps/dissect/html_page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect {
namespace {

using nlohmann::json;
using rdmap::Opcode;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Octets;
using testing::pattern;
using ::testing::SizeIs;
using testing::tagged;
using testing::untagged;
using testing::Wire;

// Block: one of the page's texts for its script.
struct Block {
  std::string name;
  json value;
};

// A page in memory.
class Page {
 public:
  explicit Page(const HtmlPage::Limits& limits = {}, std::string_view title = "a.pcap")
      : out_(::open_memstream(&text_, &len_)), page(out_, title, limits) {}
  ~Page() {
    if (out_ != nullptr) std::fclose(out_);
    std::free(text_);
  }
  // Ends the page.
  std::string text(std::string_view remark = "") {
    page.finish(remark);
    std::fclose(out_);
    out_ = nullptr;
    return {text_, len_};
  }

 private:
  char* text_ = nullptr;
  std::size_t len_ = 0;
  std::FILE* out_;

 public:
  HtmlPage page;
};

std::vector<Block> blocks_of(const std::string& text) {
  const std::string begin = "<script type=\"application/json\" data-block=\"", end = "</script>";
  std::vector<Block> blocks;
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    const std::size_t behind_name = text.find('"', at), behind = text.find(end, at);
    blocks.push_back({text.substr(at, behind_name - at),
                      json::parse(text.substr(behind_name + 2, behind - behind_name - 2), nullptr, false)});
  }
  return blocks;
}

std::vector<json> named(const std::string& text, std::string_view name) {
  std::vector<json> values;
  for (Block& block : blocks_of(text)) {
    if (block.name == name) values.push_back(std::move(block.value));
  }
  return values;
}

// A frame with one line and one field.
Frame frame_of(std::uint64_t number, const std::string& line) {
  Frame frame;
  frame.number = number;
  frame.connection = 1;
  frame.arrival = {number, std::chrono::microseconds(number)};
  Layer& layer = frame.layers.add(LayerKind::kRdmap);
  layer.line = line;
  layer.fields = {{.name = "STag", .value = "0x00000007"}};
  return frame;
}

TEST(HtmlPage, HasColumnsFieldsAndOctetsOfEachMessage) {
  Page page;
  Dissector dissector({.fields = true}, page.page);
  Wire wire(dissector);
  wire.open();
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(100))));
  wire.send(Wire::kServer, wire.fpdu(Wire::kServer, tagged(Opcode::kWrite, 0x1234, 0x1000, pattern(5000))));
  dissector.finish();
  const std::string text = page.text();
  const json list = named(text, "list").at(0);
  EXPECT_EQ(list["connections"], json::parse(R"([[1, "10.0.0.1:40000", "10.0.0.2:20049", true]])"));
  EXPECT_EQ(list["time"], json::parse(R"(["1000000020000", 10000, 10000, 40000])"));
  EXPECT_EQ(list["flags"], json::parse("[2, 3, 0, 1]"));
  EXPECT_EQ(list["wire_octets"], json::parse("[20, 20, 124, 5020]"));
  EXPECT_EQ(list["octets"], json::parse("[0, 0, 100, 5000]"));
  EXPECT_EQ(list["lines"][3], "\n\nRDMA Write, STag 0x00001234, TO 0x1000, 5000 bytes");
  EXPECT_EQ(list["stags"], json::parse("[[3, [4660]]]"));
  const json details = named(text, "details").at(0);
  ASSERT_THAT(details["messages"], SizeIs(4));
  // The ULPDU and the message stand in the FPDU.
  const json send = details["messages"][2];
  EXPECT_EQ(send[0][0], 124);
  EXPECT_EQ(send[0][2], 2);
  EXPECT_EQ(send[0][3], 20);
  // Layer 1 is DDP: the number of its shape, and the numbers of its values.
  const std::string shape = details["shapes"][send[1][1][0].get<std::size_t>()];
  EXPECT_THAT(shape, HasSubstr("MSN\t1\t10\t4\n"));
  EXPECT_EQ(named(text, "end").at(0)["messages"], 4);
}

// Words of a peer neither end the element of a block nor begin a comment, and every block is JSON.
TEST(HtmlPage, TextOfAPeerIsNoMarkup) {
  for (const std::string evil : {"</script><img src=x onerror=alert(1)>", "<!--<script>", "\xff\xfe<\xc0\x80",
                                 "a\nb\tc", "\xe2\x80\xa8", "\\\"]}"}) {
    Page page({}, evil);
    page.page.on_connection({.id = 1, .client = evil, .server = evil});
    Frame frame = frame_of(1, evil);
    frame.layers[0].fields[0].value = evil;
    frame.findings.push_back({"DDP-7.2-13", evil, evil});
    frame.facts.rpc = {.procedure = evil};
    page.page.on_frame(frame);
    const std::string text = page.text(evil);
    const auto blocks = blocks_of(text);
    ASSERT_THAT(blocks, SizeIs(4)) << evil;
    for (const Block& block : blocks) {
      EXPECT_FALSE(block.value.is_discarded()) << evil;
      EXPECT_THAT(block.value.dump(), Not(HasSubstr("data-block")));
    }
    EXPECT_THAT(text, Not(HasSubstr("<img")));
    EXPECT_THAT(text, Not(HasSubstr("<!--")));
    EXPECT_EQ(named(text, "list")[0]["lines"][0].get<std::string>().find('\n'), std::string::npos);
  }
}

TEST(HtmlPage, LeavesOutMessagesBeyondItsLimits) {
  Page page({.messages = 1500, .connections = 2});
  for (std::uint32_t id = 1; id <= 3; ++id) page.page.on_connection({.id = id});
  for (std::uint64_t i = 0; i < 2000; ++i) page.page.on_frame(frame_of(i, "Send"));
  Frame of_third = frame_of(5000, "Send");
  of_third.connection = 3;
  page.page.on_frame(of_third);
  page.page.on_connection_end(3, {});
  const std::string text = page.text();
  EXPECT_EQ(page.page.totals().messages, 1500u);
  EXPECT_EQ(page.page.totals().messages_left_out, 501u);
  EXPECT_EQ(page.page.totals().octets, text.size());
  const json end = named(text, "end").at(0);
  EXPECT_EQ(end["messages_left_out"], 501);
  EXPECT_EQ(end["connections_left_out"], 1);
  std::size_t messages = 0;
  for (const json& list : named(text, "list")) messages += list["time"].size();
  EXPECT_EQ(messages, 1500u);
}

// However long the messages are, the page and what waits to be written stay near the limit.
TEST(HtmlPage, ItsSizeIsBounded) {
  constexpr std::uint64_t kLimit = 1 << 20;
  Page page({.octets = kLimit});
  page.page.on_connection({.id = 1});
  const Octets octets = pattern(60000);
  for (std::uint64_t i = 0; i < 12; ++i) {
    Frame frame = frame_of(i, std::string(100000, 'x'));
    frame.wire = octets;
    frame.message = octets;
    for (int field = 0; field < 1000; ++field) {
      frame.layers[0].fields.push_back(
          {.name = "STag", .value = fmt::format("{}{:3000}", i * 1000 + static_cast<std::uint64_t>(field), "")});
    }
    for (int finding = 0; finding < 100; ++finding) frame.findings.push_back({"DDP-7.2-13", std::string(5000, 'y')});
    page.page.on_frame(frame);
  }
  const std::string text = page.text();
  EXPECT_GT(page.page.totals().messages_left_out, 0u);
  EXPECT_LT(text.size(), kLimit + (2 << 20));
}

TEST(HtmlPage, KeepsTheFrontOfLongMessages) {
  Page page;
  page.page.on_connection({.id = 1});
  const Octets octets = pattern(60000);
  Frame frame = frame_of(1, "Send");
  frame.wire = octets;
  page.page.on_frame(frame);
  const json message = named(page.text(), "details").at(0)["messages"][0];
  EXPECT_EQ(message[0][0], 60000);
  EXPECT_THAT(message[0][1].get<std::string>(), SizeIs(HtmlBlock::kOtherOctets / 3 * 4));
}

TEST(HtmlPage, LoadsNothingAndNamesItsScript) {
  Page page;
  const std::string text = page.text();
  EXPECT_THAT(text, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(text, Not(HasSubstr("@S")));
  EXPECT_THAT(text, Not(HasSubstr("unsafe-inline")));
  EXPECT_THAT(text, Not(HasSubstr("innerHTML")));
  EXPECT_THAT(text, Not(HasSubstr(" src=")));
}

}  // namespace
}  // namespace weft::apps::dissect
