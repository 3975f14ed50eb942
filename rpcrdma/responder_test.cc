// A Responder as its peer sees it: which messages it serves, refuses and drops, its grants, and its end.
#include "rpcrdma/testing/responder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

TEST_F(ResponderTest, EveryMalformedVectorGetsItsExactAnswer) {
  RecordProperty("proves",
                 "R1-5.5-01 R1-5.5-02 R1-5.5-04 R1-5.5-05 R1-5.5-06 R1-5.5.1-01 R1-5.5.2-01 R1-5.5.2-05 R1-5.5.2-06 "
                 "R1-8.1.1-01 R1-8.1.1-02 R1-4.4.4.1-03 R1-4.4.4-03 R1-10.1-03");
  for (const auto& vector : load_vectors('M')) {
    if (vector.to != "responder") continue;
    open();
    ASSERT_TRUE(end->qp.inject(vector.octets)) << vector.id;
    end->pump();
    EXPECT_TRUE(end->service.calls.empty()) << vector.id;
    EXPECT_TRUE(end->qp.rdma.empty()) << vector.id;
    EXPECT_FALSE(end->endpoint->failure()) << vector.id;
    if (vector.expect == "DISCARD") {
      EXPECT_TRUE(end->qp.sent.empty()) << vector.id;
    } else {
      ASSERT_EQ(end->qp.sent.size(), 1u) << vector.id;
      EXPECT_EQ(to_hex(end->qp.sent[0]), to_hex(vector.answer)) << vector.id << " " << vector.title;
    }
    // The Receive is back, and the next Call is served.
    EXPECT_EQ(end->qp.num_receives(), end->endpoint->config().num_receives) << vector.id;
    ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
    end->pump();
    EXPECT_EQ(end->service.calls.size(), 1u) << vector.id;
  }
}

TEST_F(ResponderTest, InlineCallAndReply) {
  open();
  ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
  end->pump();
  ASSERT_EQ(end->service.calls.size(), 1u);
  EXPECT_EQ(end->service.calls[0].procedure, kNull);
  EXPECT_EQ(end->service.calls[0].xid, 0x11110001u);
  EXPECT_TRUE(end->service.calls[0].args.empty());
  answer({});
  ASSERT_EQ(end->qp.sent.size(), 1u);
  Octets expected = load_vector("V02").octets;
  expected[11] = 32;  // our grant
  EXPECT_EQ(to_hex(end->qp.sent[0]), to_hex(expected));
}

TEST_F(ResponderTest, AnswersForProgramsVersionsAndCredentials) {
  RecordProperty("proves", "R1-8-01 R1-10.2.2.3-01");
  open();
  const auto with = [this](CallHeader rpc) {
    Octets payload;
    xdr::XdrWriter out(payload);
    emit_call(out, rpc);
    call(call_header(), payload);
    const Octets answer_octets = payload_of(end->qp.sent.back());
    xdr::XdrReader in(answer_octets);
    ReplyHeader reply;
    EXPECT_TRUE(parse_reply(in, reply));
    return describe(reply);
  };
  EXPECT_EQ(with({5, 200000, 1, 0, {}, {}}), "PROG_UNAVAIL");
  EXPECT_EQ(with({5, kTestProgram, 4, 0, {}, {}}), "PROG_MISMATCH: the peer offers versions 3 to 3");
  EXPECT_EQ(with({5, kTestProgram, 3, 0, {6, {1, 2, 3, 4}}, {}}), "MSG_DENIED: AUTH_BADCRED");
  Octets payload = rpc_call(kNull);
  payload[11] = 3;
  call(call_header(), payload);
  const Octets denied = payload_of(end->qp.sent.back());
  EXPECT_EQ(to_hex(denied),
            "00000005000000010000000100000000"
            "0000000200000002");
  EXPECT_TRUE(end->service.calls.empty());
}

TEST_F(ResponderTest, GrantsFollowUseAndMemory) {
  RecordProperty("proves", "R1-4.3.1-03 R1-4.3.1-05");
  open({.credits = 16, .min_credits = 2, .reply_threshold = 1024, .budget = 40 << 10, .max_item = 20 << 10});
  const auto grant = [this] { return parse(end->qp.sent.back()).credit; };
  end->service.answer = [this](ServedCall& served) { end->responder->reply(served.id, {}); };
  v1::Header header = call_header();
  header.credit = 12;
  call(header, rpc_call(kNull));
  EXPECT_EQ(grant(), 2u);
  // It uses all it has, so it gets more, but no more than it asks for.
  end->service.answer = nullptr;
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(end->qp.inject(message(header, rpc_call(kNull))));
  end->pump();
  answer({});
  EXPECT_EQ(grant(), 12u);
  for (const ServedCall& one : end->service.calls) end->responder->reply(one.id, {});
  end->pump();
  // A Call has to wait for memory: fewer for everybody.
  end->service.calls.clear();
  Octets data = pattern(20000);
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), readable(data)}};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(end->qp.inject(message(header, rpc_call(kWrite, write_args(20000)))));
  end->pump();
  ASSERT_EQ(end->service.calls.size(), 1u);
  answer({});
  EXPECT_EQ(grant(), 6u);
  EXPECT_EQ(end->service.calls.back().procedure, kWrite);
}

