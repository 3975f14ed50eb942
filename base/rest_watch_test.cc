#include "base/rest_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Watch = RestWatch<int>;

constexpr TimePoint kNow{std::chrono::hours(1)};
constexpr Duration kHalf = Watch::kRest / 2;

struct Objects {
  Watch watch;
  std::map<int, Watch::Mark> marks;
  int num_found = 0;

  void use(int who, TimePoint now) { watch.use(who, marks[who], now); }
  // The ones that have come to rest.
  std::vector<int> run(TimePoint now) {
    std::vector<int> rested;
    watch.run(
        now,
        [this](int who) {
          ++num_found;
          const auto at = marks.find(who);
          return at == marks.end() ? nullptr : &*at;
        },
        [](auto& object) -> Watch::Mark& { return object.second; },
        [&](auto& object) { rested.push_back(object.first); });
    return rested;
  }
  // The same, until all rest. Moves `now` on.
  std::vector<int> run_all(TimePoint& now) {
    std::vector<int> rested;
    while (watch.due()) {
      now = *watch.due();
      for (const int who : run(now)) rested.push_back(who);
    }
    return rested;
  }
};

TEST(RestWatch, AnObjectRestsOnceWhenNothingUsedItForAWholePeriod) {
  Objects objects;
  EXPECT_EQ(objects.watch.due(), std::nullopt);
  objects.use(7, kNow);
  EXPECT_EQ(objects.watch.due(), kNow + Watch::kRest);
  EXPECT_THAT(objects.run(kNow + kHalf), IsEmpty());
  EXPECT_THAT(objects.run(kNow + Watch::kRest), IsEmpty()) << "it was used in this period";
  EXPECT_THAT(objects.run(kNow + 2 * Watch::kRest), ElementsAre(7));
  EXPECT_EQ(objects.watch.due(), std::nullopt) << "nobody is woken for objects at rest";
  EXPECT_THAT(objects.run(kNow + 3 * Watch::kRest), IsEmpty());
}

TEST(RestWatch, AnObjectInUseDoesNotRest) {
  Objects objects;
  TimePoint now = kNow;
  for (int i = 0; i < 20; ++i, now += kHalf) {
    objects.use(7, now);
    EXPECT_THAT(objects.run(now), IsEmpty()) << i;
  }
  objects.use(8, now);
  EXPECT_THAT(objects.run_all(now), UnorderedElementsAre(7, 8));
  objects.use(7, now);
  EXPECT_THAT(objects.run_all(now), ElementsAre(7)) << "it rests again after another use";
}

TEST(RestWatch, OneThatIsGoneIsForgotten) {
  Objects objects;
  objects.use(7, kNow);
  objects.marks.clear();
  EXPECT_THAT(objects.run(kNow + Watch::kRest), IsEmpty());
  EXPECT_EQ(objects.watch.due(), std::nullopt);
}

// However many come to rest at once, and however often each was used: other work goes on between them.
TEST(RestWatch, LooksAtABoundedNumberAtATime) {
  Objects objects;
  constexpr int kNum = 1000;
  for (int use = 0; use < 10; ++use) {
    for (int who = 0; who < kNum; ++who) objects.use(who, kNow);
  }
  for (int i = 0; i < 4; ++i) objects.run(kNow + Watch::kRest);
  EXPECT_EQ(objects.num_found, kNum);
  std::size_t num_rested = 0;
  TimePoint now = kNow + 2 * Watch::kRest;
  while (objects.watch.due()) {
    ASSERT_LE(*objects.watch.due(), now);
    objects.num_found = 0;
    num_rested += objects.run(now).size();
    ASSERT_LE(objects.num_found, static_cast<int>(Watch::kMaxPerRun));
  }
  EXPECT_EQ(num_rested, static_cast<std::size_t>(kNum));
}

TEST(RestWatch, AUseWhileOthersAreLookedAtCounts) {
  Objects objects;
  constexpr int kNum = 300;
  for (int who = 0; who < kNum; ++who) objects.use(who, kNow);
  objects.run(kNow + Watch::kRest);
  objects.run(kNow + Watch::kRest);
  const TimePoint now = kNow + 2 * Watch::kRest;
  std::vector<int> rested = objects.run(now);
  ASSERT_EQ(rested.size(), Watch::kMaxPerRun);
  for (int who = 0; who < kNum; ++who) objects.use(who, now);  // those at rest, and those still to be looked at
  EXPECT_THAT(objects.run(now), IsEmpty());
  EXPECT_THAT(objects.run(now + Watch::kRest), IsEmpty());
  EXPECT_THAT(objects.run(now + Watch::kRest), IsEmpty());
  rested = objects.run(now + 2 * Watch::kRest);
  EXPECT_EQ(rested.size() + objects.run(now + 2 * Watch::kRest).size(), static_cast<std::size_t>(kNum));
}

}  // namespace
}  // namespace weft
