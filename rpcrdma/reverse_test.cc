// The two directions on one connection (RFC 8167): each message reaches its direction's engine, and reverse Calls end.
#include "rpcrdma/reverse.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "rpcrdma/testing/reverse.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

TEST_F(ReverseTest, TheClientAnswersACallOfItsServer) {
  RecordProperty("proves", "R1-7.1.2-01 R1-7.3.5-01 R1-7.3.5-02 R1-7.2.1-03");
  open_client();
  ASSERT_TRUE(client->qp.inject(load_vector("V21").octets));
  run();
  ASSERT_EQ(client->service.calls.size(), 1u);
  EXPECT_EQ(client->service.calls[0].program, kCallback);
  EXPECT_EQ(client->service.calls[0].xid, 0x22220001u);
  ASSERT_EQ(client->qp.sent.size(), 1u);
  EXPECT_EQ(to_hex(client->qp.sent[0]), to_hex(load_vector("V22").octets));
}

TEST_F(ReverseTest, TheServerCallsAndServesUnderOneXid) {
  RecordProperty("proves", "R1-7.1.2-01 R1-7.1.4-01 R1-7.1.4-02 R1-7.3.4-01 R1-7.3.4-02 R1-7.2.1-03");
  open_server({.reverse_credits = 2});
  EXPECT_EQ(server->qp.num_sends, 0u);
  CallSpec spec = call_of(callback_binding());
  spec.xid = 0x22220001;
  call_client(spec);
  ASSERT_EQ(server->qp.sent.size(), 1u);
  EXPECT_EQ(to_hex(server->qp.sent[0]), to_hex(load_vector("V21").octets));

  server->service.answer = nullptr;
  ASSERT_TRUE(server->qp.inject(load_vector("V23").octets));
  run();
  ASSERT_EQ(server->service.calls.size(), 1u);
  EXPECT_EQ(server->service.calls[0].xid, 0x22220001u);
  EXPECT_TRUE(reverse_ended.empty());

  ASSERT_TRUE(server->qp.inject(load_vector("V22").octets));
  run();
  EXPECT_EQ(reverse_ended, successes(1));
  ASSERT_TRUE(server->responder->reply(server->service.calls[0].id, {}));
  ASSERT_EQ(server->qp.sent.size(), 2u);
  EXPECT_EQ(parse(server->qp.sent[1]).xid, 0x22220001u);
  EXPECT_EQ(server->qp.sent[1].at(35), 1);  // REPLY
}

// Both directions at once under the same XIDs, more Calls than either has credits.
TEST_F(ReverseTest, BothDirectionsAtOnceUnderEqualXids) {
  RecordProperty("proves", "R1-7.1.4-01 R1-7.1.4-02 R1-7.2.1-02 R1-7.2.1-03");
  open({.reverse_credits = 2}, {.reverse_credits = 2});
  constexpr std::uint32_t kNum = 100;
  for (std::uint32_t i = 0; i < kNum; ++i) {
    CallSpec forward = call_of(test_binding()), reverse = call_of(callback_binding());
    forward.xid = reverse.xid = 0x500 + i;
    call_server(forward);
    call_client(reverse);
  }
  for (int i = 0; i < 3; ++i) run();
  EXPECT_EQ(forward_ended, successes(kNum));
  EXPECT_EQ(reverse_ended, successes(kNum));
  EXPECT_EQ(server->service.calls.size(), kNum);
  EXPECT_EQ(client->service.calls.size(), kNum);
  EXPECT_EQ(client->requester->window(), 32u);
  EXPECT_EQ(server->reverse->calls().window(), 2u);
  for (const Octets& message : server->qp.sent) EXPECT_NE(parse(message).credit, 0u);
  for (const Octets& message : client->qp.sent) EXPECT_NE(parse(message).credit, 0u);
  EXPECT_FALSE(server->endpoint->failure());
  EXPECT_FALSE(client->endpoint->failure());
}

// RFC 8167 section 6: a client that serves nothing discards Calls, whether or not an own Call has the same XID.
TEST_F(ReverseTest, AClientWithoutTheReverseDirectionDiscardsCalls) {
  RecordProperty("proves", "R1-7.1.4-02 R1-7.2.1-04");
  RequesterEnd plain(memory, {});
  std::vector<CallStatus> ended;
  CallSpec spec = call_of(test_binding());
  spec.xid = 0x22220001;
  ASSERT_TRUE(plain.requester->call(spec, keep(ended)).ok());
  const std::size_t receives = plain.qp.num_receives();
  for (const char* id : {"V21", "V24"}) {
    ASSERT_TRUE(plain.qp.inject(load_vector(id).octets));
    plain.pump();
  }
  EXPECT_EQ(plain.requester->counters().replies_discarded, 2u);
  EXPECT_STREQ(plain.requester->counters().last_discard, "a Call reached a requester");
  EXPECT_EQ(plain.requester->window(), 1u);
  EXPECT_EQ(plain.qp.num_receives(), receives);
  v1::Header header;
  header.xid = 0x22220001;
  header.credit = 9;
  ASSERT_TRUE(plain.qp.inject(message(header, rpc_reply(header.xid))));
  plain.pump();
  EXPECT_EQ(ended, successes(1));
}

