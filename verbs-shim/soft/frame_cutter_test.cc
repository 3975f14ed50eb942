#include "verbs-shim/soft/frame_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "mpa/testing/naive_framer.h"
#include "verbs-shim/soft/testing/trace.h"

namespace weft::verbs::soft {
namespace {

using ::testing::ElementsAre;
using testing::Octets;
using ::testing::SizeIs;
using testing::startup;
using testing::ulpdu;

struct Packets {
  std::vector<Octets> kept;
  std::vector<std::size_t> lens;
  std::vector<bool> cuts;
  FrameCutter::Put put() {
    return [this](const Octets& octets, std::size_t len, bool is_cut) {
      kept.emplace_back(octets.begin(), octets.end());
      lens.push_back(len);
      cuts.push_back(is_cut);
    };
  }
};

// Frames are found however the octets are cut, and whether or not there are Markers.
TEST(FrameCutter, APacketForEachFrame) {
  for (const bool markers : {false, true}) {
    for (const std::size_t piece : {1u, 2u, 3u, 7u, 100u, 100000u}) {
      mpa::testing::NaiveFramer framer(true, markers);
      std::vector<Octets> frames{startup(false, Octets(9))};
      for (const std::size_t len : {20u, 1000u, 511u, 2u, 3000u, 65535u, 18u})
        frames.push_back(framer.frame(ulpdu(len, true)));
      Octets all;
      for (const Octets& frame : frames) all.insert(all.end(), frame.begin(), frame.end());
      Packets packets;
      FrameCutter cutter({}, packets.put());
      cutter.set_markers(markers);
      for (std::size_t at = 0; at < all.size(); at += piece) {
        cutter.add(ConstBytes(all).subspan(at, std::min(piece, all.size() - at)));
      }
      // A frame beyond the limit of a packet is two.
      ASSERT_THAT(packets.kept, SizeIs(frames.size() + 1));
      EXPECT_EQ(packets.lens[6], FrameCutter::kMaxPacket);
      packets.kept[6].insert(packets.kept[6].end(), packets.kept[7].begin(), packets.kept[7].end());
      packets.kept.erase(packets.kept.begin() + 7);
      EXPECT_EQ(packets.kept, frames) << markers << " " << piece;
    }
  }
}

TEST(FrameCutter, KeepsTheFrontOfAFrame) {
  for (const std::size_t piece : {1u, 50u, 100000u}) {
    mpa::testing::NaiveFramer framer(true, false);
    Packets packets;
    FrameCutter cutter({.tagged = 100, .other = 300}, packets.put());
    cutter.add(startup(false));
    for (const bool tagged : {true, false}) {
      const Octets frame = framer.frame(ulpdu(1000, tagged));
      for (std::size_t at = 0; at < frame.size(); at += piece) {
        cutter.add(ConstBytes(frame).subspan(at, std::min(piece, frame.size() - at)));
      }
      ASSERT_EQ(packets.kept.back().size(), tagged ? 100u : 300u) << piece;
      EXPECT_TRUE(std::equal(packets.kept.back().begin(), packets.kept.back().end(), frame.begin()));
      EXPECT_EQ(packets.lens.back(), frame.size());
    }
  }
}

// Of a message in several FPDUs, the first one keeps the start of the message. The others keep their headers. The cut
// is reported once for each message.
TEST(FrameCutter, KeepsTheHeadersOfTheFurtherFpdusOfAMessage) {
  for (const bool markers : {false, true}) {
    mpa::testing::NaiveFramer framer(true, markers);
    Packets packets;
    FrameCutter cutter({.tagged = 100, .tagged_more = 32, .other = 300}, packets.put());
    cutter.set_markers(markers);
    cutter.add(startup(false));
    const auto segment = [](std::uint8_t ddp, std::uint8_t rdmap) {
      Octets octets(900, 0x5a);
      octets[0] = ddp;
      octets[1] = rdmap;
      return octets;
    };
    // A Write of three segments with a Read Response of two and a Send among them, and another Write.
    for (const auto& [ddp, rdmap] : {std::pair<std::uint8_t, std::uint8_t>{0x81, 0x40},
                                     {0x81, 0x42},
                                     {0x81, 0x40},
                                     {0x41, 0x43},
                                     {0xc1, 0x42},
                                     {0xc1, 0x40},
                                     {0xc1, 0x40}}) {
      cutter.add(framer.frame(segment(ddp, rdmap)));
    }
    EXPECT_THAT(packets.kept, ElementsAre(SizeIs(20), SizeIs(100), SizeIs(100), SizeIs(32), SizeIs(300), SizeIs(32),
                                          SizeIs(32), SizeIs(100)));
    EXPECT_THAT(packets.cuts, ElementsAre(false, true, true, false, true, false, false, true));
  }
}

// The part of a frame that a turn leaves comes as a packet, too. The limit of a frame counts over its packets.
TEST(FrameCutter, ATurnEndsAPacket) {
  mpa::testing::NaiveFramer framer(true, false);
  Packets packets;
  FrameCutter cutter({.tagged = 100, .other = 0}, packets.put());
  cutter.add(startup(false));
  const Octets frame = framer.frame(ulpdu(1000, true));
  cutter.add(ConstBytes(frame).first(80));
  cutter.end_turn();
  cutter.end_turn();
  cutter.add(ConstBytes(frame).subspan(80, 70));
  cutter.end_turn();
  cutter.add(ConstBytes(frame).subspan(150));
  EXPECT_THAT(packets.lens, ElementsAre(20, 80, 70, frame.size() - 150));
  EXPECT_THAT(packets.kept, ElementsAre(SizeIs(20), SizeIs(80), SizeIs(20), SizeIs(0)));
  EXPECT_THAT(packets.cuts, ElementsAre(false, false, true, false));
}

}  // namespace
}  // namespace weft::verbs::soft
