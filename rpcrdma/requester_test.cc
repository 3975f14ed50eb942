// The requester by itself: credits, Replies, and the ends of Calls.
#include "rpcrdma/requester.h"

#include <gtest/gtest.h>

#include "rpcrdma/testing/requester.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

TEST_F(RequesterTest, OneCallUntilTheFirstReplyThenTheGrant) {
  RecordProperty("proves",
                 "R1-4.3.3-02 R1-4.3.3-03 R1-4.3.1-02 R1-4.3.1-04 R1-4.3.1-06 R1-4.3.1-07 R1-4.3.1-08 R1-7.1.4-03");
  open({.credits = 8});
  for (int i = 0; i < 20; ++i) call();
  run();
  ASSERT_EQ(end->qp.sent.size(), 1u);
  EXPECT_EQ(parse(sent(0)).credit, 8u);
  deliver(reply_to(0, 4));
  EXPECT_EQ(end->qp.sent.size(), 5u);
  deliver(reply_to(1, 100));  // more than was asked for
  EXPECT_EQ(end->qp.sent.size(), 2u + 8);
  deliver(reply_to(2, 2));
  deliver(reply_to(3, 2));
  EXPECT_EQ(end->qp.sent.size(), 10u);
  for (std::size_t i = 4; i < 8; ++i) deliver(reply_to(i, 2));
  EXPECT_EQ(end->qp.sent.size(), 10u);
  deliver(reply_to(8, 2));
  EXPECT_EQ(end->qp.sent.size(), 11u);
  EXPECT_EQ(outcomes.size(), 9u);
  EXPECT_EQ(end->requester->num_outstanding(), 11u);
}

// A peer that has a client make long Calls and wait for long Replies must not fill its memory for good.
TEST_F(RequesterTest, WhatEndedCallsKeepIsBounded) {
  constexpr std::uint32_t kCredits = 32;
  open({.credits = kCredits});
  call();
  deliver(reply_to(0, kCredits));
  const Octets args = pattern(300000);
  for (std::size_t round = 0; round < 2; ++round) {
    const std::size_t before = end->qp.sent.size();
    for (std::size_t i = 0; i < kCredits; ++i) {
      CallSpec spec;
      spec.args = args;
      spec.max_results = 300000;
      call(spec);
    }
    ASSERT_EQ(end->qp.sent.size(), before + kCredits);
    for (std::size_t i = before; i < before + kCredits; ++i) deliver(long_reply_to(i, kCredits));
    ASSERT_EQ(outcomes.size(), 1 + (round + 1) * kCredits);
    EXPECT_EQ(outcomes.back().status, CallStatus::kSuccess);
    EXPECT_LE(end->requester->spare_octets(), Requester::kMaxSpareOctets);
  }
}

TEST_F(RequesterTest, ACallThatWasNotSentSaysSo) {
  open({.credits = 8});
  CallSpec spec;
  spec.timeout = std::chrono::milliseconds(1000);
  for (int i = 0; i < 2; ++i) call(spec);
  run();
  ASSERT_EQ(end->qp.sent.size(), 1u);
  run(1000);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].text, "no Reply within 1000 ms");
  EXPECT_EQ(outcomes[1].text, "not sent within 1000 ms: the peer granted no credit for it");
}

TEST_F(RequesterTest, ACallThatWaitsToBeSentAgainSaysSo) {
  open({.credits = 8});
  CallSpec spec;
  spec.timeout = std::chrono::milliseconds(1000);
  call(spec);
  run();
  end->requester->suspend("broken");
  run(1000);
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].text, "no Reply within 1000 ms; it waited to be sent again");
}

TEST_F(RequesterTest, ACallWithoutAConnectionSaysSo) {
  open({.credits = 8});
  end->requester->suspend("broken");
  CallSpec spec;
  spec.timeout = std::chrono::milliseconds(1000);
  call(spec);
  run();
  run(1000);
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].text, "not sent within 1000 ms: no connection was ready");
}

