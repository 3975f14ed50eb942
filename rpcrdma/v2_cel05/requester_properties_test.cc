// What a requester of cel05 does with the transport properties of both sides
// (draft-cel-nfsv4-rpcrdma-version-two-05 section 6.2).
#include <gmock/gmock.h>

#include "rpcrdma/testing/cel05_requester.h"
#include "rpcrdma/v2_cel05/properties.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::SizeIs;

constexpr std::uint32_t kReceiveSize = 1, kReverse = 2;  // ids of properties

v2::Propval word(std::uint32_t which, std::uint32_t value) {
  v2::Propval property{.which = which, .data = Octets(4)};
  put_word(property.data, 0, value);
  return property;
}

struct Cel05RequesterPropertiesTest : Cel05RequesterTest {
  // A client that tells so many octets of its Receives, behind its first Reply. Its own message is Send 1.
  void open_and_tell(std::uint32_t receive_size) {
    open({.inline_threshold = 16384});
    outcomes.clear();
    end->link->exchange_properties({.send_size = 16384, .receive_size = receive_size}, {});
    get_credits();
    ASSERT_THAT(end->qp.sent, SizeIs(2));
    (void)body_of<cel05::Connprop>(1);
  }
  void hear(const Properties& peer, std::uint32_t credit = 8) {
    deliver(octets_of({.credit = credit, .body = cel05::Connprop{.start = make_propset(peer, cel05::kProperties)}}));
  }
  // The last Call's.
  template <typename Body>
  ChunkListsView lists_of_last() {
    return body_of<Body>(end->qp.sent.size() - 1).lists;
  }
};

TEST_F(Cel05RequesterPropertiesTest, TheSizesOfReceivesAreTheThresholds) {
  RecordProperty("proves", "R2-6.2.1-1 R2-6.2.1-2 R2-6.2.1-3");
  open_and_tell(8192);
  call_of(kNull, pattern(5000));
  EXPECT_THAT(lists_of_last<cel05::Nomsg>().read_list, SizeIs(1)) << "the default";
  hear({.receive_size = 8192});
  call_of(kNull, pattern(5000));
  EXPECT_EQ(lists_of_last<cel05::Msg>(), ChunkListsView{});
  call_of(kNull, pattern(8192 - kCallHeaders));
  EXPECT_EQ(lists_of_last<cel05::Msg>(), ChunkListsView{});
  EXPECT_THAT(end->qp.sent.back(), SizeIs(8192));
  call_of(kNull, pattern(8192 - kCallHeaders + 4));
  EXPECT_THAT(lists_of_last<cel05::Nomsg>().read_list, SizeIs(1));
  for (const std::size_t bound : {6000u, 8200u}) {
    CallSpec spec;
    spec.max_results = bound;
    call(spec);
    EXPECT_EQ(lists_of_last<cel05::Msg>().reply_chunk.has_value(), bound > 8192) << bound;
  }
}

// A server that knows no properties says so with either code, or not at all.
TEST_F(Cel05RequesterPropertiesTest, AServerThatTellsNothingHasTheDefaults) {
  RecordProperty("proves", "R2-3.3-3 R2-6.3-2 R2-6.3.1-3");
  for (const auto err : {std::optional<cel05::Err>(), {cel05::Err::kInvalProc}, {cel05::Err::kInvalOption}}) {
    open_and_tell(16384);
    if (err) deliver(octets_of({.xid = header_of(1).xid, .credit = 8, .body = cel05::Error{.err = *err}}));
    for (const std::size_t len : {4096u, 4100u, 9000u}) call_of(kNull, pattern(len - kCallHeaders));
    ASSERT_THAT(end->qp.sent, SizeIs(5));
    EXPECT_THAT(sent(2), SizeIs(4096));
    for (const std::size_t i : {3u, 4u}) EXPECT_THAT(body_of<cel05::Nomsg>(i).lists.read_list, SizeIs(1));
    const std::uint32_t xid = header_of(2).xid;
    Octets reply = octets_of({.xid = xid, .credit = 8, .body = cel05::Msg{.direction = cel05::Direction::kReply}},
                             rpc_reply(xid, pattern(4096 - 36 - 24)));
    ASSERT_THAT(reply, SizeIs(4096));
    deliver(reply);
    ASSERT_THAT(outcomes, SizeIs(2));
    EXPECT_EQ(outcomes[1].status, CallStatus::kSuccess);
    EXPECT_FALSE(end->endpoint->failure());
  }
}

TEST_F(Cel05RequesterPropertiesTest, MessagesAboutPropertiesGrantNothing) {
  RecordProperty("proves", "R2-7.2.2-9");
  open_and_tell(8192);
  for (const std::uint32_t credit : {0u, 1u, 99u}) {
    hear({.receive_size = 8192}, credit);
    deliver(octets_of({.credit = credit, .body = cel05::Updprop{}}));
    deliver(octets_of({.credit = credit, .body = cel05::Reqprop{}}));
    deliver(octets_of({.credit = credit, .body = cel05::Resprop{}}));
    EXPECT_EQ(end->link->credits().granted, 8u) << credit;
  }
}

