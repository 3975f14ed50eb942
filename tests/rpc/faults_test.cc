// One thing goes wrong at one place, for every place: each Call ends once, nothing stays reachable and nothing stays
// taken.
#include "tests/rpc/faults.h"

#include <set>

namespace weft::rpcrdma::testing {
namespace {

TEST_F(FaultsTest, NothingGoesWrongUnlessItIsMadeTo) {
  open();
  ask();
  run();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(endings[i].status, all[i].status) << "Call " << i;
    EXPECT_EQ(endings[i].is_right, all[i].status == CallStatus::kSuccess) << "Call " << i;
  }
  EXPECT_FALSE(closed);
  check_ends();
  // Each form occurred.
  const RequesterCounters& asked = requester->requester->counters();
  EXPECT_EQ(asked.calls_sent, all.size());
  EXPECT_GE(asked.read_chunks, 4u);
  if (has_continuation()) {
    EXPECT_GE(asked.continued_calls, 1u);
  }
  EXPECT_GE(asked.long_calls + asked.continued_calls, 3u);
  EXPECT_GE(asked.write_chunks, 3u);
  EXPECT_GE(asked.reply_chunks, has_continuation() ? 1u : 2u);
}

TEST_F(FaultsTest, TheConnectionIsCutBeforeAnyRequest) {
  open();
  ask();
  run();
  const std::size_t num_posts = memory.faults.posts;
  ASSERT_GT(num_posts, 30u);
  for (std::size_t n = 1; n <= num_posts; ++n) {
    for (const bool late : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "request " << n << (late ? ", completions late" : ""));
      ASSERT_NO_FATAL_FAILURE(open());
      memory.faults.cut_at = n;
      requester->qp.hold_completions = responder->qp.hold_completions = late;
      ask();
      for (int i = 0; late && i < 200; ++i) {
        turn();
        requester->qp.release();
        responder->qp.release();
      }
      run();
      EXPECT_TRUE(closed || late);
      EXPECT_EQ(closed, requester->qp.broken());
      std::size_t num_cut = 0;
      for (const Ending& ending : endings) num_cut += ending.status == CallStatus::kDisconnected ? 1 : 0;
      if (closed && !(has_continuation() && n == num_posts)) {  // the last one is a GRANT
        EXPECT_GE(num_cut, 1u);
      }
      check_ends();
      if (HasFailure()) return;
    }
  }
}

TEST_F(FaultsTest, AnyRequestCannotBePosted) {
  open();
  ask();
  run();
  const std::size_t num_posts = memory.faults.posts;
  for (std::size_t n = 1; n <= num_posts; ++n) {
    SCOPED_TRACE(::testing::Message() << "request " << n);
    ASSERT_NO_FATAL_FAILURE(open());
    memory.faults.fail_post_at = n;
    ask();
    run();
    EXPECT_TRUE(closed);
    check_ends();
    if (HasFailure()) return;
  }
}

TEST_F(FaultsTest, AnyRegistrationFails) {
  open();
  ask();
  run();
  const std::size_t num_registrations = memory.faults.registrations;
  ASSERT_GT(num_registrations, has_continuation() ? 10u : 15u);
  for (std::size_t n = 1; n <= num_registrations; ++n) {
    for (const bool for_good : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "registration " << n << (for_good ? " and all after it" : ""));
      ASSERT_NO_FATAL_FAILURE(open());
      memory.faults.fail_registration_at = n;
      memory.faults.and_all_later_ones = for_good;
      ask();
      run();
      // A failed registration costs one Call at most, unless a Reply needs it and then cannot be sent.
      std::size_t num_other = 0;
      for (std::size_t i = 0; i < all.size(); ++i) num_other += endings[i].status == all[i].status ? 0 : 1;
      if (!for_good && !closed) {
        EXPECT_LE(num_other, 1u);
      }
      check_ends();
      if (HasFailure()) return;
    }
  }
}

TEST_F(FaultsTest, NoCreditIsEverGivenBack) {
  open();
  never_answer = true;
  ask();
  run();
  for (const Ending& ending : endings) {
    EXPECT_TRUE(ending.status == CallStatus::kTimeout || ending.status == CallStatus::kDisconnected);
  }
  // A peer that is silent about all that it granted is given up.
  EXPECT_TRUE(closed);
  // Where credits count messages, a GRANT lets as many Calls go as there are credits.
  EXPECT_EQ(requester->qp.num_sends, has_continuation() ? 4u : 1u);
  check_ends();
}

TEST_F(FaultsTest, ReceivesThatAreTooSmall) {
  // The responder has been told of larger Receives than there are.
  open({.credits = 4, .inline_threshold = 4096, .reply_threshold = 4096}, kThreshold);
  ask();
  run();
  EXPECT_TRUE(closed);
  std::set<CallStatus> statuses;
  for (const Ending& ending : endings) statuses.insert(ending.status);
  EXPECT_TRUE(statuses.contains(CallStatus::kDisconnected));
  check_ends();
}

}  // namespace
}  // namespace weft::rpcrdma::testing
