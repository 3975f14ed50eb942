// A Responder pulls chunks by RDMA Read before a service hears of the Call. These tests cover the pulls and their
// memory.
#include "rpcrdma/testing/responder.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

struct ResponderPullTest : ResponderTest {
  // Delivers a Call of PAIR, both of its items by Read chunk.
  void call_pair(Octets first, Octets second) {
    const Message pair = pair_message(first, second);
    v1::Header header = call_header();
    for (const Message::Item& item : pair.items) {
      header.lists.read_list.push_back(
          {static_cast<std::uint32_t>(40 + item.position), readable(rooms.emplace_back(item.octets))});
    }
    Octets payload;
    xdr::XdrWriter out(payload);
    emit_call(out, {5, kSyntheticProgram, kSyntheticVersion, kPair, {}, {}});
    out.raw(pair.without);
    call(header, payload);
  }
};

TEST_F(ResponderPullTest, PullsTheItemOfVectorsV03AndV05) {
  RecordProperty("proves", "R1-4.4.5.1-04 R1-4.4.5.1-05 R1-4.4.5.2-01 R1-4.4.5-06 R1-4.4.4-01");
  const Octets data = pattern(5095);
  for (const char* id : {"V03", "V05"}) {
    open();
    const Octets vector = load_vector(id).octets;
    v1::Header header = parse(vector);
    std::vector<Octets> parts;
    std::size_t at = 0;
    for (const ReadSegment& segment : header.lists.read_list) {
      Octets part(segment.target.length, 0xff);
      for (auto& octet : part) {
        if (at < data.size()) octet = data[at++];
      }
      parts.push_back(part);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) header.lists.read_list[i].target = readable(parts[i]);
    call(header, payload_of(vector));
    ASSERT_EQ(end->service.calls.size(), 1u) << id;
    const ServedCall& served = end->service.calls[0];
    ASSERT_EQ(served.items.size(), 1u);
    EXPECT_EQ(served.items[0].position, 56u);
    EXPECT_EQ(copy_of(served.items[0].data.octets()), data) << id;
    EXPECT_EQ(served.args.size(), 56u);
  }
}

TEST_F(ResponderPullTest, RoundupInALongerLastSegmentIsLeftWhereItIs) {
  RecordProperty("proves", "R1-4.4.5.1-04 R1-4.4.5.1-05");
  open();
  Octets data = pattern(5000);
  Octets rounded = data;
  rounded.resize(5000 + 3, 0xff);
  data.resize(4997);
  Octets first(rounded.begin(), rounded.begin() + 4096);
  Octets second(rounded.begin() + 4096, rounded.begin() + 5000);
  v1::Header header = call_header();
  const auto position = static_cast<std::uint32_t>(40 + write_position());
  header.lists.read_list = {{position, readable(first)}, {position, readable(second)}};
  call(header, rpc_call(kWrite, write_args(4997)));
  ASSERT_EQ(end->service.calls.size(), 1u);
  EXPECT_EQ(copy_of(end->service.calls[0].items.at(0).data.octets()), data);
  EXPECT_EQ(end->qp.rdma.at(1).len, 4997u - 4096);
}

TEST_F(ResponderPullTest, OneConnectionHoldsNoMoreThanItsShare) {
  open({.max_item = 8 << 10, .max_held = 30000});
  Octets data = pattern(6000);
  v1::Header header = call_header();
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), readable(data)}};
  const Octets payload = rpc_call(kWrite, write_args(6000));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(end->qp.inject(message(header, payload)));
  end->pump();
  EXPECT_EQ(end->service.calls.size(), 2u);
  EXPECT_LE(end->budget.used(), 30000u);
  answer({});
  EXPECT_EQ(end->service.calls.size(), 3u);
}

