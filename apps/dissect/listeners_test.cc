// The text of the listeners: the ladder's width, the summary's bounds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "apps/dissect/append.h"
#include "apps/dissect/duration.h"
#include "apps/dissect/ladder.h"
#include "apps/dissect/printer.h"
#include "apps/dissect/summary.h"
#include "apps/dissect/testing/printed.h"
#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Opcode;
using testing::Octets;
using testing::pattern;
using testing::Printed;
using testing::tagged;
using testing::untagged;
using testing::Wire;

TEST(LadderTest, FitsEightyColumnsAndCutsNoWords) {
  Printed printed;
  Ladder ladder(printed.file());
  Dissector dissector({}, ladder);
  Wire wire(dissector);
  wire.open();
  wire.send(Wire::kServer,
            wire.fpdu(Wire::kServer, tagged(Opcode::kWrite, 0xffffffff, UINT64_MAX - 70000, pattern(5000))));
  Octets terminate = untagged(Opcode::kTerminate, 1, {0x11, 0x00, 0, 0});
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, terminate));
  dissector.finish();
  const std::string text = printed.text();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  std::string words;
  std::istringstream all(text);
  for (std::string word; all >> word;) words += word == "|" || word.find("-|") != std::string::npos ? "" : word + " ";
  EXPECT_THAT(words, ::testing::HasSubstr("never registered"));
  EXPECT_THAT(words, ::testing::HasSubstr("0xfffffffffffeee8f"));
}

// The clocks of hosts go backwards, and some captures are made of several.
TEST(LadderTest, ColumnsStandWhereTimeGoesBackwardsOrFar) {
  Printed printed;
  Ladder ladder(printed.file());
  Frame frame;
  frame.connection = 1;
  frame.layers.add(LayerKind::kRpc).line = "REPLY";
  for (const std::int64_t seconds : {0ll, 3605ll, 0ll, 9999999ll, 1000000000ll, -2000000000ll}) {
    frame.arrival.time = std::chrono::seconds(seconds);
    ladder.on_frame(frame);
  }
  const std::string text = printed.text();
  EXPECT_THAT(text, ::testing::HasSubstr(" -3605.00 s |"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(line.find('|'), 14u) << line;
}

TEST(LadderTest, ColumnsStandBesideLettersOfSeveralOctets) {
  Printed printed;
  Ladder ladder(printed.file());
  Frame frame;
  frame.connection = 1;
  for (const char* name : {"CALL LOOKUP name", "CALL LOOKUP n\u00e4m\u00e9"}) {
    for (const Side from : {Side::kClient, Side::kServer}) {
      frame.layers = {};
      frame.layers.add(LayerKind::kRpc).line = name;
      frame.from = from;
      ladder.on_frame(frame);
    }
  }
  std::istringstream lines(printed.text());
  std::vector<std::ptrdiff_t> columns;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("CALL") == std::string::npos) continue;
    columns.push_back(std::ranges::count_if(line, [](char octet) { return (octet & 0xc0) != 0x80; }));
  }
  ASSERT_EQ(columns.size(), 4u);
  EXPECT_THAT(columns, ::testing::Each(columns[0]));
}

// A capture with many gaps: what a connection ended with is not left out.
TEST(SummaryTest, HasTheFirstLinesAndTheLastAndSaysWhatItLeavesOut) {
  Printed printed;
  Summary summary(printed.file());
  summary.on_connection({.id = 1});
  for (int i = 1; i <= 100; ++i) {
    Frame frame;
    frame.connection = 1;
    frame.arrival.time = -std::chrono::milliseconds(i);
    frame.layers.add(LayerKind::kTcp).line = i == 100 ? "TCP end" : fmt::format("gap {}", i);
    summary.on_frame(frame);
  }
  summary.on_connection_end(1, {});
  EXPECT_THAT(printed.text(), ::testing::HasSubstr("  > gap 8\n  ... 84 lines left out\n  > gap 93\n"));
  EXPECT_THAT(printed.text(), ::testing::HasSubstr("  > TCP end\n"));
  EXPECT_THAT(printed.text(), ::testing::HasSubstr(", -99.00 ms, ")) << "the clock went backwards";
}

