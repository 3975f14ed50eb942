// The reverse direction of wg07 (draft-ietf-nfsv4-rpcrdma-version-two-07 section 4.6).
#include <gmock/gmock.h>

#include "rpcrdma/testing/reverse.h"
#include "rpcrdma/testing/wg07.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace wg07 = v2_wg07;

struct Wg07ReverseTest : ReverseTest {
  // Both ends; the client tells that it takes Calls in this form.
  void connect(ReverseSupport support) {
    ReverseTest::open({.protocol = Protocol::k2Wg07}, {.protocol = Protocol::k2Wg07});
    client->link->exchange_properties({.reverse = support}, {});
    server->link->exchange_properties({}, [this] { server->reverse->settle(server->link->terms()); });
  }
  // The same, and they have settled.
  void open(ReverseSupport support) {
    connect(support);
    call_server(call_of(test_binding()));
    run();
    forward_ended.clear();
    client->service.calls.clear();
    server->service.calls.clear();
    client->qp.sent.clear();
    server->qp.sent.clear();
  }
  // The client alone, and its first Call was answered.
  void open_client_alone() {
    open_client({.protocol = Protocol::k2Wg07});
    call_server(call_of(test_binding()));
    run();
    const std::uint32_t xid = wg07_parse(client->qp.sent.at(0)).header.xid;
    ASSERT_TRUE(client->qp.inject(wg07_octets(xid, 1000, wg07::ReplyInline{}, rpc_reply(xid))));
    run();
    client->qp.sent.clear();
  }
  // The errors that the client sent.
  std::vector<wg07::Err> errors() const {
    std::vector<wg07::Err> all;
    for (const Octets& octets : client->qp.sent) {
      const Wg07Message message = wg07_parse(octets);
      if (message.is<wg07::Error>()) all.push_back(message.body<wg07::Error>().err);
    }
    return all;
  }
  static std::uint32_t first_word(const Octets& payload) {
    xdr::XdrReader in(payload);
    std::uint32_t word = 0;
    EXPECT_TRUE(in.u32(word));
    return word;
  }
};

TEST_F(Wg07ReverseTest, BothDirectionsAtOnceUnderEqualXids) {
  RecordProperty("proves", "W2-3.1.3-1 W2-3.1.5.4-1 W2-4.6.1-1 W2-4.6.2-1 W2-4.2.1-2");
  open(ReverseSupport::kInline);
  constexpr std::uint32_t kNum = 20;
  for (std::uint32_t i = 0; i < kNum; ++i) {
    CallSpec forward = call_of(test_binding()), reverse = call_of(callback_binding());
    forward.xid = reverse.xid = 0x500 + i;
    call_server(forward);
    call_client(reverse);
  }
  for (int i = 0; i < 3; ++i) run();
  EXPECT_EQ(forward_ended, successes(kNum));
  EXPECT_EQ(reverse_ended, successes(kNum));
  EXPECT_THAT(server->service.calls, SizeIs(kNum));
  EXPECT_THAT(client->service.calls, SizeIs(kNum));
  std::size_t num_reverse_calls = 0, num_reverse_replies = 0;
  for (const FakeQp* qp : {&server->qp, &client->qp}) {
    for (const Octets& octets : qp->sent) {
      const Wg07Message message = wg07_parse(octets);
      EXPECT_EQ(message.header.vers, 2u);
      if (message.is<wg07::Grant>()) continue;
      EXPECT_EQ(first_word(message.payload), message.header.xid);
      num_reverse_calls += qp == &server->qp && message.is<wg07::CallInline>() ? 1 : 0;
      num_reverse_replies += qp == &client->qp && message.is<wg07::ReplyInline>() ? 1 : 0;
    }
  }
  EXPECT_EQ(num_reverse_calls, kNum);
  EXPECT_EQ(num_reverse_replies, kNum);
}

