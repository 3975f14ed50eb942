#include "rpcrdma/round_trip.h"

#include <gtest/gtest.h>

namespace weft::rpcrdma {
namespace {

using std::chrono::microseconds;

TimePoint at(int us) {
  return TimePoint{} + std::chrono::seconds(1000) + microseconds(us);
}

TEST(RoundTrip, TheShortestSampleCounts) {
  RoundTrip round_trip;
  EXPECT_EQ(round_trip.shortest(), Duration::zero());
  int now = 0;
  const auto call = [&](int taken) {
    now += 1000;
    round_trip.on_sent(1, 1);
    round_trip.on_time(at(now));
    round_trip.on_time(at(now + 5));
    round_trip.on_reply(1, at(now + taken));
  };
  call(50);
  EXPECT_EQ(round_trip.shortest(), microseconds(50));
  for (const auto& [taken, shortest] : {std::pair{70, 50}, {20, 20}, {30, 20}}) {
    const auto before = round_trip.shortest();
    for (std::uint32_t i = 1; i < RoundTrip::kEvery; ++i) call(1);
    EXPECT_EQ(round_trip.shortest(), before) << "these are not timed";
    call(taken);
    EXPECT_EQ(round_trip.shortest(), microseconds(shortest));
  }
}

TEST(RoundTrip, ACallWithAReadChunkCrossesTwice) {
  RoundTrip round_trip;
  round_trip.on_sent(1, 2);
  round_trip.on_time(at(0));
  round_trip.on_reply(1, at(50));
  EXPECT_EQ(round_trip.shortest(), microseconds(25));
}

TEST(RoundTrip, OneCallIsTimedAfterTheOther) {
  RoundTrip round_trip;
  round_trip.on_sent(1, 1);
  round_trip.on_time(at(0));
  round_trip.on_sent(2, 1);
  round_trip.on_reply(2, at(5));
  EXPECT_EQ(round_trip.shortest(), Duration::zero()) << "it is not timed";
  round_trip.forget(2);
  round_trip.on_reply(1, at(40));
  EXPECT_EQ(round_trip.shortest(), microseconds(40));
}

TEST(RoundTrip, WhatSaysNothingIsNoSample) {
  RoundTrip round_trip;
  round_trip.on_sent(1, 1);
  round_trip.on_reply(1, at(10));
  EXPECT_EQ(round_trip.shortest(), Duration::zero()) << "its Reply came in the turn of its Send";
  round_trip.on_sent(2, 1);
  round_trip.on_time(at(20));
  round_trip.forget(2);
  round_trip.on_reply(2, at(30));
  EXPECT_EQ(round_trip.shortest(), Duration::zero());
  round_trip.on_sent(3, 1);
  round_trip.on_time(at(50));
  round_trip.on_reply(3, at(50));
  EXPECT_EQ(round_trip.shortest(), Duration::zero()) << "no time went by";
  round_trip.on_sent(4, 1);
  round_trip.on_time(at(60));
  round_trip.on_reply(4, at(61));
  EXPECT_EQ(round_trip.shortest(), microseconds(1));
}

}  // namespace
}  // namespace weft::rpcrdma
