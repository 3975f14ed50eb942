// Thousands of schedules in all framings. They differ in the cuts between octets, the delayed direction and the side
// that runs first.
#include "tests/sim/conversation.h"
#include "tests/sim/framing.h"

namespace weft::sim {
namespace {

constexpr std::uint64_t kSchedules = 250;

class Schedules : public ::testing::TestWithParam<Framing> {
 protected:
  static WorldOptions options(std::uint64_t seed) {
    WorldOptions options;
    options.shared_staging = seed % 3 != 0;
    options.max_stall = seed % 2 == 0 ? 200 : 0;
    switch (seed % 4) {
      case 0: options.max_rx_chunk = options.max_tx_accept = 1; break;
      case 1: options.max_rx_chunk = 7; break;
      case 2: options.capacity = 1000; break;
      default: break;
    }
    return options;
  }
  static Conversation::Adjust adjust() {
    return [](rdmap::StreamConfig& a, rdmap::StreamConfig& b) { GetParam().apply(a, b); };
  }
};

TEST_P(Schedules, EverythingArrivesOnceAndInPlace) {
  for (std::uint64_t seed = 10'001; seed <= 10'000 + kSchedules; ++seed) {
    SCOPED_TRACE(label(seed));
    Conversation talk(seed, 5, options(seed), seed % 4 == 0 ? 200 : 3000, adjust());
    ASSERT_TRUE(talk.connect());
    EXPECT_EQ(talk.world.side[0]->established->crc, GetParam().crc);
    EXPECT_EQ(talk.world.side[0]->established->markers_rx, GetParam().markers_to_initiator);
    EXPECT_EQ(talk.world.side[0]->established->markers_tx, GetParam().markers_to_responder);
    ASSERT_TRUE(talk.talk());
    for (auto& chatter : talk.chatter) chatter->check();
    if (HasFatalFailure()) return;
    talk.end();
    if (HasFatalFailure()) return;
  }
}

TEST_P(Schedules, CutShortEverythingEndsOnce) {
  for (std::uint64_t seed = 20'001; seed <= 20'000 + kSchedules; ++seed) {
    SCOPED_TRACE(label(seed));
    Conversation talk(seed, 8, options(seed), seed % 4 == 0 ? 200 : 3000, adjust());
    ASSERT_TRUE(talk.connect());
    talk.talk(talk.world.random.between(1, 400));
    const std::size_t who = talk.world.random.between(0, 1);
    if (seed % 3 == 0) {
      talk.world.side[who]->stream.abort(talk.world.now);
    } else {
      HalfWire& half = talk.world.wire[who];
      half.octets.clear();
      half.reset = true;
    }
    for (auto& side : talk.world.side) side->stream.disconnect(talk.world.now);
    ASSERT_TRUE(talk.world.run_until([&] { return talk.world.both_closed(); }));
    for (auto& chatter : talk.chatter) chatter->check_cut_short();
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Framings, Schedules, ::testing::ValuesIn(all_framings()), framing_name);

}  // namespace
}  // namespace weft::sim
