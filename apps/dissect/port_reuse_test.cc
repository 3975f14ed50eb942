// Connections that use the ports of an earlier one, and SYNs that begin none.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/dissect/dissector.h"
#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Opcode;
using ::testing::IsEmpty;
using testing::Octets;
using testing::pattern;
using ::testing::SizeIs;
using testing::startup;
using testing::Told;
using testing::untagged;
using testing::Wire;

struct PortReuseTest : ::testing::Test {
  PortReuseTest() {
    again.seq[0] = 900000000;
    again.seq[1] = 4000000000;
  }
  static void start(Wire& wire) {
    wire.send(Wire::kClient, startup(mpa::FrameKind::kRequest));
    wire.send(Wire::kServer, startup(mpa::FrameKind::kReply));
  }
  static void talk(Wire& wire, std::uint32_t first_msn) {
    for (std::uint32_t msn = first_msn; msn < first_msn + 3; ++msn) {
      for (const auto end : {Wire::kClient, Wire::kServer})
        wire.send(end, wire.fpdu(end, untagged(Opcode::kSend, msn, pattern(100))));
    }
  }
  static void end(Wire& wire, Wire::End from, bool rst) {
    const Octets none;
    TcpSegment last = wire.segment(from, none);
    last.rst = rst;
    last.fin = !rst;
    wire.on_segment(last);
    wire.seq[from] += rst ? 0 : 1;
  }
  void expect(std::size_t num_connections, std::ptrdiff_t num_sends) {
    dissector.finish();
    EXPECT_THAT(told.connections, SizeIs(num_connections));
    EXPECT_THAT(told.counters, SizeIs(num_connections));
    EXPECT_THAT(told.findings, IsEmpty());
    EXPECT_EQ(std::ranges::count_if(told.lines, [](const auto& line) { return line.find(" Send, MSN") == 1; }),
              num_sends);
  }

  Told told;
  Dissector dissector{{}, told};
  Wire first{dissector}, again{dissector};
};

TEST_F(PortReuseTest, BehindARstDataOfAnotherPlaceBeginAConnection) {
  first.open();
  talk(first, 1);
  end(first, Wire::kClient, true);
  start(again);  // its SYNs are not in the capture
  talk(again, 1);
  expect(2, 12);
}

TEST_F(PortReuseTest, BehindBothFinsDataOfAnotherPlaceBeginAConnection) {
  first.open();
  talk(first, 1);
  end(first, Wire::kClient, false);
  end(first, Wire::kServer, false);
  start(again);
  talk(again, 1);
  expect(2, 12);
}

TEST_F(PortReuseTest, OctetsThatWereUnderWayAtARstBeginNone) {
  first.open();
  talk(first, 1);
  end(first, Wire::kClient, true);
  talk(first, 4);
  expect(1, 12);
}

TEST_F(PortReuseTest, ASynAckWithAnotherNumberBeginsAConnection) {
  first.open();
  talk(first, 1);
  ++again.seq[0];  // the SYN is not in the capture
  again.syn(Wire::kServer);
  start(again);
  talk(again, 1);
  expect(2, 12);
}

// The peer answers a stray SYN by a challenge ACK.
TEST_F(PortReuseTest, AStraySynBeginsNone) {
  first.open();
  talk(first, 1);
  again.syn(Wire::kClient);
  first.on_segment(first.segment(Wire::kServer, {}));
  talk(first, 4);
  expect(1, 12);
}

TEST_F(PortReuseTest, ALateCopyOfASynBeginsNone) {
  TcpSegment syns[2];
  std::size_t num = 0;
  Wire wire([&](const TcpSegment& segment) {
    if (segment.syn) syns[num++] = segment;
    dissector.on_segment(segment);
  });
  wire.open();
  dissector.on_segment(syns[0]);
  talk(wire, 1);
  dissector.on_segment(syns[1]);
  dissector.on_segment(syns[0]);
  talk(wire, 4);
  expect(1, 12);
}

TEST_F(PortReuseTest, ASynBeginsAConnectionWhereThePeerIsNotInTheCapture) {
  Wire wire([&](const TcpSegment& segment) {
    if (segment.src.port == 40000) dissector.on_segment(segment);
  });
  wire.open();
  talk(wire, 1);
  wire.seq[0] += 1000000;
  wire.framers[0] = mpa::testing::NaiveFramer(true, false);
  wire.open();
  talk(wire, 1);
  expect(2, 6);
}

// The SYN-ACK tells where the client's octets begin, so its Request is the first frame though packets are swapped.
TEST_F(PortReuseTest, ASynAckTellsTheClientsFirstOctet) {
  const Octets request = startup(mpa::FrameKind::kRequest);
  first.seq[0] = 1000;
  first.syn(Wire::kServer);
  TcpSegment late = first.segment(Wire::kClient, request);
  first.seq[0] += static_cast<std::uint32_t>(request.size());
  const Octets fpdu = first.fpdu(Wire::kClient, untagged(Opcode::kSend, 1, pattern(100)));
  first.send(Wire::kClient, fpdu);
  dissector.on_segment(late);
  first.send(Wire::kServer, startup(mpa::FrameKind::kReply));
  expect(1, 1);
  EXPECT_EQ(told.lines.front(), "> MPA Request, revision 1, CRC on, Markers off");
}

}  // namespace
}  // namespace weft::apps::dissect
