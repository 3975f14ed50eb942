// The reverse direction of cel05: what a server may send to its client, and how a client answers
// (draft-cel-nfsv4-rpcrdma-version-two-05 sections 6.2.2 and 7.2.2).
#include <gmock/gmock.h>

#include <algorithm>

#include "rpcrdma/testing/reverse.h"
#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_cel05/properties.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace cel05 = v2_cel05;

cel05::Header header_of(const Octets& octets) {
  cel05::Header header;
  EXPECT_EQ(parse(octets, header), v2::HeaderError::kNone);
  return header;
}

cel05::Direction direction_of(const Octets& octets) {
  const cel05::Header header = header_of(octets);
  return std::get<cel05::Msg>(header.body).direction;
}

Octets rpc_call_of_test_program(std::uint32_t xid) {
  Octets octets;
  xdr::XdrWriter out(octets);
  emit_call(out, {xid, kTestProgram, kTestVersion, kNull, {}, {}});
  return octets;
}

// The client has not said that it takes chunks.
struct Cel05ReverseTest : ReverseTest {
  Cel05ReverseTest() { open_server({.chunks = true, .protocol = Protocol::k2Cel05}); }
  // The lists of the Call that was sent last, which must have its message inline.
  ChunkListsView sent_lists() {
    cel05::Header header;
    ConstBytes payload;
    EXPECT_EQ(parse_message(server->qp.sent.back(), header, payload), v2::HeaderError::kNone);
    EXPECT_TRUE(std::holds_alternative<cel05::Msg>(header.body));
    EXPECT_EQ(std::get<cel05::Msg>(header.body).direction, cel05::Direction::kCall);
    return std::get<cel05::Msg>(header.body).lists;
  }
};

TEST_F(Cel05ReverseTest, ACallThatFitsNoMessageWithoutChunksIsNotSent) {
  RecordProperty("proves", "R2-6.2-2 R2-6.2.2-3");
  const std::size_t most = kMaxReverseCall - 36 - 40;  // transport header and Call header
  const Octets longest(most), longer(most + 4);
  call_client(call_of(callback_binding(), 1, longer));
  run();
  EXPECT_THAT(reverse_ended, ElementsAre(CallStatus::kLocalError));
  EXPECT_THAT(server->qp.sent, IsEmpty());
  call_client(call_of(callback_binding(), 1, longest));
  run();
  ASSERT_THAT(server->qp.sent, SizeIs(1));
  EXPECT_EQ(server->qp.sent[0].size(), kMaxReverseCall);
}

TEST_F(Cel05ReverseTest, ItemsGoInlineAndNoChunkIsOfferedForTheReply) {
  RecordProperty("proves", "R2-6.2-2 R2-6.2.2-3");
  const Octets data = pattern(2000), args = write_args(data.size());
  CallSpec spec = call_of(test_binding(), kWrite, args);
  spec.items = ArgumentItem{write_position(), ConstBytes(data)};
  spec.max_results = 30000;
  call_client(spec);
  run();
  ASSERT_THAT(server->qp.sent, SizeIs(1));
  EXPECT_EQ(sent_lists(), ChunkListsView{});
  EXPECT_GT(server->qp.sent[0].size(), data.size());
  EXPECT_EQ(memory.num_remote(), 0u);
}

TEST_F(Cel05ReverseTest, AClientThatTakesNoCallsIsNotCalled) {
  RecordProperty("proves", "R2-6.2.2-2");
  server->link->exchange_properties({}, [this] { server->reverse->settle(server->link->terms()); });
  const Properties none{.reverse = ReverseSupport::kNone};
  ASSERT_TRUE(server->qp.inject(emit(cel05::Header{.body = cel05::Connprop{make_propset(none, cel05::kProperties)}})));
  run();
  ASSERT_THAT(server->qp.sent, SizeIs(1)) << "the server's own properties";
  const auto called = server->reverse->calls().call(call_of(callback_binding()), keep(reverse_ended));
  run();
  EXPECT_TRUE(!called.ok() || reverse_ended == std::vector{CallStatus::kDisconnected});
  EXPECT_THAT(server->qp.sent, SizeIs(1));
}

