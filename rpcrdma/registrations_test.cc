#include "rpcrdma/registrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;

// A handle counts once, however it ended.
TEST(RegistrationsTest, AHandleEndsOnce) {
  FakeMemory memory;
  RequesterEnd end(memory, {.windows = true});
  Octets octets(100);
  Registrations registrations;
  Segment one, other;
  for (Segment* segment : {&one, &other}) {
    ASSERT_TRUE(
        registrations.add(end.pd, true, octets.data(), octets.size(), verbs::Access::kRemoteWrite, *segment).ok());
  }
  EXPECT_EQ(registrations.num_to_bind(), 2u);
  EXPECT_FALSE(registrations.on_invalidated(one.handle)) << "not bound yet";
  ASSERT_TRUE(registrations.bind(*end.endpoint));
  EXPECT_EQ(registrations.num_live(), 2u);
  EXPECT_THAT(registrations.live_handles(), ElementsAre(one.handle, other.handle));
  EXPECT_FALSE(registrations.on_invalidated(other.handle + 1));
  EXPECT_TRUE(registrations.on_invalidated(one.handle));
  EXPECT_FALSE(registrations.on_invalidated(one.handle));
  EXPECT_EQ(registrations.num_live(), 1u);
  ASSERT_TRUE(registrations.post_invalidations(*end.endpoint, ReceiveSlot{0}));
  EXPECT_EQ(end.qp.local_invalidations, std::vector<std::uint32_t>{other.handle});
  EXPECT_FALSE(registrations.on_invalidated(other.handle));
  EXPECT_EQ(registrations.num_live(), 0u);
  EXPECT_TRUE(registrations.live_handles().empty());
  registrations.clear();
  EXPECT_EQ(registrations.num_to_bind(), 0u);
  EXPECT_EQ(memory.num_windows(), 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
