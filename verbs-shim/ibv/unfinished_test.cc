#include "verbs-shim/ibv/unfinished.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::verbs::ibv {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Unfinished, LeavesBehindWhatHasNotCompleted) {
  Unfinished queue(4);
  for (std::uint64_t i = 0; i < 4; ++i) queue.add(i, true);
  queue.on_completion(0, true);
  queue.add(4, true);  // around the end of the ring
  queue.on_completion(1, false);
  EXPECT_THAT(queue.take_all(), ElementsAre(2, 3, 4));
  EXPECT_THAT(queue.take_all(), IsEmpty());
}

TEST(Unfinished, SuccessCoversTheUnsignaledBeforeIt) {
  Unfinished queue(8);
  queue.add(7, false);
  queue.add(7, false);
  queue.add(7, true);
  queue.add(7, false);
  queue.on_completion(7, true);
  EXPECT_THAT(queue.take_all(), ElementsAre(7)) << "they may all have one name";
}

TEST(Unfinished, EachErrorIsOfOne) {
  Unfinished queue(8);
  for (std::uint64_t i = 0; i < 3; ++i) queue.add(i, false);
  queue.on_completion(0, false);
  EXPECT_THAT(queue.take_all(), ElementsAre(1, 2));
}

TEST(Unfinished, CompletionOfWhatIsNotThereTakesNothing) {
  Unfinished queue(8);
  queue.add(1, true);
  queue.add(2, false);
  queue.on_completion(9, true);
  queue.on_completion(2, true);  // an unsignaled one has none
  EXPECT_THAT(queue.take_all(), ElementsAre(1, 2));
}

TEST(Unfinished, RefusedOneIsTakenBack) {
  Unfinished queue(8);
  queue.add(1, true);
  queue.add(2, true);
  queue.take_back();
  EXPECT_THAT(queue.take_all(), ElementsAre(1));
}

}  // namespace
}  // namespace weft::verbs::ibv
