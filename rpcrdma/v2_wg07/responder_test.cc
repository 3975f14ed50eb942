// A responder of wg07, whose peer is the test (draft-ietf-nfsv4-rpcrdma-version-two-07 sections 4, 6 and 7).
#include <gmock/gmock.h>

#include "rpcrdma/testing/wg07_responder.h"
#include "rpcrdma/v2_wg07/properties.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(Wg07ResponderTest, ACallInSeveralMessagesIsServed) {
  open();
  const Octets args = pattern(10000);
  deliver_parts(rpc_call(kNull, args), 3000);
  ASSERT_THAT(end->service.args, SizeIs(1));
  EXPECT_EQ(end->service.args[0], args);
  answer({});
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(last_sent().header.xid, 5u);
  EXPECT_EQ(end->budget.used(), 0u) << "the parts' memory is back";
}

// Each message gives its Receive back at once: a Call may have more parts than there are Receives.
TEST_F(Wg07ResponderTest, PartsHoldNoReceives) {
  RecordProperty("proves", "W2-4.2.1.1-1 W2-6.3.2-1");
  open({.credits = 4});
  const Octets args = pattern(100000);
  deliver_parts(rpc_call(kNull, args), 1000);
  ASSERT_THAT(end->service.args, SizeIs(1));
  EXPECT_EQ(end->service.args[0], args);
  EXPECT_THAT(end->qp.sent, Not(IsEmpty()));
  for (const Octets& one : end->qp.sent) {
    EXPECT_TRUE(wg07_parse(one).is<wg07::Grant>());
    EXPECT_EQ(wg07_parse(one).header.xid, 0u);
    EXPECT_THAT(one, SizeIs(16));
  }
}

TEST_F(Wg07ResponderTest, AForeignMessageInsideACallIsRefused) {
  RecordProperty("proves", "W2-6.3.6-3");
  open();
  const Octets whole = rpc_call(kNull, pattern(8000));
  deliver(wg07::CallMiddle{4000}, part_of(whole, 0, 4000));
  deliver_null(6);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(error().err, wg07::Err::kInvalCont);
  EXPECT_EQ(last_sent().header.xid, 6u);
  deliver(wg07::CallInline{}, part_of(whole, 4000, whole.size()));
  ASSERT_THAT(end->service.calls, SizeIs(1)) << "the sequence goes on";
  EXPECT_EQ(end->service.calls[0].xid, 5u);
  answer({});
  expect_alive(7);
}

// The length of a Payload stream and the threshold need not be multiples of four.
TEST(Continuation, NoPartIsEmpty) {
  const Octets octets = pattern(200);
  for (std::size_t len = 9; len <= octets.size(); ++len) {
    for (std::size_t last = kLeastLast; last < len; ++last) {
      for (const std::size_t room : {4u, 7u, 40u}) {
        const ConstBytes piece = ConstBytes(octets).first(len);
        Continuation parts(Reassembly::Part::Direction::kCall, 5, std::span(&piece, 1), last);
        Octets sent;
        xdr::XdrWriter out(sent);
        while (parts.needs_part()) {
          const std::size_t next = parts.next_len(room);
          ASSERT_GE(next, kLeastPart) << len << " " << last;
          ASSERT_LE(next, room);
          parts.write(out, next);
        }
        ASSERT_GE(parts.remaining(), kLeastPart);
        ASSERT_LE(parts.remaining(), last);
        parts.write(out, parts.remaining());
        ASSERT_EQ(sent, part_of(octets, 0, len));
      }
    }
  }
}

TEST_F(Wg07ResponderTest, APartWithoutAWordEndsItsCall) {
  RecordProperty("proves", "W2-7.2.1-1");
  for (const std::size_t len : {0u, 3u}) {
    open();
    const Octets whole = rpc_call(kNull, pattern(8000));
    deliver(wg07::CallMiddle{4000}, part_of(whole, 0, 4000));
    deliver(wg07::CallMiddle{4000}, part_of(whole, 4000, 4000 + len));
    ASSERT_THAT(end->qp.sent, SizeIs(1));
    EXPECT_EQ(error().err, wg07::Err::kBadXdr);
    deliver(wg07::CallInline{}, part_of(whole, 4000 + len, whole.size()));
    EXPECT_THAT(end->service.calls, IsEmpty());
    expect_alive(7);
  }
}