TEST_F(ResponderTest, AReceiveComesBackOnlyWithItsAnswer) {
  RecordProperty("proves", "R1-4.3.1-09");
  open({.credits = 2});
  ASSERT_EQ(end->qp.num_receives(), 4u);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
    end->pump();
  }
  EXPECT_EQ(end->qp.num_receives(), 0u);
  EXPECT_EQ(end->service.calls.size(), 4u);
  answer({});
  EXPECT_EQ(end->qp.num_receives(), 1u);
  // One more than it may.
  ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
  end->pump();
  EXPECT_FALSE(end->qp.inject(load_vector("V01").octets));
}

// The slot of an answered Call is made anew. No later Call gets the old id.
TEST_F(ResponderTest, ATrimmedResponderKnowsOldIdsFromNew) {
  open();
  const auto inject = [this] {
    ASSERT_TRUE(end->qp.inject(load_vector("V01").octets));
    end->pump();
  };
  inject();
  const ServedCallId first = end->service.calls.back().id;
  end->responder->trim();  // one is under way
  answer({});
  EXPECT_EQ(end->qp.sent.size(), 1u);
  end->responder->trim();
  EXPECT_FALSE(end->responder->reply(first, {}));
  // Until the same Receive, and so the same slot, has its turn.
  for (std::uint32_t i = 1; i < end->endpoint->config().num_receives; ++i) {
    inject();
    answer({});
  }
  inject();
  const ServedCallId second = end->service.calls.back().id;
  EXPECT_EQ(second.value & 0xfff, first.value & 0xfff);
  EXPECT_NE(second.value, first.value);
  EXPECT_FALSE(end->responder->reply(first, {}));
  answer({});
}

TEST_F(ResponderTest, AnswersOnceAndOnlyToWhatItAsked) {
  open();
  call(parse(load_vector("V01").octets), payload_of(load_vector("V01").octets));
  const ServedCallId id = end->service.calls.at(0).id;
  EXPECT_FALSE(end->responder->reply(ServedCallId{id.value ^ 1}, {}));
  EXPECT_FALSE(end->responder->reply(ServedCallId{id.value + (1 << 12)}, {}));
  EXPECT_TRUE(end->responder->reply(id, {}));
  EXPECT_FALSE(end->responder->reply(id, {}));
  end->pump();
  EXPECT_FALSE(end->responder->reply(id, {}));
  EXPECT_EQ(end->qp.sent.size(), 1u);
}

TEST_F(ResponderTest, AFailingSendIsAFailureOfTheConnection) {
  RecordProperty("proves", "R1-5.5.4-03");
  open();
  call(call_header(), rpc_call(kNull));
  end->qp.fail_post_send = true;
  answer({});
  EXPECT_TRUE(end->endpoint->failure());
}

TEST_F(ResponderTest, APeerThatTakesNothingIsGivenUp) {
  open();
  end->qp.hold_completions = true;
  call(call_header(), rpc_call(kNull));
  answer({});
  const TimePoint start{std::chrono::seconds(100)};
  end->responder->on_time(start);
  EXPECT_EQ(end->responder->next_timeout(), start + std::chrono::seconds(30));
  end->responder->on_time(start + std::chrono::seconds(29));
  EXPECT_FALSE(end->endpoint->failure());
  end->responder->on_time(start + std::chrono::seconds(30));
  EXPECT_TRUE(end->endpoint->failure());
}

TEST_F(ResponderTest, HostileHeadersNeverReachMemoryThatWasNotOffered) {
  RecordProperty("proves", "R1-10.1-01");
  for (const char* id : {"V03", "V05", "V06", "V07", "V09", "V11", "V16", "V17", "V24"}) {
    const Octets octets = load_vector(id).octets;
    for (std::size_t at = 0; at + 4 <= octets.size(); at += 4) {
      for (const std::uint8_t octet : Octets{0x00, 0x01, 0x04, 0x80, 0xff}) {
        open({.credits = 2});
        end->service.answer = [this](ServedCall& served) { end->responder->reply(served.id, {}); };
        Octets changed = octets;
        changed[at + 3] = octet;
        if (octet >= 0x80) changed[at] = octet;
        end->qp.inject(changed);
        end->pump();
        end->pump();
        // At most one answer, and nothing of the peer's, because nothing was offered, was read or written.
        EXPECT_LE(end->qp.sent.size(), 1u);
      }
    }
  }
}

