// Hundreds of seeded conversations between two streams: every operation, every split, checked to the octet.
#include "tests/sim/conversation.h"

namespace weft::sim {
namespace {

TEST(Pair, SeededConversations) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(label(seed));
    WorldOptions options;
    options.shared_staging = seed % 3 != 0;
    options.capacity = seed % 2 == 0 ? 8000 : 300'000;
    options.max_rx_chunk = seed % 5 == 0 ? 300 : 100'000;
    Conversation talk(seed, 30, options);
    ASSERT_TRUE(talk.connect());
    ASSERT_TRUE(talk.talk());
    for (auto& chatter : talk.chatter) chatter->check();
    if (HasFatalFailure()) return;
    talk.end();
    if (HasFatalFailure()) return;
  }
}

TEST(Pair, OneOctetAtATime) {
  for (std::uint64_t seed = 1001; seed <= 1020; ++seed) {
    SCOPED_TRACE(label(seed));
    Conversation talk(seed, 8, {.max_rx_chunk = 1, .max_tx_accept = 1, .shared_staging = seed % 2 == 0}, 600);
    ASSERT_TRUE(talk.connect());
    ASSERT_TRUE(talk.talk(20'000'000));
    for (auto& chatter : talk.chatter) chatter->check();
    if (HasFatalFailure()) return;
    talk.end();
    if (HasFatalFailure()) return;
  }
}

TEST(Pair, DisconnectSendsWhatIsQueued) {
  for (std::uint64_t seed = 2001; seed <= 2100; ++seed) {
    SCOPED_TRACE(label(seed));
    Conversation talk(seed, 20, {});
    ASSERT_TRUE(talk.connect());
    while (!talk.chatter[0]->all_posted()) talk.chatter[0]->post();
    talk.world.side[0]->stream.disconnect(talk.world.now);
    ASSERT_TRUE(talk.world.run_until([&] { return talk.world.both_closed(); }));
    talk.chatter[0]->check();
    if (HasFatalFailure()) return;
    EXPECT_EQ(talk.world.side[0]->closed[0].reason, rdmap::CloseReason::kLocal);
    EXPECT_EQ(talk.world.side[1]->closed[0].reason, rdmap::CloseReason::kGraceful)
        << talk.world.side[1]->closed[0].text;
  }
}

// Something goes wrong in the middle.
void break_it(World& world) {
  const std::size_t who = world.random.between(0, 1);
  Side& side = *world.side[who];
  switch (world.random.between(0, 8)) {
    case 0: side.stream.abort(world.now); break;
    case 1:
      for (HalfWire& half : world.wire) {
        half.octets.clear();
        half.reset = true;
      }
      break;
    case 2: side.memory.regions[kSource].pd = 99; break;
    case 3: side.memory.regions[kTarget].pd = 99; break;
    case 4: side.memory.regions[kSink].pd = 99; break;
    case 5:
      world.damaged = !side.recvs.posted.empty();
      side.recvs.posted.clear();
      break;
    case 6: side.stream.disconnect(world.now); break;
    case 7:
      if (world.wire[who].octets.empty()) break;
      world.wire[who].octets[world.random.between(0, world.wire[who].octets.size() - 1)] ^= 0x10;
      world.damaged = true;
      break;
    case 8: side.memory.regions[kWords].pd = 99; break;
  }
}

TEST(Pair, BrokenConversationsEndEverythingOnce) {
  for (std::uint64_t seed = 3001; seed <= 3400; ++seed) {
    SCOPED_TRACE(label(seed));
    Conversation talk(seed, 30, {.max_rx_chunk = seed % 2 == 0 ? 400u : 100'000u});
    ASSERT_TRUE(talk.connect());
    talk.talk(talk.world.random.between(1, 600));
    break_it(talk.world);
    talk.talk(talk.world.random.between(1, 200));
    for (auto& side : talk.world.side) side->stream.disconnect(talk.world.now);
    ASSERT_TRUE(talk.world.run_until([&] { return talk.world.both_closed(); }));
    for (auto& side : talk.world.side) {
      ASSERT_EQ(side->closed.size(), 1u);
      ASSERT_FALSE(side->stream.next_timeout());
      ASSERT_EQ(side->stream.post_send({}), rdmap::PostResult::kNotConnected);
    }
    for (auto& chatter : talk.chatter) chatter->check_cut_short();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace weft::sim
