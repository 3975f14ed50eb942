// Credits and Receives of the two directions: each has its own.
#include <gtest/gtest.h>

#include "rpcrdma/registrations.h"
#include "rpcrdma/testing/reverse.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

// A credit word of one direction never moves the other's window.
TEST_F(ReverseTest, ACallsCreditsAreARequestAndNoGrant) {
  RecordProperty("proves", "R1-7.2.1-04");
  open({.credits = 16, .reverse_credits = 2}, {.credits = 32, .reverse_credits = 2});
  call_server(call_of(test_binding()));
  run();
  EXPECT_EQ(client->requester->window(), 16u);
  call_client(call_of(callback_binding()));
  run();
  EXPECT_EQ(reverse_ended, successes(1));
  EXPECT_EQ(client->requester->window(), 16u);
  EXPECT_EQ(server->reverse->calls().window(), 2u);
}

// While one direction's Calls are all held back the other's go on.
TEST_F(ReverseTest, AnExhaustedDirectionDoesNotStopTheOther) {
  RecordProperty("proves", "R1-7.2.1-01 R1-7.2.2.1-01 R1-7.2.2.2-01");
  open({.credits = 4, .reverse_credits = 2}, {.credits = 4, .reverse_credits = 2});
  call_server(call_of(test_binding()));
  call_client(call_of(callback_binding()));
  run();
  client->service.answer = nullptr;
  for (int i = 0; i < 10; ++i) call_client(call_of(callback_binding()));
  run();
  EXPECT_EQ(client->service.calls.size(), 1u + 2u);
  for (int i = 0; i < 50; ++i) call_server(call_of(test_binding()));
  run();
  EXPECT_EQ(forward_ended, successes(51));

  client->service.answer = [this](ServedCall& call) { client->reverse->reply(call.id, {}); };
  for (std::size_t i = 1; i < 3; ++i) client->reverse->reply(client->service.calls[i].id, {});
  server->service.answer = nullptr;
  for (int i = 0; i < 10; ++i) call_server(call_of(test_binding()));
  run();
  EXPECT_EQ(server->service.calls.size(), 51u + 4u);
  for (int i = 0; i < 50; ++i) call_client(call_of(callback_binding()));
  run();
  EXPECT_EQ(reverse_ended, successes(61));
  EXPECT_EQ(forward_ended, successes(51));
  EXPECT_FALSE(server->endpoint->failure());
}

TEST_F(ReverseTest, ReceivesAreThereForBothDirections) {
  RecordProperty("proves", "R1-7.2.2.1-01 R1-7.2.2.2-01");
  open({.credits = 8, .reverse_credits = 2}, {.credits = 8, .reverse_credits = 2});
  call_server(call_of(test_binding()));
  run();
  server->service.answer = nullptr;
  for (int i = 0; i < 8; ++i) call_server(call_of(test_binding()));
  client->pump();
  EXPECT_GE(client->qp.num_receives(), 8u + 2u);
  // All Calls of the client and all Replies to the server arrive before it looks.
  call_client(call_of(callback_binding()));
  client->pump();
  server->pump();
  EXPECT_EQ(reverse_ended, successes(1));
  call_client(call_of(callback_binding()));
  call_client(call_of(callback_binding()));
  client->pump();
  EXPECT_FALSE(server->qp.broken());
  run();
  EXPECT_EQ(reverse_ended, successes(3));
  EXPECT_EQ(server->service.calls.size(), 1u + 8u);
}

