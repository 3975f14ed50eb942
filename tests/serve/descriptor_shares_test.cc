#include "apps/serve/descriptor_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <string>
#include <string_view>

#include "apps/serve/backend/backend.h"
#include "apps/serve/mount/mount_server.h"

namespace weft::serve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kOwn = 40;
constexpr DescriptorShares kMost{.connections = 1024,
                                 .open_files = 1024,
                                 .mount_connections = 128,
                                 .sync_workers = 128,
                                 .waiting = 256,
                                 .silent = 1024,
                                 .lingering = 1024};

ShareWish wish_of(std::uint64_t limit, unsigned disk_workers) {
  return {.limit = limit, .own = kOwn, .disk_workers = disk_workers, .most = kMost};
}

// The most descriptors that the server has open at once.
std::size_t sum_of(const DescriptorShares& shares, unsigned disk_workers) {
  const std::size_t tasks = disk_workers * Backend::kDescriptorsOfCall +
                            shares.sync_workers * Backend::kDescriptorsOfChange + Backend::kDescriptorsOfCallNow;
  return kOwn + tasks + shares.connections + shares.waiting + shares.silent + shares.lingering +
         OpenFiles::num_descriptors(shares.open_files) + shares.mount_connections + MountServer::kMoreDescriptors;
}

// The limit that a refusal names.
std::uint64_t needed(const ShareWish& wish) {
  const auto refused = share_descriptors(wish);
  EXPECT_FALSE(refused.ok());
  const std::string text(refused.status().message());
  constexpr std::string_view kBefore = "at least ";
  std::uint64_t out = 0;
  const std::size_t at = text.find(kBefore);
  EXPECT_NE(at, text.npos) << text;
  if (at != text.npos) std::from_chars(text.data() + at + kBefore.size(), text.data() + text.size(), out);
  return out;
}

TEST(DescriptorShares, EverythingThatCanBeOpenAtOnceFitsInTheLimit) {
  for (const unsigned workers : {2u, 4u, 8u, 64u, 256u}) {
    const std::uint64_t least = needed(wish_of(0, workers));
    for (std::uint64_t limit = least; limit <= 4096; ++limit) {
      const auto shares = share_descriptors(wish_of(limit, workers));
      ASSERT_TRUE(shares.ok()) << limit << " with " << workers << " workers: " << shares.status();
      ASSERT_LE(sum_of(*shares, workers), limit) << workers << " workers";
      ASSERT_GE(shares->connections, 16u) << limit;
      ASSERT_GE(shares->open_files, kLeastShares.open_files) << limit;
      ASSERT_GE(shares->mount_connections, kLeastShares.mount_connections) << limit;
      ASSERT_GE(shares->sync_workers, kLeastShares.sync_workers) << limit;
      ASSERT_GE(shares->waiting, kLeastShares.waiting) << limit;
      ASSERT_GE(shares->silent, kLeastShares.silent) << limit;
      ASSERT_GE(shares->lingering, kLeastShares.lingering) << limit;
    }
  }
}

TEST(DescriptorShares, TheLimitThatARefusalNamesIsTheLeastThatWorks) {
  for (const unsigned workers : {2u, 4u, 8u, 64u, 256u}) {
    const std::uint64_t least = needed(wish_of(24, workers));
    EXPECT_TRUE(share_descriptors(wish_of(least, workers)).ok()) << workers;
    EXPECT_EQ(needed(wish_of(least - 1, workers)), least) << workers;
  }
  EXPECT_EQ(needed(wish_of(24, 5)) - needed(wish_of(24, 4)), Backend::kDescriptorsOfCall);
}

TEST(DescriptorShares, TheLeastLimitLeavesNothingOver) {
  const std::uint64_t least = needed(wish_of(0, 4));
  EXPECT_EQ(sum_of(*share_descriptors(wish_of(least, 4)), 4), least);
}

TEST(DescriptorShares, ANumberOfConnectionsLeavesTheTasksTheirPart) {
  ShareWish wish = wish_of(1024, 4);
  wish.connections = 16000;
  const auto many = share_descriptors(wish);
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(std::string(many.status().message()),
              AllOf(HasSubstr("--max-connections 16000 needs"), HasSubstr("allow at most ")));
  // As many as there can be beside everything else at its least.
  wish.connections = 1024 - (needed(wish_of(0, 4)) - 16);
  const auto all = share_descriptors(wish);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->connections, *wish.connections);
  EXPECT_EQ(all->sync_workers, kLeastShares.sync_workers);
  EXPECT_EQ(sum_of(*all, 4), 1024u);
  ++*wish.connections;
  EXPECT_FALSE(share_descriptors(wish).ok());
}

TEST(DescriptorShares, AHighLimitGivesTheMostOfEverything) {
  for (const std::uint64_t limit : {std::uint64_t{1} << 20, UINT64_MAX}) {
    const auto shares = share_descriptors(wish_of(limit, 4));
    ASSERT_TRUE(shares.ok());
    EXPECT_EQ(shares->connections, kMost.connections);
    EXPECT_EQ(shares->open_files, kMost.open_files);
    EXPECT_EQ(shares->mount_connections, kMost.mount_connections);
    EXPECT_EQ(shares->sync_workers, kMost.sync_workers);
    EXPECT_EQ(shares->silent, kMost.silent);
    EXPECT_EQ(shares->lingering, kMost.lingering);
  }
}

}  // namespace
}  // namespace weft::serve