// The log has a line for each discarded Reply, and the text of the Call has the reason, too.
TEST_F(RequesterTest, ACallWithoutAReplySaysWhatWasDiscarded) {
  open({.credits = 8});
  CallSpec spec;
  spec.timeout = std::chrono::milliseconds(1000);
  for (int i = 0; i < 2; ++i) call(spec);
  run();
  v1::Header header = parse(sent(0));
  deliver(message(header, rpc_reply(header.xid + 1)));
  run(1000);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].text,
            "no Reply within 1000 ms; 1 message was discarded meanwhile, because: header XID differs from RPC XID");
  EXPECT_EQ(
      outcomes[1].text,
      "not sent within 1000 ms: the peer granted no credit for it; 1 message was discarded meanwhile, because: header "
      "XID differs from RPC XID");
  outcomes.clear();
  call(spec);
  run(1000);
  run(2000);
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes.back().text.find("discarded"), std::string::npos) << "those before the Call do not count";
}

// ERR_VERS from a peer that contradicts itself.
TEST_F(RequesterTest, ARefusalOfTheVersionSaysWhatThePeerSays) {
  const struct {
    bool has_answered;
    std::uint32_t low, high;
    std::string text;
  } cases[] = {
      {false, 2, 2, "the peer speaks RPC-over-RDMA version 2; ClientConfig::protocols has the versions of this end"},
      {false, 1, 2, "the peer refuses RPC-over-RDMA version 1, and says that it speaks versions 1 to 2"},
      {false, 1, 0, "the peer refuses RPC-over-RDMA version 1, and names no version"},
      {true, 1, 1,
       "the peer refuses RPC-over-RDMA version 1, in which it answered before, and says that it speaks version 1"},
      {true, 2, 2,
       "the peer refuses RPC-over-RDMA version 1, in which it answered before, and says that it speaks version 2"},
  };
  for (const auto& [has_answered, low, high, text] : cases) {
    open();
    call();
    run();
    if (has_answered) {
      deliver(reply_to(0, 8));
      call();
      run();
    }
    v1::Header header = parse(end->qp.sent.back());
    header.proc = v1::Proc::kError;
    header.err = v1::Err::kVers;
    header.vers_low = low;
    header.vers_high = high;
    deliver(message(header, {}));
    EXPECT_EQ(outcomes.back().status, CallStatus::kVersMismatch);
    EXPECT_EQ(outcomes.back().text, "ERR_VERS: " + text);
  }
}

// Each of two Calls ends in the same way, and only the first one was sent.
TEST_F(RequesterTest, ACallThatWasNotSentDidNotRun) {
  const std::function<void()> ends[] = {
      [this] { run(1000); },
      [this] {
        end->requester->on_closed("gone");
        run();
      },
      [this] {
        for (const std::uint64_t id : {1u, 2u}) EXPECT_TRUE(end->requester->cancel({id}));
        run();
      },
  };
  for (const auto& end_both : ends) {
    open();
    outcomes.clear();
    call();
    call();
    run();
    ASSERT_EQ(end->qp.sent.size(), 1u);
    end_both();
    ASSERT_EQ(outcomes.size(), 2u);
    EXPECT_EQ(outcomes[0].status, outcomes[1].status);
    EXPECT_FALSE(outcomes[0].did_not_run) << outcomes[0].text;
    EXPECT_TRUE(outcomes[1].did_not_run) << outcomes[1].text;
  }
}

// ERR_CHUNK can be about the Reply.
TEST_F(RequesterTest, OnlyARefusalOfTheVersionTellsThatACallDidNotRun) {
  for (const v1::Err err : {v1::Err::kVers, v1::Err::kChunk}) {
    open();
    outcomes.clear();
    call();
    v1::Header header = parse(sent(0));
    header.proc = v1::Proc::kError;
    header.err = err;
    header.vers_low = header.vers_high = 3;
    deliver(message(header, {}));
    ASSERT_EQ(outcomes.size(), 1u);
    EXPECT_EQ(outcomes[0].did_not_run, err == v1::Err::kVers);
  }
}