// A Call that is too long for a client without a word of its properties waits for the answer to a NULL Call.
TEST_F(Cel05ReverseTest, ACallThatWaitsForAnAnswerThatNeverComesEndsSoon) {
  RecordProperty("proves", "R2-6.2.2-3");
  server->link->exchange_properties({}, [this] { server->reverse->settle(server->link->terms()); });
  const Octets longer(kMaxReverseCall);
  CallSpec too_long = call_of(callback_binding(), 1, longer), next = call_of(callback_binding());
  too_long.timeout = next.timeout = std::chrono::minutes(1);
  call_client(too_long);
  call_client(next);
  run();
  ASSERT_THAT(server->qp.sent, SizeIs(1)) << "the NULL Call, which has the only credit";
  run(ReverseRequester::kMaxWait / std::chrono::milliseconds(1) - 1);
  EXPECT_THAT(reverse_ended, IsEmpty());
  EXPECT_EQ(server->reverse->next_timeout(), at(1000));
  run(ReverseRequester::kMaxWait / std::chrono::milliseconds(1));
  EXPECT_THAT(reverse_ended, ElementsAre(CallStatus::kLocalError));
  // The late answer gives the credit back.
  ASSERT_TRUE(server->qp.inject(emit(cel05::Header{.xid = header_of(server->qp.sent[0]).xid,
                                                   .credit = 4,
                                                   .body = cel05::Msg{.direction = cel05::Direction::kReply}},
                                     rpc_reply(header_of(server->qp.sent[0]).xid))));
  run(2000);
  EXPECT_THAT(server->qp.sent, SizeIs(2));
  EXPECT_THAT(reverse_ended, SizeIs(1)) << "it is under way";
}

// An error has no direction of its own: it is for the Call that this end made.
TEST_F(Cel05ReverseTest, AnErrorIsForACallOfThisEnd) {
  RecordProperty("proves", "R2-7.2.2-8");
  server->service.answer = nullptr;
  CallSpec spec = call_of(callback_binding());
  spec.xid = 5;
  call_client(spec);
  const Octets forward = emit(cel05::Header{.xid = 5, .credit = 8, .body = cel05::Msg{}}, rpc_call_of_test_program(5));
  ASSERT_TRUE(server->qp.inject(forward));
  run();
  ASSERT_THAT(server->service.calls, SizeIs(1));
  ASSERT_TRUE(server->qp.inject(emit(cel05::Header{.xid = 5, .credit = 8, .body = cel05::Error{cel05::Err::kSystem}})));
  ASSERT_TRUE(server->qp.inject(emit(cel05::Header{.xid = 6, .credit = 8, .body = cel05::Error{cel05::Err::kSystem}})));
  run();
  EXPECT_THAT(reverse_ended, ElementsAre(CallStatus::kTransportError));
  server->responder->reply(server->service.calls[0].id, {});
  run();
  ASSERT_THAT(server->qp.sent, SizeIs(2));
  EXPECT_EQ(direction_of(server->qp.sent[1]), cel05::Direction::kReply);
}

// The client's end, whose server is the test.
struct Cel05ReverseClientTest : ReverseTest {
  void open(ReverseOptions options = {}) {
    options.protocol = Protocol::k2Cel05;
    open_client(options);
  }
  void deliver(const Octets& octets) {
    ASSERT_TRUE(client->qp.inject(octets));
    run();
  }
  Segment readable(Octets& octets) {
    mrs.push_back(
        std::make_unique<FakeMr>(memory, FakeMemory::Region{octets.data(), octets.size(), verbs::Access::kRemoteRead}));
    return {mrs.back()->rkey(), static_cast<std::uint32_t>(octets.size()),
            reinterpret_cast<std::uintptr_t>(octets.data())};
  }
  Segment writable(Octets& octets) {
    const auto access = verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite;
    mrs.push_back(std::make_unique<FakeMr>(memory, FakeMemory::Region{octets.data(), octets.size(), access}));
    return {mrs.back()->rkey(), static_cast<std::uint32_t>(octets.size()),
            reinterpret_cast<std::uintptr_t>(octets.data())};
  }
  static Octets callback_message(std::uint32_t xid, const Octets& args = {}) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_call(out, {xid, kCallback, 1, 1, {}, {}});
    out.raw(args);
    return octets;
  }

  std::vector<std::unique_ptr<FakeMr>> mrs;
};

TEST_F(Cel05ReverseClientTest, ACallOfTheServerIsAnswered) {
  RecordProperty("proves", "R2-7.2.2-1");
  open({.reverse_credits = 4});
  deliver(load_v2_vector("S09").octets);
  EXPECT_THAT(client->qp.sent, ElementsAre(load_v2_vector("S10").octets));
}

