// The text of the listeners: the ladder's width, the summary's bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include "apps/dissect/append.h"
#include "apps/dissect/duration.h"
#include "apps/dissect/ladder.h"
#include "apps/dissect/printer.h"
#include "apps/dissect/summary.h"
#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Opcode;
using testing::Octets;
using testing::pattern;
using testing::tagged;
using testing::untagged;
using testing::Wire;

// Printed: a file that a listener writes to, and its text.
class Printed {
 public:
  std::FILE* file() { return file_.get(); }
  std::string text() {
    std::rewind(file());
    std::string all;
    std::array<char, 4096> part;
    while (const std::size_t len = std::fread(part.data(), 1, part.size(), file())) all.append(part.data(), len);
    return all;
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_{std::tmpfile()};
};

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
    frame.facts.rpc = {.xid = i, .procedure = "program " + std::to_string(i)};
    summary.on_frame(frame);
  }
  summary.on_connection_end(1, {});
  const std::string text = printed.text();
  EXPECT_LT(std::ranges::count(text, '\n'), 300);
  EXPECT_THAT(text, ::testing::HasSubstr("other procedures"));
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

TEST(AppendTest, HasRoomForTheLongestValues) {
  std::string text = "before";
  append(text, FMT_COMPILE(" {} {:#018x} {} {}"), INT64_MIN, UINT64_MAX, std::string(300, 'x'), Hex32(0xabc).str());
  EXPECT_EQ(text, "before -9223372036854775808 0xffffffffffffffff " + std::string(300, 'x') + " 0x00000abc");
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

}  // namespace
}  // namespace weft::apps::dissect
