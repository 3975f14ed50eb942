#include "apps/perf/message.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::apps::perf {
namespace {

TEST(PerfMessages, ComeBackAsTheyWent) {
  Hello hello{Op::kRead, true, false, kMaxSize, kMaxDepth};
  EXPECT_EQ(parse_hello(emit_hello(hello)), hello);
  hello = {Op::kTcp, false, true, 0, 1};
  EXPECT_EQ(parse_hello(emit_hello(hello)), hello);
  Ready ready{1, 2, 3, 4, 5, 6, false, "why not", "reno"};
  EXPECT_EQ(parse_ready(emit_ready(ready)), ready);
  Totals totals{7, 8, true};
  EXPECT_EQ(parse_totals(emit_totals(totals)), totals);
}

TEST(PerfMessages, EveryTruncationAndExtensionIsRefused) {
  auto check = [](const auto& octets, auto parse) {
    std::vector<std::uint8_t> longer(octets.begin(), octets.end());
    for (std::size_t len = 0; len < longer.size(); ++len) EXPECT_FALSE(parse(ConstBytes(longer).first(len))) << len;
    longer.push_back(0);
    EXPECT_FALSE(parse(longer));
  };
  check(emit_hello({}), [](ConstBytes o) { return parse_hello(o).has_value(); });
  check(emit_ready({}), [](ConstBytes o) { return parse_ready(o).has_value(); });
  check(emit_totals({}), [](ConstBytes o) { return parse_totals(o).has_value(); });
}

TEST(PerfMessages, HelloBeyondTheLimitsIsRefused) {
  for (const Hello& hello : {Hello{Op::kRead, false, false, kMaxSize + 1, 1}, Hello{Op::kRead, false, false, 1, 0},
                             Hello{Op::kRead, false, false, 1, kMaxDepth + 1}, Hello{Op(99), false, false, 1, 1}}) {
    EXPECT_FALSE(parse_hello(emit_hello(hello)));
  }
}

TEST(PerfMessages, AnotherMagicAndUnknownFlagsAreRefused) {
  auto octets = emit_hello({});
  octets[3] ^= 1;
  EXPECT_FALSE(parse_hello(octets));
  octets = emit_hello({});
  octets[7] |= 4;
  EXPECT_FALSE(parse_hello(octets));
}

TEST(PerfMessages, TextsAreCutAndNeverReachATerminalRaw) {
  Ready ready;
  ready.error = std::string(kMaxErrorLen + 5, 'x');
  ready.congestion_control = "a\x1b[2J";
  auto parsed = parse_ready(emit_ready(ready));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->error, std::string(kMaxErrorLen, 'x'));
  EXPECT_EQ(parsed->congestion_control, "a?[2J");
}

TEST(PerfOps, NamesAndNumbersAgree) {
  for (const std::string& name : op_names()) {
    auto op = op_from_name(name);
    ASSERT_TRUE(op) << name;
    EXPECT_EQ(op_name(*op), name);
    EXPECT_EQ(op_from_number(std::uint16_t(*op)), op);
    EXPECT_EQ(int(is_rdma(*op)) + int(is_rpc(*op)) + int(is_tcp(*op)), 1) << name;
  }
  EXPECT_FALSE(op_from_name("nonsense"));
}

TEST(PerfMessage, PaddingIsTakenAwayAndNothingElse) {
  const auto hello = emit_hello(Hello{.op = Op::kSend, .size = 1, .depth = 1});
  std::vector<std::uint8_t> octets(hello.begin(), hello.end());
  EXPECT_TRUE(parse_hello(without_padding(octets, kHelloLen)));
  octets.resize(56);
  EXPECT_TRUE(parse_hello(without_padding(octets, kHelloLen)));
  octets.back() = 1;
  EXPECT_FALSE(parse_hello(without_padding(octets, kHelloLen)));
  EXPECT_FALSE(parse_hello(without_padding(ConstBytes(octets).first(kHelloLen - 1), kHelloLen)));
}

TEST(PerfMessage, ReadyIsCutAndFilledUpAgain) {
  Ready ready;
  ready.window = 7;
  ready.congestion_control = "reno";
  const auto whole = emit_ready(ready);
  std::vector<std::uint8_t> octets(whole.begin(), whole.end());
  cut_ready(octets, 56);
  EXPECT_EQ(octets.size(), 56u);
  const auto parsed = parse_ready(filled_ready(octets));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->window, 7u);
  octets.resize(20);
  EXPECT_FALSE(parse_ready(filled_ready(octets)));
}

// An InfiniBand rejection has room for 148 octets and is filled up to that.
TEST(PerfMessage, AReasonSurvivesWhatInfiniBandDoesToIt) {
  Ready ready;
  ready.error = "the private data is no Hello of this version";
  const auto whole = emit_ready(ready);
  std::vector<std::uint8_t> octets(whole.begin(), whole.end());
  cut_ready(octets, 56);
  EXPECT_LE(octets.size(), 148u);
  octets.resize(148);
  const auto parsed = parse_ready(filled_ready(octets));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->error, ready.error);
}

}  // namespace
}  // namespace weft::apps::perf