TEST_F(RequesterTest, AGrantOfZeroCountsAsOne) {
  open();
  call();
  call();
  call();
  run();
  deliver(reply_to(0, 0));
  EXPECT_EQ(end->qp.sent.size(), 2u);
}

TEST_F(RequesterTest, MalformedVectorsNeverEndACallNorDrawAnAnswer) {
  RecordProperty("proves", "R1-5.5-01 R1-5.5-03 R1-5.5-08 R1-5.5-07 R1-5.2.4-03 R1-5.6.1-03 R1-5.6.2-02");
  for (const auto& vector : load_vectors('M')) {
    if (vector.to != "requester") continue;
    open();
    outcomes.clear();
    call();  // XID 11110001
    run();
    deliver(vector.octets);
    EXPECT_EQ(end->qp.sent.size(), 1u) << vector.id;
    if (vector.expect == "DISCARD") {
      EXPECT_TRUE(outcomes.empty()) << vector.id;
      EXPECT_EQ(end->requester->counters().replies_discarded, 1u) << vector.id;
      deliver(reply_to(0, 1));
      ASSERT_EQ(outcomes.size(), 1u) << vector.id;
      EXPECT_EQ(outcomes[0].status, CallStatus::kSuccess) << vector.id;
    } else {
      ASSERT_EQ(outcomes.size(), 1u) << vector.id;
      EXPECT_EQ(outcomes[0].status, vector.id == "M44" ? CallStatus::kTransportError : CallStatus::kVersMismatch);
      deliver(vector.octets);
      EXPECT_EQ(outcomes.size(), 1u) << vector.id;
    }
    EXPECT_EQ(end->qp.num_receives(), end->endpoint->config().num_receives);
  }
}

TEST_F(RequesterTest, EveryRpcOutcomeHasItsStatus) {
  const std::vector<std::pair<ReplyHeader, CallStatus>> cases{
      {{.verf = {}, .accept = AcceptStat::kProgUnavail}, CallStatus::kProgUnavail},
      {{.verf = {}, .accept = AcceptStat::kProgMismatch, .low = 2, .high = 2}, CallStatus::kProgMismatch},
      {{.verf = {}, .accept = AcceptStat::kProcUnavail}, CallStatus::kProcUnavail},
      {{.verf = {}, .accept = AcceptStat::kGarbageArgs}, CallStatus::kGarbageArgs},
      {{.verf = {}, .accept = AcceptStat::kSystemErr}, CallStatus::kSystemErr},
      {{.denied = true, .verf = {}, .reject = RejectStat::kAuthError, .auth = AuthStat::kTooWeak}, CallStatus::kDenied},
      {{.denied = true, .verf = {}, .reject = RejectStat::kRpcMismatch, .low = 2, .high = 2}, CallStatus::kDenied}};
  open();
  for (auto [rpc, status] : cases) {
    call();
    run();
    v1::Header header = parse(end->qp.sent.back());
    rpc.xid = header.xid;
    Octets payload;
    xdr::XdrWriter out(payload);
    emit_reply(out, rpc);
    deliver(message(header, payload));
    EXPECT_EQ(outcomes.back().status, status);
    EXPECT_FALSE(outcomes.back().text.empty());
  }
  call();
  run();
  v1::Header header = parse(end->qp.sent.back());
  Octets payload = rpc_reply(header.xid);
  payload[23] = 17;  // accept_stat
  deliver(message(header, payload));
  EXPECT_EQ(outcomes.back().status, CallStatus::kBadReply);
}

