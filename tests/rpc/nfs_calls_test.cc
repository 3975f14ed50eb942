// Calls of the NFS family between both engines, with their real bindings: rows that neither an engine nor a binding can
// show alone.
#include <gtest/gtest.h>

#include "nfsulb/bindings.h"
#include "nfsulb/testing/compound.h"
#include "tests/rpc/good_messages.h"

namespace weft::rpcrdma::testing {
namespace {

using nfsulb::kNfsAclProgram;
using nfsulb::kNfsAclV3;
using nfsulb::kNfsProgram;
using nfsulb::kNfsV3;
using nfsulb::kNfsV4;
using nfsulb::testing::Xdr;

constexpr std::size_t kThreshold = 1024;

struct NfsCalls : ::testing::Test {
  // `credits`: the responder's grant.
  void open(ChunkUse chunks = {}, std::uint32_t credits = 4) {
    requester.reset();
    nfs.reset();
    nfs = std::make_unique<NfsResponder>(
        memory,
        ResponderEnd::Options{.credits = credits, .inline_threshold = kThreshold, .reply_threshold = kThreshold});
    requester = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{.credits = 8,
                                                                             .inline_threshold = kThreshold,
                                                                             .call_threshold = kThreshold,
                                                                             .reply_threshold = kThreshold,
                                                                             .chunks = chunks});
    requester->qp.keep_sent = nfs->end.qp.keep_sent = true;
    FakeQp::connect(requester->qp, nfs->end.qp);
  }
  ~NfsCalls() override { requester.reset(); }
  // With as much room for its results as its binding says it takes.
  CallSpec spec_of(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, const Octets& args) {
    CallSpec spec;
    spec.program = program;
    spec.version = version;
    spec.procedure = procedure;
    spec.binding = nfsulb::find_binding(program, version);
    spec.args = args;
    EXPECT_EQ(spec.binding->bound_reply(procedure, args, {}, {}, bound), Walked::kWhole);
    spec.max_results = bound.rest;
    rooms.assign(bound.items.size(), {});
    scattered.clear();
    for (std::size_t i = 0; i < bound.items.size(); ++i) {
      rooms[i].resize(bound.items[i]);
      scattered.emplace_back(MutBytes(rooms[i]));
    }
    spec.result_items = scattered;
    return spec;
  }
  void call(const CallSpec& spec) {
    const auto called = requester->requester->call(spec, [this](const Reply& reply) {
      ended.push_back(reply.status);
      item_lens.assign(reply.item_lens.begin(), reply.item_lens.end());
    });
    ASSERT_TRUE(called.ok()) << called.error().message;
  }
  void run() {
    while (requester->pump() + nfs->end.pump() != 0) {
    }
    requester->requester->on_time(TimePoint{} + std::chrono::seconds(100));
  }
  v1::Header last_call() { return parse(requester->qp.sent.back()); }
  v1::Header last_reply() { return parse(nfs->end.qp.sent.back()); }