TEST_F(Wg07ResponderTest, GrantsMayStandInsideACall) {
  open();
  const Octets args = pattern(8000);
  const Octets whole = rpc_call(kNull, args);
  deliver(wg07::CallMiddle{4000}, part_of(whole, 0, 4000));
  deliver(wg07::Grant{}, {}, 0);
  deliver(wg07::CallInline{}, part_of(whole, 4000, whole.size()));
  ASSERT_THAT(end->service.args, SizeIs(1));
  EXPECT_EQ(end->service.args[0], args);
}

TEST_F(Wg07ResponderTest, ACallThatGrowsWithoutEndIsRefused) {
  open();
  const Octets part = pattern(4000);
  Octets first = rpc_call(kNull, {});
  first.resize(4000);
  deliver(wg07::CallMiddle{0}, first);
  std::size_t num = 1;
  while (end->qp.sent.empty() || last_sent().is<wg07::Grant>()) {
    ASSERT_LT(++num, 400u);
    deliver(wg07::CallMiddle{0}, part);
  }
  EXPECT_EQ(error().err, wg07::Err::kSystem);
  EXPECT_GE(num * 4000, kMaxContinued);
  EXPECT_EQ(end->budget.used(), 0u);
  deliver(wg07::CallInline{}, part);
  expect_alive(6);
}

TEST_F(Wg07ResponderTest, ACallThatIsAnnouncedAsTooLongIsRefusedAtItsFirstPart) {
  open();
  deliver(wg07::CallMiddle{0xffffffff}, rpc_call(kNull, {}));
  ASSERT_FALSE(end->qp.sent.empty());
  EXPECT_EQ(error().err, wg07::Err::kSystem);
  EXPECT_EQ(end->budget.used(), 0u);
  deliver(wg07::CallInline{}, pattern(4000));
  expect_alive(6);
}

TEST_F(Wg07ResponderTest, ACallThatIsNeverCompletedEndsInTime) {
  RecordProperty("proves", "W2-7.4.1-1");
  open();
  const Octets whole = rpc_call(kNull, pattern(8000));
  deliver(wg07::CallMiddle{4000}, part_of(whole, 0, 4000));
  ASSERT_TRUE(end->link->next_timeout());
  EXPECT_NE(end->budget.used(), 0u);
  end->link->on_time(*end->link->next_timeout());
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(last_sent().header.xid, 5u);
  EXPECT_EQ(error().err, wg07::Err::kSystem);
  EXPECT_EQ(end->budget.used(), 0u);
  EXPECT_FALSE(end->link->next_timeout());
  expect_alive(6);
}

TEST_F(Wg07ResponderTest, ALongReplyGoesInSeveralMessages) {
  RecordProperty("proves", "W2-4.1-1 W2-4.1-2 W2-4.1-3 W2-4.2.2-2");
  open();
  deliver(wg07::CallInline{}, rpc_call(kNull));
  ServedReply reply;
  reply.results = pattern(10000);
  const Octets results = reply.results;
  answer(std::move(reply));
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_LE(end->qp.sent[i].size(), 4096u);
    EXPECT_EQ(wg07_parse(end->qp.sent[i]).header.xid, 5u);
    EXPECT_EQ(wg07_parse(end->qp.sent[i]).is<wg07::ReplyMiddle>(), i < 2);
  }
  const Octets whole = joined(end->qp.sent);
  EXPECT_EQ(part_of(whole, whole.size() - results.size(), whole.size()), results);
}

// The Reply waits in its middle for the client's credits. Nothing else comes between.
TEST_F(Wg07ResponderTest, CreditsHoldUpAReply) {
  RecordProperty("proves", "W2-4.1-4 W2-6.3.2-2");
  first_credit = 2;
  open();
  deliver_null(5, credits(2));
  deliver_null(6, credits(2));
  ServedReply reply;
  reply.results = pattern(10000);
  EXPECT_TRUE(end->responder->reply(end->service.calls[0].id, std::move(reply)));
  EXPECT_TRUE(end->responder->reply(end->service.calls[1].id, {}));
  end->pump();
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  deliver(wg07::Grant{}, {}, 0, credits(3));
  ASSERT_THAT(end->qp.sent, SizeIs(3));
  EXPECT_TRUE(last_sent().is<wg07::ReplyInline>());
  EXPECT_EQ(last_sent().header.xid, 5u);
  deliver(wg07::Grant{}, {}, 77, credits(4));  // any XID
  ASSERT_THAT(end->qp.sent, SizeIs(4));
  EXPECT_EQ(last_sent().header.xid, 6u);
}

