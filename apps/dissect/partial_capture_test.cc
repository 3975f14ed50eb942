// Captures that miss a part of a connection: one direction, the startup frames, the beginning.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <random>

#include "apps/dissect/dissector.h"
#include "apps/dissect/mpa_half.h"
#include "apps/dissect/testing/wire.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Opcode;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Octets;
using testing::pattern;
using testing::startup;
using testing::Told;
using testing::untagged;
using testing::Wire;

// Terms: what both startup frames asked for.
struct Terms {
  bool markers, crc;
};
constexpr Terms kTerms[] = {{false, true}, {true, true}, {false, false}, {true, false}};

void PrintTo(const Terms& terms, std::ostream* out) {
  *out << (terms.markers ? "Markers, " : "no Markers, ") << (terms.crc ? "CRC" : "no CRC");
}

std::size_t num_sends(const Told& told) {
  return static_cast<std::size_t>(
      std::ranges::count_if(told.lines, [](const std::string& line) { return line.find(" Send, MSN") == 1; }));
}

struct PartialCaptureTest : ::testing::TestWithParam<Terms> {
  Wire make() {
    return Wire(
        [this](const TcpSegment& segment) {
          if (captured(segment)) dissector.on_segment(segment);
        },
        GetParam().markers, GetParam().crc);
  }
  // Sends of many lengths, so that Markers stand everywhere in FPDUs.
  static void send_all(Wire& wire, std::uint32_t first_msn, std::uint32_t num) {
    for (std::uint32_t msn = first_msn; msn < first_msn + num; ++msn) {
      wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, msn, pattern(20 + msn * 37))));
    }
  }

  std::function<bool(const TcpSegment&)> captured = [](const TcpSegment&) { return true; };
  Told told;
  Dissector dissector{{}, told};
};

// The Reply is missing: whether the client's FPDUs have Markers and CRCs is in no frame.
TEST_P(PartialCaptureTest, OneDirectionIsRead) {
  captured = [](const TcpSegment& segment) { return segment.src.port == 40000; };
  Wire wire = make();
  wire.open(GetParam().markers, GetParam().crc);
  send_all(wire, 1, 40);
  dissector.finish();
  EXPECT_THAT(told.findings, IsEmpty());
  EXPECT_EQ(num_sends(told), 40u);
}

TEST_P(PartialCaptureTest, BeginsInTheMiddle) {
  captured = [](const TcpSegment&) { return false; };
  Wire wire = make();
  wire.open(GetParam().markers, GetParam().crc);
  send_all(wire, 1, 10);
  captured = [](const TcpSegment&) { return true; };
  const Octets cut = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 11, pattern(1000)));
  wire.lose(Wire::kClient, {cut.begin(), cut.begin() + 333});
  wire.send(Wire::kClient, {cut.begin() + 333, cut.end()});
  send_all(wire, 12, 40);
  dissector.finish();
  EXPECT_THAT(told.findings, IsEmpty());
  EXPECT_GE(num_sends(told), 38u);
}

// Octets of a ULPDU can look like a Marker, and the CRC does not tell where the Markers are. Behind a Marker in the
// header, the word 32 of this message stands where a Marker with this FPDUPTR would.
TEST_P(PartialCaptureTest, OctetsThatLookLikeAMarkerAreNotBelieved) {
  captured = [](const TcpSegment&) { return false; };
  Wire wire = make();
  wire.open(GetParam().markers, GetParam().crc);
  Octets payload(52);
  payload[11] = 32;
  for (std::uint32_t msn = 1; msn <= 300; ++msn) {
    if (msn == 20) captured = [](const TcpSegment&) { return true; };
    if (msn % 64 == 0) wire.lose(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, msn++, payload)));
    wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, msn, payload)));
    wire.on_segment(wire.segment(Wire::kServer, {}));
  }
  dissector.finish();
  EXPECT_THAT(told.findings, IsEmpty());
  EXPECT_THAT(told.lines, Not(Contains(HasSubstr("whose beginning"))));
  EXPECT_GE(num_sends(told), 250u);
}