  FakeMemory memory;
  std::unique_ptr<NfsResponder> nfs;
  std::unique_ptr<RequesterEnd> requester;
  ReplyBound bound;
  std::vector<Octets> rooms;
  std::vector<ScatteredBytes> scattered;
  std::vector<CallStatus> ended;
  std::vector<std::optional<std::size_t>> item_lens;
};

TEST_F(NfsCalls, EachWriteChunkHasRoomForTheItemThatIsItsOwn) {
  RecordProperty("proves", "R1-4.4.6.2-03");
  // The pairing of RFC 8267 fixes the order: the first chunk is READLINK's, the second READ's, or the other way round.
  const Xdr readlink = nfsulb::testing::op(nfsulb::testing::kOpReadlink);
  const Xdr putfh = nfsulb::testing::putfh();
  const Xdr read = nfsulb::testing::read(3000);
  for (const bool link_first : {true, false}) {
    open({.max_write_chunks = 2});
    const Octets args =
        nfsulb::testing::compound_args(0, {putfh, link_first ? readlink : read, putfh, link_first ? read : readlink})
            .octets();
    call(spec_of(kNfsProgram, kNfsV4, 1, args));
    const auto lists = last_call().lists;
    ASSERT_EQ(lists.write_list.size(), 2u);
    const std::size_t link = link_first ? 0 : 1;
    EXPECT_EQ(total_length(lists.write_list[link]), ReplyLimits{}.max_text);
    EXPECT_EQ(total_length(lists.write_list[1 - link]), 3000u);
    run();
  }
  // Each result fits: NfsAnswers fills the chunks of both READs.
  open({.max_write_chunks = 2});
  const Octets args = nfsulb::testing::compound_args(0, {putfh, read, nfsulb::testing::read(100)}).octets();
  ended.clear();
  call(spec_of(kNfsProgram, kNfsV4, 1, args));
  run();
  ASSERT_EQ(ended, std::vector<CallStatus>{CallStatus::kSuccess});
  ASSERT_EQ(item_lens.size(), 2u);
  EXPECT_EQ(item_lens[0], 3000u);
  EXPECT_EQ(item_lens[1], 100u);
}

TEST_F(NfsCalls, WhatIsNotEligibleMovesInsideLongMessages) {
  RecordProperty("proves", "R1-8.1-02 U1-5.2-02");
  open();
  // SETACL with 300 entries in each list: a Long Call, in a Position Zero Read chunk alone.
  Xdr setacl = Xdr().opaque(28).u32(15);
  for (int list = 0; list < 2; ++list) {
    setacl.words({300, 300});
    for (std::uint32_t i = 0; i < 300; ++i) setacl.words({2, i, 7});
  }
  call(spec_of(kNfsAclProgram, kNfsAclV3, 2, setacl.octets()));
  v1::Header sent = last_call();
  EXPECT_EQ(sent.proc, v1::Proc::kNomsg);
  EXPECT_FALSE(sent.lists.read_list.empty());
  for (const ReadSegment& segment : sent.lists.read_list) EXPECT_EQ(segment.position, 0u);
  EXPECT_TRUE(sent.lists.write_list.empty());
  run();
  EXPECT_EQ(nfs->answers.num_calls, 1u);
  // READDIR: a Long Reply in the Reply chunk, without a Write chunk.
  const Octets readdir = Xdr().opaque(28).u64(0).u64(0).u32(8192).octets();
  call(spec_of(kNfsProgram, kNfsV3, 16, readdir));
  sent = last_call();
  EXPECT_TRUE(sent.lists.write_list.empty());
  ASSERT_TRUE(sent.lists.reply_chunk);
  run();
  EXPECT_EQ(last_reply().proc, v1::Proc::kNomsg);
  EXPECT_EQ(ended, (std::vector<CallStatus>{CallStatus::kSuccess, CallStatus::kSuccess}));
}

TEST_F(NfsCalls, NfsAndNfsAclShareAConnectionItsThresholdsAndItsCredits) {
  RecordProperty("proves", "R1-8.3-01 U1-5.2-01");
  open({}, 3);
  const Octets getacl = Xdr().opaque(28).u32(15).octets();
  const Octets lookup = Xdr().opaque(28).opaque(9).octets();
  const CallSpec acl = spec_of(kNfsAclProgram, kNfsAclV3, 1, getacl);
  const CallSpec nfs3 = spec_of(kNfsProgram, kNfsV3, 3, lookup);
  // The first Reply brings the grant. Then three Calls at once, of any program.
  call(acl);
  run();
  ASSERT_EQ(ended, std::vector<CallStatus>{CallStatus::kSuccess});
  EXPECT_TRUE(last_call().lists.reply_chunk);
  const std::size_t before = requester->qp.num_sends;
  for (int i = 0; i < 4; ++i) {
    call(acl);
    call(nfs3);
  }
  EXPECT_EQ(requester->qp.num_sends - before, 3u);
  run();
  EXPECT_EQ(ended.size(), 9u);
  EXPECT_EQ(std::ranges::count(ended, CallStatus::kSuccess), 9);
  EXPECT_EQ(nfs->answers.num_calls, 9u);
  for (const Octets& octets : requester->qp.sent) EXPECT_LE(octets.size(), kThreshold);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
