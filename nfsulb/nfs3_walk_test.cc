// The walk over arguments and results, on NFS version 3: one item each way at most, so that its rules stand alone.
#include <gtest/gtest.h>

#include "nfsulb/nfs3.h"
#include "nfsulb/testing/octets.h"

namespace weft::nfsulb {
namespace {

using testing::bound_reply;
using testing::walk_arguments;
using testing::walk_results;
using testing::Walked;
using testing::Xdr;

constexpr std::uint32_t kReadlink = 5, kRead = 6, kWrite = 7, kSymlink = 10, kReaddir = 16, kReaddirplus = 17;

const rpcrdma::Binding& nfs3() {
  return nfs3_binding();
}

Xdr write_args(std::uint32_t len) {
  return Xdr().opaque(32).u64(0).u32(len).u32(0).missing(len);
}
Xdr attr() {
  return Xdr().u32(1).fixed(84);
}
Xdr read_res(std::uint32_t len) {
  return Xdr().u32(0).add(attr()).u32(len).u32(1).missing(len);
}

TEST(Nfs3Walk, ArgumentsInlineAndReduced) {
  RecordProperty("proves", "U1-4-01");
  const Xdr reduced = write_args(1001);
  Xdr whole = reduced;
  whole.fixed(1001);
  const auto inline_walk = walk_arguments(nfs3(), kWrite, whole.octets());
  ASSERT_EQ(inline_walk.walked, Walked::kWhole);
  ASSERT_EQ(inline_walk.items.size(), 1u);
  EXPECT_EQ(inline_walk.items[0].position, reduced.size());
  EXPECT_EQ(inline_walk.items[0].len, 1001u);
  EXPECT_FALSE(inline_walk.items[0].reduced);
  const auto reduced_walk = walk_arguments(nfs3(), kWrite, reduced.octets(), {reduced.size()});
  ASSERT_EQ(reduced_walk.walked, Walked::kWhole);
  EXPECT_TRUE(reduced_walk.items.at(0).reduced);
  EXPECT_EQ(reduced_walk.items[0].position, reduced.size());
  EXPECT_EQ(reduced_walk.items[0].offset, reduced.size());
}

TEST(Nfs3Walk, ReducedAnywhereElseIsGarbage) {
  RecordProperty("proves", "U1-4-05");
  const Xdr reduced = write_args(8);
  EXPECT_EQ(walk_arguments(nfs3(), kWrite, reduced.octets()).walked, Walked::kGarbage);  // nothing said to be missing
  for (const std::size_t position : {std::size_t{0}, reduced.size() - 4, reduced.size() + 4}) {
    EXPECT_EQ(walk_arguments(nfs3(), kWrite, reduced.octets(), {position}).walked, Walked::kGarbage) << position;
  }
  const auto twice = walk_arguments(nfs3(), kWrite, reduced.octets(), {reduced.size(), reduced.size()});
  EXPECT_EQ(twice.walked, Walked::kGarbage);
  const Xdr lookup = Xdr().opaque(32).missing(5);  // its name in a Read chunk
  EXPECT_EQ(walk_arguments(nfs3(), 3, lookup.octets(), {lookup.size()}).walked, Walked::kGarbage);
}

TEST(Nfs3Walk, AnEmptyItemMayHaveAnEmptyChunk) {
  const Xdr args = write_args(0);
  EXPECT_EQ(walk_arguments(nfs3(), kWrite, args.octets()).walked, Walked::kWhole);
  const auto walk = walk_arguments(nfs3(), kWrite, args.octets(), {args.size()});
  EXPECT_EQ(walk.walked, Walked::kWhole);
  EXPECT_TRUE(walk.items.at(0).reduced);
}

TEST(Nfs3Walk, ResultsInlineAndReduced) {
  RecordProperty("proves", "U1-4-03");
  const Xdr reduced = read_res(7);
  Xdr whole = reduced;
  whole.fixed(7);
  const auto inline_walk = walk_results(nfs3(), kRead, whole.octets());
  ASSERT_EQ(inline_walk.walked, Walked::kWhole);
  ASSERT_TRUE(inline_walk.items.at(0));
  EXPECT_EQ(inline_walk.items[0]->position, reduced.size());
  EXPECT_FALSE(inline_walk.items[0]->reduced);
  const auto reduced_walk = walk_results(nfs3(), kRead, reduced.octets(), {7});
  ASSERT_EQ(reduced_walk.walked, Walked::kWhole);
  EXPECT_TRUE(reduced_walk.items.at(0)->reduced);
  EXPECT_EQ(reduced_walk.items[0]->len, 7u);
  EXPECT_EQ(walk_results(nfs3(), kRead, whole.octets(), {0, 0}).walked, Walked::kWhole);
}

TEST(Nfs3Walk, ChunksThatDoNotFitTheResultsAreGarbage) {
  const Xdr reduced = read_res(7);
  EXPECT_EQ(walk_results(nfs3(), kRead, reduced.octets(), {8}).walked, Walked::kGarbage);
  EXPECT_EQ(walk_results(nfs3(), kRead, reduced.octets(), {7, 4}).walked, Walked::kGarbage);
  EXPECT_EQ(walk_results(nfs3(), kRead, reduced.octets()).walked, Walked::kGarbage);
  const Xdr failed = Xdr().u32(5).add(attr());
  EXPECT_EQ(walk_results(nfs3(), kRead, failed.octets(), {4}).walked, Walked::kGarbage);
  EXPECT_EQ(walk_results(nfs3(), 1, Xdr().u32(5).octets(), {4}).walked, Walked::kGarbage);  // GETATTR has no item
}

TEST(Nfs3Walk, AFailedReadHasAnEntryWithoutAnItem) {
  const auto walk = walk_results(nfs3(), kRead, Xdr().u32(70).u32(0).octets(), {0});
  EXPECT_EQ(walk.walked, Walked::kWhole);
  ASSERT_EQ(walk.items.size(), 1u);
  EXPECT_FALSE(walk.items[0]);
}

TEST(Nfs3Walk, TextOfLinksIsEligible) {
  RecordProperty("proves", "U1-4-02 U1-4-04");
  const Xdr readlink = Xdr().u32(0).add(attr()).missing(900);
  EXPECT_EQ(walk_results(nfs3(), kReadlink, readlink.octets(), {900}).walked, Walked::kWhole);
  const Xdr symlink = Xdr().opaque(32).opaque(3).words({0, 0, 0, 0, 0, 0}).missing(900);
  EXPECT_EQ(walk_arguments(nfs3(), kSymlink, symlink.octets(), {symlink.size()}).walked, Walked::kWhole);
}

Xdr entry(std::size_t name, bool plus) {
  Xdr entry = Xdr().u32(1).u64(9).opaque(name).u64(10);
  if (plus) entry.add(attr()).u32(1).opaque(64);
  return entry;
}

TEST(Nfs3Walk, DirectoriesAreWalkedToTheirEnd) {
  for (const bool plus : {false, true}) {
    Xdr results = Xdr().u32(0).add(attr()).fixed(8);
    for (const std::size_t name : {1u, 5u, 255u}) results.add(entry(name, plus));
    results.u32(0).u32(1);
    const std::uint32_t procedure = plus ? kReaddirplus : kReaddir;
    EXPECT_EQ(walk_results(nfs3(), procedure, results.octets()).walked, Walked::kWhole);
    EXPECT_TRUE(walk_results(nfs3(), procedure, results.octets()).items.empty());
    for (std::size_t len = 0; len < results.size(); ++len) {
      const testing::Octets cut(results.octets().begin(), results.octets().begin() + static_cast<std::ptrdiff_t>(len));
      EXPECT_EQ(walk_results(nfs3(), procedure, cut).walked, Walked::kGarbage) << len;
    }
    EXPECT_EQ(walk_results(nfs3(), procedure, Xdr(results).u32(0).octets()).walked, Walked::kGarbage);
  }
}

TEST(Nfs3Walk, UnknownProcedures) {
  EXPECT_EQ(walk_arguments(nfs3(), 22, {}).walked, Walked::kUnknown);
  EXPECT_EQ(walk_results(nfs3(), 22, {}).walked, Walked::kUnknown);
  EXPECT_EQ(bound_reply(nfs3(), 22, {}).walked, Walked::kUnknown);
}

TEST(Nfs3Walk, BoundsOfItemsFollowTheCall) {
  RecordProperty("proves", "U1-3-03 U1-3-05");
  const auto read = bound_reply(nfs3(), kRead, Xdr().opaque(8).u64(0).u32(4096).octets());
  EXPECT_EQ(read.rest, 104u);
  EXPECT_EQ(read.items, std::vector<std::size_t>{4096});
  EXPECT_FALSE(read.is_estimate);
  const auto readlink = bound_reply(nfs3(), kReadlink, Xdr().opaque(8).octets(), {.max_text = 200});
  EXPECT_EQ(readlink.items, std::vector<std::size_t>{200});
  EXPECT_TRUE(readlink.is_estimate);
  const Xdr write = write_args(5000);
  EXPECT_EQ(bound_reply(nfs3(), kWrite, write.octets(), {}, {write.size()}).rest, 136u);
}

TEST(Nfs3Walk, WhatMayRunTwice) {
  EXPECT_TRUE(bound_reply(nfs3(), kRead, Xdr().opaque(8).u64(0).u32(1).octets()).idempotent);
  EXPECT_FALSE(bound_reply(nfs3(), 12, Xdr().opaque(8).opaque(1).octets()).idempotent);
  EXPECT_FALSE(bound_reply(nfs3(), 1, Xdr().opaque(8).octets()).may_retry);
  EXPECT_FALSE(bound_reply(nfs3(), kReadlink, Xdr().opaque(8).octets()).may_retry);
  EXPECT_TRUE(bound_reply(nfs3(), kReadlink, Xdr().opaque(8).octets()).may_retry_once);
  EXPECT_FALSE(bound_reply(nfs3(), 1, Xdr().opaque(8).octets()).may_retry_once) << "XDR limits it";
  EXPECT_FALSE(bound_reply(nfs3(), kRead, Xdr().opaque(8).u64(0).u32(1).octets()).may_retry_once)
      << "nobody could place more than was asked for";
}

}  // namespace
}  // namespace weft::nfsulb
