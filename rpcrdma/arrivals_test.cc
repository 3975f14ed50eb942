#include "rpcrdma/arrivals.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::rpcrdma {
namespace {

struct ArrivalsTest : ::testing::Test {
  static constexpr std::size_t kPlaces = 100;  // of each group
  static constexpr TimePoint at(int ms) { return TimePoint(std::chrono::milliseconds(ms)); }
  // Newcomers of the group end others of it, as many as may now.
  int num_ends(TimePoint now, const std::string& group = "one") {
    int num = 0;
    for (; num < 1000 && arrivals.may_end(group, now); ++num) arrivals.on_end(group, kPlaces, now);
    return num;
  }
  void add(int newcomer, const std::string& group = "one") {
    EXPECT_EQ(arrivals.add(group, kPlaces, newcomer), std::nullopt);
  }

  Arrivals<int> arrivals{9};
};

TEST_F(ArrivalsTest, AConnectionLastsForTwoSecondsOnAverage) {
  EXPECT_EQ(num_ends(at(0)), 26) << "a quarter of them, and the one whose turn it is";
  int num = 0;
  for (int ms = 1; ms <= 10000; ++ms) num += num_ends(at(ms));
  EXPECT_EQ(num, 500);
  EXPECT_EQ(num_ends(at(60000)), 26) << "more than half a second is not saved up";
}

TEST_F(ArrivalsTest, AGroupWithOneConnectionHasATurnEachHalfASecond) {
  int num = 0;
  for (int ms = 0; ms < 10000; ++ms) {
    if (!arrivals.may_end("one", at(ms))) continue;
    arrivals.on_end("one", 1, at(ms));
    ++num;
  }
  EXPECT_EQ(num, 21);
}

TEST_F(ArrivalsTest, GroupsTakeNoTurnsFromEachOther) {
  num_ends(at(0));
  add(1);
  EXPECT_EQ(num_ends(at(0), "other"), 26);
}

TEST_F(ArrivalsTest, TheyHaveTheirTurnsInOrder) {
  num_ends(at(0));
  EXPECT_EQ(arrivals.next(), std::nullopt) << "no newcomer waits";
  add(1);
  add(2);
  EXPECT_EQ(arrivals.size(), 2u);
  ASSERT_EQ(arrivals.next(), at(20));
  EXPECT_EQ(arrivals.take_due(at(19)), std::nullopt);
  EXPECT_FALSE(arrivals.may_end("one", at(20))) << "two are before it";
  EXPECT_EQ(arrivals.take_due(at(20)), 1);
  arrivals.on_end("one", kPlaces, at(20));
  EXPECT_EQ(arrivals.take_due(at(20)), std::nullopt);
  EXPECT_EQ(arrivals.take_due(at(40)), 2);
  EXPECT_EQ(arrivals.next(), std::nullopt);
}

TEST_F(ArrivalsTest, TheGroupWhoseTurnIsFirstIsFirst) {
  num_ends(at(10), "late");
  num_ends(at(0), "early");
  add(1, "late");
  add(2, "early");
  EXPECT_EQ(arrivals.next(), at(20));
  EXPECT_EQ(arrivals.take_due(at(100)), 2);
  EXPECT_EQ(arrivals.take_due(at(100)), 1);
}

TEST_F(ArrivalsTest, WhereALineIsFullItsFirstGoesInAtOnce) {
  num_ends(at(0));
  for (int i = 0; i < 4; ++i) add(i);
  EXPECT_EQ(arrivals.add("one", kPlaces, 4), 0);
  EXPECT_EQ(arrivals.add("one", kPlaces, 5), 1);
  EXPECT_EQ(arrivals.num_of("one"), 4u);
}

TEST_F(ArrivalsTest, AQuarterAsManyWaitAsTheGroupHasConnections) {
  num_ends(at(0));
  EXPECT_EQ(arrivals.add("one", 3, 1), 1);
  EXPECT_EQ(arrivals.add("one", 8, 1), std::nullopt);
  EXPECT_EQ(arrivals.add("one", 8, 2), std::nullopt);
  EXPECT_EQ(arrivals.add("one", 8, 3), 1);
}

// Each end takes its time from now on, not from the ends before it.
TEST_F(ArrivalsTest, EndsThatWaitForNoTurnPutItOffNoFurther) {
  for (int i = 0; i < 10000; ++i) arrivals.on_end("one", kPlaces, at(0));
  add(1);
  EXPECT_EQ(arrivals.next(), at(20));
  for (int i = 0; i < 10000; ++i) arrivals.on_end("two", 1, at(0));
  EXPECT_TRUE(arrivals.may_end("two", at(500)));
}

TEST_F(ArrivalsTest, WhereAllLinesAreFullANewcomerOfAnotherGroupGoesInAtOnce) {
  for (const char* group : {"one", "two", "three"}) num_ends(at(0), group);
  for (int i = 0; i < 4; ++i) add(i, "one");
  for (int i = 0; i < 2; ++i) add(10 + i, "two");
  EXPECT_EQ(arrivals.add("two", kPlaces, 12), 10) << "it takes no place of another group";
  add(20, "three");
  EXPECT_EQ(arrivals.add("three", kPlaces, 21), 20);
  EXPECT_EQ(arrivals.add("four", kPlaces, 30), 30);
}

TEST_F(ArrivalsTest, AFreePlaceIsForTheFirstOfItsGroup) {
  for (const char* group : {"one", "two"}) num_ends(at(0), group);
  add(1, "one");
  add(2, "two");
  add(3, "two");
  const auto has_place = [](const std::string& group) { return group == "two"; };
  EXPECT_EQ(arrivals.take_if(has_place), 2);
  EXPECT_EQ(arrivals.take_if(has_place), 3);
  EXPECT_EQ(arrivals.take_if(has_place), std::nullopt);
}

TEST_F(ArrivalsTest, OneThatLeavesIsInNobodysWay) {
  num_ends(at(0));
  for (int i = 0; i < 4; ++i) add(i);
  arrivals.drop_if([](int newcomer) { return newcomer == 0; });
  EXPECT_EQ(arrivals.num_of("one"), 3u);
  add(4);
  EXPECT_EQ(arrivals.take_due(at(20)), 1);
  arrivals.drop_if([](int) { return true; });
  EXPECT_EQ(arrivals.next(), std::nullopt);
  EXPECT_EQ(num_ends(at(1000)), 26);
}

TEST_F(ArrivalsTest, GroupsThatWereHereAreForgotten) {
  for (int i = 0; i < 1000; ++i) num_ends(at(i), std::to_string(i));
  num_ends(at(10000));
  EXPECT_EQ(arrivals.num_groups(), 1u);
}

}  // namespace
}  // namespace weft::rpcrdma
