#include "rpcrdma/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rpcrdma/testing/fake_verbs.h"

namespace weft::rpcrdma {
namespace {

struct BufferPoolTest : ::testing::Test {
  testing::FakeMemory memory;
  testing::FakePd pd{memory};
};

TEST_F(BufferPoolTest, GivesExactlyWhatWasAskedForInRegisteredMemory) {
  BufferPool pool(pd, 1 << 20, 4 << 20);
  for (const std::size_t len : {1ul, 1023ul, 1025ul, 4097ul, 1ul << 20}) {
    Buffer buffer = pool.take(len);
    ASSERT_EQ(buffer.octets().size(), len);
    const auto addr = reinterpret_cast<std::uintptr_t>(buffer.octets().data());
    EXPECT_NE(memory.find(buffer.lkey(), addr, len, verbs::Access::kLocalWrite), nullptr);
    EXPECT_EQ(memory.find(buffer.lkey(), addr, len, verbs::Access::kRemoteRead), nullptr);
  }
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(memory.num_remote(), 0u);
}

TEST_F(BufferPoolTest, LargeBuffersBeginAsFarIntoAPageAsCopiesFromItsStartLikeIt) {
  BufferPool pool(pd, 1 << 20, 4 << 20);
  for (const std::size_t len : {4096ul, 65536ul, 1ul << 20}) {
    Buffer buffer = pool.take(len);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.octets().data()) % 4096, 128u) << len;
    std::ranges::fill(buffer.octets(), std::uint8_t{0xa5});
  }
}

TEST_F(BufferPoolTest, RefusesBeyondItsBoundsAndRecovers) {
  BufferPool pool(pd, 1000, 2500);
  EXPECT_FALSE(pool.take(0));
  EXPECT_FALSE(pool.take(1001));
  Buffer a = pool.take(1000);
  Buffer b = pool.take(1000);
  EXPECT_FALSE(pool.take(501));
  Buffer c = pool.take(500);
  EXPECT_TRUE(c);
  a = Buffer();
  EXPECT_TRUE(pool.take(1000));
}

TEST_F(BufferPoolTest, WhatIsAttachedGoesWithItsBuffer) {
  BufferPool pool(pd, 1 << 20, 4 << 20);
  const auto first = std::make_shared<int>(1), second = std::make_shared<int>(2);
  Buffer buffer = pool.take(100);
  buffer.attach(first);
  Buffer moved = std::move(buffer);
  EXPECT_EQ(first.use_count(), 2);
  Buffer other = pool.take(100);
  other.attach(second);
  other = std::move(moved);
  EXPECT_EQ(second.use_count(), 1);
  EXPECT_EQ(first.use_count(), 2);
  other = Buffer();
  EXPECT_EQ(first.use_count(), 1);
}

TEST_F(BufferPoolTest, KeepsBuffersForTheNextTaker) {
  BufferPool pool(pd, 1 << 20, 8 << 20);
  const std::uint8_t* first = pool.take(100000).octets().data();
  EXPECT_EQ(pool.take(100001).octets().data(), first);
  EXPECT_EQ(memory.size(), 1u);
}

TEST_F(BufferPoolTest, TrimGivesBackWhatNobodyTookSinceTheLastOne) {
  BufferPool pool(pd, 1 << 20, 16 << 20);
  {
    std::vector<Buffer> taken;
    for (int i = 0; i < 8; ++i) taken.push_back(pool.take(1 << 20));
    for (int i = 0; i < 8; ++i) taken.push_back(pool.take(2000));
  }
  const std::size_t all = pool.registered();
  EXPECT_GE(all, std::size_t{8} << 20);
  EXPECT_TRUE(pool.trim());
  EXPECT_EQ(pool.registered(), all) << "they were in use a moment ago";
  {
    const Buffer one = pool.take(1 << 20), two = pool.take(1 << 20);
    EXPECT_TRUE(pool.trim());
    EXPECT_EQ(pool.registered(), std::size_t{2} << 20);
  }
  EXPECT_TRUE(pool.trim());
  EXPECT_FALSE(pool.trim());
  EXPECT_EQ(pool.registered(), 0u);
  EXPECT_EQ(memory.size(), 0u);
  EXPECT_TRUE(pool.take(1 << 20));
}

TEST_F(BufferPoolTest, IdleBuffersMakeRoomForOtherSizes) {
  BufferPool pool(pd, 1 << 20, 1 << 20);
  for (std::size_t len = 1000; len < (1 << 20); len += 50000) ASSERT_TRUE(pool.take(len)) << len;
  EXPECT_LT(memory.size(), 8u);
}

TEST_F(BufferPoolTest, SurvivesFailingRegistration) {
  BufferPool pool(pd, 1 << 20, 1 << 20);
  pd.fail_registration = true;
  EXPECT_FALSE(pool.take(100));
  pd.fail_registration = false;
  EXPECT_TRUE(pool.take(100));
}

TEST_F(BufferPoolTest, ReadSinksMayNeedTheRightToBeWritten) {
  BufferPool pool(pd, 1 << 20, 1 << 20, true);
  Buffer buffer = pool.take(100);
  EXPECT_EQ(memory.num_remote(), 1u);
}

}  // namespace
}  // namespace weft::rpcrdma