// Whatever the number of changes: at most as many ranges as there are bins, over the whole time of the connection.
TEST(SummaryTest, CreditsAreToldOverTheWholeTime) {
  Printed printed;
  Summary summary(printed.file());
  summary.on_connection({.id = 1});
  Frame frame;
  frame.connection = 1;
  frame.layers.add(LayerKind::kRpcRdma);
  for (std::uint32_t ms = 0; ms < 1000; ++ms) {
    frame.arrival.time = std::chrono::milliseconds(ms);
    frame.facts.credit = ms < 300 ? 1 : ms % 2 == 0 ? 8 : 32;
    summary.on_frame(frame);
  }
  frame.facts.credit = 4;
  frame.arrival.time = std::chrono::milliseconds(1000);
  summary.on_frame(frame);
  summary.on_connection_end(1, {});
  // 8 bins of 131.072 ms
  EXPECT_THAT(printed.text(), ::testing::HasSubstr("  > credits 1 to 32, at the end 4\n"
                                                   "    over time: 1 from 0 ns, 1 to 32 from 262.14 ms, "
                                                   "8 to 32 from 393.22 ms, 4 to 32 from 917.50 ms\n"));
}

TEST(SummaryTest, CreditsThatStayAreToldOnce) {
  Printed printed;
  Summary summary(printed.file());
  summary.on_connection({.id = 1});
  Frame frame;
  frame.connection = 1;
  frame.layers.add(LayerKind::kRpcRdma);
  frame.facts.credit = 8;
  for (const int second : {0, 5}) {
    frame.arrival.time = std::chrono::seconds(second);
    summary.on_frame(frame);
  }
  summary.on_connection_end(1, {});
  EXPECT_THAT(printed.text(), ::testing::HasSubstr("  > credits 8, at the end 8\n"));
  EXPECT_THAT(printed.text(), ::testing::Not(::testing::HasSubstr("over time")));
}

// A hostile capture can name any number of procedures.
TEST(SummaryTest, ProceduresAreBounded) {
  Printed printed;
  Summary summary(printed.file());
  summary.on_connection({.id = 1});
  Frame frame;
  frame.connection = 1;
  frame.layers.add(LayerKind::kRpc);
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const std::string procedure = "program " + std::to_string(i);
    frame.facts.rpc = {.xid = i, .procedure = procedure};
    summary.on_frame(frame);
  }
  summary.on_connection_end(1, {});
  const std::string text = printed.text();
  EXPECT_LT(std::ranges::count(text, '\n'), 300);
  EXPECT_THAT(text, ::testing::HasSubstr("other procedures"));
}

// What all connections hold together is bounded, and comes back when they end.
TEST(SummaryTest, LinesAndProceduresOfAllConnectionsAreBounded) {
  Printed printed;
  Summary summary(printed.file(), {.latencies = 10000, .procedures = 3, .text = 5000});
  Frame frame;
  frame.facts.is_startup = true;
  frame.facts.rpc = {.procedure = "NFSv3 READ"};
  frame.layers.add(LayerKind::kMpa).line = std::string(100000, 'x');
  constexpr std::uint32_t kNum = 20;
  const auto count = [&](const std::string& what) {
    const std::string text = printed.text();
    std::size_t num = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++num;
    return num;
  };
  for (const std::size_t round : {1u, 2u}) {
    for (frame.connection = 1; frame.connection <= kNum; ++frame.connection) {
      summary.on_connection({.id = frame.connection});
      summary.on_frame(frame);
    }
    for (std::uint32_t i = 1; i <= kNum; ++i) summary.on_connection_end(i, {});
    // Nine lines of 515 octets have room.
    EXPECT_EQ(count("1 line left out"), round * (kNum - 9));
    EXPECT_EQ(count("NFSv3 READ "), round * 3);
    EXPECT_EQ(count("other procedures "), round * (kNum - 3));
  }
}

