// A requester of wg07, whose peer is the test (draft-ietf-nfsv4-rpcrdma-version-two-07 sections 4, 6 and 7).
#include <gmock/gmock.h>

#include "rpcrdma/testing/log_lines.h"
#include "rpcrdma/testing/wg07_requester.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(Wg07RequesterTest, TheFirstMessageIsAloneAndShort) {
  RecordProperty("proves", "W2-4.3-1 W2-4.3-3 W2-4.3-4");
  open();
  const Octets args = pattern(2000);
  call_of(args);
  call_of({});
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_LE(sent(0).size(), 1024u);
  EXPECT_EQ(message(0).header.vers, 2u);
  (void)message(0).body<wg07::CallExternal>();
  answer(xid_of(0));
  ASSERT_THAT(end->qp.sent, SizeIs(2));
}

// W2-6.3.2-1: it may be a message of another draft.
TEST_F(Wg07RequesterTest, AGrantWithMoreBehindItGivesNoCredits) {
  open();
  settle(2);
  call_of({});
  call_of({});
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  deliver(wg07_octets(0, kManyCredits, wg07::Grant{}, Octets(4)));
  EXPECT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_FALSE(end->endpoint->failure());
  deliver(wg07_octets(0, kManyCredits, wg07::Grant{}));
  EXPECT_THAT(end->qp.sent, SizeIs(2));
}

TEST_F(Wg07RequesterTest, ErrorsEndTheirCallAndAreTold) {
  struct Case {
    wg07::Error error;
    const char* text;
    bool did_not_run;
  };
  const Case kErrors[] = {
      {{.err = wg07::Err::kSystem}, "RDMA2_ERR_SYSTEM: the peer had an internal error", false},
      {{.err = wg07::Err::kBadXdr}, "RDMA2_ERR_BAD_XDR: the peer could not use this Call's header or chunks", true},
      {{.err = wg07::Err::kInvalCont}, "RDMA2_ERR_INVAL_CONT: the peer could not join the parts of this Call", true},
      {{.err = wg07::Err::kBadPropval},
       "RDMA2_ERR_BAD_PROPVAL: the peer could not use this Call's header or chunks",
       false},
      {{.err = wg07::Err::kSegments, .arm = {.max_segments = 3}},
       "RDMA2_ERR_SEGMENTS: the peer takes at most 3 segments",
       true},
      {{.err = wg07::Err::kReadChunks, .arm = {.max_chunks = 2}},
       "RDMA2_ERR_READ_CHUNKS: the peer takes at most 2 Read chunks",
       true},
      {{.err = wg07::Err::kWriteChunks, .arm = {.max_chunks = 1}},
       "RDMA2_ERR_WRITE_CHUNKS: the peer takes at most 1 Write chunks",
       true},
      {{.err = wg07::Err::kWriteResource, .arm = {.chunk_index = 1, .length_needed = 70}},
       "RDMA2_ERR_WRITE_RESOURCE: Write chunk 1 of this Call is too short: it needs 70 bytes",
       false},
      {{.err = wg07::Err::kReplyResource, .arm = {.length_needed = 70}},
       "RDMA2_ERR_REPLY_RESOURCE: the Reply needs 70 bytes",
       false},
      {{.err = wg07::Err::kInvalHtype}, "RDMA2_ERR_INVAL_HTYPE: the peer takes no message of this type", true}};
  open();
  settle();
  for (const auto& [error, text, did_not_run] : kErrors) {
    outcomes.clear();
    end->qp.sent.clear();
    call_of({});
    deliver(wg07_octets(xid_of(0), kManyCredits, error));
    ASSERT_THAT(outcomes, SizeIs(1)) << text;
    EXPECT_NE(outcomes[0].status, CallStatus::kSuccess);
    EXPECT_EQ(outcomes[0].text, text);
    EXPECT_EQ(outcomes[0].did_not_run, did_not_run) << text;
  }
}