TEST_F(ResponderPullTest, LongCallWithNormalReadChunkBesideIt) {
  RecordProperty("proves", "R1-4.5.3-10 R1-4.5.3-05 R1-4.4.5-02");
  open();
  Octets payload = rpc_call(kWrite, write_args(777));
  Octets data = pattern(777);
  Octets first(payload.begin(), payload.begin() + 41);
  Octets second(payload.begin() + 41, payload.end());
  v1::Header header = call_header();
  header.proc = v1::Proc::kNomsg;
  header.lists.read_list = {
      {0, readable(first)}, {static_cast<std::uint32_t>(40 + write_position()), readable(data)}, {0, readable(second)}};
  call(header, {});
  ASSERT_EQ(end->service.calls.size(), 1u);
  const ServedCall& served = end->service.calls[0];
  EXPECT_EQ(copy_of(served.args), write_args(777));
  EXPECT_EQ(copy_of(served.header), rpc_call(kWrite));
  EXPECT_EQ(served.items.at(0).position, write_position());
  EXPECT_EQ(copy_of(served.items[0].data.octets()), data);
  answer({});
  EXPECT_EQ(payload_of(end->qp.sent.at(0)), rpc_reply(5));
}

TEST_F(ResponderPullTest, LongCallWhoseXidDiffersGetsErrChunk) {
  open();
  Octets payload = rpc_call(kNull);
  payload[3] ^= 1;
  v1::Header header = call_header();
  header.proc = v1::Proc::kNomsg;
  header.lists.read_list = {{0, readable(payload)}};
  call(header, {});
  EXPECT_TRUE(end->service.calls.empty());
  ASSERT_EQ(end->qp.sent.size(), 1u);
  EXPECT_EQ(parse(end->qp.sent[0]).err, v1::Err::kChunk);
  EXPECT_EQ(end->budget.used(), 0u);
}

TEST_F(ResponderPullTest, NeverMoreReadsThanOrdAtOnce) {
  RecordProperty("proves", "R1-4.3.1-13 R1-4.4.5.2-02");
  open({.ord = 2});
  Octets data = pattern(1600);
  std::vector<Octets> parts;
  for (std::size_t i = 0; i < 16; ++i) {
    parts.emplace_back(data.begin() + static_cast<std::ptrdiff_t>(100 * i),
                       data.begin() + static_cast<std::ptrdiff_t>(100 * i + 100));
  }
  v1::Header header = call_header();
  for (auto& part : parts) {
    header.lists.read_list.push_back({static_cast<std::uint32_t>(40 + write_position()), readable(part)});
  }
  end->qp.hold_completions = true;
  ASSERT_TRUE(end->qp.inject(message(header, rpc_call(kWrite, write_args(1600)))));
  for (std::size_t turn = 0; turn < 8; ++turn) {
    end->pump();
    EXPECT_EQ(end->qp.rdma.size(), 2 * turn + 2);
    EXPECT_TRUE(end->service.calls.empty());
    end->qp.release();
  }
  end->pump();
  ASSERT_EQ(end->service.calls.size(), 1u);
  EXPECT_EQ(copy_of(end->service.calls[0].items.at(0).data.octets()), data);
}

TEST_F(ResponderPullTest, NoReadsFromAPeerThatAllowsNone) {
  open({.ord = 0});
  Octets data = pattern(16);
  v1::Header header = call_header();
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), readable(data)}};
  call(header, rpc_call(kWrite, write_args(16)));
  EXPECT_EQ(end->qp.sent.at(0).size(), v1::kErrChunkLen);
}

TEST_F(ResponderPullTest, CallsBeyondTheBudgetWaitAndAreThenServed) {
  open({.budget = 12 << 10, .max_item = 8 << 10});
  Octets data = pattern(6000);
  v1::Header header = call_header();
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), readable(data)}};
  const Octets payload = rpc_call(kWrite, write_args(6000));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(end->qp.inject(message(header, payload)));
  end->pump();
  for (std::size_t served = 1; served <= 3; ++served) {
    ASSERT_EQ(end->service.calls.size(), served);
    EXPECT_LE(end->budget.used(), end->budget.bounds().all);
    answer({});
    EXPECT_EQ(end->qp.sent.size(), served);
  }
  EXPECT_EQ(end->budget.used(), 0u);
}

TEST_F(ResponderPullTest, AStaleHandleEndsTheConnectionAndNothingElse) {
  RecordProperty("proves", "R1-5.5.3-01");
  open();
  v1::Header header = call_header();
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), {0xdead, 16, 0}}};
  call(header, rpc_call(kWrite, write_args(16)));
  EXPECT_TRUE(end->endpoint->failure());
  EXPECT_TRUE(end->service.calls.empty());
  end->responder.reset();
  EXPECT_EQ(end->budget.used(), 0u);
  EXPECT_EQ(end->pool.in_use(), 0u);
}