// Neither the client nor the server can tell the kind of these messages. Their credit words change nothing.
TEST_F(ReverseTest, CreditWordsOfWhatIsUnclearAreIgnored) {
  RecordProperty("proves", "R1-7.2.1-05");
  v1::Header header;
  header.proc = v1::Proc::kNomsg;
  header.credit = 31;

  open_client();
  CallSpec spec = call_of(test_binding());
  spec.xid = header.xid = 0x600;
  call_server(spec);
  ASSERT_TRUE(client->qp.inject(message(header, {})));
  run();
  EXPECT_EQ(client->requester->window(), 1u);
  EXPECT_TRUE(forward_ended.empty());

  open_server({.min_credits = 1});
  ASSERT_TRUE(server->qp.inject(message(header, {})));
  run();
  ASSERT_EQ(server->qp.sent.size(), 1u);
  EXPECT_EQ(parse(server->qp.sent[0]).err, v1::Err::kChunk);
  EXPECT_EQ(parse(server->qp.sent[0]).credit, 1u);
  // A Call's is heard.
  header.proc = v1::Proc::kMsg;
  Octets payload;
  xdr::XdrWriter out(payload);
  emit_call(out, {.xid = 0x600, .program = kTestProgram, .version = kTestVersion, .cred = {}, .verf = {}});
  ASSERT_TRUE(server->qp.inject(message(header, payload)));
  run();
  EXPECT_EQ(parse(server->qp.sent.at(1)).credit, 2u);
}

// More Calls than were granted would use up the Receives of Replies.
TEST_F(ReverseTest, CallsBeyondTheGrantEndTheConnection) {
  RecordProperty("proves", "R1-7.2.1-01");
  open_client({.reverse_credits = 2});
  client->service.answer = nullptr;
  Octets call = load_vector("V21").octets;
  for (std::uint8_t i = 0; i < 2; ++i) {
    call[3] = call[31] = i;
    ASSERT_TRUE(client->qp.inject(call));
    run();
    EXPECT_FALSE(client->endpoint->failure());
  }
  call[3] = call[31] = 2;
  ASSERT_TRUE(client->qp.inject(call));
  run();
  EXPECT_EQ(client->service.calls.size(), 2u);
  ASSERT_TRUE(client->endpoint->failure());
  EXPECT_EQ(*client->endpoint->failure(), "the peer sends more Calls than it was granted");
}

// Only a Reply may take a handle away, and only one of its own Call.
TEST_F(ReverseTest, ACallThatInvalidatesAHandleEndsTheConnection) {
  RecordProperty("proves", "R1-4.3.2-16");
  open_client();
  Octets room(100);
  Registrations window;
  Segment segment;
  ASSERT_TRUE(window.add(client->pd, true, room.data(), room.size(), verbs::Access::kRemoteWrite, segment).ok());
  ASSERT_TRUE(window.bind(*client->endpoint));
  ASSERT_TRUE(client->qp.inject(load_vector("V21").octets, segment.handle));
  run();
  EXPECT_TRUE(client->service.calls.empty());
  ASSERT_TRUE(client->endpoint->failure());
  EXPECT_EQ(*client->endpoint->failure(), "the peer invalidated a handle by a message that is no Reply");
}

TEST_F(ReverseTest, WhereNoReceiveIsLeftTheProviderMayEndTheConnection) {
  RecordProperty("proves", "R1-7.2.2-01 R1-7.3.2-01");
  open({.reverse_credits = 2}, {.reverse_credits = 2});
  client->service.answer = nullptr;
  call_server(call_of(test_binding()));
  call_client(call_of(callback_binding()));
  run();
  EXPECT_EQ(forward_ended, successes(1));
  const std::size_t receives = client->qp.num_receives();
  for (std::size_t i = 0; i < receives; ++i) ASSERT_TRUE(client->qp.inject(load_vector("V22").octets));
  EXPECT_FALSE(client->qp.inject(load_vector("V22").octets));
  run();
  ASSERT_TRUE(server->endpoint->failure());
  EXPECT_TRUE(reverse_ended.empty());
  server->reverse->calls().on_closed("the connection ended");
  run();
  EXPECT_EQ(reverse_ended, std::vector{CallStatus::kDisconnected});
}

}  // namespace
}  // namespace weft::rpcrdma::testing