// CRCs that fitted before say that CRCs are in use. Without them, the FPDU is passed over.
TEST_P(PartialCaptureTest, ASpoiledFpduIsNamedWhereTheOnesBeforeShowTheTerms) {
  captured = [](const TcpSegment& segment) { return segment.src.port == 40000; };
  Wire wire = make();
  wire.open(GetParam().markers, GetParam().crc);
  send_all(wire, 1, 10);
  Octets spoiled = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, 11, pattern(600)));
  std::ranges::fill(spoiled, 0xff);
  wire.send(Wire::kClient, spoiled);
  send_all(wire, 12, 20);
  dissector.finish();
  if (GetParam().crc) {
    EXPECT_THAT(told.findings, ::testing::ElementsAre("MPA-4.4-20"));
  } else {
    EXPECT_THAT(told.findings, IsEmpty());
  }
  EXPECT_GE(num_sends(told), 28u);
}

// A mount that lives for months: the capture begins in its middle, and 30 of 200 FPDUs have a bit that is flipped. Each
// is behind one that is good.
TEST_P(PartialCaptureTest, FlippedBitsInTheMiddleOfAConnectionAreNamed) {
  captured = [](const TcpSegment&) { return false; };
  Wire wire = make();
  wire.open(GetParam().markers, GetParam().crc);
  send_all(wire, 1, 10);
  captured = [](const TcpSegment&) { return true; };
  send_all(wire, 11, 20);
  std::mt19937 random(28);
  std::cout << "seed 28\n";
  for (std::uint32_t msn = 31; msn < 231; ++msn) {
    Octets octets = wire.fpdu(Wire::kClient, untagged(Opcode::kSend, msn, pattern(100 + msn % 7 * 90)));
    // Where the length is changed, the FPDUs behind it go with it.
    if (msn % 7 == 3 && msn < 31 + 210) {
      const std::size_t first = GetParam().markers ? 8 : 2;
      octets[first + random() % (octets.size() - first)] ^= static_cast<std::uint8_t>(1 << random() % 8);
    }
    wire.send(Wire::kClient, octets);
  }
  dissector.finish();
  if (!GetParam().crc) return;  // nothing shows them
  EXPECT_THAT(told.findings, ::testing::Each("MPA-4.4-20"));
  EXPECT_THAT(told.findings, ::testing::SizeIs(::testing::Ge(25u)));
}

// The first FPDU may be too short for a Marker: whether the next one has some is a guess, and so is its header.
TEST_P(PartialCaptureTest, AnFpduThatTheCaptureCutIsNotReadByAGuess) {
  constexpr std::uint32_t kStartup = 4;
  for (std::uint32_t first = kStartup + 1; first < kStartup + 400; ++first) {
    Told all;
    Dissector one({}, all);
    Wire wire(
        [&](const TcpSegment& segment) {
          if (segment.packet < first) return;
          TcpSegment seen = segment;
          if (segment.packet == first + 1)
            seen.payload = segment.payload.first(std::min<std::size_t>(segment.payload.size(), 48));
          one.on_segment(seen);
        },
        GetParam().markers, GetParam().crc);
    wire.open(GetParam().markers, GetParam().crc);
    for (std::uint32_t msn = 1; msn < first + 4; ++msn) {
      wire.send(Wire::kClient, wire.fpdu(Wire::kClient, untagged(Opcode::kSend, msn, pattern(20 + msn % 5 * 44))));
    }
    one.finish();
    ASSERT_THAT(all.findings, IsEmpty()) << first;
  }
}

