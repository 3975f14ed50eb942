// The arguments and results of the NFS family that go by chunk over wg07, and the segments that they may have
// (draft-ietf-nfsv4-nfs-ulb-v2 sections 3 to 6).
#include "tests/rpc/nfs_over_wg07.h"

namespace weft::rpcrdma::testing {
namespace {

using nfsulb::kNfsAclProgram;
using nfsulb::kNfsAclV3;
using nfsulb::testing::op;
using nfsulb::testing::putfh;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr std::uint32_t kNfsReaddir = 16, kGetacl = 1;

// Two Write chunks of 9 and of 8 segments.
struct NfsSegments : NfsOverWg07 {
  void call_for(std::size_t num_first, std::size_t num_second) {
    forget_sent();
    ended.clear();
    answer_with(nfsulb::testing::compound_res(5, {nfsulb::testing::failed(22, 5)}).octets());
    CallSpec spec = compound(0, {putfh(), nfsulb::testing::read(9000), nfsulb::testing::read(9000)});
    first = pieces_of(rooms[0], num_first);
    second = pieces_of(rooms[1], num_second);
    scattered = {ScatteredBytes(first), ScatteredBytes(second)};
    spec.result_items = scattered;
    call(spec);
  }
  static std::vector<MutBytes> pieces_of(Octets& room, std::size_t num) {
    std::vector<MutBytes> pieces;
    for (std::size_t i = 0; i < num; ++i) pieces.push_back(MutBytes(room).subspan(i * 1000, 1000));
    return pieces;
  }

  static constexpr ChunkUse kManySegments{
      .max_segments = 64, .max_write_chunks = 2, .max_continued_call = 0, .max_continued_reply = 0};
  std::vector<MutBytes> first, second;
};

TEST_F(NfsSegments, SixteenOfAllChunksTogetherUnlessTheServerTakesMore) {
  RecordProperty("proves", "U2-5.4.2-1 U2-5.4.2-4 U2-5.4.2-6");
  open(kManySegments);
  call_for(9, 8);
  EXPECT_THAT(ended, ElementsAre(CallStatus::kLocalError));
  EXPECT_THAT(requester->qp.sent, SizeIs(0));
  call_for(8, 8);
  expect_success();
  forget_sent();
  call(kNfsProgram, kNfsV3, 6, Xdr().opaque(28).u64(0).u32(5 << 19));
  const ChunkListsView long_read = lists_of_call();
  ASSERT_THAT(long_read.write_list, ElementsAre(SizeIs(3)));
  for (const Segment& segment : long_read.write_list[0]) EXPECT_LE(segment.length, 1u << 20);
  open(kManySegments, {}, {.properties = true});
  call_for(9, 8);
  expect_success();
  const auto lists = lists_of_call();
  ASSERT_THAT(lists.write_list, SizeIs(2));
  EXPECT_EQ(lists.write_list[0].size() + lists.write_list[1].size(), 17u);
}

// An argument with `before` up to the count of its octets.
struct Argument {
  std::uint32_t program, version, procedure;
  Xdr before, behind;
};

struct NfsItems : NfsOverWg07 {
  // Whether the requester takes 5000 octets as an item there.
  bool takes(const Argument& argument) {
    forget_sent();
    args = Xdr(argument.before).add(argument.behind).octets();
    const ArgumentItem item{argument.before.size(), ConstBytes(data)};
    CallSpec spec = call_of(*nfsulb::find_binding(argument.program, argument.version), argument.procedure, args);
    spec.items = item;
    const bool taken = requester->requester->call(spec, [](const rpcrdma::Reply&) {}).ok();
    run();
    return taken;
  }
  // The items among the results of a Call.
  std::size_t num_results(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, const Xdr& given) {
    (void)spec_of(program, version, procedure, given);
    return bound.items.size();
  }
  static Xdr compound_of(std::uint32_t minor_version, const Xdr& operation) {
    return Xdr().opaque(5).u32(minor_version).u32(2).add(putfh()).add(operation);
  }

