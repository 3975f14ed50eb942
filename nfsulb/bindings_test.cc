#include "nfsulb/bindings.h"

#include <gtest/gtest.h>

#include "nfsulb/nfs3.h"
#include "nfsulb/programs.h"
#include "nfsulb/testing/octets.h"
#include "nfsulb/walk.h"

namespace weft::nfsulb {
namespace {

// An invented program, for a feature that no RFC's program needs now: results within a count, and not smaller than
// another size.
constexpr Type kCountedArgs = xdr::reply_count;
constexpr Type kLeast = xdr::opaque_fixed<24>;
constexpr Type kCountedResults = xdr::within_count<xdr::opaque<>, 8, Bound::kCount, kLeast>;
constexpr Type kPair = xdr::structure<xdr::uint32, xdr::uint64>;
constexpr Type kPairs = xdr::list<kPair, 5>;
constexpr Operation kCountedProcedures[] = {operation(0, "COUNTED", Runs::kAgain, kCountedArgs, kCountedResults),
                                            operation(1, "PAIRS", Runs::kAgain, xdr::void_type, kPairs)};
constexpr Program kCounted = {kCountedProcedures};

using testing::bound_reply;
using testing::walk_arguments;
using testing::walk_results;
using testing::Walked;
using testing::Xdr;

TEST(Bindings, OfEveryProgramAndVersion) {
  RecordProperty("proves", "U1-5-01");
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> all = {
      {100003, 2}, {100003, 3}, {100003, 4}, {100005, 1}, {100005, 2}, {100005, 3},    {100021, 1},
      {100021, 3}, {100021, 4}, {100024, 1}, {100227, 2}, {100227, 3}, {0x40000000, 1}};
  EXPECT_EQ(bound_programs().size(), all.size());
  for (const auto& [program, version] : all) {
    const rpcrdma::Binding* binding = find_binding(program, version);
    ASSERT_NE(binding, nullptr) << program << " " << version;
    EXPECT_EQ(binding->program, program);
    EXPECT_EQ(binding->version, version);
    EXPECT_EQ(bound_reply(*binding, 0, {}).walked, Walked::kWhole);  // NULL
    EXPECT_EQ(bound_reply(*binding, 0, {}).rest, 0u);
  }
  EXPECT_EQ(find_binding(100003, 5), nullptr);
  EXPECT_EQ(find_binding(100000, 2), nullptr);
  EXPECT_EQ(find_binding(kNfsProgram, kNfsV3)->walk_results, nfs3_binding().walk_results);
}

TEST(Bindings, ResultsThatCanHaveItems) {
  RecordProperty("proves", "U1-4-05");
  for (const BoundProgram& program : bound_programs()) {
    const rpcrdma::Binding& binding = program.binding;
    const bool is_nfs = binding.program == kNfsProgram;
    for (std::uint32_t procedure = 0; procedure < 30; ++procedure) {
      const bool is_compound = binding.version == kNfsV4 && procedure == 1;
      const bool is_read = binding.version != kNfsV4 && (procedure == 5 || procedure == 6);  // READLINK, READ
      EXPECT_EQ(binding.has_result_items(procedure), is_nfs && (is_compound || is_read))
          << binding.program << " " << binding.version << " " << procedure;
    }
  }
}

TEST(Bindings, PortAndNetids) {
  RecordProperty("proves", "U1-9-01");
  EXPECT_EQ(kNfsRdmaPort, 20049);
  EXPECT_STREQ(kNetidRdma, "rdma");
  EXPECT_STREQ(kNetidRdma6, "rdma6");
}

TEST(Bindings, Nfs2ReducesWhatVersion3Does) {
  RecordProperty("proves", "U1-4-01 U1-4-02 U1-4-03 U1-4-04");
  const rpcrdma::Binding& nfs2 = *find_binding(kNfsProgram, kNfsV2);
  const Xdr write = Xdr().fixed(32).words({0, 0, 0}).missing(8192);
  EXPECT_EQ(walk_arguments(nfs2, 8, write.octets(), {write.size()}).walked, Walked::kWhole);
  const Xdr too_long = Xdr().fixed(32).words({0, 0, 0}).missing(8193);
  EXPECT_EQ(walk_arguments(nfs2, 8, too_long.octets(), {too_long.size()}).walked, Walked::kGarbage);
  // SYMLINK has its attributes behind the path.
  const Xdr path = Xdr().fixed(32).opaque(3).missing(801);
  const auto symlink = walk_arguments(nfs2, 13, Xdr(path).fixed(32).octets(), {path.size()});
  EXPECT_EQ(symlink.walked, Walked::kWhole);
  EXPECT_EQ(symlink.items.at(0).position, path.size());
  const Xdr read = Xdr().u32(0).fixed(68).missing(100);
  EXPECT_EQ(walk_results(nfs2, 6, read.octets(), {100}).walked, Walked::kWhole);
  const Xdr readlink = Xdr().u32(0).missing(100);
  EXPECT_EQ(walk_results(nfs2, 5, readlink.octets(), {100}).walked, Walked::kWhole);
  const auto bound = bound_reply(nfs2, 6, Xdr().fixed(32).words({0, 0xffffffff, 0}).octets());
  EXPECT_EQ(bound.rest, 76u);
  EXPECT_EQ(bound.items, std::vector<std::size_t>{8192});
}

TEST(Bindings, AclsAsLargeAsTheClientSays) {
  RecordProperty("proves", "U1-5.2-05");
  const rpcrdma::Binding& acl = *find_binding(kNfsAclProgram, kNfsAclV3);
  const Xdr getacl = Xdr().opaque(32).u32(0xf);
  const auto usual = bound_reply(acl, 1, getacl.octets());
  EXPECT_EQ(usual.rest, 24688u);
  EXPECT_TRUE(usual.is_estimate);
  EXPECT_TRUE(usual.may_retry);
  const auto few = bound_reply(acl, 1, getacl.octets(), {.max_unbounded = 10 * 12});
  EXPECT_EQ(few.rest, 96u + 16 + 2 * 120);
  // Half of an answer: counts alone where the entries were not asked for.
  const Xdr counts = Xdr().u32(0).u32(0).u32(2).u32(4).u32(0).u32(7).u32(2).fixed(24);
  EXPECT_EQ(walk_results(acl, 1, counts.octets()).walked, Walked::kWhole);
}

TEST(Bindings, ListsOfMount) {
  const rpcrdma::Binding& mount = *find_binding(kMountProgram, kMountV3);
  const Xdr export_list =
      Xdr().u32(1).opaque(5).u32(1).opaque(3).u32(1).opaque(4).u32(0).u32(1).opaque(9).u32(0).u32(0);
  EXPECT_EQ(walk_results(mount, 5, export_list.octets()).walked, Walked::kWhole);
  EXPECT_EQ(walk_results(mount, 5, Xdr(export_list).u32(0).octets()).walked, Walked::kGarbage);
  EXPECT_TRUE(bound_reply(mount, 5, {}).is_estimate);
}

TEST(Bindings, TheCookieOfALockComesBack) {
  const rpcrdma::Binding& nlm = *find_binding(kNlmProgram, kNlmV4);
  const Xdr lock = Xdr().opaque(10).opaque(32).opaque(20).u32(1).u64(0).u64(1);  // nlm4_lock
  const auto bound = bound_reply(nlm, 1, Xdr().opaque(7).u32(1).add(lock).octets());
  EXPECT_EQ(bound.rest, 8u + 8 + 1052);
  const Xdr denied = Xdr().opaque(7).u32(1).u32(1).u32(2).opaque(1024).u64(0).u64(1);
  EXPECT_EQ(walk_results(nlm, 1, denied.octets()).walked, Walked::kWhole);
  EXPECT_EQ(denied.size(), bound.rest);
  EXPECT_EQ(find_binding(kNlmProgram, kNlmV1)->bound_reply(20, {}, {}, {}, *std::make_unique<rpcrdma::ReplyBound>()),
            Walked::kUnknown);
}

TEST(Bindings, ResultsWithinACountHaveALeastSize) {
  constexpr rpcrdma::Binding counted = binding_of<kCounted>(1, 1);
  EXPECT_EQ(bound_reply(counted, 0, Xdr().u32(0).octets()).rest, 24u);
  EXPECT_EQ(bound_reply(counted, 0, Xdr().u32(16).octets()).rest, 24u);
  EXPECT_EQ(bound_reply(counted, 0, Xdr().u32(17).octets()).rest, 25u);
  EXPECT_TRUE(bound_reply(counted, 0, Xdr().u32(17).octets()).may_retry_once);
}

// RFC 4506 section 4.19: each element has a word before it, and the end one of its own.
TEST(Bindings, AListHasAWordForEachElement) {
  constexpr rpcrdma::Binding counted = binding_of<kCounted>(1, 1);
  const auto bound = bound_reply(counted, 1, {});
  EXPECT_EQ(bound.rest, 5u * (4 + 12) + 4);
  EXPECT_TRUE(bound.is_estimate);
}

}  // namespace
}  // namespace weft::nfsulb