TEST_F(Wg07ReverseTest, NothingIsCalledBeforeTheClientHasToldThatItServes) {
  RecordProperty("proves", "W2-4.6.3-1 W2-4.6.3-2");
  connect(ReverseSupport::kInline);
  call_client(call_of(callback_binding()));
  run();
  EXPECT_THAT(server->qp.sent, IsEmpty());
  call_server(call_of(test_binding()));
  run();
  EXPECT_EQ(forward_ended, successes(1));
  EXPECT_EQ(reverse_ended, successes(1));
  // The client's properties came before the Call.
  bool has_told = false;
  for (const Octets& octets : client->qp.sent) has_told |= wg07_parse(octets).is<wg07::ConnpropFinal>();
  EXPECT_TRUE(has_told);
  // A client that has told nothing is not called.
  ReverseTest::open({.protocol = Protocol::k2Wg07}, {.protocol = Protocol::k2Wg07});
  reverse_ended.clear();
  call_client(call_of(callback_binding()));
  call_server(call_of(test_binding()));
  run();
  EXPECT_THAT(reverse_ended, IsEmpty());
  EXPECT_THAT(client->service.calls, IsEmpty());
  // One that takes none gets none.
  open(ReverseSupport::kNone);
  EXPECT_FALSE(server->reverse->calls().call(call_of(callback_binding()), {}).ok());
  run();
  EXPECT_THAT(server->qp.sent, IsEmpty());
}

// A program that waits for its Call may hold up others.
TEST_F(Wg07ReverseTest, CallsToAClientThatTellsNothingEndSoon) {
  RecordProperty("proves", "W2-4.6.3-2");
  ReverseTest::open({.protocol = Protocol::k2Wg07}, {.protocol = Protocol::k2Wg07});
  server->link->exchange_properties({}, [this] { server->reverse->settle(server->link->terms()); });
  call_server(call_of(test_binding()));
  run();
  server->qp.sent.clear();
  call_client(call_of(callback_binding()));
  run(100);
  EXPECT_EQ(server->reverse->next_timeout(), at(1100));
  run(1099);
  EXPECT_THAT(reverse_ended, IsEmpty());
  run(1100);
  call_client(call_of(callback_binding()));
  run(1101);
  EXPECT_THAT(reverse_ended, ElementsAre(CallStatus::kLocalError, CallStatus::kLocalError));
  EXPECT_THAT(server->qp.sent, IsEmpty());
  // It tells late.
  client->link->exchange_properties({.reverse = ReverseSupport::kInline}, {});
  client->link->on_opened();
  run(1200);
  call_client(call_of(callback_binding()));
  run(2000);
  EXPECT_EQ(reverse_ended.back(), CallStatus::kSuccess);
}

// Each Call holds a Receive until it is answered, and Replies need Receives.
TEST_F(Wg07ReverseTest, CallsWithoutAnAnswerLeaveReceivesForReplies) {
  open_client_alone();
  client->service.answer = [](ServedCall&) {};
  std::uint32_t xid = 100;
  const auto call_client_from_hand = [&] {
    Octets message;
    xdr::XdrWriter out(message);
    emit_call(out, {++xid, kCallback, 1, 1, {}, {}});
    ASSERT_TRUE(client->qp.inject(wg07_octets(xid, 1000, wg07::CallInline{}, message)));
    run();
  };
  while (errors().empty()) {
    ASSERT_LE(xid, 200u);
    call_client_from_hand();
  }
  const std::uint32_t num_held = client->endpoint->num_held();
  EXPECT_GE(num_held, ReverseOptions{}.reverse_credits);
  EXPECT_GE(client->endpoint->num_ready(), 2u) << "a Reply and a GRANT";
  for (int i = 0; i < 50; ++i) call_client_from_hand();
  EXPECT_THAT(errors(), AllOf(SizeIs(51), Each(wg07::Err::kSystem)));
  EXPECT_EQ(wg07_parse(client->qp.sent.back()).header.xid, xid);
  EXPECT_EQ(client->endpoint->num_held(), num_held);
  forward_ended.clear();
  call_server(call_of(test_binding()));
  const std::uint32_t forward = wg07_parse(client->qp.sent.back()).header.xid;
  ASSERT_TRUE(client->qp.inject(wg07_octets(forward, 1000, wg07::ReplyInline{}, rpc_reply(forward))));
  run();
  EXPECT_EQ(forward_ended, successes(1));
}

