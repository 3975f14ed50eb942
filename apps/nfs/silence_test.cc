#include "apps/nfs/silence.h"

#include <gtest/gtest.h>

namespace weft::nfs {
namespace {

using News = SilenceWatch::News;
using std::chrono::milliseconds;
using std::chrono::seconds;

TimePoint at(int ms) {
  return TimePoint{} + seconds(1000) + milliseconds(ms);
}

TEST(SilenceWatch, TellsOnceOfEachSilenceAndOfItsEnd) {
  SilenceWatch watch(seconds(5));
  EXPECT_FALSE(watch.next());
  EXPECT_EQ(watch.look(true, 0, at(0)), News::kNone);
  EXPECT_EQ(watch.next(), at(5000));
  EXPECT_EQ(watch.look(true, 0, at(4999)), News::kNone);
  EXPECT_EQ(watch.look(true, 0, at(5000)), News::kSilent);
  EXPECT_FALSE(watch.next());
  EXPECT_EQ(watch.look(true, 0, at(60000)), News::kNone);
  EXPECT_EQ(watch.look(true, 1, at(61000)), News::kBack);
  EXPECT_EQ(watch.next(), at(66000));
  EXPECT_EQ(watch.look(true, 1, at(66000)), News::kSilent);
  EXPECT_EQ(watch.look(false, 2, at(66001)), News::kBack);
}

TEST(SilenceWatch, AnswersAndPausesWithoutCallsAreNoSilence) {
  SilenceWatch watch(seconds(5));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(watch.look(true, std::uint64_t(i), at(4000 * i)), News::kNone) << i;
  EXPECT_EQ(watch.look(false, 19, at(80000)), News::kNone);
  EXPECT_FALSE(watch.next());
  EXPECT_EQ(watch.look(false, 19, at(200000)), News::kNone);
  EXPECT_EQ(watch.look(true, 19, at(300000)), News::kNone);
  EXPECT_EQ(watch.next(), at(305000));
}

TEST(SilenceWatch, ACallThatEndsWithoutAnAnswerIsNoReturn) {
  SilenceWatch watch(seconds(5));
  watch.look(true, 0, at(0));
  EXPECT_EQ(watch.look(true, 0, at(5000)), News::kSilent);
  EXPECT_EQ(watch.look(false, 0, at(120000)), News::kNone);
  EXPECT_EQ(watch.look(true, 0, at(120001)), News::kNone);
  EXPECT_EQ(watch.look(true, 0, at(125001)), News::kSilent);
}

TEST(NotResponding, SaysWhatWasDiscardedAndWhatEndsTheWait) {
  EXPECT_EQ(not_responding("a", seconds(120), {}, {}),
            "server a is not responding, still trying (for 120 s in all: --timeout)");
  EXPECT_EQ(
      not_responding("a", milliseconds(500), {0, 2, "old"}, {0, 3, "RDMA_DONE"}),
      "server a is not responding (1 message had to be discarded, the last because: RDMA_DONE), still trying (for "
      "0.5 s in all: --timeout)");
  EXPECT_EQ(not_responding("a", seconds(1), {0, 1, ""}, {0, 8, "too short"}),
            "server a is not responding (7 messages had to be discarded, the last because: too short), still trying "
            "(for 1 s in all: --timeout)");
}

}  // namespace
}  // namespace weft::nfs
