#include "ddp/untagged_queue.h"

#include <gtest/gtest.h>

namespace weft::ddp {
namespace {

UntaggedHeader header(std::uint32_t msn, std::uint32_t mo, bool last = true) {
  return {.last = last, .msn = {msn}, .mo = mo};
}

TEST(UntaggedQueue, CountsAMessageOfSeveralSegments) {
  UntaggedQueue queue(Msn{0xffffffff});
  EXPECT_EQ(queue.check(header(0xffffffff, 0, false), 100, 300), std::nullopt);
  EXPECT_EQ(queue.advance(header(0xffffffff, 0, false), 100), std::nullopt);
  EXPECT_TRUE(queue.open());
  EXPECT_EQ(queue.received(), 100u);
  EXPECT_EQ(queue.check(header(0xffffffff, 100), 200, 300), std::nullopt);
  EXPECT_EQ(queue.advance(header(0xffffffff, 100), 200), 300u);
  EXPECT_FALSE(queue.open());
  EXPECT_EQ(queue.msn(), Msn{0});
  EXPECT_EQ(queue.received(), 0u);
}

TEST(UntaggedQueue, TheFirstFailureDecides) {
  const UntaggedQueue queue;
  EXPECT_EQ(queue.check(header(2, 9), 999, std::nullopt), Error::kMsnRange);
  EXPECT_EQ(queue.check(header(0, 0), 1, 64), Error::kMsnRange);
  EXPECT_EQ(queue.check(header(1, 9), 999, std::nullopt), Error::kNoBuffer);
  EXPECT_EQ(queue.check(header(1, 9), 999, 64), Error::kInvalidMo);
  EXPECT_EQ(queue.check(header(1, 0), 999, 64), Error::kMessageTooLong);
  EXPECT_EQ(queue.check(header(1, 0), 64, 64), std::nullopt);
  EXPECT_EQ(queue.check(header(1, 0), 0, 0), std::nullopt);
}

TEST(UntaggedQueue, EmptySegmentsAreCheckedLikeAnyOthers) {
  UntaggedQueue queue;
  EXPECT_EQ(queue.check(header(1, 0x10000000), 0, 4096), Error::kInvalidMo);
  EXPECT_EQ(queue.check(header(1, 0), 0, std::nullopt), Error::kNoBuffer);
  queue.advance(header(1, 0, false), 4096);
  EXPECT_EQ(queue.check(header(1, 4096), 0, 4096), std::nullopt);
  EXPECT_EQ(queue.check(header(1, 4096), 1, 4096), Error::kMessageTooLong);
  EXPECT_EQ(queue.check(header(1, 4095), 1, 4096), Error::kInvalidMo);
  EXPECT_EQ(queue.advance(header(1, 4096), 0), 4096u);
}

TEST(UntaggedQueue, NoMessageReaches2To32Octets) {
  UntaggedQueue queue;
  queue.advance(header(1, 0, false), 0xfffffff0);
  EXPECT_EQ(queue.check(header(1, 0xfffffff0), 15, UINT64_MAX), std::nullopt);
  EXPECT_EQ(queue.check(header(1, 0xfffffff0), 16, UINT64_MAX), Error::kMessageTooLong);
}

TEST(UntaggedQueue, OnlyThreeQueuesExistAndAFourthWithAtomics) {
  for (std::uint32_t qn = 0; qn < 3; ++qn) EXPECT_EQ(check_qn(qn), std::nullopt);
  EXPECT_EQ(check_qn(3), Error::kInvalidQn);
  EXPECT_EQ(check_qn(0xffffffff), Error::kInvalidQn);
  EXPECT_EQ(check_qn(3, kNumQueuesWithAtomics), std::nullopt);
  EXPECT_EQ(check_qn(4, kNumQueuesWithAtomics), Error::kInvalidQn);
}

}  // namespace
}  // namespace weft::ddp
