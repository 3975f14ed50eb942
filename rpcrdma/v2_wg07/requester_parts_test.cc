// Calls and Replies in several messages, at a requester of wg07 (draft-ietf-nfsv4-rpcrdma-version-two-07 sections 4 and
// 6).
#include <gmock/gmock.h>

#include "rpcrdma/testing/wg07_requester.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST_F(Wg07RequesterTest, ALongCallGoesInSeveralMessages) {
  RecordProperty("proves", "W2-4.1-1 W2-4.1-2 W2-4.1-3 W2-4.1-5 W2-4.2.2-2 W2-6.6.2-1");
  open();
  settle();
  const Octets args = pattern(10000);
  call_of(args);
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  const Octets whole = joined(end->qp.sent);
  std::size_t rest = whole.size();
  for (std::size_t i = 0; i < 3; ++i) {
    const Wg07Message part = message(i);
    EXPECT_EQ(part.header.xid, xid_of(0));
    EXPECT_LE(sent(i).size(), 4096u);
    rest -= part.payload.size();
    if (i == 2) break;
    EXPECT_EQ(part.body<wg07::CallMiddle>().remaining, rest);
  }
  (void)message(2).body<wg07::CallInline>();
  xdr::XdrReader in(whole);
  std::uint32_t xid = 0;
  EXPECT_TRUE(in.u32(xid));
  EXPECT_EQ(xid, xid_of(0)) << "no record mark";
  EXPECT_EQ(part_of(whole, whole.size() - args.size(), whole.size()), args);
  EXPECT_EQ(end->requester->counters().continued_calls, 1u);
  answer(xid_of(0));
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kSuccess);
}

// It keeps to the credits in the middle of a Call. GRANTs give more, and are not answered.
TEST_F(Wg07RequesterTest, CreditsHoldUpAPart) {
  RecordProperty("proves", "W2-4.2.1-8");
  open();
  settle(2);
  call_of(pattern(10000));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  call_of({});
  deliver(wg07_octets(0, 3, wg07::Grant{}));
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  deliver(wg07_octets(0, 4, wg07::Grant{}));
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  (void)message(2).body<wg07::CallInline>();
  EXPECT_NE(message(2).payload.size(), 0u);
  deliver(wg07_octets(0, kManyCredits, wg07::Grant{}));
  ASSERT_THAT(end->qp.sent, SizeIs(4)) << "the next Call";
  EXPECT_NE(xid_of(3), xid_of(0));
}

TEST_F(Wg07RequesterTest, TheOtherEngineWaitsForTheEndOfACall) {
  RecordProperty("proves", "W2-4.1-4");
  open({.credits = 1});  // and one Send buffer
  settle();
  call_of(pattern(10000));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_TRUE(end->link->may_send(Sender::kRequester));
  EXPECT_FALSE(end->link->may_send(Sender::kResponder));
  run();
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  EXPECT_TRUE(end->link->may_send(Sender::kResponder));
}

// The next credits may come with a Call, whose Reply must not come between the parts.
TEST_F(Wg07RequesterTest, AGrantInsideACallLeavesItToItsEngine) {
  RecordProperty("proves", "W2-6.3.6-3 W2-4.1-4");
  open({.credits = 1});
  settle(2);
  call_of(pattern(10000));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  (void)message(0).body<wg07::CallMiddle>();
  // All that the server may send: no Call has these XIDs.
  for (std::uint32_t xid = 1; end->qp.sent.size() == 1; ++xid) {
    ASSERT_LT(xid, 10u);
    answer(xid, 2);
  }
  (void)message(1).body<wg07::Grant>();
  ASSERT_TRUE(end->qp.inject(wg07_octets(0, kManyCredits, wg07::Grant{})));
  verbs::Wc wc;
  while (end->cq.poll(std::span(&wc, 1)) == 1) end->link->on_completion(wc);
  EXPECT_TRUE(end->link->may_send(Sender::kRequester));
  EXPECT_FALSE(end->link->may_send(Sender::kResponder));
  for (int part = 0; part < 2; ++part) run();  // there is one Send buffer
  ASSERT_THAT(end->qp.sent, SizeIs(4));
  (void)message(3).body<wg07::CallInline>();
  EXPECT_TRUE(end->link->may_send(Sender::kResponder));
}

TEST_F(Wg07RequesterTest, AVeryLongCallGoesThroughItsOwnChunk) {
  RecordProperty("proves", "W2-C.5-1");
  open();
  settle();
  const Octets moderate = pattern(6000);
  call_of(moderate);
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_TRUE(message(0).is<wg07::CallMiddle>());
  end->qp.sent.clear();
  call_of(pattern(20000));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  const auto body = message(0).body<wg07::CallExternal>();
  EXPECT_EQ(total_length(body.lists.call_chunk), 20000u + 40);
}