TEST_F(Wg07ReverseTest, LongCallsGoInPartsAndWithoutChunks) {
  RecordProperty("proves", "W2-4.6.4-1 W2-5.2.5-2");
  open(ReverseSupport::kContinued);
  const Octets data = pattern(9000), args = write_args(data.size());
  CallSpec spec = call_of(test_binding(), kWrite, args);
  spec.items = ArgumentItem{write_position(), ConstBytes(data)};
  spec.max_results = 9000;
  call_client(spec);
  run();
  EXPECT_EQ(reverse_ended, successes(1));
  ASSERT_THAT(server->qp.sent, SizeIs(3));
  EXPECT_TRUE(wg07_parse(server->qp.sent[0]).is<wg07::CallMiddle>());
  EXPECT_EQ(wg07_parse(server->qp.sent[2]).body<wg07::CallInline>().lists, ChunkListsView{});
  EXPECT_THAT(client->qp.rdma, IsEmpty());
  // One that takes no parts gets none.
  open(ReverseSupport::kInline);
  reverse_ended.clear();
  call_client(spec);
  run();
  EXPECT_THAT(reverse_ended, ElementsAre(CallStatus::kLocalError));
  EXPECT_THAT(server->qp.sent, IsEmpty());
}

// The memory of their parts comes back, and nothing else does.
TEST_F(Wg07ReverseTest, CallsInPartsFollowEachOther) {
  open(ReverseSupport::kContinued);
  const Octets data = pattern(9000), args = write_args(data.size());
  CallSpec spec = call_of(test_binding(), kWrite, args);
  spec.items = ArgumentItem{write_position(), ConstBytes(data)};
  for (std::size_t num = 1; num <= 5; ++num) {
    call_client(num % 3 != 0 ? spec : call_of(callback_binding()));
    run();
    EXPECT_EQ(reverse_ended, successes(num));
    EXPECT_EQ(client->endpoint->num_held(), 0u);
  }
}

// A Call of the server has as many octets in parts as in its chunks.
TEST_F(Wg07ReverseTest, TheLengthOfACallInPartsIsBounded) {
  open_client_alone();
  Octets first;
  xdr::XdrWriter out(first);
  emit_call(out, {7, kCallback, 1, 1, {}, {}});
  first.resize(4000);
  std::size_t len = 0;
  while (errors().empty()) {
    ASSERT_LE(len += 4000, std::size_t{64 << 10} + 4000);
    ASSERT_TRUE(client->qp.inject(wg07_octets(7, 1000, wg07::CallMiddle{0}, first)));
    run();
  }
  EXPECT_GT(len, std::size_t{64 << 10});
  EXPECT_THAT(errors(), ElementsAre(wg07::Err::kSystem));
  EXPECT_THAT(client->service.calls, IsEmpty());
}

TEST_F(Wg07ReverseTest, RepliesInPartsLeaveNoMemoryBehind) {
  open(ReverseSupport::kContinued);
  client->service.answer = [this](ServedCall& call) {
    ServedReply reply;
    reply.results = pattern(9000);
    client->reverse->reply(call.id, std::move(reply));
  };
  CallSpec spec = call_of(callback_binding());
  spec.max_results = 9000;
  for (std::size_t num = 1; num <= 3; ++num) {
    call_client(spec);
    run();
    EXPECT_EQ(reverse_ended, successes(num));
    EXPECT_EQ(server->budget.held(), 0u);
  }
}

TEST_F(Wg07ReverseTest, AClientThatTakesNoChunksRefusesThem) {
  RecordProperty("proves", "W2-4.6.4-2");
  open_client_alone();
  Octets payload;
  xdr::XdrWriter out(payload);
  emit_call(out, {7, kCallback, 1, 1, {}, {}});
  const Segment any{7, 4, 0};
  const std::pair<ChunkListsView, wg07::Err> refused[] = {
      {{.read_list = {{40, any}}}, wg07::Err::kReadChunks},
      {{.write_list = {{any}}}, wg07::Err::kWriteChunks},
      {{.reply_chunk = SegmentArray{any}}, wg07::Err::kSegments},
  };
  for (const auto& [lists, err] : refused) {
    ASSERT_TRUE(client->qp.inject(wg07_octets(7, 100, wg07::CallInline{.lists = lists}, payload)));
    run();
    const Wg07Message answer = wg07_parse(client->qp.sent.back());
    EXPECT_EQ(answer.header.xid, 7u);
    EXPECT_EQ(answer.body<wg07::Error>().err, err);
    EXPECT_EQ(answer.body<wg07::Error>().arm.max_chunks, 0u);
    EXPECT_EQ(answer.body<wg07::Error>().arm.max_segments, 0u);
  }
  EXPECT_THAT(client->service.calls, IsEmpty());
  EXPECT_FALSE(client->endpoint->failure());
}

}  // namespace
}  // namespace weft::rpcrdma::testing
