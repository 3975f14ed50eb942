// How large the Reply to a COMPOUND can be, and whether it may be asked for again.
#include <gtest/gtest.h>

#include <array>

#include "nfsulb/nfs4_attributes.h"
#include "nfsulb/testing/compound.h"
#include "rpcrdma/rpc_message.h"

namespace weft::nfsulb {
namespace {

using namespace testing;
using rpcrdma::kPlainReplyHeader;
using rpcrdma::ReplyLimits;

constexpr std::size_t kHead = 12 + 8;  // status, a tag of five octets, number of results

Bounded bound_of(std::uint32_t minor_version, const std::vector<Xdr>& operations, const ReplyLimits& limits = {}) {
  return bound_reply(nfs4(), kCompound, compound_args(minor_version, operations).octets(), limits);
}
std::vector<std::uint32_t> bitmap_of(std::uint32_t attribute) {
  std::vector<std::uint32_t> bitmap(attribute / 32 + 1);
  bitmap.back() = 1u << (attribute % 32);
  return bitmap;
}
Xdr remove() {
  return op(kOpRemove, Xdr().opaque(3));
}

TEST(Nfs4Bound, SumOfTheOperations) {
  RecordProperty("proves", "U1-3-03");
  const auto bound = bound_of(0, {putfh(), read(4096), op(kOpReadlink), op(kOpGetfh), read(17)}, {.max_text = 300});
  ASSERT_EQ(bound.walked, Walked::kWhole);
  EXPECT_EQ(bound.rest, kHead + 8 + 16 + 12 + 140 + 16);
  EXPECT_EQ(bound.items, (std::vector<std::size_t>{4096, 300, 17}));
}

TEST(Nfs4Bound, AttributesByTheirBits) {
  // type, size and owner; numlinks and owner_group; 16 octets of op, status and counts, and three words of bits.
  const auto bound = bound_of(0, {getattr({0x12, 0x8 | 0x10})}, {.max_text = 100});
  EXPECT_EQ(bound.rest, kHead + 16 + 12 + 4 + 8 + 4 + 104);
  EXPECT_TRUE(bound.is_estimate);
  const auto fixed_only = bound_of(0, {getattr({0x12, 0x8})});
  EXPECT_EQ(fixed_only.rest, kHead + 16 + 12 + 4 + 8 + 4);
  EXPECT_FALSE(fixed_only.is_estimate);
}

TEST(Nfs4Bound, AnAttributeThatComesAfterAllOthersHasNoType) {
  EXPECT_NE(attribute_type(82), nullptr);
  EXPECT_EQ(attribute_type(83), nullptr);
}

TEST(Nfs4Bound, EachOperationByItsOwnArguments) {
  const std::size_t none = bound_of(0, {getattr({})}).rest - kHead;
  const std::size_t one = bound_of(0, {getattr({0x12})}).rest - kHead;
  EXPECT_EQ(none, 16u + 12);
  EXPECT_EQ(bound_of(0, {getattr({0x12}), getattr({}), getattr({0, 0x8})}).rest, kHead + one + none + none + 4);
}

TEST(Nfs4Bound, WhatHasNoLimitIsAnEstimate) {
  RecordProperty("proves", "U1-6.2-01 U1-6.2.1-01 U1-6.2.1-02 R1-8.2-02");
  constexpr ReplyLimits kLimits = {.max_text = 8, .max_unbounded = 5000};
  // acl, fs_locations, dacl, sacl, fs_layout_types, layout_types, fs_locations_info, sec_label.
  for (const std::uint32_t attribute : {12u, 24u, 58u, 59u, 62u, 64u, 67u, 80u}) {
    const auto bound = bound_of(0, {getattr(bitmap_of(attribute))}, kLimits);
    EXPECT_TRUE(bound.is_estimate) << attribute;
    const bool short_list = attribute == 62 || attribute == 64;
    EXPECT_GE(bound.rest, kHead + 28 + (short_list ? 68u : 5000u)) << attribute;
    EXPECT_LE(bound.rest, kHead + 28 + 5012) << attribute;
  }
  // A bit that no attribute has may stand for anything.
  for (const std::uint32_t attribute : {95u, 96u, 200u}) {
    const auto bound = bound_of(0, {getattr(bitmap_of(attribute))}, kLimits);
    EXPECT_TRUE(bound.is_estimate);
    EXPECT_GE(bound.rest, kHead + 16 + 4 * bitmap_of(attribute).size() + 5000);
  }
}

TEST(Nfs4Bound, LayoutsByTheirMaxcount) {
  RecordProperty("proves", "U1-6.2-02");
  const auto layoutget = bound_of(1, {op(kOpLayoutget, Xdr().words({0, 1, 1}).fixed(40).u32(8192))});
  ASSERT_EQ(layoutget.walked, Walked::kWhole);
  EXPECT_TRUE(layoutget.is_estimate);
  EXPECT_EQ(layoutget.rest, kHead + 32 + 8192 + 16 * 28);
  const auto device = [](std::uint32_t maxcount) {
    return bound_of(1, {op(kOpGetdeviceinfo, Xdr().fixed(16).u32(1).u32(maxcount).u32(1).u32(6))});
  };
  EXPECT_EQ(device(65536).rest, kHead + 8 + 65536 + 24);
  EXPECT_FALSE(device(65536).is_estimate);
  EXPECT_EQ(device(0).rest, kHead + 8 + 24);  // no device_addr4, but the bits of the notifications
}

TEST(Nfs4Bound, NeverMoreThanTheSessionAllows) {
  RecordProperty("proves", "U1-3-06 U1-6.2.2-01 U1-6.2.2-02");
  const std::vector<Xdr> acl = {sequence(), putfh(), getattr({1u << 12})};
  const auto open = bound_of(1, acl);
  EXPECT_TRUE(open.is_estimate);
  EXPECT_GT(open.rest, 65536u);
  const auto limited = bound_of(1, acl, {.max_reply = 4096});
  EXPECT_EQ(limited.rest, 4096u - kPlainReplyHeader) << "the session counts the RPC header";
  EXPECT_FALSE(limited.is_estimate);
  const auto wide = bound_of(1, acl, {.max_reply = 1 << 20});
  EXPECT_EQ(wide.rest, open.rest);
  EXPECT_TRUE(wide.is_estimate);
  const auto exact = bound_of(1, acl, {.max_reply = open.rest + kPlainReplyHeader});
  EXPECT_EQ(exact.rest, open.rest);
  EXPECT_TRUE(exact.is_estimate) << "the session cuts nothing";
  EXPECT_FALSE(bound_of(1, acl, {.max_reply = open.rest + kPlainReplyHeader - 1}).is_estimate);
  EXPECT_EQ(bound_of(1, {sequence(), read(1 << 20)}, {.max_reply = 65536}).items,
            std::vector<std::size_t>{65536 - kPlainReplyHeader});
  EXPECT_EQ(bound_of(0, {putfh(), getattr({1u << 12})}, {.max_reply = 4096}).rest,
            bound_of(0, {putfh(), getattr({1u << 12})}).rest);  // NFSv4.0 has no sessions
}

TEST(Nfs4Bound, TheSessionCountsTheVerifier) {
  const std::vector<Xdr> acl = {sequence(), putfh(), getattr({1u << 12})};
  EXPECT_EQ(bound_of(1, acl, {.max_reply = 4096, .max_verf = 37}).rest, 4096u - kPlainReplyHeader - 40);
  EXPECT_EQ(bound_of(1, acl, {.max_reply = 4099}).rest, 4096u - kPlainReplyHeader) << "no word of XDR is cut";
  EXPECT_EQ(bound_of(1, acl, {.max_reply = 4096, .max_verf = 8192}).rest, 0u);
  EXPECT_EQ(bound_of(1, acl, {.max_reply = 1}).rest, 0u);
}

TEST(Nfs4Bound, RetryOfGetattrInVersion40Alone) {
  EXPECT_TRUE(bound_of(0, {putfh(), getattr({1})}).may_retry);
  EXPECT_FALSE(bound_of(0, {putfh(), lookup()}).may_retry);
  EXPECT_FALSE(bound_of(0, {putfh(), op(kOpReaddir, Xdr().u64(0).u64(0).u32(1).u32(1).u32(0))}).may_retry);
  EXPECT_FALSE(bound_of(1, {putfh(), getattr({1})}).may_retry);
  EXPECT_FALSE(bound_of(2, {sequence(), putfh(), getattr({1})}).may_retry);
  // U1-6.2.1-04: not together with an operation that must not run twice, at any place of the COMPOUND.
  EXPECT_FALSE(bound_of(0, {putfh(), remove(), getattr({1})}).may_retry);
  EXPECT_FALSE(bound_of(0, {putfh(), getattr({1}), Xdr(write(4)).fixed(4)}).may_retry);
  EXPECT_FALSE(bound_of(0, {getattr({1}), op(99)}).may_retry);
}

TEST(Nfs4Bound, OnceMoreWhereTheServerMakesTheLength) {
  const Xdr readdir = op(kOpReaddir, Xdr().u64(0).u64(0).u32(1).u32(1).u32(0));
  EXPECT_TRUE(bound_of(0, {putfh(), readdir}).may_retry_once);
  EXPECT_FALSE(bound_of(0, {putfh(), lookup()}).may_retry_once);
  EXPECT_FALSE(bound_of(0, {putfh(), readdir, remove()}).may_retry_once) << "it must not run twice";
  EXPECT_FALSE(bound_of(0, {putfh(), remove(), readdir}).may_retry_once);
  EXPECT_FALSE(bound_of(1, {sequence(), putfh(), readdir}).may_retry_once) << "its slot is used up (U1-6.6-04)";
  EXPECT_TRUE(bound_of(1, {sequence(), putfh(), readdir}).idempotent);
  EXPECT_FALSE(bound_of(0, {readdir, op(99)}).may_retry_once) << "nobody knows what else ran";
}

TEST(Nfs4Bound, WhatMayRunTwice) {
  EXPECT_TRUE(bound_of(0, {putfh(), lookup(), read(1)}).idempotent);
  EXPECT_FALSE(bound_of(0, {putfh(), remove()}).idempotent);
  EXPECT_TRUE(bound_of(1, {sequence(), putfh(), remove()}).idempotent);  // the session's slot remembers
  EXPECT_FALSE(bound_of(1, {putfh(), sequence(), remove()}).idempotent);
  EXPECT_FALSE(bound_of(0, {putfh(), op(99)}).idempotent);
  EXPECT_TRUE(bound_of(0, {}).idempotent);
  // Of all operations, or of none: what comes before the garbage does not tell.
  Octets cut = compound_args(0, {putfh(), lookup()}).octets();
  cut.resize(cut.size() - 4);
  EXPECT_FALSE(nfs4().is_idempotent(kCompound, cut, {}));
  cut = compound_args(1, {sequence(), putfh()}).octets();
  cut.resize(cut.size() - 4);
  EXPECT_FALSE(nfs4().is_idempotent(kCompound, cut, {}));
  // An item that came by Read chunk is no garbage.
  const Octets reduced = compound_args(0, {putfh(), write(4)}).octets();
  EXPECT_FALSE(nfs4().is_idempotent(kCompound, reduced, std::array{reduced.size()}));
  const Octets in_session = compound_args(1, {sequence(), write(4)}).octets();
  EXPECT_TRUE(nfs4().is_idempotent(kCompound, in_session, std::array{in_session.size()}));
  EXPECT_FALSE(nfs4().is_idempotent(kCompound, in_session, {}));
}

TEST(Nfs4Bound, BeforeAnUnknownOperation) {
  const auto bound = bound_of(2, {putfh(), read(100), op(99, Xdr().u32(1))});
  EXPECT_EQ(bound.walked, Walked::kUnknown);
  EXPECT_EQ(bound.rest, kHead + 8 + 16);
  EXPECT_EQ(bound.items, std::vector<std::size_t>{100});
}

TEST(Nfs4Bound, ReducedArguments) {
  const Xdr args = Xdr().opaque(5).u32(0).u32(2).add(putfh()).add(write(65536));
  EXPECT_EQ(bound_reply(nfs4(), kCompound, args.octets(), {}, {args.size()}).rest, kHead + 8 + 24);
  const auto garbage = bound_reply(nfs4(), kCompound, args.octets());
  EXPECT_EQ(garbage.walked, Walked::kGarbage);
  EXPECT_EQ(garbage.rest, 0u);
}

TEST(Nfs4Bound, TheValuesOfBeforeAreForgotten) {
  rpcrdma::ReplyBound bound;
  const Octets acl = compound_args(0, {read(5), getattr({1u << 12})}).octets();
  ASSERT_EQ(nfs4().bound_reply(kCompound, acl, {}, {}, bound), Walked::kWhole);
  ASSERT_TRUE(bound.is_estimate && bound.may_retry && bound.may_retry_once);
  ASSERT_TRUE(nfs4().is_idempotent(kCompound, acl, {}));
  ASSERT_EQ(nfs4().bound_reply(kCompound, compound_args(0, {remove()}).octets(), {}, {}, bound), Walked::kWhole);
  EXPECT_EQ(bound.rest, kHead + 28);
  EXPECT_TRUE(bound.items.empty());
  EXPECT_FALSE(bound.is_estimate || bound.may_retry || bound.may_retry_once);
  EXPECT_FALSE(nfs4().is_idempotent(kCompound, compound_args(0, {remove()}).octets(), {}));
  ASSERT_EQ(nfs4().bound_reply(kCompound, acl, {}, {}, bound), Walked::kWhole);
  ASSERT_EQ(nfs4().bound_reply(kCompound, Octets(3), {}, {}, bound), Walked::kGarbage);
  EXPECT_FALSE(bound.is_estimate || bound.may_retry || bound.may_retry_once);
  EXPECT_FALSE(nfs4().is_idempotent(kCompound, Octets(3), {}));
  EXPECT_TRUE(bound.items.empty());
  // The entries of operations before the garbage are gone, too.
  Octets cut = acl;
  cut.resize(cut.size() - 4);
  ASSERT_EQ(nfs4().bound_reply(kCompound, cut, {}, {}, bound), Walked::kGarbage);
  EXPECT_TRUE(bound.items.empty());
  EXPECT_EQ(bound.rest, 0u);
}

// GET_DIR_DELEGATION has three bitmaps, and three in its results.
TEST(Nfs4Bound, TheLongestBitmapCounts) {
  const auto with = [](std::size_t first, std::size_t second) {
    const auto bitmap = [](std::size_t words) {
      Xdr xdr = Xdr().u32(static_cast<std::uint32_t>(words));
      return xdr.fixed(4 * words);
    };
    return bound_of(1, {op(46, Xdr().u32(1).add(bitmap(first)).fixed(24).add(bitmap(second)).add(bitmap(1)))}).rest;
  };
  EXPECT_EQ(with(5, 1), with(1, 5));
  EXPECT_EQ(with(5, 1), with(1, 1) + 3 * 4 * (5 - 3));
}

}  // namespace
}  // namespace weft::nfsulb