TEST_F(Wg07RequesterTest, AReplyMayComeInSeveralMessages) {
  open({.chunks = {.max_continued_reply = 16 << 10}});
  settle();
  call_of({}, 12000);
  EXPECT_FALSE(message(0).body<wg07::CallInline>().lists.reply_chunk);
  const Octets results = pattern(12000);
  const std::uint32_t xid = xid_of(0);
  const Octets whole = rpc_reply(xid, results);
  const auto size = static_cast<std::uint32_t>(whole.size());
  deliver(wg07_octets(xid, kManyCredits, wg07::ReplyMiddle{size - 4000}, part_of(whole, 0, 4000)));
  deliver(wg07_octets(xid, kManyCredits, wg07::ReplyMiddle{size - 8000}, part_of(whole, 4000, 8000)));
  EXPECT_THAT(outcomes, SizeIs(0));
  deliver(wg07_octets(xid, kManyCredits, wg07::ReplyInline{}, part_of(whole, 8000, size)));
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kSuccess);
  EXPECT_EQ(outcomes[0].results, results);
}

// A Call bounds the memory that its Reply may take in parts. Other Replies take none.
// 64 KiB for a Call that expects less than a quarter of that, and otherwise four times as much as it expects.
TEST_F(Wg07RequesterTest, AReplyInPartsIsNoLongerThanItsCallAllows) {
  open({.chunks = {.max_continued_reply = 16 << 10}});
  settle();
  call_of({}, 12000);
  const std::uint32_t xid = xid_of(0);
  Octets part = rpc_reply(xid, pattern(4000 - 24));
  const auto deliver_part = [&](std::uint32_t of) {
    deliver(wg07_octets(of, kManyCredits, wg07::ReplyMiddle{0}, part));
  };
  for (int i = 0; i < 100; ++i) deliver_part(xid + 1);
  for (int i = 0; i < 16; ++i) deliver_part(xid);
  EXPECT_THAT(outcomes, SizeIs(0));
  deliver_part(xid);
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kBadReply);
  EXPECT_NE(outcomes[0].text.find("too long"), std::string::npos) << outcomes[0].text;
  for (int i = 0; i < 100; ++i) deliver_part(xid);
  EXPECT_FALSE(end->endpoint->failure());
  call_of({});
  answer(xid_of(end->qp.sent.size() - 1));  // behind GRANTs
  ASSERT_THAT(outcomes, SizeIs(2));
  EXPECT_EQ(outcomes[1].status, CallStatus::kSuccess);
}

TEST_F(Wg07RequesterTest, AReplyThatIsAnnouncedAsTooLongEndsItsCallAtItsFirstPart) {
  open({.chunks = {.max_continued_reply = 16 << 10}});
  settle();
  call_of({}, 12000);
  const std::uint32_t xid = xid_of(0);
  deliver(wg07_octets(xid, kManyCredits, wg07::ReplyMiddle{0xffffffff}, rpc_reply(xid, pattern(4000 - 24))));
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kBadReply);
  EXPECT_NE(outcomes[0].text.find("too long"), std::string::npos) << outcomes[0].text;
  EXPECT_FALSE(end->endpoint->failure());
}

// The length of an unpredictable Reply is an estimate (RFC 8267 section 3.1). The Reply may be longer.
TEST_F(Wg07RequesterTest, AnUnpredictableReplyMayBeLongInParts) {
  Binding binding = test_binding();
  binding.bound_reply = [](std::uint32_t, ConstBytes, std::span<const std::size_t>, const ReplyLimits&,
                           ReplyBound& bound) {
    bound.is_estimate = true;
    return Walked::kWhole;
  };
  open({.chunks = {.max_continued_reply = 16 << 10}});
  settle();
  CallSpec spec;
  spec.binding = &binding;
  spec.max_results = 12000;
  call(spec);
  const std::uint32_t xid = xid_of(0);
  const Octets whole = rpc_reply(xid, pattern(200000));
  constexpr std::size_t kPart = 4000;
  std::size_t at = 0;
  for (; whole.size() - at > kPart; at += kPart) {
    const auto remaining = static_cast<std::uint32_t>(whole.size() - at - kPart);
    deliver(wg07_octets(xid, kManyCredits, wg07::ReplyMiddle{remaining}, part_of(whole, at, at + kPart)));
  }
  EXPECT_THAT(outcomes, SizeIs(0));
  deliver(wg07_octets(xid, kManyCredits, wg07::ReplyInline{}, part_of(whole, at, whole.size())));
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kSuccess) << outcomes[0].text;
}

