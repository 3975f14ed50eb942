// Markers by RFC 5044 sections 4.2 and 4.3, as far as single FPDUs and the vectors do not show them.
#include <algorithm>
#include <random>

#include "mpa/fpdu.h"
#include "mpa/marker.h"
#include "tests/conformance/mpa_ends.h"

namespace weft::conformance {
namespace {

using rdmap::testing::Side;

TEST(MpaFraming, MarkersStandAtEvery512thOctetOfTenMegabytes) {
  RecordProperty("proves", "MPA-4.2-02 MPA-4.2-04 MPA-4.2-05 MPA-4.3-04 MPA-4.3-05 MPA-4.3-08 MPA-4.3-09 MPA-4.4-17");
  constexpr unsigned kSeed = 5044;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  End end(true, revision_1(), true, true);
  Octets stream;
  std::size_t written = 0;
  while (stream.size() < 10'000'000) {
    for (int i = 0; i < 20; ++i) {
      const std::size_t len = random() % 4 == 0 ? random() % 40'000 : random() % 700;
      end.write(ramp(len));
      written += len;
    }
    const Octets more = end.transmit(end.now, 1448 + random() % 8000);
    stream.insert(stream.end(), more.begin(), more.end());
    end.drain();
  }
  EXPECT_EQ(Octets(stream.begin(), stream.begin() + 4), (Octets{0, 0, 0, 0}));
  const Walk walk(stream);
  EXPECT_EQ(walk.num_markers, (stream.size() + 511) / 512);
  std::size_t received = 0;
  for (const Octets& ulpdu : walk.ulpdus) received += ulpdu.size() - ddp::kTaggedHeaderLen;
  EXPECT_EQ(received, written);
}

TEST(MpaFraming, EachDirectionHasMarkersWhereItsReceiverSaidSo) {
  RecordProperty("proves", "MPA-4.3-02 MPA-4.3-03 MPA-4.3-17");
  for (const bool initiator_m : {true, false}) {
    for (const bool responder_m : {true, false}) {
      SCOPED_TRACE(std::string(initiator_m ? "M=1" : "M=0") + (responder_m ? " M=1" : " M=0"));
      Side a(revision_1(true, initiator_m)), b(revision_1(true, responder_m));
      const TimePoint now{};
      a.stream.start_initiator({}, a.recvs, now);
      b.stream.start_responder(now);
      const Octets request = a.transmit(now);
      b.receive(request, now);
      b.drain();
      b.stream.accept({}, b.recvs, 16, 16, 0, now);
      const Octets reply = b.transmit(now);
      a.receive(reply, now);
      EXPECT_EQ((request[kFlagsAt] & kM) != 0, initiator_m);
      EXPECT_EQ((reply[kFlagsAt] & kM) != 0, responder_m);
      for (Side* side : {&a, &b}) {
        side->memory.add_simple(7, 0, 0, 2000);
        SendWr wr;
        wr.op = SendOp::kRdmaWrite;
        wr.inline_data = ramp(2000);
        wr.remote_stag = ddp::Stag{7};
        ASSERT_EQ(side->stream.post_send(wr), rdmap::PostResult::kOk);
      }
      const Octets to_b = a.transmit(now);
      b.receive(to_b, now);
      const Octets to_a = b.transmit(now);
      a.receive(to_a, now);
      const bool b_reads_markers = Octets(to_b.begin(), to_b.begin() + 4) == Octets(4);
      const bool a_reads_markers = Octets(to_a.begin(), to_a.begin() + 4) == Octets(4);
      EXPECT_EQ(b_reads_markers, responder_m);
      EXPECT_EQ(a_reads_markers, initiator_m);
      if (b_reads_markers) {
        EXPECT_FALSE(Walk(to_b).ulpdus.empty());
      }
      EXPECT_EQ(a.memory.regions[7].octets, ramp(2000));
      EXPECT_EQ(b.memory.regions[7].octets, ramp(2000));
    }
  }
}

TEST(MpaFraming, MarkersFollowSequenceNumbersThatWrap) {
  RecordProperty("proves", "MPA-4.3-10");
  // Whether a Marker stands before the octet with this TCP sequence number.
  const auto marked = [](std::uint32_t start, std::uint32_t seq) {
    return mpa::MarkerLayout::at(seq - start).num_before(0) == 1;
  };
  for (const std::uint32_t seq : {11u, 523u, 1035u}) EXPECT_TRUE(marked(11, seq)) << seq;
  for (const std::uint32_t seq : {12u, 15u, 519u, 527u}) EXPECT_FALSE(marked(11, seq)) << seq;
  EXPECT_TRUE(marked(0xffffff00, 0x00000100));
  EXPECT_FALSE(marked(0xffffff00, 0x00000000));
  EXPECT_FALSE(marked(0xffffff00, 0x000000fc));
  EXPECT_EQ(mpa::MarkerLayout::at(0).fpduptr(0), 0);
}

TEST(MpaFraming, NoMarkerSplitsLengthPadOrCrc) {
  RecordProperty("proves", "MPA-4.3-16");
  std::uint16_t least = 0xffff;
  for (std::uint64_t position = 0; position < 512; position += 4) {
    const auto layout = mpa::MarkerLayout::at(position);
    for (std::size_t len = 1; len < 1100; ++len) {
      const std::size_t crc_at = mpa::fpdu_len(len) - 4;
      const auto whole = [&](std::size_t from, std::size_t octets) {
        return octets == 0 || layout.run_len(from) >= octets;
      };
      ASSERT_TRUE(whole(0, 2) && whole(2 + len, mpa::pad_len(len)) && whole(crc_at, 4)) << position << " " << len;
      for (std::size_t i = 0; i < layout.num_before(crc_at); ++i)
        if (layout.fpduptr(i) != 0) least = std::min(least, layout.fpduptr(i));
    }
  }
  EXPECT_EQ(least, 4);
}

}  // namespace
}  // namespace weft::conformance