TEST_F(RequesterTest, TimeoutsFenceMemoryAndKeepTheCredit) {
  RecordProperty("proves", "R1-5.4.1-03 R1-10.1.3-02");
  open();
  Octets room(9000);
  CallSpec spec;
  spec.result_items = room;
  call(spec);
  EXPECT_LE(end->requester->next_timeout(), at(0));  // its clock is to be started
  run(0);
  EXPECT_EQ(end->requester->next_timeout(), at(1000));
  deliver(reply_to(0, 2), 10);
  call(spec);
  call(spec);
  call(spec);  // waits for a credit
  run(500);
  run(1499);
  EXPECT_EQ(outcomes.size(), 1u);
  run(1500);
  ASSERT_EQ(outcomes.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(outcomes[i].status, CallStatus::kTimeout);
  EXPECT_EQ(memory.num_remote(), 0u);
  // Calls without an answer hold both credits: there is no going on.
  EXPECT_TRUE(end->endpoint->failure());
}

TEST_F(RequesterTest, ALateReplyGivesTheCreditBack) {
  open();
  call();
  run(0);
  deliver(reply_to(0, 2), 0);
  call();
  run(0);
  run(1000);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[1].status, CallStatus::kTimeout);
  EXPECT_FALSE(end->endpoint->failure());
  call();
  call();
  run(1001);
  EXPECT_EQ(end->qp.sent.size(), 3u);
  deliver(reply_to(1, 2), 1002);
  EXPECT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(end->qp.sent.size(), 4u);
}

TEST_F(RequesterTest, TheEndOfTheConnectionEndsEveryCallOnce) {
  open();
  Octets room(9000);
  CallSpec spec;
  spec.result_items = room;
  for (int i = 0; i < 5; ++i) call(spec);
  run();
  end->qp.break_connection();
  end->pump();
  EXPECT_TRUE(end->endpoint->failure());
  end->requester->on_closed("gone");
  EXPECT_TRUE(outcomes.empty());
  end->requester->on_time(at(1));
  ASSERT_EQ(outcomes.size(), 5u);
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.status, CallStatus::kDisconnected);
    EXPECT_EQ(outcome.text, "gone");
  }
  run(5000);
  EXPECT_EQ(outcomes.size(), 5u);
  EXPECT_EQ(memory.num_remote(), 0u);
  EXPECT_FALSE(end->requester->call({}, nullptr).ok());
}

TEST_F(RequesterTest, FailingRegistrationFailsTheCallAlone) {
  RecordProperty("proves", "R1-5.5.4-01");
  open();
  end->pd.fail_registration = true;
  Octets room(9000);
  CallSpec spec;
  spec.result_items = room;
  call(spec);
  EXPECT_TRUE(outcomes.empty());  // never from call()
  run();
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].status, CallStatus::kLocalError);
  EXPECT_TRUE(end->qp.sent.empty());
  call();
  run();
  EXPECT_EQ(end->qp.sent.size(), 1u);
}

TEST_F(RequesterTest, RefusesWhatIsNotACall) {
  open();
  const Octets args = pattern(8);
  CallSpec spec;
  spec.args = args;
  for (const std::size_t position : {2ul, 12ul}) {
    spec.items = ArgumentItem{position, args};
    EXPECT_EQ(end->requester->call(spec, nullptr).error().errno_value, EINVAL);
  }
  spec.items = {};
  spec.args = ConstBytes(args).first(7);
  EXPECT_FALSE(end->requester->call(spec, nullptr).ok());
  spec.args = args;
  const OpaqueAuth cred{1, Octets(404)};
  spec.cred = &cred;
  EXPECT_FALSE(end->requester->call(spec, nullptr).ok());
}

TEST_F(RequesterTest, CallbacksMayCall) {
  open();
  int num = 0;
  std::function<void(const Reply&)> again = [&](const Reply&) {
    if (++num < 3) {
      EXPECT_TRUE(end->requester->call({}, again).ok());
    }
  };
  EXPECT_TRUE(end->requester->call({}, again).ok());
  for (std::size_t i = 0; i < 3; ++i) {
    run();
    deliver(reply_to(i, 1));
  }
  EXPECT_EQ(num, 3);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
