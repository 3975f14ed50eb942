// The end of TCP: when it is told, and what it cuts short.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/dissect/dissector.h"
#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Opcode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Octets;
using testing::pattern;
using ::testing::SizeIs;
using testing::Told;
using testing::untagged;
using testing::Wire;

struct ConnectionEndTest : ::testing::Test {
  Told told;
  Dissector dissector{{}, told};
};

// A FIN is told after all octets before it, and a RST after all octets of both sides, even if they arrive first.
TEST_F(ConnectionEndTest, AnEndIsToldBehindTheOctetsBeforeIt) {
  for (const bool reset : {false, true}) {
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one);
    wire.open();
    const Octets fpdu = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(800)));
    const Octets front(fpdu.begin(), fpdu.begin() + 400), back(fpdu.begin() + 400, fpdu.end());
    const TcpSegment first = wire.segment(Wire::kClient, front);
    wire.lose(Wire::kClient, front);
    wire.send(Wire::kClient, back);
    const Octets none;
    TcpSegment end = wire.segment(reset ? Wire::kServer : Wire::kClient, none);
    (reset ? end.rst : end.fin) = true;
    end.ack = first.seq;
    wire.on_segment(end);
    wire.on_segment(first);
    of_one.finish();
    EXPECT_THAT(one.lines, ElementsAre(HasSubstr("Request"), HasSubstr("Reply"), "> Send, MSN 1, 800 bytes",
                                       reset ? "< TCP connection reset" : "> TCP end"));
  }
}

// A RST that is not at the octets which come next is no end (RFC 9293 section 3.10.7.4, RFC 5961 section 3).
TEST_F(ConnectionEndTest, AResetFarFromTheNextOctetIsIgnored) {
  for (const std::uint32_t ahead : {0u, 65535u, 65536u, 0x40000000u, 0u - 70000u}) {
    const bool counts = ahead <= 65535;
    Told one;
    Dissector of_one({}, one);
    Wire wire(of_one);
    wire.open();
    const Octets none;
    TcpSegment reset = wire.segment(Wire::kServer, none);
    reset.rst = true;
    reset.seq += ahead;
    wire.on_segment(reset);
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8))));
    wire.send(Wire::kServer, wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 1, pattern(8))));
    of_one.finish();
    EXPECT_EQ(std::ranges::count(one.lines, "< TCP connection reset"), counts ? 1 : 0) << ahead;
    EXPECT_THAT(one.lines, Contains("< Send, MSN 1, 8 bytes")) << ahead;
    EXPECT_THAT(one.findings, IsEmpty()) << ahead;
  }
}
// An ignored RST moves no sequence number: an acknowledgment of octets that the capture lacks still shows the gap.
TEST_F(ConnectionEndTest, AResetThatIsIgnoredLeavesTheNextOctet) {
  Wire wire(dissector);
  wire.open();
  const Octets none;
  TcpSegment reset = wire.segment(Wire::kServer, none);
  reset.rst = true;
  reset.seq += 0x10000000;
  wire.on_segment(reset);
  wire.lose(Wire::kServer, wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 1, pattern(8))));
  wire.on_segment(wire.segment(Wire::kClient, none));
  wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(8))));
  dissector.finish();
  EXPECT_THAT(told.unjudged, ElementsAre("a packet acknowledges bytes that the capture does not have before it"));
}

// The octets never come: the capture's end tells the end, and no Send is cut short.
TEST_F(ConnectionEndTest, AnEndBehindAHoleIsToldWithTheCapture) {
  Wire wire(dissector);
  wire.open();
  wire.lose(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(800))));
  const Octets none;
  TcpSegment fin = wire.segment(Wire::kClient, none);
  fin.fin = true;
  wire.on_segment(fin);
  EXPECT_THAT(told.lines, SizeIs(2));
  dissector.finish();
  EXPECT_THAT(told.lines, Contains("> TCP end"));
  EXPECT_THAT(told.findings, IsEmpty());
}

// A FIN whose octets come later ends the stream inside an FPDU all the same.
TEST_F(ConnectionEndTest, AnFpduThatIsCutShortIsNamedBehindReordering) {
  Wire wire(dissector);
  wire.open();
  const Octets fpdu = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(800)));
  const Octets front(fpdu.begin(), fpdu.begin() + 400);
  const TcpSegment first = wire.segment(Wire::kClient, front);
  wire.lose(Wire::kClient, front);
  const Octets none;
  TcpSegment fin = wire.segment(Wire::kClient, none);
  fin.fin = true;
  wire.on_segment(fin);
  wire.on_segment(first);
  dissector.finish();
  EXPECT_THAT(told.findings, ElementsAre("MPA-8-03"));
}

}  // namespace
}  // namespace weft::apps::dissect