// Two Calls wait for their Replies, and half of the first one's Reply has come.
struct Wg07HalfReplied : Wg07RequesterTest {
  void SetUp() override {
    open({.chunks = {.max_continued_reply = 16 << 10}});
    settle();
    call_of({}, 12000);
    call_of({}, 12000);
    first = xid_of(0);
    second = xid_of(1);
    whole = rpc_reply(first, pattern(8000));
    deliver(wg07_octets(first, kManyCredits, wg07::ReplyMiddle{4000}, part_of(whole, 0, 4000)));
  }
  void deliver_rest() {
    deliver(wg07_octets(first, kManyCredits, wg07::ReplyInline{}, part_of(whole, 4000, whole.size())));
  }

  std::uint32_t first = 0, second = 0;
  Octets whole;
};

// The server's Calls have XIDs of their own.
TEST_F(Wg07HalfReplied, ARefusedCallOfTheServerFailsNoneOfTheClients) {
  wg07::CallExternal external;
  external.lists.call_chunk = {Segment{5, 400, 0}};
  deliver(wg07_octets(second, kManyCredits, external));
  EXPECT_THAT(outcomes, SizeIs(0));
  deliver_rest();
  answer(second);
  ASSERT_THAT(outcomes, SizeIs(2));
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
}

// The foreign message is dropped, and the Reply goes on.
TEST_F(Wg07HalfReplied, AForeignMessageInsideAReplyFailsItsOwnCall) {
  answer(second);
  deliver_rest();
  ASSERT_THAT(outcomes, SizeIs(2));
  EXPECT_EQ(outcomes[0].status, CallStatus::kBadReply);
  EXPECT_EQ(outcomes[1].status, CallStatus::kSuccess);
  EXPECT_EQ(outcomes[1].results, pattern(8000));
  EXPECT_THAT(end->qp.sent, SizeIs(2)) << "a requester answers no Reply";
}

TEST_F(Wg07RequesterTest, TheChunkToInvalidateIsNamedByTheLastMessage) {
  RecordProperty("proves", "W2-6.3.7-3");
  open({.windows = true});
  settle();
  Octets room(30000);
  const Octets args = pattern(9000);
  CallSpec spec;
  spec.procedure = kRead;
  spec.args = args;
  spec.result_items = room;
  spec.max_results = 4;
  call(spec);
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  const auto last = message(2).body<wg07::CallInline>();
  ASSERT_THAT(last.lists.write_list, SizeIs(1));
  EXPECT_EQ(last.inv_handle, last.lists.write_list[0].at(0).handle);
}

TEST_F(Wg07RequesterTest, AnErrorEndsACallInTheMiddle) {
  open();
  settle(2);
  call_of(pattern(10000));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  deliver(wg07_octets(xid_of(0), kManyCredits, wg07::Error{.err = wg07::Err::kInvalCont}));
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_THAT(end->qp.sent, SizeIs(1)) << "the rest has no use";
  EXPECT_TRUE(end->link->may_send(Sender::kResponder)) << "nor a place in the order";
  call_of({});
  EXPECT_THAT(end->qp.sent, SizeIs(2));
}

// A sequence has no other end than its last message, which then offers nothing.
TEST_F(Wg07RequesterTest, ACancelledCallIsSentToItsEndWithoutChunks) {
  open();
  settle(2);
  Octets room(30000);
  const Octets args = pattern(9000);
  CallSpec spec = rpcrdma::testing::call_of(test_binding(), kRead, args);
  spec.result_items = room;
  spec.max_results = 4;
  const auto called = end->requester->call(spec, [&](const Reply&) {});
  ASSERT_TRUE(called.ok());
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_TRUE(end->requester->cancel(*called));
  EXPECT_EQ(memory.num_remote(), 0u);
  deliver(wg07_octets(0, kManyCredits, wg07::Grant{}));
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  EXPECT_TRUE(message(2).body<wg07::CallInline>().lists.write_list.empty());
  EXPECT_EQ(part_of(joined(end->qp.sent), 40, 9040), args);
}

