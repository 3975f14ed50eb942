// COMPOUNDs: the places and the order of eligible items, and the fields that are never eligible.
#include <gtest/gtest.h>

#include "nfsulb/testing/compound.h"

namespace weft::nfsulb {
namespace {

using namespace testing;

TEST(Nfs4Walk, EachReadOperationHasItsEntry) {
  RecordProperty("proves", "U1-6.1-03 U1-6.1-04 U1-6.4.3-01");
  // PUTFH LOOKUP READ, PUTFH LOOKUP READLINK, PUTFH LOOKUP READ; the second of three Write chunks is empty.
  const Xdr begin = Xdr().u32(0).opaque(5).u32(9).add(ok(kOpPutfh)).add(ok(kOpLookup));
  const Xdr first = Xdr(begin).add(read_ok(12288));
  const Xdr second = Xdr(first).add(ok(kOpPutfh)).add(ok(kOpLookup)).add(readlink_ok(14));
  const Xdr third = Xdr(second).fixed(14).add(ok(kOpPutfh)).add(ok(kOpLookup)).add(read_ok(4999));
  const auto walk = walk_results(nfs4(), kCompound, third.octets(), {12288, 0, 4999});
  ASSERT_EQ(walk.walked, Walked::kWhole);
  ASSERT_EQ(walk.items.size(), 3u);
  ASSERT_TRUE(walk.items[0] && walk.items[1] && walk.items[2]);
  EXPECT_TRUE(walk.items[0]->reduced);
  EXPECT_EQ(walk.items[0]->offset, first.size());
  EXPECT_EQ(walk.items[0]->position, first.size());
  EXPECT_FALSE(walk.items[1]->reduced);
  EXPECT_EQ(walk.items[1]->offset, second.size());
  EXPECT_EQ(walk.items[1]->position, second.size() + 12288);
  EXPECT_EQ(walk.items[1]->len, 14u);
  EXPECT_TRUE(walk.items[2]->reduced);
  EXPECT_EQ(walk.items[2]->offset, third.size());
  EXPECT_EQ(walk.items[2]->position, third.size() + 12288);
  EXPECT_EQ(walk.items[2]->len, 4999u);
}

TEST(Nfs4Walk, ResultsEndWithTheFirstFailure) {
  const Xdr results = compound_res(70, {ok(kOpPutfh), read_ok(8), failed(kOpRead, 70)});
  auto walk = walk_results(nfs4(), kCompound, results.octets(), {8, 0});
  ASSERT_EQ(walk.walked, Walked::kWhole);
  ASSERT_EQ(walk.items.size(), 2u);
  EXPECT_TRUE(walk.items[0]);
  EXPECT_FALSE(walk.items[1]);
  // A chunk brought octets, although there is no item for it.
  EXPECT_EQ(walk_results(nfs4(), kCompound, results.octets(), {8, 4}).walked, Walked::kGarbage);
  EXPECT_EQ(walk_results(nfs4(), kCompound, results.octets(), {8, 0, 4}).walked, Walked::kGarbage);
  EXPECT_EQ(walk_results(nfs4(), kCompound, results.octets(), {9, 0}).walked, Walked::kGarbage);
}

TEST(Nfs4Walk, PositionsAreThoseOfTheUnreducedArguments) {
  RecordProperty("proves", "U1-6.1-01");
  const Xdr first = Xdr().opaque(5).u32(0).u32(3).add(putfh()).add(write(4097));
  const Xdr second = Xdr(first).add(write(10));
  const std::size_t position = second.size() + 4100;  // as if the first data and their padding were there
  const auto both = walk_arguments(nfs4(), kCompound, second.octets(), {first.size(), position});
  ASSERT_EQ(both.walked, Walked::kWhole);
  ASSERT_EQ(both.items.size(), 2u);
  EXPECT_EQ(both.items[1].position, position);
  EXPECT_EQ(both.items[1].offset, second.size());
  EXPECT_EQ(walk_arguments(nfs4(), kCompound, second.octets(), {first.size(), second.size()}).walked, Walked::kGarbage);
  const Xdr half = Xdr(second).fixed(10);
  EXPECT_EQ(walk_arguments(nfs4(), kCompound, half.octets(), {first.size()}).walked, Walked::kWhole);
}

TEST(Nfs4Walk, NothingIsLongerThanTheProtocolHasIt) {
  const auto walk = [](const Xdr& operation) {
    return walk_arguments(nfs4(), kCompound, compound_args(1, {operation}).octets()).walked;
  };
  const auto create_session = [](const std::vector<std::uint32_t>& ca_rdma_ird) {
    const Xdr ird = Xdr().u32(static_cast<std::uint32_t>(ca_rdma_ird.size())).words(ca_rdma_ird);
    const Xdr attrs = Xdr().fixed(24).add(ird);
    return op(kOpCreateSession, Xdr().u64(1).u32(1).u32(0).add(attrs).fixed(24).u32(0).u32(0).u32(0));
  };
  EXPECT_EQ(walk(create_session({})), Walked::kWhole);
  EXPECT_EQ(walk(create_session({4})), Walked::kWhole);
  EXPECT_EQ(walk(create_session({4, 4})), Walked::kGarbage);
  EXPECT_EQ(walk(op(kOpPutfh, Xdr().opaque(128))), Walked::kWhole);
  EXPECT_EQ(walk(op(kOpPutfh, Xdr().opaque(129))), Walked::kGarbage);
}

TEST(Nfs4Walk, TheTextOfALinkInTheMiddleOfCreate) {
  RecordProperty("proves", "U1-6.1-02 R1-4.4.4.3-02");
  constexpr std::uint32_t kBlk = 3, kDir = 2, kLnk = 5;
  const Xdr text = Xdr().opaque(5).u32(1).u32(2).add(op(kOpCreate, Xdr().u32(kLnk).missing(901)));
  const Xdr tail = Xdr().opaque(4).u32(1).u32(0).opaque(8).add(op(kOpGetfh));
  const Xdr reduced = Xdr(text).add(tail);
  EXPECT_EQ(walk_arguments(nfs4(), kCompound, reduced.octets(), {text.size()}).walked, Walked::kWhole);
  const Xdr whole = Xdr(text).fixed(901).add(tail);
  const auto walk = walk_arguments(nfs4(), kCompound, whole.octets());
  ASSERT_EQ(walk.walked, Walked::kWhole);
  EXPECT_EQ(walk.items.at(0).position, text.size());
  for (const std::uint32_t type : {kDir, kBlk}) {
    Xdr other = Xdr().opaque(5).u32(1).u32(2).add(op(kOpCreate, Xdr().u32(type)));
    if (type == kBlk) other.u64(1);
    const std::size_t position = other.size() + 4;  // the name
    EXPECT_EQ(walk_arguments(nfs4(), kCompound, Xdr(other).add(tail).octets()).walked, Walked::kWhole);
    other.missing(4).u32(1).u32(0).opaque(8).add(op(kOpGetfh));
    EXPECT_EQ(walk_arguments(nfs4(), kCompound, other.octets(), {position}).walked, Walked::kGarbage);
  }
}

TEST(Nfs4Walk, NothingElseIsReduced) {
  RecordProperty("proves", "U1-6.1-05 U1-6.6-01 U1-7-01");
  // The octets that one might think of: WRITE_SAME's pattern, an attribute's value, SEQUENCE's session.
  const Xdr head = Xdr().opaque(5).u32(2).u32(1);
  for (const Xdr& arguments : {op(kOpWriteSame, Xdr().fixed(16).u32(0).fixed(5 * 8 + 4).missing(4096)),
                               op(kOpSetxattr, Xdr().u32(0).opaque(4).missing(4096)), op(kOpSequence)}) {
    const Xdr args = Xdr(head).add(arguments);
    EXPECT_EQ(walk_arguments(nfs4(), kCompound, args.octets(), {args.size()}).walked, Walked::kGarbage);
  }
  const Xdr in_session = compound_args(1, {sequence()});
  EXPECT_EQ(walk_arguments(nfs4(), kCompound, in_session.octets(), {in_session.size() - 32}).walked, Walked::kGarbage);
  // READ_PLUS is no READ operation: the chunk belongs to the READ behind it.
  const Xdr data = ok(kOpReadPlus, Xdr().u32(1).u32(2).u32(0).u64(0).opaque(4096).u32(1).u64(0).u64(0));
  const auto walk = walk_results(nfs4(), kCompound, compound_res(0, {data, read_ok(7)}).octets(), {7});
  ASSERT_EQ(walk.walked, Walked::kWhole);
  ASSERT_EQ(walk.items.size(), 1u);
  EXPECT_EQ(walk.items[0]->len, 7u);
  EXPECT_EQ(walk_results(nfs4(), kCompound, compound_res(0, {data}).octets(), {4096}).walked, Walked::kGarbage);
}

TEST(Nfs4Walk, BehindAnUnknownOperationNothingIsKnown) {
  const Xdr args = compound_args(2, {putfh(), Xdr(write(4)).fixed(4), op(76, Xdr().opaque(3)), write(8)});
  const auto walk = walk_arguments(nfs4(), kCompound, args.octets());
  EXPECT_EQ(walk.walked, Walked::kUnknown);
  EXPECT_EQ(walk.items.size(), 1u);
  const Xdr results = compound_res(0, {ok(kOpPutfh), Xdr(read_ok(4)).fixed(4), ok(76), read_ok(8)});
  const auto walked_results = walk_results(nfs4(), kCompound, results.octets());
  EXPECT_EQ(walked_results.walked, Walked::kUnknown);
  EXPECT_EQ(walked_results.items.size(), 1u);
}

TEST(Nfs4Walk, MinorVersionsHaveTheirOwnOperations) {
  const auto walked = [](std::uint32_t minor_version, const Xdr& operation) {
    return walk_arguments(nfs4(), kCompound, compound_args(minor_version, {operation}).octets()).walked;
  };
  const Xdr read_plus = op(kOpReadPlus, Xdr().fixed(16).u64(0).u32(1));
  EXPECT_EQ(walked(0, putfh()), Walked::kWhole);
  EXPECT_EQ(walked(0, sequence()), Walked::kUnknown);
  EXPECT_EQ(walked(1, sequence()), Walked::kWhole);
  EXPECT_EQ(walked(1, read_plus), Walked::kUnknown);
  EXPECT_EQ(walked(2, read_plus), Walked::kWhole);
  EXPECT_EQ(walked(3, putfh()), Walked::kUnknown);
  EXPECT_EQ(walked(2, op(10044)), Walked::kWhole);
  EXPECT_EQ(walk_arguments(nfs4(), kCompound, compound_args(3, {}).octets()).walked, Walked::kWhole);
}

TEST(Nfs4Walk, EveryCutIsGarbage) {
  const Xdr args = compound_args(0, {putfh(), getattr({1, 2}), Xdr(write(5)).fixed(5), read(9), lookup()});
  const Xdr results = compound_res(
      0, {ok(kOpPutfh), ok(kOpGetattr, Xdr().u32(1).u32(1).opaque(4)), Xdr(read_ok(5)).fixed(5), ok(kOpLookup)});
  ASSERT_EQ(walk_arguments(nfs4(), kCompound, args.octets()).walked, Walked::kWhole);
  ASSERT_EQ(walk_results(nfs4(), kCompound, results.octets()).walked, Walked::kWhole);
  for (const bool of_results : {false, true}) {
    Octets octets = of_results ? results.octets() : args.octets();
    while (!octets.empty()) {
      octets.pop_back();
      if (of_results) {
        const auto walk = walk_results(nfs4(), kCompound, octets);
        EXPECT_EQ(walk.walked, Walked::kGarbage) << octets.size();
        EXPECT_TRUE(walk.items.empty());
      } else {
        const auto walk = walk_arguments(nfs4(), kCompound, octets);
        EXPECT_EQ(walk.walked, Walked::kGarbage) << octets.size();
        EXPECT_TRUE(walk.items.empty());
      }
    }
  }
  EXPECT_EQ(walk_arguments(nfs4(), kCompound, Xdr(args).u32(0).octets()).walked, Walked::kGarbage);
}

TEST(Nfs4Walk, CountsThatCannotBeAreGarbage) {
  const Xdr head = Xdr().opaque(0).u32(1);
  for (const Xdr& args : {Xdr(head).u32(0xffffffff),                                    // operations
                          Xdr(head).u32(1).u32(kOpGetattr).u32(0xffffffff),             // a bitmap
                          Xdr(head).u32(1).u32(kOpGetattr).u32(0x40000001).fixed(4),    // 2^32 octets and 4
                          Xdr(head).u32(1).u32(55).u32(0x10000001).fixed(16),           // TEST_STATEID
                          Xdr(head).u32(1).u32(kOpPutfh).u32(129).fixed(132),           // NFS4_FHSIZE
                          Xdr(head).u32(1).u32(kOpWrite).fixed(28).u32(0xffffffff)}) {  // data
    EXPECT_EQ(walk_arguments(nfs4(), kCompound, args.octets()).walked, Walked::kGarbage);
  }
}

TEST(Nfs4Walk, CallbacksHaveNoEligibleItem) {
  RecordProperty("proves", "U1-6.5.1-02 U1-6.5.2-03");
  const rpcrdma::Binding& callback = *find_binding(kNfs4CallbackProgram, 1);
  // CB_SEQUENCE with a list of referring calls, CB_NOTIFY_DEVICEID with a body.
  const Xdr cb_sequence = op(11, Xdr().fixed(16).words({1, 2, 3, 0}).u32(1).fixed(16).u32(2).fixed(16));
  const Xdr notify = op(14, Xdr().u32(1).u32(1).u32(2).opaque(3000));
  const Xdr args = Xdr().opaque(0).u32(1).u32(77).u32(2).add(cb_sequence).add(notify);
  const auto walk = walk_arguments(callback, kCompound, args.octets());
  EXPECT_EQ(walk.walked, Walked::kWhole);
  EXPECT_TRUE(walk.items.empty());
  EXPECT_EQ(walk_arguments(callback, kCompound, args.octets(), {args.size() - 3000}).walked, Walked::kGarbage);
  const auto bound = bound_reply(callback, kCompound, args.octets());
  EXPECT_EQ(bound.rest, 12u + 40 + 8);
  EXPECT_TRUE(bound.idempotent);  // the session sees to it
  const Xdr results = Xdr().u32(0).opaque(0).u32(2).add(ok(11, Xdr().fixed(32))).add(ok(14));
  EXPECT_EQ(walk_results(callback, kCompound, results.octets()).walked, Walked::kWhole);
  EXPECT_EQ(results.size(), 12u + 40 + 8);
}

}  // namespace
}  // namespace weft::nfsulb
