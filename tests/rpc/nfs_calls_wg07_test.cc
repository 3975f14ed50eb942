// Calls of the NFS family over wg07: the upper-layer binding for version 2 (draft-ietf-nfsv4-nfs-ulb-v2).
#include "rpcrdma/testing/gss.h"
#include "tests/rpc/nfs_over_wg07.h"

namespace weft::rpcrdma::testing {
namespace {

using nfsulb::kNfsAclProgram;
using nfsulb::kNfsAclV3;
using nfsulb::testing::op;
using nfsulb::testing::putfh;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr std::uint32_t kNfsRemove = 12, kNfsReaddir = 16, kGetacl = 1;
// Items go by chunk, whatever their length.
constexpr ChunkUse kByChunk{.max_write_chunks = 3, .max_continued_call = 0, .max_continued_reply = 0};

TEST_F(NfsOverWg07, EachProgramHasItsBinding) {
  RecordProperty("proves", "U2-1-1 U2-1-2 U2-3-1 U2-4-1 U2-4.2-1");
  open();
  for (const nfsulb::BoundProgram& program : nfsulb::bound_programs()) {
    ended.clear();
    call(program.binding.program, program.binding.version, 0, {});
    expect_success();
    EXPECT_EQ(responder->service.calls.back().program, program.binding.program);
    EXPECT_EQ(responder->service.calls.back().version, program.binding.version);
    const Binding& binding = *nfsulb::find_binding(program.binding.program, program.binding.version);
    EXPECT_EQ(&binding, &program.binding);
    EXPECT_TRUE(binding.walk_arguments && binding.walk_results && binding.bound_reply && binding.has_result_items);
  }
}

TEST_F(NfsOverWg07, WhatIsShortOffersNoChunks) {
  RecordProperty("proves", "U2-3.1-2");
  const std::pair<std::uint32_t, Xdr> calls[] = {
      {1, Xdr().opaque(28)}, {3, Xdr().opaque(28).opaque(9)}, {4, Xdr().opaque(28).u32(63)}};
  for (const auto& [procedure, given] : calls) {
    open();
    call(kNfsProgram, kNfsV3, procedure, given);
    EXPECT_EQ(lists_of_call(), ChunkListsView{}) << procedure;
  }
}

TEST_F(NfsOverWg07, AReadOffersAsMuchAsItAsksFor) {
  RecordProperty("proves", "U2-3.1-3");
  open();
  for (const std::uint32_t count : {32768u, 65536u}) {
    forget_sent();
    call(kNfsProgram, kNfsV3, 6, Xdr().opaque(28).u64(0).u32(count));
    const auto lists = lists_of_call();
    ASSERT_THAT(lists.write_list, SizeIs(1));
    EXPECT_EQ(total_length(lists.write_list[0]), count);
  }
}

TEST_F(NfsOverWg07, ALongListingOffersRoomForItsBound) {
  RecordProperty("proves", "U2-3.1-1 U2-3.1-4 U2-3.1-5");
  open();
  call(kNfsProgram, kNfsV3, kNfsReaddir, Xdr().opaque(28).u64(0).u64(0).u32(65536));
  const auto lists = lists_of_call();
  ASSERT_TRUE(lists.reply_chunk);
  EXPECT_GE(total_length(*lists.reply_chunk), 65536u);
  EXPECT_GE(total_length(*lists.reply_chunk), bound.rest + 24);
  EXPECT_THAT(lists.write_list, SizeIs(0));
}

TEST_F(NfsOverWg07, WithoutAReplyChunkALongReplyIsContinued) {
  RecordProperty("proves", "U2-3.1-6");
  open();
  answer_with(pattern(7000));
  call(kNfsProgram, kNfsV3, kNfsReaddir, Xdr().opaque(28).u64(0).u64(0).u32(8000));
  expect_continued(pattern(7000));
}

TEST_F(NfsOverWg07, ATransportErrorEndsItsCallAlone) {
  RecordProperty("proves", "U2-3.1-7 U2-5.6-2");
  for (const auto err : {wg07::Err::kReplyResource, wg07::Err::kBadXdr}) {
    open();
    responder->service.answer = nullptr;
    call(kNfsProgram, kNfsV3, kNfsRemove, Xdr().opaque(28).opaque(9));
    ASSERT_THAT(requester->qp.sent, SizeIs(1));
    const std::uint32_t xid = wg07_parse(requester->qp.sent[0]).header.xid;
    ASSERT_TRUE(requester->qp.inject(wg07_octets(xid, 1000, wg07::Error{.err = err})));
    run();
    EXPECT_THAT(ended, ElementsAre(CallStatus::kTransportError));
    EXPECT_THAT(requester->qp.sent, SizeIs(1)) << "it is not sent again";
    EXPECT_FALSE(requester->endpoint->failure());
    ended.clear();
    answer_with([] { return ServedReply{}; });
    call(kNfsProgram, kNfsV3, 0, {});
    expect_success();
  }
}

TEST_F(NfsOverWg07, AnAccessControlListOfAnyLengthArrives) {
  RecordProperty("proves", "U2-4.2-1 U2-4.2-3 U2-4.2-4");
  open();
  const Octets acl = pattern(4096 * 12);
  answer_with(acl);
  call(kNfsAclProgram, kNfsAclV3, kGetacl, Xdr().opaque(28).u32(15));
  expect_continued(acl);
  EXPECT_TRUE(bound.is_estimate);
  (void)spec_of(kNfsAclProgram, kNfsAclV3, 2, Xdr().opaque(28).u32(15).words({0, 0, 0, 0}));  // SETACL
  EXPECT_FALSE(bound.is_estimate);
}

TEST_F(NfsOverWg07, AttributesOfAnyLengthArriveWithoutAReplyChunk) {
  RecordProperty("proves", "U2-5.2-1 U2-5.2.1-1");
  for (const std::uint32_t attribute : {1u << 12, 1u << 24}) {  // acl, fs_locations
    open();
    answer_with(pattern(30000));
    call(compound(0, {putfh(), nfsulb::testing::getattr({attribute})}));
    expect_continued(pattern(30000));
    EXPECT_TRUE(bound.is_estimate);
  }
}

TEST_F(NfsOverWg07, NoReplyChunkIsLongerThanTheSessionAllows) {
  RecordProperty("proves", "U2-5.2.2-1");
  const Xdr readdir = op(nfsulb::testing::kOpReaddir, Xdr().u64(0).u64(0).words({8192, 65536, 1, 2}));
  constexpr std::size_t kMaxReply = 20000;
  for (const std::size_t max_verf : {0u, 400u}) {
    open(kByChunk);
    CallSpec spec = compound(1, {nfsulb::testing::sequence(), putfh(), readdir});
    const std::size_t estimate = spec.max_results;
    spec.max_verf = max_verf;
    const ReplyLimits limits{.max_reply = kMaxReply, .max_verf = max_verf};
    ASSERT_EQ(spec.binding->bound_reply(kCompound, args, {}, limits, bound), Walked::kWhole);
    spec.max_results = bound.rest;
    EXPECT_LT(spec.max_results, estimate);
    call(spec);
    const auto lists = lists_of_call();
    ASSERT_TRUE(lists.reply_chunk);
    EXPECT_EQ(total_length(*lists.reply_chunk), kMaxReply);
  }
}

TEST_F(NfsOverWg07, ReadPlusHasNoWriteChunk) {
  RecordProperty("proves", "U2-5.1.1-1 U2-5.1.1-3");
  for (const std::uint32_t count : {1000u, 8000u, 65536u}) {
    open();
    const Octets answer = pattern(count / 2);
    answer_with(answer);
    call(compound(2, {nfsulb::testing::sequence(), putfh(),
                      op(nfsulb::testing::kOpReadPlus, Xdr().fixed(16).u64(0).u32(count))}));
    expect_success();
    EXPECT_THAT(lists_of_call().write_list, SizeIs(0));
    EXPECT_EQ(results, answer);
  }
}

TEST_F(NfsOverWg07, WrappedCallsHaveNoDataChunks) {
  RecordProperty("proves", "U2-5.4.2-7 U2-7-1");
  for (const GssService service : {GssService::kIntegrity, GssService::kPrivacy}) {
    const OpaqueAuth cred = gss_cred(service);
    open();
    CallSpec spec = spec_of(kNfsProgram, kNfsV3, 6, Xdr().opaque(28).u64(0).u32(6000));
    spec.cred = &cred;
    EXPECT_FALSE(requester->requester->call(spec, {}).ok()) << "its results are not to be placed";
    spec.result_items = {};
    spec.max_results = 6200;
    answer_with(pattern(6100));
    call(spec);
    expect_continued(pattern(6100));
    EXPECT_THAT(lists_of_call().write_list, SizeIs(0));
  }
}

TEST_F(NfsOverWg07, SlotsAndCreditsNeedNotMatch) {
  RecordProperty("proves", "U2-5.6-1");
  open();
  responder->service.answer = nullptr;
  for (int slot = 0; slot < 64; ++slot) call(compound(1, {nfsulb::testing::sequence(), putfh()}));
  const std::size_t num_at_once = responder->service.calls.size();
  EXPECT_LT(num_at_once, 64u);
  for (std::size_t i = 0; i < responder->service.calls.size(); ++i) {
    responder->responder->reply(responder->service.calls[i].id, {});
    run();
  }
  EXPECT_EQ(ended, std::vector(64, CallStatus::kSuccess));
}

TEST_F(NfsOverWg07, ACreditIsKeptToSeeWhetherTheServerLives) {
  RecordProperty("proves", "U2-3.3.1-3 U2-5.7.2-1");
  open({}, {}, {.reserve_credit = true});
  responder->service.answer = nullptr;
  for (int i = 0; i < 40; ++i) call(kNfsProgram, kNfsV3, 1, Xdr().opaque(28));
  const std::size_t before = requester->qp.sent.size();
  EXPECT_LT(before, 40u);
  const auto check = requester->requester->health_check();
  ASSERT_TRUE(check);
  call(*check);
  EXPECT_THAT(requester->qp.sent, SizeIs(before + 1));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