// A client that gives no credits makes a server keep results, and they count.
TEST_F(Wg07ResponderTest, AReplyInSlicesHoldsItsOctetsUntilItHasLeft) {
  first_credit = 2;
  const Octets results = pattern(40000);
  const auto answer_in_slices = [&] {
    ServedReply reply;
    for (const std::size_t at : {0u, 20000u}) reply.more_results.push_back({ConstBytes(results).subspan(at, 20000), 0});
    answer(std::move(reply));
  };
  open();
  deliver_null(5, credits(1));
  answer_in_slices();
  EXPECT_EQ(end->budget.used(), results.size());
  deliver(wg07::Grant{}, {}, 0, kManyCredits);
  EXPECT_TRUE(last_sent().is<wg07::ReplyInline>());
  EXPECT_EQ(end->budget.used(), 0u);
  open({.budget = 32 << 10});
  deliver_null(5, kManyCredits);
  answer_in_slices();
  EXPECT_EQ(error().err, wg07::Err::kReplyResource);
  EXPECT_EQ(error().arm.length_needed, results.size() + 24) << "with the RPC header";
  EXPECT_EQ(end->budget.used(), 0u);
  expect_alive(6);
}

// So do items that the Call offered no chunk for.
TEST_F(Wg07ResponderTest, ItemsWithoutAChunkHoldTheirOctetsUntilTheyHaveLeft) {
  first_credit = 2;
  const Octets item = pattern(40000), before(4);
  open();
  deliver(wg07::CallInline{}, rpc_call(kRead), 5, credits(1));
  answer(item_reply(item, before));
  EXPECT_EQ(end->budget.used(), item.size() + before.size());
  deliver(wg07::Grant{}, {}, 0, kManyCredits);
  EXPECT_TRUE(last_sent().is<wg07::ReplyInline>());
  EXPECT_EQ(end->budget.used(), 0u);
  open({.budget = 32 << 10});
  deliver(wg07::CallInline{}, rpc_call(kRead), 5);
  answer(item_reply(item, before));
  EXPECT_EQ(error().err, wg07::Err::kReplyResource);
  EXPECT_EQ(error().arm.length_needed, item.size() + before.size() + 24);
  EXPECT_EQ(end->pool.in_use(), 0u);
  expect_alive(6);
}

// A credit now and then keeps no Reply for ever. Each Reply has its time from the turn on when it may leave.
TEST_F(Wg07ResponderTest, ADripOfCreditsEndsInTime) {
  first_credit = 2;
  open();
  int s = 0;
  std::uint32_t credit = credits(1);
  const auto drip = [&](int end_s) {
    while (s < end_s && !end->endpoint->failure()) {
      end->link->set_now(at(++s * 1000));
      deliver(wg07::Grant{}, {}, 0, ++credit);
      end->responder->on_time(at(s * 1000));
    }
  };
  const auto answer_long = [&](std::size_t len) {
    ServedReply reply;
    reply.results = pattern(len);
    answer(std::move(reply));
  };
  for (const std::uint32_t xid : {5u, 6u}) {
    deliver_null(xid, credit);
    answer_long(70000);
  }
  drip(25);
  EXPECT_EQ(last_sent().header.xid, 6u) << "the first one has left";
  drip(35);
  EXPECT_FALSE(end->endpoint->failure());
  drip(45);
  deliver_null(7, credit);
  answer_long(200000);
  drip(100);
  ASSERT_TRUE(end->endpoint->failure());
  EXPECT_NE(end->endpoint->failure()->find("30000 ms for one Reply"), std::string::npos) << *end->endpoint->failure();
  EXPECT_LE(s, 77);
}