// As far as the peer knows, a Call whose answer is on its way is not answered.
TEST_F(ResponderTest, AnswersOnTheirWayAreCallsUnderWay) {
  RecordProperty("proves", "R1-4.3.1-03");
  open({.credits = 16, .min_credits = 4});
  end->service.answer = [this](ServedCall& served) { end->responder->reply(served.id, {}); };
  end->qp.hold_completions = true;
  for (const std::uint32_t grant : {4u, 4u, 4u, 8u}) {
    call(kNull);
    EXPECT_EQ(parse(end->qp.sent.back()).credit, grant);
  }
  EXPECT_EQ(end->qp.sent.size(), 4u);
}

TEST_F(ResponderTest, AMismatchNamesTheVersionsThatThereAre) {
  static constexpr Binding kSecond{kTestProgram, 2};
  static constexpr Binding kFifth{kTestProgram, 5};
  const std::vector<const Binding*> orders[] = {{&kSecond, &kFifth}, {&kFifth, &kSecond}};
  for (const auto& bindings : orders) {
    open({.bindings = bindings});
    Octets payload = rpc_call(kNull);
    payload[19] = 4;  // the version
    call(call_header(), payload);
    ASSERT_EQ(end->qp.sent.size(), 1u);
    const Octets octets = payload_of(end->qp.sent[0]);
    xdr::XdrReader in(octets);
    ReplyHeader reply;
    ASSERT_TRUE(parse_reply(in, reply));
    EXPECT_EQ(describe(reply), "PROG_MISMATCH: the peer offers versions 2 to 5");
  }
}

// The service of a gateway knows no more of the mismatch.
TEST_F(ResponderTest, AMismatchOfAServicesOwnNamesTheVersionThatWasCalled) {
  open();
  end->service.answer = [this](ServedCall& served) {
    ServedReply reply;
    reply.accept = ServedReply::Accept::kProgMismatch;
    end->responder->reply(served.id, std::move(reply));
  };
  call(kNull);
  ASSERT_EQ(end->qp.sent.size(), 1u);
  const Octets octets = payload_of(end->qp.sent[0]);
  xdr::XdrReader in(octets);
  ReplyHeader reply;
  ASSERT_TRUE(parse_reply(in, reply));
  EXPECT_EQ(describe(reply), "PROG_MISMATCH: the peer offers versions 3 to 3");
}

TEST_F(ResponderTest, WhatAServiceHasHadBeforeIsCountedAndNotServedAgain) {
  DuplicateRequestCache duplicate_requests{DuplicateRequestLimits{}};
  open({.duplicate_requests = &duplicate_requests});
  const std::size_t num_receives = end->qp.num_receives();
  call(call_header(), rpc_call(kRead));
  ASSERT_EQ(end->service.calls.size(), 1u);
  EXPECT_EQ(end->responder->counters().duplicate_requests, 0u);
  // The Call comes again while it runs, and then when it has its answer.
  call(call_header(), rpc_call(kRead));
  EXPECT_EQ(end->responder->counters().duplicate_requests, 1u);
  EXPECT_EQ(end->qp.num_receives(), num_receives - 1);
  EXPECT_TRUE(end->qp.sent.empty());
  ServedReply reply = item_reply(pattern(8), {0, 0, 0, 8});
  duplicate_requests.on_reply(end->service.calls[0].id, reply);
  answer(std::move(reply));
  call(call_header(), rpc_call(kRead));
  EXPECT_EQ(end->responder->counters().duplicate_requests, 2u);
  ASSERT_EQ(end->qp.sent.size(), 2u);
  EXPECT_EQ(end->qp.sent[0], end->qp.sent[1]);
  EXPECT_EQ(end->responder->counters().calls_served, 1u);
  // There is no Buffer for its item: the client has to ask again.
  while (end->pool.trim()) {
  }
  end->pd.fail_registration = true;
  call(call_header(), rpc_call(kRead));
  EXPECT_EQ(end->responder->counters().duplicate_requests, 3u);
  EXPECT_EQ(end->qp.sent.size(), 2u);
  EXPECT_EQ(end->qp.num_receives(), num_receives);
  EXPECT_EQ(end->service.calls.size(), 1u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