TEST_F(Wg07RequesterTest, ACallForAClientThatTakesNoneIsNamed) {
  LogLines lines;
  EventLog log(lines.log(), "server");
  open({.log = &log});
  settle();
  call_of({});
  wg07::CallExternal external;
  external.lists.call_chunk = {Segment{5, 400, 0}};
  for (const std::uint32_t xid : {77u, xid_of(0)}) {
    Octets rpc;
    xdr::XdrWriter out(rpc);
    emit_call(out, {xid, kTestProgram, kTestVersion, kNull, {}, {}});
    for (const Octets& octets :
         {wg07_octets(xid, kManyCredits, wg07::CallInline{}, rpc),
          wg07_octets(xid, kManyCredits, wg07::CallMiddle{4000}, rpc), wg07_octets(xid, kManyCredits, external)}) {
      lines.clear();
      deliver(octets);
      EXPECT_THAT(lines.warnings(), ElementsAre(HasSubstr("a Call of the server was discarded: this client takes no")));
    }
  }
  lines.clear();
  deliver(wg07_octets(77, kManyCredits, wg07::ReplyInline{}, rpc_reply(77)));
  deliver(wg07_octets(0, kManyCredits, wg07::ConnpropFinal{}));
  EXPECT_EQ(lines.num_with("a Reply was discarded"), 2u);
  EXPECT_THAT(lines.all(), SizeIs(2));
  end.reset();
}

TEST_F(Wg07RequesterTest, AReplyWithAnotherXidInsideIsNamed) {
  open();
  settle();
  call_of({});
  const std::uint32_t xid = xid_of(0);
  deliver(wg07_octets(xid, kManyCredits, wg07::ReplyInline{}, rpc_reply(xid + 1)));
  EXPECT_EQ(outcomes.back().status, CallStatus::kBadReply);
  EXPECT_EQ(outcomes.back().text, "the XID of the Reply's RPC header differs from that of its transport header");
}

TEST_F(Wg07RequesterTest, ACallWithoutAReplyEndsWhenItLeft) {
  open();
  settle();
  CallSpec spec;
  spec.call_only = true;
  const Octets args = pattern(9000);
  spec.args = args;
  for (std::size_t num = 1; num <= 100; ++num) {  // more than the credits of Calls
    end->qp.sent.clear();
    call(spec);
    run();
    ASSERT_THAT(outcomes, SizeIs(num));
    EXPECT_EQ(outcomes.back().status, CallStatus::kSuccess);
    EXPECT_THAT(end->qp.sent, SizeIs(3));
  }
  EXPECT_EQ(end->requester->num_outstanding(), 0u);
}

TEST_F(Wg07RequesterTest, ACallWithoutAReplyHasNoChunks) {
  RecordProperty("proves", "W2-4.7-1");
  open({.chunks = {.max_continued_call = 0}});
  settle();
  const Octets data = pattern(5000), args = write_args(data.size());
  CallSpec spec;
  spec.procedure = kWrite;
  spec.args = args;
  spec.items = ArgumentItem{write_position(), data};
  spec.call_only = true;
  call(spec);
  run();
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kLocalError);
  EXPECT_THAT(end->qp.sent, SizeIs(0));

  spec.result_items = MutBytes(data_);
  EXPECT_FALSE(end->requester->call(spec, {}).ok());
}

// It gave fewer credits for messages than the Calls that this end may have under way.
TEST_F(Wg07RequesterTest, APeerThatAnswersNothingIsLeft) {
  open({.credits = 8});
  settle(4);
  for (int i = 0; i < 5; ++i) call_of({});
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  run(500);
  EXPECT_FALSE(end->endpoint->failure());
  ASSERT_TRUE(end->requester->next_timeout());
  run(1500);
  EXPECT_THAT(outcomes, SizeIs(5));
  EXPECT_TRUE(end->endpoint->failure());
}

TEST_F(Wg07RequesterTest, ACreditForAMessageIsKeptForHealthChecks) {
  open({.reserve_credit = true});
  settle(4);
  for (int i = 0; i < 5; ++i) call_of({});
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  const auto check = end->requester->health_check();
  ASSERT_TRUE(check);
  call(*check);
  EXPECT_THAT(end->qp.sent, SizeIs(3));
  EXPECT_FALSE(end->requester->health_check());
  // A peer that gives one credit at a time is served all the same.
  open({.reserve_credit = true});
  settle(2);
  call_of({});
  EXPECT_THAT(end->qp.sent, SizeIs(1));
}

// A Call whose Reply never comes keeps its credit where credits count Calls.
TEST_F(RequesterTest, OtherVersionsHaveNoCallsWithoutAReply) {
  for (const Protocol protocol : {Protocol::k1, Protocol::k2Cel05}) {
    RequesterTest::open({.protocol = protocol});
    outcomes.clear();
    CallSpec spec;
    spec.call_only = true;
    call(spec);
    run();
    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(outcomes[0].status, CallStatus::kLocalError);
    EXPECT_THAT(outcomes[0].text, HasSubstr("no Calls without a Reply"));
    EXPECT_THAT(end->qp.sent, SizeIs(0));
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