TEST_F(Wg07ResponderTest, AReplyBeyondWhatPartsMayHaveNeedsAChunk) {
  open();
  deliver(wg07::CallInline{}, rpc_call(kNull));
  ServedReply reply;
  reply.results = Octets(kMaxContinued);
  answer(std::move(reply));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(error().err, wg07::Err::kReplyResource);
  EXPECT_EQ(error().arm.length_needed, kMaxContinued + 24);
}

TEST_F(Wg07ResponderTest, ThePeerIsToldHowManySegmentsAreTooMany) {
  RecordProperty("proves", "W2-5.2-4");
  open({.max_segments = 16});
  for (const std::size_t num : {16u, 17u}) {
    wg07::CallInline body;
    for (std::size_t i = 0; i < num - 8; ++i) body.lists.read_list.push_back({72, writable(400)});
    body.lists.write_list = {SegmentArray(8, writable(400))};
    end->qp.sent.clear();
    deliver(body, rpc_call(kNull));
    if (num == 16) continue;
    EXPECT_EQ(error().err, wg07::Err::kSegments);
    EXPECT_EQ(error().arm.max_segments, 16u);
  }
}

TEST_F(Wg07ResponderTest, PropertiesAreAnsweredAndSettleTheThreshold) {
  open({.inline_threshold = 16384});
  end->link->exchange_properties({.send_size = 16384, .receive_size = 16384}, {});
  // In two messages, and the first one has material of the host.
  const Properties host{.host_auth = Octets{1, 2, 3}}, peer{.receive_size = 8192};
  deliver(wg07::ConnpropMiddle{make_propset(host, wg07::kProperties)}, {});
  EXPECT_THAT(end->qp.sent, SizeIs(0));
  deliver(wg07::ConnpropFinal{make_propset(peer, wg07::kProperties)}, {});
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  (void)last_sent().body<wg07::ConnpropFinal>();
  deliver_null(5);
  ServedReply reply;
  reply.results = pattern(8000);
  answer(std::move(reply));
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_GT(end->qp.sent[1].size(), 8000u);
  end->qp.sent.clear();
  deliver(wg07::ConnpropFinal{}, {}, 77);
  EXPECT_EQ(error().err, wg07::Err::kInvalCont);
  EXPECT_EQ(last_sent().header.xid, 77u);
  expect_alive(6);
}

// No part is joined that no engine would take.
TEST_F(Wg07ResponderTest, PartsBetweenPropertiesAreRefusedAtOnce) {
  RecordProperty("proves", "W2-6.3.3-3");
  open();
  end->link->exchange_properties({}, {});
  deliver(wg07::ConnpropMiddle{}, {}, 9);
  for (std::uint32_t xid = 5; xid < 8; ++xid) {
    const Octets whole = rpc_call(kNull, pattern(8000), xid);
    end->qp.sent.clear();
    deliver(wg07::CallMiddle{4000}, part_of(whole, 0, 4000), xid);
    ASSERT_THAT(end->qp.sent, SizeIs(1));
    EXPECT_EQ(error().err, wg07::Err::kInvalCont);
    EXPECT_EQ(last_sent().header.xid, xid);
    deliver(wg07::CallInline{}, part_of(whole, 4000, whole.size()), xid);
    EXPECT_THAT(end->qp.sent, SizeIs(1)) << "the Call was refused";
  }
  EXPECT_EQ(end->budget.held(), 0u);
  deliver(wg07::ConnpropFinal{}, {}, 9);
  (void)last_sent().body<wg07::ConnpropFinal>();
  expect_alive(20);
}

// Each answer holds the Receive of its message, and the client gets no more credits than there are Receives.
TEST_F(Wg07ResponderTest, AnswersThatCannotLeaveHoldNoMoreThanTheReceives) {
  first_credit = 2;
  open({.credits = 8});
  end->link->exchange_properties({}, {});
  deliver(wg07::ConnpropFinal{}, {}, 6, credits(1));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  std::size_t num = 0;
  while (!end->endpoint->failure() && end->qp.inject(wg07_octets(7, credits(1), wg07::ConnpropFinal{}))) {
    ASSERT_LT(++num, 100u);
    end->pump();
  }
  EXPECT_LE(num, 12u);
  EXPECT_THAT(end->qp.sent, SizeIs(1 + 1)) << "and the one GRANT that may go without credits";
}