// The caller may free its memory as soon as the Call has ended.
TEST_F(Wg07RequesterTest, ACallThatEndedGoesOnFromMemoryOfItsOwn) {
  for (const bool is_answered : {false, true}) {
    open();
    settle(2);
    Octets data = pattern(9001), args = write_args(data.size());
    const Octets whole = data;
    CallSpec spec = rpcrdma::testing::call_of(test_binding(), kWrite, args);
    spec.items = ArgumentItem{write_position(), data};
    const auto called = end->requester->call(spec, [&](const Reply&) { data.assign(data.size(), 0); });
    ASSERT_TRUE(called.ok());
    ASSERT_THAT(end->qp.sent, SizeIs(1));
    if (is_answered) {
      answer(xid_of(0), 2);  // a good server answers no part of a Call
    } else {
      EXPECT_TRUE(end->requester->cancel(*called));
    }
    run();
    ASSERT_EQ(data, Octets(whole.size())) << "it has ended";
    deliver(wg07_octets(0, kManyCredits, wg07::Grant{}));
    const std::size_t begin = kCallHeader + write_position();
    EXPECT_EQ(part_of(joined(end->qp.sent), begin, begin + whole.size()), whole);
    call_of({});
    EXPECT_TRUE(wg07_parse(end->qp.sent.back()).is<wg07::CallInline>());
    EXPECT_THAT(wg07_parse(end->qp.sent.back()).payload, SizeIs(kCallHeader)) << "the next Call";
  }
}

// Requesters that choose parts or chunks by the measured round trip.
struct Wg07RoundTripTest : Wg07RequesterTest {
  static constexpr std::size_t kFiveMessages = 16380;  // octets of the item of a WRITE
  // The first Call takes so long, and the server gives so many credits.
  void open_with(std::chrono::microseconds round_trip, std::uint32_t credit = kManyCredits, bool weighs = true) {
    RequesterTest::open({.chunks = {.weighs_round_trip = weighs}, .protocol = Protocol::k2Wg07});
    outcomes.clear();
    call_of({});
    run();
    end->link->set_now(at(0) + round_trip);
    answer(xid_of(0), credit);
    ASSERT_THAT(outcomes, SizeIs(1));
    end->qp.sent.clear();
  }
  // The number of messages of one WRITE more.
  std::size_t num_messages(std::size_t len = kFiveMessages) {
    end->qp.sent.clear();
    call_with_pieces(1, len);
    const std::size_t num = end->qp.sent.size();
    EXPECT_EQ(num == 1, !message(num - 1).body<wg07::CallInline>().lists.read_list.empty()) << "a chunk, or parts";
    return num;
  }
};

TEST_F(Wg07RoundTripTest, WhereAReadChunkWouldTakeLongerACallGoesInParts) {
  open_with(std::chrono::milliseconds(10));
  EXPECT_EQ(num_messages(), 5u);
  open_with(std::chrono::microseconds(20));
  EXPECT_EQ(num_messages(), 1u);
  open_with(std::chrono::milliseconds(10), kManyCredits, false);
  EXPECT_EQ(num_messages(), 1u) << "the form does not depend on time";
}

TEST_F(Wg07RoundTripTest, ALongCallHasItsChunkAtAnyRoundTrip) {
  open_with(std::chrono::seconds(1));
  EXPECT_EQ(num_messages(kMaxTimelyCall - 100), 9u);
  EXPECT_EQ(num_messages(kMaxTimelyCall), 1u);
}

// To wait for a credit would cost what the parts save.
TEST_F(Wg07RoundTripTest, PartsNeedTheirCreditsAtOnce) {
  open_with(std::chrono::milliseconds(10), 6);  // the first Call was one of them
  EXPECT_EQ(num_messages(), 5u);
  open_with(std::chrono::milliseconds(10), 5);
  EXPECT_EQ(num_messages(), 1u);
}

// Then it is their work that counts, and no longer the way.
TEST_F(Wg07RoundTripTest, ManyCallsAtOnceHaveTheirChunks) {
  open_with(std::chrono::microseconds(200));
  std::vector<std::size_t> nums;
  for (int i = 0; i < 6; ++i) nums.push_back(num_messages());
  EXPECT_THAT(nums, ElementsAre(5, 5, 5, 5, 1, 1));
}

// A Call with a Read chunk takes two round trips, and shows one.
TEST_F(Wg07RoundTripTest, AReadChunkShowsTheRoundTripToo) {
  RequesterTest::open({.chunks = {.weighs_round_trip = true}, .protocol = Protocol::k2Wg07});
  settle();  // in the turn of its Send: no sample
  EXPECT_EQ(num_messages(), 1u);
  run();
  end->link->set_now(at(1));
  answer(xid_of(0), kManyCredits);
  EXPECT_EQ(num_messages(), 5u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