  const Octets data = pattern(5000);
};

TEST_F(NfsItems, TheseArgumentsGoByReadChunk) {
  RecordProperty("proves", "U2-3-2 U2-5-1 U2-5.1-1");
  open({.max_continued_call = 0});
  const Xdr link = op(nfsulb::testing::kOpCreate, Xdr().u32(5).missing(5000));
  std::vector<Argument> all = {
      {kNfsProgram, 2, 8, Xdr().fixed(32).words({0, 0, 0}).missing(5000), {}},
      {kNfsProgram, kNfsV3, 7, Xdr().opaque(28).u64(0).u32(5000).u32(0).missing(5000), {}},
      {kNfsProgram, kNfsV3, 10, Xdr().opaque(28).opaque(5).words({0, 0, 0, 0, 0, 0}).missing(5000), {}},
  };
  for (const std::uint32_t minor_version : {0u, 1u, 2u}) {
    all.push_back({kNfsProgram, kNfsV4, kCompound, compound_of(minor_version, nfsulb::testing::write(5000)), {}});
    all.push_back({kNfsProgram, kNfsV4, kCompound, compound_of(minor_version, link), Xdr().opaque(3).u32(0).u32(0)});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(takes(all[i])) << i;
    EXPECT_THAT(lists_of_call().read_list, SizeIs(1)) << i;
  }
  for (const std::uint32_t version : {2u, 3u}) {
    const Xdr file = version == 2 ? Xdr().fixed(32) : Xdr().opaque(28);
    EXPECT_EQ(num_results(kNfsProgram, version, 5, file), 1u) << "READLINK";
    EXPECT_EQ(
        num_results(kNfsProgram, version, 6, version == 2 ? Xdr(file).words({0, 100, 0}) : Xdr(file).u64(0).u32(100)),
        1u);
  }
  for (const std::uint32_t minor_version : {0u, 1u, 2u}) {
    (void)compound(minor_version, {putfh(), nfsulb::testing::read(100), putfh(), op(nfsulb::testing::kOpReadlink)});
    EXPECT_THAT(bound.items, SizeIs(2));
  }
}

TEST_F(NfsItems, NothingElseDoes) {
  RecordProperty("proves", "U2-3-3 U2-4.2-2 U2-5.5.2-3 U2-6-1");
  open({.max_continued_call = 0});
  const Argument others[] = {
      {kNfsProgram, kNfsV3, 3, Xdr().opaque(28).missing(5000), {}},
      {kNfsProgram, kNfsV3, 8, Xdr().opaque(28).missing(5000), Xdr().u32(0)},
      {kNfsProgram, 2, 4, Xdr().fixed(32).missing(5000), {}},
      {kNfsAclProgram, kNfsAclV3, 2, Xdr().opaque(28).missing(5000), {}},
      {nfsulb::kNfs4CallbackProgram, 1, 1, Xdr().missing(5000), Xdr().words({0, 0, 0})},
      {kNfsProgram,
       kNfsV4,
       kCompound,
       compound_of(2, op(nfsulb::testing::kOpSetxattr, Xdr().u32(0).opaque(9).missing(5000))),
       {}},
      {kNfsProgram, kNfsV4, kCompound, compound_of(2, op(200, Xdr().missing(5000))), {}},  // of no known version
  };
  for (const Argument& other : others) {
    EXPECT_FALSE(takes(other)) << other.program << " " << other.version << " " << other.procedure;
    EXPECT_THAT(requester->qp.sent, SizeIs(0));
  }
  EXPECT_EQ(num_results(kNfsProgram, kNfsV3, kNfsReaddir, Xdr().opaque(28).u64(0).u64(0).u32(100)), 0u);
  EXPECT_EQ(num_results(kNfsProgram, kNfsV3, 3, Xdr().opaque(28).opaque(9)), 0u);
  EXPECT_EQ(num_results(kNfsAclProgram, kNfsAclV3, kGetacl, Xdr().opaque(28).u32(15)), 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
