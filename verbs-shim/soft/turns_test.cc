#include "verbs-shim/soft/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verbs-shim/soft/testing/handles.h"

namespace weft::verbs::soft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Look = Turns::Look;

std::vector<Handle> run(Turns& turns) {
  std::vector<Handle> had;
  turns.run_ready([&](Handle who) {
    had.push_back(who);
    return true;
  });
  return had;
}

std::vector<Handle> look(Turns& turns, Look found) {
  std::vector<Handle> looked;
  turns.run_hot([&](Handle who) {
    looked.push_back(who);
    return found;
  });
  return looked;
}

TEST(TurnsTest, AConnectionGetsOneTurnHoweverOftenItAsks) {
  Turns turns;
  EXPECT_FALSE(turns.any_ready());
  turns.ready(kB);
  turns.ready(kA);
  turns.ready(kB);
  EXPECT_TRUE(turns.any_ready());
  EXPECT_THAT(run(turns), ElementsAre(kB, kA));
  EXPECT_FALSE(turns.any_ready());
}

TEST(TurnsTest, AskingDuringATurnIsForTheNextRound) {
  Turns turns;
  turns.ready(kA);
  int num = 0;
  turns.run_ready([&](Handle who) {
    ++num;
    turns.ready(who);
    turns.ready(kB);
    return true;
  });
  EXPECT_EQ(num, 1);
  EXPECT_THAT(run(turns), ElementsAre(kA, kB));
}

TEST(TurnsTest, ATurnThatIsPutOffIsTheNextRoundsFirst) {
  Turns turns;
  turns.ready(kA);
  turns.ready(kB);
  turns.run_ready([&](Handle who) {
    if (who == kA) return false;
    turns.ready(kB);
    turns.ready(kA);
    return true;
  });
  EXPECT_THAT(run(turns), ElementsAre(kA, kB)) << "and has one place";
  EXPECT_FALSE(turns.any_ready());
}

TEST(TurnsTest, ASlotsNextConnectionAsksForItself) {
  Turns turns;
  turns.ready(kA);
  const Handle next{kA.index, kA.generation + 1};
  turns.ready(next);
  EXPECT_THAT(run(turns), ElementsAre(kA, next)) << "the first finds nothing";
  turns.ready(next);
  EXPECT_THAT(run(turns), ElementsAre(next));
}

TEST(TurnsTest, AnOpenConnectionIsHotUntilItWasEmptyForLong) {
  Turns turns;
  turns.opened(kA);
  for (std::uint32_t i = 0; i + 1 < Turns::kCoolAfter; ++i) look(turns, Look::kNothing);
  look(turns, Look::kMoved);
  for (std::uint32_t i = 0; i + 2 < Turns::kCoolAfter; ++i) look(turns, Look::kNothing);
  look(turns, Look::kSkipped);
  look(turns, Look::kNothing);
  EXPECT_THAT(look(turns, Look::kNothing), ElementsAre(kA)) << "a look that was skipped says nothing";
  EXPECT_THAT(look(turns, Look::kNothing), IsEmpty());
  turns.heat(kA);
  EXPECT_THAT(look(turns, Look::kNothing), ElementsAre(kA));
}

TEST(TurnsTest, WhatCannotBeLookedAtIsHotNoMore) {
  Turns turns;
  turns.opened(kA);
  turns.opened(kB);
  turns.run_hot([](Handle who) { return who == kA ? Look::kOver : Look::kNothing; });
  EXPECT_THAT(look(turns, Look::kNothing), ElementsAre(kB));
}

TEST(TurnsTest, WithManyOpenConnectionsNoneIsHot) {
  Turns turns;
  for (std::uint32_t i = 0; i < Turns::kMaxHot; ++i) turns.opened({i, 1});
  EXPECT_EQ(look(turns, Look::kMoved).size(), Turns::kMaxHot);
  turns.opened({Turns::kMaxHot, 1});
  look(turns, Look::kMoved);
  EXPECT_THAT(look(turns, Look::kMoved), IsEmpty());
  turns.heat(kA);
  EXPECT_THAT(look(turns, Look::kMoved), IsEmpty());
  turns.closed();
  turns.heat(kA);
  turns.heat(kA);
  EXPECT_THAT(look(turns, Look::kMoved), ElementsAre(kA));
}

TEST(TurnsTest, EpollIsAskedNowAndThenWhileSocketsAreHot) {
  Turns turns;
  EXPECT_TRUE(turns.epoll_due(false, false)) << "nothing is hot";
  turns.opened(kA);
  const auto looks_until_due = [&](bool moved, bool watched) {
    turns.epoll_asked();
    std::size_t num = 0;
    do {
      look(turns, Look::kNothing);
      ++num;
    } while (!turns.epoll_due(moved, watched));
    return num;
  };
  EXPECT_EQ(looks_until_due(false, false), Turns::kLooksSpinning + 1);
  EXPECT_EQ(looks_until_due(true, true), Turns::kLooksBusy + 1);
  EXPECT_EQ(looks_until_due(false, true), 1u) << "the caller may sleep next";
}

}  // namespace
}  // namespace weft::verbs::soft