// A server whose Receives have 8192 octets, and a client that may send 16384. The second Call has XID 1.
struct Cel05AskingTest : Cel05RequesterPropertiesTest {
  void open_and_hear(v2::Propset start, std::uint32_t nochg = 0) {
    open({.inline_threshold = 16384, .first_xid = 0xfffffffe});
    outcomes.clear();
    end->link->exchange_properties({.send_size = 16384, .receive_size = 4096}, {});
    get_credits();
    outcomes.clear();
    deliver(octets_of({.body = cel05::Connprop{std::move(start), {{nochg}}}}));
  }
  // The request is Send 2.
  void open_and_ask() {
    open_and_hear({word(kReverse, 0), word(kReceiveSize, 8192)});
    ASSERT_THAT(end->qp.sent, SizeIs(3));
    EXPECT_EQ(body_of<cel05::Reqprop>(2).want, v2::Propset{word(kReceiveSize, 16384)});
  }
  void answer(cel05::Body body) { deliver(octets_of({.xid = header_of(2).xid, .credit = 8, .body = std::move(body)})); }
  // A Call of this length goes in one message or, as the second one, by a chunk. Both get their Replies.
  void expect_threshold(std::size_t len) {
    outcomes.clear();
    const std::size_t first = end->qp.sent.size();
    for (const std::size_t longer : {0u, 4u}) call_of(kNull, pattern(len - kCallHeaders + longer));
    ASSERT_THAT(end->qp.sent, SizeIs(first + 2));
    EXPECT_EQ(body_of<cel05::Msg>(first).lists, ChunkListsView{});
    EXPECT_THAT(sent(first), SizeIs(len));
    EXPECT_THAT(body_of<cel05::Nomsg>(first + 1).lists.read_list, SizeIs(1));
    for (const std::size_t i : {first, first + 1}) deliver(reply_of(i));
    ASSERT_THAT(outcomes, SizeIs(2));
    for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  }
};

TEST_F(Cel05AskingTest, AGrantRaisesTheThreshold) {
  RecordProperty("proves", "R2-6.2.1-2 R2-6.3-3 R2-6.3.2-1 R2-6.3.3-3");
  open_and_ask();
  expect_threshold(8192);
  answer(cel05::Resprop{.done = {{1}}});
  expect_threshold(16384);
}

TEST_F(Cel05AskingTest, AGrantOfLessIsTakenToo) {
  RecordProperty("proves", "R2-6.3.3-5");
  open_and_ask();
  answer(cel05::Resprop{.other = {word(kReceiveSize, 12288)}});
  expect_threshold(12288);
}

// The client asks the server once, whatever the server tells of its properties.
TEST_F(Cel05AskingTest, WithoutAGrantEverythingStaysAsItWas) {
  RecordProperty("proves", "R2-6.2-3 R2-6.2-4 R2-6.3-2");
  const std::optional<cel05::Body> answers[] = {
      std::nullopt,
      cel05::Resprop{.rejected = {{1}}},
      cel05::Resprop{},
      cel05::Error{.err = cel05::Err::kInvalProc},
      cel05::Error{.err = cel05::Err::kInvalOption},
      cel05::Error{.err = cel05::Err::kBadXdr},
      cel05::Error{.err = cel05::Err::kSystem},
  };
  for (const auto& one : answers) {
    open_and_ask();
    if (one) answer(*one);
    EXPECT_THAT(end->qp.sent, SizeIs(3));
    deliver(octets_of({.body = cel05::Updprop{{word(kReceiveSize, 6144)}}}));
    deliver(octets_of({.body = cel05::Connprop{{word(kReceiveSize, 8192)}, {}}}));
    EXPECT_THAT(end->qp.sent, SizeIs(3));
    expect_threshold(8192);
    EXPECT_FALSE(end->endpoint->failure());
  }
}

TEST_F(Cel05AskingTest, OnlyASmallSizeThatMayChangeIsAskedAbout) {
  RecordProperty("proves", "R2-6.3.1-4 R2-6.3.1-7");
  const std::pair<v2::Propset, std::uint32_t> sets[] = {
      {{word(kReverse, 0), word(kReceiveSize, 8192)}, 0b10},  // it is constant
      {{word(kReceiveSize, 8192)}, 0b1},
      {{word(kReverse, 0)}, 0},  // it was left out
      {{}, 0},
      {{word(kReceiveSize, 16384)}, 0},  // it is as long as the client's messages
      {{word(kReceiveSize, 65536)}, 0},
  };
  for (const auto& [start, nochg] : sets) {
    open_and_hear(start, nochg);
    EXPECT_THAT(end->qp.sent, SizeIs(2));
    call_of(kNull, {});
    deliver(reply_of(2));
    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(outcomes[0].status, CallStatus::kSuccess);
  }
}

// Nothing waits for the answer: a Call with the XID of the request is under way when each of them comes.
TEST_F(Cel05AskingTest, ARequestAndACallMayHaveTheSameXid) {
  RecordProperty("proves", "R2-6.3.2-2");
  for (const cel05::Body& body :
       {cel05::Body(cel05::Resprop{.done = {{1}}}), cel05::Body(cel05::Error{.err = cel05::Err::kInvalOption})}) {
    open_and_ask();
    call_of(kNull, {});
    ASSERT_EQ(header_of(3).xid, header_of(2).xid);
    answer(body);
    EXPECT_THAT(outcomes, SizeIs(0));
    deliver(reply_of(3));
    ASSERT_THAT(outcomes, SizeIs(1));
    EXPECT_EQ(outcomes[0].status, CallStatus::kSuccess);
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
