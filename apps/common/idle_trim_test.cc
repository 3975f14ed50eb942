#include "apps/common/idle_trim.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::apps {
namespace {

using std::chrono::seconds;

class IdleTrimTest : public ::testing::Test {
 protected:
  void work(std::uint64_t num_turns) {
    for (std::uint64_t i = 0; i < num_turns; ++i) EXPECT_FALSE(trim.on_turn(now, true));
  }
  // Wakes only when the trim is due, as a loop without work does. The periods since the beginning of the rest after
  // which memory was trimmed.
  std::vector<std::int64_t> rest() {
    std::vector<std::int64_t> out;
    const TimePoint begin = now;
    for (int i = 0; i < 1000 && trim.due(); ++i) {
      EXPECT_GE(*trim.due(), now);
      now = *trim.due();
      if (trim.on_turn(now, false)) out.push_back((now - begin) / IdleTrim::kPeriod);
    }
    EXPECT_FALSE(trim.due()) << "the loop would wake for ever";
    return out;
  }

  IdleTrim trim;
  TimePoint now{seconds(1000)};
};

TEST_F(IdleTrimTest, AServerWithoutWorkSleeps) {
  EXPECT_FALSE(trim.on_turn(now, false));
  EXPECT_FALSE(trim.due());
  now += seconds(1000);
  EXPECT_FALSE(trim.on_turn(now, false));
  EXPECT_FALSE(trim.due());
}

TEST_F(IdleTrimTest, MemoryIsTrimmedAfterTheWorkAndAgainForWhatGoesLater) {
  trim.on_turn(now, false);
  work(10000);
  // The first period is the one with the work.
  EXPECT_EQ(rest(), (std::vector<std::int64_t>{2, 5, 17, 65}));
  now += seconds(1000);
  EXPECT_EQ(rest(), std::vector<std::int64_t>{});
  work(10000);
  EXPECT_EQ(rest().size(), 4u);
}

TEST_F(IdleTrimTest, NotInTheMiddleOfTheWork) {
  trim.on_turn(now, false);
  for (int i = 0; i < 100; ++i) {
    work(1000);
    now += IdleTrim::kPeriod;
    EXPECT_FALSE(trim.on_turn(now, true));
  }
  now += IdleTrim::kPeriod;
  EXPECT_TRUE(trim.on_turn(now, true));
}

TEST_F(IdleTrimTest, AFewCallsAreNoWork) {
  trim.on_turn(now, false);
  std::uint64_t num = 0;
  int num_trims = 0;
  for (int period = 0; period < 1000; ++period) {
    work(10);
    num += 11;
    EXPECT_EQ(trim.due().has_value(), num_trims % 4 != 0);
    now += IdleTrim::kPeriod;
    num_trims += trim.on_turn(now, true);
    if (num <= IdleTrim::kWorthATrim) {
      EXPECT_EQ(num_trims, 0) << period;
    }
  }
  EXPECT_EQ(num_trims, 0) << "11 turns in a period";
  for (int period = 0; period < 1000; ++period) {
    work(10);
    now += IdleTrim::kPeriod;
    num_trims += trim.on_turn(now, true);
  }
  EXPECT_EQ(num_trims, 4) << "but in the end it is";
}

TEST_F(IdleTrimTest, AClientWithAFewCallsDoesNotStopIt) {
  trim.on_turn(now, false);
  work(10000);
  now += IdleTrim::kPeriod;
  EXPECT_FALSE(trim.on_turn(now, true));
  int num_trims = 0;
  for (int period = 0; period < 64; ++period) {
    work(100);
    now += IdleTrim::kPeriod;
    num_trims += trim.on_turn(now, true);
  }
  EXPECT_EQ(num_trims, 4);
}

}  // namespace
}  // namespace weft::apps
