#include "verbs-shim/soft/backlog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "verbs-shim/soft/testing/handles.h"

namespace weft::verbs::soft {
namespace {

using ::testing::ElementsAre;

struct BacklogTest : ::testing::Test {
  std::vector<Handle> delivered;
  Backlog backlog{2, [this](Handle who) { delivered.push_back(who); }};
};

TEST_F(BacklogTest, SoManyAreDeliveredAndTheRestWaits) {
  for (const Handle who : {kA, kB, kC, kD}) backlog.arrived(who);
  EXPECT_THAT(delivered, ElementsAre(kA, kB));
  backlog.answered(kB);
  EXPECT_THAT(delivered, ElementsAre(kA, kB, kC)) << "in the order of their arrival";
  backlog.answered(kB);
  EXPECT_EQ(delivered.size(), 3u);
}

TEST_F(BacklogTest, OneThatGoesWhileItWaitsIsNeverDelivered) {
  for (const Handle who : {kA, kB, kC, kD}) backlog.arrived(who);
  backlog.answered(kC);
  EXPECT_EQ(delivered.size(), 2u) << "no place was free";
  backlog.answered(kA);
  EXPECT_THAT(delivered, ElementsAre(kA, kB, kD));
}

TEST_F(BacklogTest, ASlotsNextConnectionHasARequestOfItsOwn) {
  backlog.arrived(kA);
  backlog.arrived({kA.index, kA.generation + 1});
  backlog.arrived(kB);
  EXPECT_EQ(delivered.size(), 2u);
  backlog.answered(kA);
  EXPECT_EQ(delivered.back(), kB);
}

}  // namespace
}  // namespace weft::verbs::soft