TEST_F(Wg07ResponderTest, WhatIsNoRequestGetsNoAnswer) {
  open();
  deliver(wg07::Error{.err = wg07::Err::kSystem}, {}, 5);
  deliver(wg07::ReplyInline{}, rpc_reply(5), 5);
  deliver(Octets(15));
  EXPECT_THAT(end->qp.sent, IsEmpty());
  Octets unknown = wg07_octets(5, kManyCredits, wg07::Grant{});
  unknown[15] = 99;
  deliver(unknown);
  EXPECT_EQ(error().err, wg07::Err::kInvalHtype);
  expect_alive(6);
}

// Nor may a message that is refused or discarded.
TEST_F(Wg07ResponderTest, AMessageOfNoUseMayNotInvalidateEither) {
  RecordProperty("proves", "W2-6.5-3");
  const Octets whole = rpc_call(kNull, pattern(8000));
  for (const bool is_refused : {true, false}) {
    open();
    deliver(wg07::CallMiddle{4000}, part_of(whole, 0, 4000));
    if (is_refused) {
      deliver_invalidating(wg07_octets(6, kManyCredits, wg07::CallInline{}, rpc_call(kNull, {}, 6)));
    } else {
      deliver(wg07::CallMiddle{4000}, {});
      deliver_invalidating(wg07_octets(5, kManyCredits, wg07::CallInline{}, part_of(whole, 4000, whole.size())));
    }
    ASSERT_TRUE(end->endpoint->failure()) << is_refused;
    EXPECT_TRUE(end->endpoint->violated());
    EXPECT_NE(end->endpoint->failure()->find("invalidated"), std::string::npos);
  }
}

// No engine sees these messages, so none would notice.
TEST_F(Wg07ResponderTest, OnlyAnRpcMessageMayInvalidate) {
  RecordProperty("proves", "W2-6.5-3");
  const Octets whole = rpc_call(kNull, pattern(8000));
  for (const Octets& message :
       {wg07_octets(0, kManyCredits, wg07::Grant{}), wg07_octets(0, kManyCredits, wg07::ConnpropFinal{}),
        wg07_octets(5, kManyCredits, wg07::CallMiddle{4000}, part_of(whole, 0, 4000))}) {
    open();
    end->link->exchange_properties({}, {});
    deliver_invalidating(message);
    ASSERT_TRUE(end->endpoint->failure());
    EXPECT_TRUE(end->endpoint->violated());
    EXPECT_NE(end->endpoint->failure()->find("invalidated"), std::string::npos);
  }
}

// The Receives of Calls under way are no room for the messages that were promised before.
TEST_F(Wg07ResponderTest, ASmallerGrantLeavesWhatWasPromised) {
  open({.credits = 32});
  for (std::uint32_t xid = 5; xid < 15; ++xid) deliver_null(xid);
  EXPECT_EQ(end->endpoint->num_held(), 10u);
  const std::uint32_t promised = end->endpoint->num_ready() - kExtraReceives;
  EXPECT_GE(end->link->receives_for(4), 10 + promised + 1) << "and the reserve";
}

TEST_F(Wg07ResponderTest, AConnectionKeepsItsVersion) {
  RecordProperty("proves", "W2-4.3.3-2 W2-7.1.2-1");
  open();
  deliver(message(call_header(), rpc_call(kNull)));
  EXPECT_EQ(error().err, wg07::Err::kVersMismatch);
  EXPECT_EQ(last_sent().header.xid, 5u);
  EXPECT_THAT(end->service.calls, IsEmpty());
  expect_alive(6);
}

TEST_F(Wg07ResponderTest, EveryCutOfACallIsAnsweredOrDropped) {
  open();
  wg07::CallInline body;
  body.lists.write_list = {{writable(400)}};
  body.lists.reply_chunk = SegmentArray{writable(400)};
  const Octets whole = wg07_octets(5, kManyCredits, body, rpc_call(kNull));
  for (std::size_t len = 1; len < whole.size(); ++len) {
    end->service.calls.clear();
    deliver(part_of(whole, 0, len));
    EXPECT_THAT(end->service.calls, IsEmpty()) << len;
    ASSERT_FALSE(end->endpoint->failure()) << len;
  }
  expect_alive(6);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
