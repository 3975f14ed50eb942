#include "apps/common/spin_budget.h"

#include <gtest/gtest.h>

#include "apps/common/address.h"

namespace weft::apps {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Duration = SpinBudget::Duration;

// FakeThread waits with a look every microsecond, unless something else runs on its core.
struct FakeThread {
  SpinBudget budget;
  TimePoint now{milliseconds(1000)};

  // Polls until the budget is used up, at most a second; returns how long it polled.
  Duration wait(std::optional<Duration> lost_after = std::nullopt, Duration lost_for = milliseconds(3)) {
    const TimePoint began = now;
    while (budget.may_spin(began, now) && now - began < milliseconds(1000)) {
      const bool lost = lost_after && now - began >= *lost_after;
      if (lost) lost_after.reset();
      now += lost ? lost_for : Duration(microseconds(1));
    }
    return now - began;
  }
};

TEST(SpinBudget, WaitsAreBoundedByWhereThePeerIs) {
  EXPECT_EQ((FakeThread{SpinBudget(PeerPlace::kThisMachine, 2)}.wait()), SpinBudget::kForLocalPeer);
  EXPECT_EQ((FakeThread{SpinBudget(PeerPlace::kElsewhere, 2)}.wait()), SpinBudget::kForRemotePeer);
  EXPECT_EQ((FakeThread{SpinBudget(PeerPlace::kElsewhere, 1)}.wait()), SpinBudget::kForRemotePeer);
  // The peer needs the only core.
  EXPECT_EQ((FakeThread{SpinBudget(PeerPlace::kThisMachine, 1)}.wait()), SpinBudget::kLeast);
}

TEST(SpinBudget, AThreadThatLosesItsCorePollsLittleForAWhile) {
  FakeThread thread{SpinBudget(PeerPlace::kElsewhere, 2)};
  EXPECT_EQ(thread.wait(), SpinBudget::kForRemotePeer);
  thread.wait(microseconds(10));
  EXPECT_EQ(thread.budget.num_lost(), 1u);
  const TimePoint lost_at = thread.now;
  EXPECT_EQ(thread.wait(), SpinBudget::kLeast);
  thread.now = lost_at + SpinBudget::kFirstPause - microseconds(50);
  EXPECT_EQ(thread.wait(), SpinBudget::kLeast);
  thread.now = lost_at + SpinBudget::kFirstPause;
  EXPECT_EQ(thread.wait(), SpinBudget::kForRemotePeer);
}

TEST(SpinBudget, WhereItIsLostAgainAndAgainThePausesGrow) {
  FakeThread thread{SpinBudget(PeerPlace::kThisMachine, 2)};
  Duration pause = SpinBudget::kFirstPause;
  for (int i = 0; i < 10; ++i) {
    thread.wait(microseconds(1));
    const TimePoint lost_at = thread.now;
    thread.now = lost_at + pause - microseconds(50);
    EXPECT_EQ(thread.wait(), SpinBudget::kLeast) << i;
    thread.now = lost_at + pause;
    pause = std::min(2 * pause, SpinBudget::kLongestPause);
  }
  EXPECT_EQ(thread.budget.num_lost(), 10u);
  // Quiet for long: the next gap counts as the first.
  thread.now += 2 * SpinBudget::kLongestPause;
  thread.wait(microseconds(1));
  thread.now += SpinBudget::kFirstPause;
  EXPECT_EQ(thread.wait(), SpinBudget::kForLocalPeer);
}

TEST(SpinBudget, ShortGapsAndTimeBetweenWaitsAreNoLoss) {
  FakeThread thread{SpinBudget(PeerPlace::kThisMachine, 2)};
  thread.wait(microseconds(10), SpinBudget::kGap - microseconds(1));
  for (int i = 0; i < 5; ++i) {
    thread.now += milliseconds(50);
    thread.wait();
  }
  EXPECT_EQ(thread.budget.num_lost(), 0u);
}

TEST(SpinBudget, KnowsTheAddressesOfThisMachine) {
  EXPECT_EQ(place_of(*resolve_address("127.0.0.1:1")), PeerPlace::kThisMachine);
  EXPECT_EQ(place_of(*resolve_address("127.1.2.3:1")), PeerPlace::kThisMachine);
  EXPECT_EQ(place_of(*resolve_address("[::1]:1")), PeerPlace::kThisMachine);
  // No interface has an address that is reserved for documentation (RFC 5737, RFC 3849).
  EXPECT_EQ(place_of(*resolve_address("192.0.2.1:1")), PeerPlace::kElsewhere);
  EXPECT_EQ(place_of(*resolve_address("[2001:db8::1]:1")), PeerPlace::kElsewhere);
  EXPECT_GE(cores_of_this_process(), 1u);
}

}  // namespace
}  // namespace weft::apps
