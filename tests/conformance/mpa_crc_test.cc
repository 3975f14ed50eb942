// CRCs by RFC 5044 section 4.4, as far as single FPDUs and the vectors do not show them.
#include "mpa/crc32c.h"
#include "tests/conformance/mpa_ends.h"

namespace weft::conformance {
namespace {

using rdmap::testing::Side;

TEST(MpaFraming, WithoutConfigurationThereAreCrcs) {
  RecordProperty("proves", "MPA-1.2-01 MPA-4.4-01 MPA-4.4-02 MPA-4.4-05");
  for (const std::uint8_t revision : Octets{1, 2}) {
    rdmap::StreamConfig config;
    config.mpa_revision = revision;
    Side initiator(config);
    initiator.stream.start_initiator({}, initiator.recvs, {});
    EXPECT_EQ(initiator.transmit({})[kFlagsAt] & kC, kC);
  }
  for (const bool initiator : {true, false}) {
    for (const bool peer_c : {true, false}) {
      End end(initiator, initiator ? revision_1() : rdmap::StreamConfig{}, false, peer_c);
      EXPECT_EQ(end.ours[kFlagsAt] & kC, kC);
      end.receive(sim::frame_fpdu(a_write()), end.now);
      for (std::size_t len = 0; len < 8; ++len) {
        end.write(ramp(len));
        const Octets fpdu = end.transmit(end.now);
        ASSERT_EQ(mpa::parse_crc(ConstBytes(fpdu).last<4>()), mpa::crc32c(ConstBytes(fpdu).first(fpdu.size() - 4)));
      }
      end.receive(with_junk_crc(a_write()), end.now);
      const auto answer = sim::deframe(end.transmit(end.now));
      ASSERT_EQ(answer.size(), 1u);
      EXPECT_EQ(Octets(answer[0].begin() + 18, answer[0].begin() + 20), (Octets{0x20, 0x02}));
    }
  }
}

TEST(MpaFraming, CrcsAreOffWhereBothEndsSaySoAndOnlyThere) {
  RecordProperty("proves", "MPA-4.1-06 MPA-4.4-03 MPA-4.4-04 MPA-4.4-06 MPA-4.4-10 MPA-4.4-11 MPA-4.4-12");
  for (const bool initiator : {true, false}) {
    for (const bool ours : {true, false}) {
      for (const bool theirs : {true, false}) {
        End end(initiator, revision_1(ours), false, theirs);
        EXPECT_EQ((end.ours[kFlagsAt] & kC) != 0, ours || (theirs && !initiator))
            << "C of a Reply tells whether CRCs are in use";
        // The very first FPDU has a wrong CRC, and so has the next.
        for (int i = 0; i < 2; ++i) end.receive(with_junk_crc(a_write()), end.now);
        const bool checked = ours || theirs;
        EXPECT_EQ(end.stream.counters().writes_rx, checked ? 0u : 2u);
        end.drain();
        if (checked) {
          const auto answer = sim::deframe(end.transmit(end.now));
          ASSERT_EQ(answer.size(), 1u);
          EXPECT_EQ(Octets(answer[0].begin() + 18, answer[0].begin() + 20), (Octets{0x20, 0x02}));
          continue;
        }
        end.write(ramp(5));
        EXPECT_EQ(end.transmit(end.now).size(), 2 + 14 + 5 + 3 + 4u) << "the field is there all the same";
      }
    }
  }
}

TEST(MpaFraming, APeerThatWantsCrcsHasThemToTheEnd) {
  RecordProperty("proves", "MPA-4.4-09");
  End end(true, revision_1(false), false, true);
  ASSERT_TRUE(end.established);
  EXPECT_TRUE(end.established->crc);
  std::size_t num_fpdus = 0;
  while (num_fpdus < 100'000) {
    for (int i = 0; i < 200; ++i) end.write({});
    const Octets batch = end.transmit(end.now);
    ASSERT_EQ(batch.size(), 200u * 20);
    for (std::size_t at = 0; at < batch.size(); at += 20, ++num_fpdus) {
      const auto fpdu = ConstBytes(batch).subspan(at, 20);
      ASSERT_EQ(mpa::parse_crc(fpdu.last<4>()), mpa::crc32c(fpdu.first(16))) << num_fpdus;
    }
    end.drain();
  }
  for (int i = 0; i < 1000; ++i) end.receive(sim::frame_fpdu(a_write()), end.now);
  EXPECT_FALSE(end.stream.wants_tx());
  end.receive(with_junk_crc(a_write()), end.now);
  EXPECT_EQ(end.stream.counters().writes_rx, 1000u);
  const auto answer = sim::deframe(end.transmit(end.now));
  ASSERT_EQ(answer.size(), 1u);
  EXPECT_EQ(Octets(answer[0].begin() + 18, answer[0].begin() + 20), (Octets{0x20, 0x02}));
}

TEST(MpaFraming, TheLayersAboveDoNotSeeWhetherThereAreCrcsOrMarkers) {
  RecordProperty("proves", "MPA-4.4-08 MPA-4.3-15");
  std::vector<Octets> reference;
  for (const bool crc : {true, false}) {
    for (const bool markers : {true, false}) {
      End sender(true, revision_1(crc), markers, crc);
      End receiver(false, revision_1(crc, markers), false, crc);
      auto& target = receiver.memory.add_simple(7, 0, 0, 3000);
      std::vector<Octets> seen;
      for (std::size_t len = 1; len <= 3000; len += 7) {
        sender.write(ramp(len, static_cast<std::uint8_t>(len)));
        receiver.receive(sender.transmit(sender.now), receiver.now, 1000);
        seen.push_back(target.octets);
        ASSERT_EQ(Octets(target.octets.begin(), target.octets.begin() + static_cast<std::ptrdiff_t>(len)),
                  ramp(len, static_cast<std::uint8_t>(len)));
      }
      EXPECT_FALSE(receiver.stream.wants_tx());
      if (reference.empty()) reference = seen;
      EXPECT_EQ(seen, reference);
    }
  }
}

}  // namespace
}  // namespace weft::conformance
