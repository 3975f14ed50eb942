#include "apps/common/progress.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

namespace weft::apps {
namespace {

// FakeEngine counts its turns; its descriptor is readable from the start, so that no test sleeps.
struct FakeEngine {
  FakeEngine() : descriptor(eventfd(1, EFD_CLOEXEC)) {}
  ~FakeEngine() { close(descriptor); }
  std::size_t process(TimePoint) {
    ++turns;
    return moves;
  }
  std::optional<TimePoint> next_timeout() const {
    ++asked;
    return std::nullopt;
  }
  int fd() const { return descriptor; }

  int descriptor;
  int turns = 0;
  mutable int asked = 0;
  std::size_t moves = 0;
};

TEST(Progress, SpinNeverAsksWhenToWake) {
  FakeEngine engine;
  Progress progress(ProgressMode::kSpin, nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(progress.turn(engine), 0u);
  EXPECT_EQ(engine.turns, 3);
  EXPECT_EQ(engine.asked, 0);
}

TEST(Progress, BlockSleepsOnlyWhenThereWasNothingToDo) {
  FakeEngine engine;
  Progress progress(ProgressMode::kBlock, nullptr, std::chrono::microseconds(0));
  engine.moves = 5;
  EXPECT_EQ(progress.turn(engine), 5u);
  EXPECT_EQ(engine.asked, 0);
  engine.moves = 0;
  EXPECT_EQ(progress.turn(engine), 0u);
  EXPECT_EQ(engine.asked, 1);
}

TEST(Progress, ASignalEndsTheSleepAndIsRemembered) {
  FakeEngine engine;
  eventfd_t value = 0;
  eventfd_read(engine.descriptor, &value);  // nothing but the signal can wake it now
  StopSignals stop;
  Progress progress(ProgressMode::kBlock, &stop, std::chrono::microseconds(0));
  EXPECT_FALSE(progress.stop_requested());
  raise(SIGTERM);
  EXPECT_TRUE(progress.stop_requested());
  wait_readable({engine.fd(), stop.fd()}, std::nullopt);
  EXPECT_EQ(progress.turn(engine), 0u);
}

TEST(StopSignals, TheSecondSignalRemovesTheUnfinishedFile) {
  std::string path = "/tmp/weft-signals-XXXXXX";
  const int fd = ::mkstemp(path.data());
  ASSERT_GE(fd, 0);
  ::close(fd);
  const auto is_there = [&path] { return ::access(path.c_str(), F_OK) == 0; };
  EXPECT_EXIT(
      {
        StopSignals stop;
        remove_when_killed(path);
        raise(SIGINT);
        raise(SIGTERM);
        if (is_there() && stop.requested()) raise(SIGTERM);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGTERM), "");
  EXPECT_FALSE(is_there());
}

// The end of a terminal stops its programs in order, too, but not a program that nohup started.
TEST(StopSignals, AHangUpStopsAProgramThatDoesNotIgnoreIt) {
  {
    StopSignals stop;
    raise(SIGHUP);
    EXPECT_EQ(stop_signal(), SIGHUP);
  }
  EXPECT_EXIT(die_by(stop_signal()), ::testing::KilledBySignal(SIGHUP), "");
  signal(SIGHUP, SIG_IGN);
  {
    StopSignals stop;
    raise(SIGHUP);
    EXPECT_EQ(stop_signal(), 0);
  }
  EXPECT_EQ(signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(StopSignals, TheFirstSignalIsRememberedAndTheProcessDiesByIt) {
  {
    StopSignals stop;
    EXPECT_EQ(stop_signal(), 0);
    raise(SIGTERM);
    raise(SIGINT);
    EXPECT_EQ(stop_signal(), SIGTERM);
  }
  EXPECT_EQ(stop_signal(), SIGTERM);
  EXPECT_EXIT(die_by(stop_signal()), ::testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(
      {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, nullptr);
        StopSignals stop;
        die_by(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
  StopSignals next;
  EXPECT_EQ(stop_signal(), 0);
}

TEST(Progress, AnExtraDescriptorAndADeadlineEndTheSleep) {
  FakeEngine engine;
  eventfd_t value = 0;
  eventfd_read(engine.descriptor, &value);
  Progress progress(ProgressMode::kBlock, nullptr, std::chrono::microseconds(0));
  int extra = eventfd(1, EFD_CLOEXEC);
  progress.turn(engine, std::nullopt, extra);
  progress.turn(engine, std::chrono::steady_clock::now());
  EXPECT_EQ(engine.turns, 2);
  close(extra);
}

// A polling thread that adapts sleeps within its budget, and the count says so.
TEST(Progress, AdaptSleepsWhereTheWaitIsLong) {
  FakeEngine engine;
  Progress progress(ProgressMode::kAdapt, nullptr);
  while (engine.asked == 0) EXPECT_EQ(progress.turn(engine), 0u);
  EXPECT_GT(engine.turns, 1);
  EXPECT_EQ(progress.waits().waits, 1u);
  EXPECT_EQ(progress.waits().sleeps, 1u);
  engine.moves = 1;
  progress.turn(engine);
  engine.moves = 0;
  progress.turn(engine);
  EXPECT_EQ(progress.waits().waits, 2u);
  EXPECT_EQ(progress.waits().sleeps, 1u);
  EXPECT_EQ(progress.waits().sleep_share(), 0.5);
}

}  // namespace
}  // namespace weft::apps