TEST_F(Cel05ReverseClientTest, ACallOfTheServerIsNoReplyToTheClients) {
  RecordProperty("proves", "R2-7.2.2-2");
  open();
  call_server(call_of(test_binding()));
  ASSERT_THAT(client->qp.sent, SizeIs(1));
  const std::uint32_t xid = header_of(client->qp.sent[0]).xid;
  deliver(emit(cel05::Header{.xid = xid, .credit = 4, .body = cel05::Msg{}}, callback_message(xid)));
  EXPECT_THAT(forward_ended, IsEmpty());
  ASSERT_THAT(client->qp.sent, SizeIs(2));
  EXPECT_EQ(direction_of(client->qp.sent[1]), cel05::Direction::kReply);
  deliver(emit(cel05::Header{.xid = xid, .credit = 4, .body = cel05::Msg{.direction = cel05::Direction::kReply}},
               rpc_reply(xid)));
  EXPECT_EQ(forward_ended, successes(1));
}

TEST_F(Cel05ReverseClientTest, ALongCallOfTheServerIsServed) {
  RecordProperty("proves", "R2-6.2.2-4");
  open({.chunks = true});
  Octets call = callback_message(9, pattern(20000));
  deliver(
      emit(cel05::Header{.xid = 9, .credit = 4, .body = cel05::Nomsg{.lists = {.read_list = {{0, readable(call)}}}}}));
  EXPECT_THAT(client->service.args, ElementsAre(pattern(20000)));
  ASSERT_THAT(client->qp.sent, SizeIs(1));
  EXPECT_EQ(direction_of(client->qp.sent[0]), cel05::Direction::kReply);
}

// The server has told no properties.
TEST_F(Cel05ReverseClientTest, AServerThatOffersAChunkGetsItFilled) {
  RecordProperty("proves", "R2-6.2.2-5");
  open({.chunks = true});
  Octets room(9000);
  client->service.answer = [this](ServedCall& call) {
    ServedReply reply;
    reply.results = pattern(8000);
    client->reverse->reply(call.id, std::move(reply));
  };
  cel05::Msg body;
  body.lists.reply_chunk = SegmentArray{writable(room)};
  deliver(emit(cel05::Header{.xid = 9, .credit = 4, .body = body}, callback_message(9)));
  ASSERT_THAT(client->qp.sent, SizeIs(1));
  const cel05::Header header = header_of(client->qp.sent[0]);
  ASSERT_TRUE(std::holds_alternative<cel05::Nomsg>(header.body));
  const ChunkListsView& lists = std::get<cel05::Nomsg>(header.body).lists;
  ASSERT_TRUE(lists.reply_chunk);
  EXPECT_EQ(total_length(*lists.reply_chunk), 8024u);
  EXPECT_TRUE(std::equal(room.begin() + 24, room.begin() + 8024, pattern(8000).begin()));
}

// Each end has a Call of the other, and both have one XID.
TEST_F(ReverseTest, OneXidInBothDirectionsOfCel05) {
  RecordProperty("proves", "R2-5.2-1");
  open({.protocol = Protocol::k2Cel05}, {.protocol = Protocol::k2Cel05});
  const Octets of_server = pattern(100, 1), of_client = pattern(200, 2);
  const auto results = [](const Octets& octets) {
    ServedReply reply;
    reply.results = octets;
    return reply;
  };
  server->service.answer = [&](ServedCall& call) { server->responder->reply(call.id, results(of_server)); };
  client->service.answer = [&](ServedCall& call) { client->reverse->reply(call.id, results(of_client)); };
  std::vector<Octets> got(2);
  const auto into = [](Octets& octets) { return [&octets](const Reply& reply) { octets = copy_of(reply.results); }; };
  CallSpec forward = call_of(test_binding()), backward = call_of(callback_binding());
  forward.xid = backward.xid = 0x5e000001;
  ASSERT_TRUE(client->requester->call(forward, into(got[0])).ok());
  ASSERT_TRUE(server->reverse->calls().call(backward, into(got[1])).ok());
  EXPECT_THAT(client->qp.sent, SizeIs(1));
  EXPECT_THAT(server->qp.sent, SizeIs(1));
  run();
  EXPECT_EQ(got, (std::vector{of_server, of_client}));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
