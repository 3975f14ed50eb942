// Calls under RPCSEC_GSS (RFC 8166 section 8.2.2): without protection as under any flavor, else whole.
#include "rpcrdma/profiles.h"
#include "rpcrdma/testing/forms.h"
#include "rpcrdma/testing/gss.h"

namespace weft::rpcrdma::testing {
namespace {

struct ProtectedCallsTest : FormsTest {
  void open_for_gss() {
    open();
    responder->programs.back().takes_gss = true;
    requester->qp.keep_sent = true;
  }
  // Both engines, without delivery: the Sends of each stay with it.
  void open_apart() {
    responder = std::make_unique<ResponderEnd>(memory, ResponderEnd::Options{});
    requester = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{});
    responder->programs.back().takes_gss = true;
  }
  std::size_t num_write_chunks() const { return requester->requester->counters().write_chunks; }
};

TEST_F(ProtectedCallsTest, AuthenticationAloneReducesAsEver) {
  RecordProperty("proves", "R1-10.2.2.2-01");
  open_for_gss();
  const OpaqueAuth cred = gss_cred(GssService::kNone);
  const Message message = pair_message(pattern(3000), pattern(10));
  answer_with([&](ServedCall& served) {
    EXPECT_EQ(copy_of(served.cred.body), cred.body);
    return reply_with(message, responder->pool);
  });
  Octets room(3000);
  CallSpec spec = spec_of(kPair, message.without);
  const auto items = items_of(message);
  const std::vector<ScatteredBytes> rooms{MutBytes(room), {}};
  spec.cred = &cred;
  spec.items = items;
  spec.result_items = rooms;
  spec.max_results = 100;
  const Outcome outcome = call(spec);
  ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_EQ(seen_args.at(0), message.whole);
  EXPECT_EQ(num_items.at(0), 1u);
  EXPECT_EQ(room, pattern(3000));
}

TEST_F(ProtectedCallsTest, WhatIsWrappedGoesAsLongMessagesOnly) {
  RecordProperty("proves", "R1-10.2.2-01 R1-10.2.2.3-01 R1-10.2.2.3-02 R1-10.2.2.3-03 U1-6.4.2-11 U1-8-01");
  const Octets wrapped = pattern(65536);
  for (const OpaqueAuth& cred : {gss_cred(GssService::kIntegrity), gss_cred(GssService::kPrivacy),
                                 gss_cred(GssService::kNone, 1), gss_cred(GssService::kNone, 2)}) {
    open_for_gss();
    answer_with([&](ServedCall&) {
      ServedReply reply;
      reply.results = wrapped;
      return reply;
    });
    CallSpec spec = spec_of(kPair, wrapped);
    spec.cred = &cred;
    spec.max_results = wrapped.size();
    const Outcome outcome = call(spec);
    ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    EXPECT_EQ(seen_args.at(0), wrapped);
    EXPECT_EQ(outcome.results, wrapped);
    const v1::Header header = parse(requester->qp.sent.at(0));
    EXPECT_EQ(header.proc, v1::Proc::kNomsg);
    ASSERT_FALSE(header.lists.read_list.empty());
    EXPECT_EQ(header.lists.read_list.front().position, 0u);
    EXPECT_TRUE(header.lists.write_list.empty());
    EXPECT_TRUE(header.lists.reply_chunk);
  }
}

TEST_F(ProtectedCallsTest, TheRequesterTakesNoItemsOfThem) {
  RecordProperty("proves", "R1-10.2.2.3-01");
  open_for_gss();
  const OpaqueAuth cred = gss_cred(GssService::kIntegrity);
  const Message message = pair_message(pattern(3000), {});
  const auto items = items_of(message);
  Octets room(3000);
  CallSpec spec = spec_of(kPair, message.without);
  spec.cred = &cred;
  spec.items = items;
  EXPECT_FALSE(requester->requester->call(spec, nullptr).ok());
  spec = spec_of(kPair, message.whole);
  spec.cred = &cred;
  spec.result_items = room;
  EXPECT_FALSE(requester->requester->call(spec, nullptr).ok());
}

// A requester that reduces all the same: its Call under AUTH_SYS, with a credential of the same length exchanged.
TEST_F(ProtectedCallsTest, TheResponderTakesNoneEither) {
  RecordProperty("proves", "R1-10.2.2.3-01");
  open_apart();
  const OpaqueAuth cred = gss_cred(GssService::kPrivacy);
  const OpaqueAuth harmless{1, cred.body};
  const Message message = pair_message(pattern(9000), {});
  const auto items = items_of(message);
  Octets room(9000);
  const auto exchange = [&](const CallSpec& spec) {
    EXPECT_TRUE(requester->requester->call(spec, [](const Reply&) {}).ok());
    requester->pump();
    Octets call = requester->qp.sent.back();
    const std::size_t flavor = profile_1().call_lengths.of(parse(call).lists) + 6 * 4 + 3;
    EXPECT_EQ(call.at(flavor), 1u);
    call.at(flavor) = 6;
    EXPECT_TRUE(responder->qp.inject(call));
    responder->pump();
    return payload_of(responder->qp.sent.back());
  };
  CallSpec spec = spec_of(kPair, message.without);
  spec.cred = &harmless;
  spec.items = items;
  const Octets refused = exchange(spec);
  EXPECT_EQ(refused.back(), static_cast<std::uint8_t>(AcceptStat::kGarbageArgs));
  EXPECT_TRUE(seen_args.empty());

  open_apart();
  answer_with([&](ServedCall& served) {
    EXPECT_TRUE(served.result_capacities.empty());
    return reply_with(pair_message({1, 2, 3, 4}, {}), responder->pool);
  });
  spec = spec_of(kPair, no_operations());
  spec.cred = &harmless;
  spec.result_items = room;
  const Octets inline_reply = exchange(spec);
  EXPECT_EQ(inline_reply.size(), 24 + pair_message({1, 2, 3, 4}, {}).whole.size());
}

TEST_F(ProtectedCallsTest, RepliesHaveRoomForTheLargestVerifier) {
  RecordProperty("proves", "R1-10.2.2.2-02");
  open_for_gss();
  const OpaqueAuth cred = gss_cred(GssService::kNone);
  answer_with([&](ServedCall&) {
    ServedReply reply;
    reply.verf = {6, pattern(400)};
    reply.results = pattern(700);
    return reply;
  });
  CallSpec spec = spec_of(0);
  spec.cred = &cred;
  spec.max_results = 700;
  const Outcome outcome = call(spec);
  EXPECT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_EQ(requester->requester->counters().reply_chunks, 1u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