// The handle of a segment without octets may name no memory.
TEST_F(ResponderPullTest, SegmentsWithoutOctetsAreNotRead) {
  open();
  Octets first = pattern(100, 1), second = pattern(60, 2);
  v1::Header header = call_header();
  const auto position = static_cast<std::uint32_t>(40 + write_position());
  const Segment nothing{0xdead, 0, 0};
  header.lists.read_list = {{position, nothing},
                            {position, readable(first)},
                            {position, nothing},
                            {position, readable(second)},
                            {position, nothing}};
  call(header, rpc_call(kWrite, write_args(160)));
  ASSERT_EQ(end->service.calls.size(), 1u);
  Octets whole = first;
  whole.insert(whole.end(), second.begin(), second.end());
  EXPECT_EQ(copy_of(end->service.calls[0].items.at(0).data.octets()), whole);
  EXPECT_EQ(end->qp.rdma.size(), 2u);
  EXPECT_FALSE(end->endpoint->failure());
}

TEST_F(ResponderPullTest, AnItemWithoutOctetsIsThereAtOnce) {
  open();
  v1::Header header = call_header();
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + write_position()), {0xdead, 0, 0}}};
  call(header, rpc_call(kWrite, write_args(0)));
  ASSERT_EQ(end->service.calls.size(), 1u);
  EXPECT_TRUE(end->service.calls[0].items.empty());
  // Beside an item that has octets.
  call_pair(pattern(500), {});
  call_pair({}, pattern(500));
  ASSERT_EQ(end->service.calls.size(), 3u);
  for (const std::size_t i : {1u, 2u}) {
    ASSERT_EQ(end->service.calls[i].items.size(), 1u);
    EXPECT_EQ(copy_of(end->service.calls[i].items[0].data.octets()), pattern(500));
  }
  EXPECT_EQ(end->qp.rdma.size(), 2u);
}

// A Call takes memory for all of its items or for none: memory that is too little for it may be enough for another
// Call.
TEST_F(ResponderPullTest, ACallThatWaitsForMemoryHoldsNone) {
  open();
  end->pool.take(5000);  // the pool keeps it: the next Buffer of that size needs no registration
  end->pd.fail_registration = true;
  call_pair(pattern(5000, 1), pattern(3000, 2));
  EXPECT_TRUE(end->service.calls.empty());
  EXPECT_EQ(end->pool.in_use(), 0u);
  EXPECT_EQ(end->budget.used(), 0u);
  EXPECT_TRUE(end->qp.rdma.empty());
  end->pd.fail_registration = false;
  end->responder->on_time(at(0));
  end->pump();
  ASSERT_EQ(end->service.calls.size(), 1u);
  const auto& items = end->service.calls[0].items;
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(copy_of(items[0].data.octets()), pattern(5000, 1));
  EXPECT_EQ(copy_of(items[1].data.octets()), pattern(3000, 2));
}

// The size of its items is known when the message is there, and then the Call can no longer wait.
TEST_F(ResponderPullTest, ALongCallWhoseItemsFindNoMemoryGetsSystemErr) {
  open();
  Octets payload = rpc_call(kWrite, write_args(7000));
  Octets data = pattern(7000);
  v1::Header header = call_header();
  header.proc = v1::Proc::kNomsg;
  header.lists.read_list = {{0, readable(payload)},
                            {static_cast<std::uint32_t>(40 + write_position()), readable(data)}};
  ASSERT_TRUE(end->qp.inject(message(header, {})));
  end->pump(1);
  ASSERT_EQ(end->qp.rdma.size(), 1u) << "the message is being pulled";
  end->pd.fail_registration = true;
  end->pump();
  EXPECT_TRUE(end->service.calls.empty());
  ASSERT_EQ(end->qp.sent.size(), 1u);
  EXPECT_EQ(payload_of(end->qp.sent[0]), rpc_reply(5, {}, AcceptStat::kSystemErr));
  EXPECT_EQ(end->qp.rdma.size(), 1u);
  EXPECT_EQ(end->pool.in_use(), 0u);
  EXPECT_EQ(end->budget.used(), 0u);
  EXPECT_EQ(end->qp.num_receives(), end->endpoint->config().num_receives);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