TEST(DurationTest, RoundsToTwoDecimals) {
  EXPECT_EQ(duration_str(Timestamp(0)), "0 ns");
  EXPECT_EQ(duration_str(Timestamp(999)), "999 ns");
  EXPECT_EQ(duration_str(Timestamp(20000)), "20.00 us");
  EXPECT_EQ(duration_str(Timestamp(1234567)), "1.23 ms");
  EXPECT_EQ(duration_str(Timestamp(1235000)), "1.24 ms");
  EXPECT_EQ(duration_str(std::chrono::seconds(90)), "90.00 s");
  EXPECT_EQ(duration_str(std::chrono::milliseconds(-1500)), "-1.50 s");
  EXPECT_EQ(duration_str(Timestamp(-999)), "-999 ns");
  EXPECT_EQ(duration_str(Timestamp::min()), "-9223372036.85 s");
}

TEST(AppendTest, WritesWhatFmtWrites) {
  Line text;
  append(text, FMT_COMPILE("{}|{:#x}|{:08x}|{:#010x}|{}|{}"), std::uint8_t{7}, 0xabcu, 0xabcu, 0xabcu, -3,
         std::string_view());
  EXPECT_EQ(text.str(), fmt::format("{}|{:#x}|{:08x}|{:#010x}|{}|{}", std::uint8_t{7}, 0xabcu, 0xabcu, 0xabcu, -3, ""));
  append(text, FMT_COMPILE("plain"));
  EXPECT_TRUE(text.str().ends_with("|plain"));
}

TEST(AppendTest, HasRoomForTheLongestValues) {
  Line text;
  text = "before";
  append(text, FMT_COMPILE(" {} {:#018x} {} {}"), INT64_MIN, UINT64_MAX, std::string(300, 'x'), Hex32(0xabc));
  EXPECT_EQ(text.str(), "before -9223372036854775808 0xffffffffffffffff " + std::string(300, 'x') + " 0x00000abc");
}

// The line of a frame that arrived so long after the first one.
std::string line_at(Timestamp passed) {
  Printed printed;
  {
    Printer printer(printed.file(), {});
    Frame frame;
    frame.connection = 12;
    frame.from = Side::kServer;
    frame.arrival.time = std::chrono::seconds(1000);
    printer.on_frame(frame);
    frame.arrival.time += passed;
    frame.layers.add(LayerKind::kRpc).line = "REPLY";
    printer.on_frame(frame);
  }
  return printed.text();
}

TEST(PrinterTest, TellsTimeConnectionSideAndDepth) {
  using namespace std::chrono_literals;
  EXPECT_EQ(line_at(0ns), "   0.000000  12<       REPLY\n");
  EXPECT_EQ(line_at(12s + 34567999ns), "  12.034567  12<       REPLY\n");
  EXPECT_EQ(line_at(-1500us), "  -0.001500  12<       REPLY\n");
  EXPECT_EQ(line_at(123456789s), "123456789.000000  12<       REPLY\n");
}

TEST(PrinterTest, TellsCommentsOfPackets) {
  Printed printed;
  {
    Printer printer(printed.file(), {});
    printer.on_comment({.connection = 3, .arrival = {7, std::chrono::seconds(1000)}, .text = "established"});
  }
  EXPECT_EQ(printed.text(), "   0.000000   3>   # established\n");
}

// -v shows a field wholly, up to a limit that it tells.
TEST(PrinterTest, ALongFieldHasSeveralLines) {
  const auto shown = [](std::size_t len) {
    Printed printed;
    const Octets octets = pattern(len);
    {
      Printer printer(printed.file(), {.fields = true});
      Frame frame;
      frame.wire = octets;
      frame.layers.add(LayerKind::kMpa)
          .fields.push_back({.name = "data", .value = "x", .len = static_cast<std::uint32_t>(len)});
      printer.on_frame(frame);
    }
    return printed.text();
  };
  EXPECT_EQ(std::ranges::count(shown(32), '\n'), 2);
  const std::string two = shown(33);
  EXPECT_EQ(std::ranges::count(two, '\n'), 3);
  EXPECT_TRUE(two.ends_with("\n" + std::string(21, ' ') + " e1\n")) << two;
  EXPECT_EQ(std::ranges::count(shown(1024), '\n'), 33);
  EXPECT_THAT(shown(1024), ::testing::Not(::testing::HasSubstr("...")));
  EXPECT_THAT(shown(5000), ::testing::HasSubstr(" ... 1024 of 5000 bytes are shown; --json has all\n"));
}

}  // namespace
}  // namespace weft::apps::dissect
