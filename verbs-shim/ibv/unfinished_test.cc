#include "verbs-shim/ibv/unfinished.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace weft::verbs::ibv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Unfinished, LeavesBehindWhatHasNotCompleted) {
  Unfinished queue(4);
  for (std::uint64_t i = 0; i < 4; ++i) queue.add(i, Reported::kToUser);
  queue.on_completion(0, true);
  queue.add(4, Reported::kToUser);  // around the end of the ring
  queue.on_completion(1, false);
  EXPECT_THAT(queue.take_all(), ElementsAre(2, 3, 4));
  EXPECT_THAT(queue.take_all(), IsEmpty());
}

TEST(Unfinished, SuccessCoversTheUnsignaledBeforeIt) {
  Unfinished queue(8);
  queue.add(7, Reported::kNot);
  queue.add(7, Reported::kNot);
  queue.add(7, Reported::kToUser);
  queue.add(7, Reported::kNot);
  queue.on_completion(7, true);
  EXPECT_THAT(queue.take_all(), ElementsAre(7)) << "they may all have one name";
}

TEST(Unfinished, EachErrorIsOfOne) {
  Unfinished queue(8);
  for (std::uint64_t i = 0; i < 3; ++i) queue.add(i, Reported::kNot);
  queue.on_completion(0, false);
  EXPECT_THAT(queue.take_all(), ElementsAre(1, 2));
}

TEST(Unfinished, CompletionOfWhatIsNotThereTakesNothing) {
  Unfinished queue(8);
  queue.add(1, Reported::kToUser);
  queue.add(2, Reported::kNot);
  queue.on_completion(9, true);
  queue.on_completion(2, true);  // an unsignaled one has none
  EXPECT_THAT(queue.take_all(), ElementsAre(1, 2));
}

TEST(Unfinished, RefusedOneIsTakenBack) {
  Unfinished queue(8);
  queue.add(1, Reported::kToUser);
  queue.add(2, Reported::kToUser);
  queue.take_back();
  EXPECT_THAT(queue.take_all(), ElementsAre(1));
}

TEST(Unfinished, CompletionsOfOurOwnAreTheOldestOfTheirKind) {
  Unfinished queue(8);
  queue.add(7, Reported::kToUser);  // a Read, which completes last
  queue.add(7, Reported::kToUs);
  queue.add(8, Reported::kToUs);
  queue.add(7, Reported::kToUser);
  EXPECT_EQ(queue.on_our_completion(), 7u);
  EXPECT_EQ(queue.on_our_completion(), 8u);
  EXPECT_EQ(queue.on_our_completion(), std::nullopt);
  EXPECT_THAT(queue.take_all(), ElementsAre(7));
}

TEST(Unfinished, CompletionOfTheUsersIsNeverOneOfOurs) {
  Unfinished queue(8);
  queue.add(7, Reported::kToUs);
  queue.add(7, Reported::kNot);
  queue.on_completion(7, true);  // of neither
  EXPECT_THAT(queue.take_all(), ElementsAre(7, 7));
  queue.add(7, Reported::kToUs);
  queue.add(7, Reported::kNot);
  queue.add(9, Reported::kToUs);
  queue.on_completion(7, false);  // of the second
  EXPECT_THAT(queue.take_all(), ElementsAre(9));
}

TEST(Unfinished, FullQueueSaysSo) {
  Unfinished queue(2);
  EXPECT_TRUE(queue.add(1, Reported::kToUs));
  EXPECT_TRUE(queue.add(2, Reported::kNot));
  EXPECT_FALSE(queue.add(3, Reported::kToUs));
  EXPECT_EQ(queue.on_our_completion(), 1u);
  EXPECT_TRUE(queue.add(3, Reported::kToUs));
  EXPECT_THAT(queue.take_all(), ElementsAre(2, 3));
}

}  // namespace
}  // namespace weft::verbs::ibv