// Its client alone can connect again, so an unanswered Call does not cost the connection.
TEST_F(ReverseTest, ACallMayTimeOutAndTheConnectionGoesOn) {
  RecordProperty("proves", "R1-7.3.2-01");
  open();
  client->service.answer = nullptr;
  call_client(call_of(callback_binding()));
  call_client(call_of(callback_binding()));
  run(0);
  run(1001);
  EXPECT_EQ(reverse_ended, (std::vector{CallStatus::kTimeout, CallStatus::kTimeout}));
  run(100000);
  EXPECT_FALSE(server->endpoint->failure());
  // The late Reply gives its credit back.
  ASSERT_EQ(client->service.calls.size(), 1u);
  client->reverse->reply(client->service.calls[0].id, {});
  client->service.answer = [this](ServedCall& call) { client->reverse->reply(call.id, {}); };
  call_client(call_of(callback_binding()));
  run(100000);
  EXPECT_EQ(reverse_ended.back(), CallStatus::kSuccess);
}

TEST_F(ReverseTest, ACancelledCallEndsOnce) {
  open();
  client->service.answer = nullptr;
  const CallId handle = call_client(call_of(callback_binding()));
  run();
  EXPECT_TRUE(server->reverse->calls().cancel(handle));
  EXPECT_FALSE(server->reverse->calls().cancel(handle));
  run();
  EXPECT_EQ(reverse_ended, std::vector{CallStatus::kCancelled});
}

TEST_F(ReverseTest, AfterItsEndNothingIsServed) {
  open();
  client->service.answer = nullptr;
  call_client(call_of(callback_binding()));
  run();
  client->reverse->end("the cable is out");
  EXPECT_EQ(client->service.ends, std::vector<std::string>{"the cable is out"});
  client->reverse->reply(client->service.calls.at(0).id, {});
  ASSERT_TRUE(client->qp.inject(load_vector("V21").octets));
  run();
  EXPECT_EQ(client->service.calls.size(), 1u);
  EXPECT_EQ(client->qp.num_sends, 0u);
}

// One word of a message changed, or its end cut off: each end keeps its Receives and goes on serving and calling.
TEST_F(ReverseTest, MutatedMessagesHarmNeitherDirection) {
  std::minstd_rand random(1);
  open_client();
  open_server({.ord = 0});  // to pull from memory that is not there would end the connection, and rightly
  const std::size_t client_receives = client->qp.num_receives(), server_receives = server->qp.num_receives();
  CallSpec pending = call_of(test_binding());
  pending.xid = 0x22220001;
  call_server(pending);
  pending = call_of(callback_binding());
  pending.xid = 0x11110001;
  call_client(pending);
  std::vector<Octets> messages;
  for (const char* id : {"V21", "V22", "V23", "V24", "V25", "V11", "V12"}) messages.push_back(load_vector(id).octets);
  constexpr std::uint8_t kValues[] = {0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0xff};
  for (int i = 0; i < 20000; ++i) {
    Octets changed = messages[random() % messages.size()];
    changed[random() % changed.size()] = kValues[random() % std::size(kValues)];
    changed[random() % changed.size()] = kValues[random() % std::size(kValues)];
    if (random() % 4 == 0) changed.resize(random() % changed.size());
    ASSERT_TRUE(client->qp.inject(changed));
    ASSERT_TRUE(server->qp.inject(changed));
    run();
    ASSERT_FALSE(client->endpoint->failure()) << to_hex(changed) << *client->endpoint->failure();
    ASSERT_FALSE(server->endpoint->failure()) << to_hex(changed) << *server->endpoint->failure();
    ASSERT_EQ(client->qp.num_receives(), client_receives) << to_hex(changed);
    if (forward_ended.size() > 0) {
      call_server(call_of(test_binding()));
      forward_ended.clear();
    }
  }
  EXPECT_EQ(server->qp.num_receives(), server_receives);
  client->qp.sent.clear();
  ASSERT_TRUE(client->qp.inject(load_vector("V21").octets));
  run();
  ASSERT_EQ(client->qp.sent.size(), 1u);
  EXPECT_EQ(to_hex(client->qp.sent[0]), to_hex(load_vector("V22").octets));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