// Packets of the two directions can be captured in another order than they were sent: FPDUs come before the Reply.
TEST_P(PartialCaptureTest, FpdusBeforeTheReplyAreNotOutOfOrder) {
  std::optional<TcpSegment> late;
  const Octets reply = startup(mpa::FrameKind::kReply, GetParam().markers, GetParam().crc);
  captured = [&](const TcpSegment& segment) {
    if (segment.src.port == 40000 || segment.payload_len == 0 || late) return true;
    late = segment;
    late->payload = reply;
    return false;
  };
  Wire wire = make();
  wire.open(GetParam().markers, GetParam().crc);
  send_all(wire, 1, 5);
  dissector.on_segment(*late);
  send_all(wire, 6, 5);
  wire.send(Wire::kServer, wire.fpdu(Wire::kServer, untagged(Opcode::kSend, 1, pattern(100))));
  dissector.finish();
  EXPECT_THAT(told.findings, IsEmpty());
  EXPECT_EQ(num_sends(told), 11u);
}

// The rule of MSNs holds in each direction alone.
TEST_P(PartialCaptureTest, TheFirstMsnIsJudgedWithoutTheOtherDirection) {
  if (!GetParam().crc || GetParam().markers) return;  // FPDUs that have to be searched for have no first one
  captured = [](const TcpSegment& segment) { return segment.src.port == 40000; };
  Wire wire = make();
  wire.open(GetParam().markers, GetParam().crc);
  send_all(wire, 2, 3);
  dissector.finish();
  EXPECT_THAT(told.findings, ::testing::ElementsAre("DDP-7.1-09"));
}

// A ULP may talk before it starts MPA (MPA-7.1-01), as iSER does.
TEST_P(PartialCaptureTest, MpaMayBeginBehindOtherOctets) {
  Wire wire = make();
  wire.syn(Wire::kClient);
  wire.syn(Wire::kServer);
  for (int i = 0; i < 20; ++i) {
    wire.send(Wire::kClient, pattern(300, 'a'));
    wire.send(Wire::kServer, pattern(200, 'A'));
  }
  wire.send(Wire::kClient, startup(mpa::FrameKind::kRequest, GetParam().markers, GetParam().crc));
  wire.send(Wire::kServer, startup(mpa::FrameKind::kReply, GetParam().markers, GetParam().crc));
  send_all(wire, 1, 10);
  dissector.finish();
  EXPECT_THAT(told.findings, IsEmpty());
  EXPECT_THAT(told.lines, Contains(HasSubstr("MPA Request")));
  EXPECT_EQ(num_sends(told), 10u);
}

TEST_P(PartialCaptureTest, TheTimeForMpaToBeginIsBounded) {
  Wire wire = make();
  wire.syn(Wire::kClient);
  wire.send(Wire::kClient, pattern(MpaHalf::kMaxStreaming));
  wire.send(Wire::kClient, startup(mpa::FrameKind::kRequest));
  dissector.finish();
  EXPECT_THAT(told.lines, IsEmpty());
}

// TCP goes on without MPA (MPA-7.1.2-06, MPA-7.1.2-12).
TEST_P(PartialCaptureTest, ARejectedConnectionHasNoFpdus) {
  Wire wire = make();
  wire.syn(Wire::kClient);
  wire.syn(Wire::kServer);
  wire.send(Wire::kClient, startup(mpa::FrameKind::kRequest, GetParam().markers, GetParam().crc));
  Octets reject;
  mpa::emit_startup_frame({.kind = mpa::FrameKind::kReply, .r = true, .private_data = {}}, reject);
  wire.send(Wire::kServer, reject);
  send_all(wire, 1, 3);
  const Octets text = pattern(700, 'a');
  for (const auto end : {Wire::kClient, Wire::kServer}) {
    wire.send(end, text);
    TcpSegment fin = wire.segment(end, {});
    fin.fin = true;
    wire.on_segment(fin);
  }
  dissector.finish();
  EXPECT_THAT(told.findings, IsEmpty());
  EXPECT_EQ(num_sends(told), 0u);
  EXPECT_THAT(told.lines, Contains(HasSubstr("REJECTED")));
}

INSTANTIATE_TEST_SUITE_P(Terms, PartialCaptureTest, ::testing::ValuesIn(kTerms));

}  // namespace
}  // namespace weft::apps::dissect
