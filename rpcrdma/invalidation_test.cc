// Remote invalidation (RFC 8797): chunks are memory windows, and a Reply invalidates one of them. The requester
// invalidates the others before its user sees the memory.
#include "rpcrdma/profiles.h"
#include "rpcrdma/testing/forms.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

constexpr std::size_t kThreshold = 1024;

// Both engines with windows; `invalidates`: as if both ends had set R.
struct InvalidationTest : FormsTest {
  void connect(bool invalidates, ChunkUse chunks = {}) {
    ResponderEnd::Options options{.inline_threshold = kThreshold, .reply_threshold = kThreshold};
    options.invalidates = invalidates;
    responder = std::make_unique<ResponderEnd>(memory, options);
    make_requester({.chunks = chunks});
    FakeQp::connect(requester->qp, responder->qp);
    requester->qp.keep_sent = responder->qp.keep_sent = true;
  }
  void make_requester(RequesterEnd::Options options) {
    options.inline_threshold = options.call_threshold = options.reply_threshold = kThreshold;
    options.windows = true;
    requester = std::make_unique<RequesterEnd>(memory, options);
  }
  void begin(const CallSpec& spec) {
    auto called = requester->requester->call(spec, [this](const Reply& reply) {
      ended.push_back(reply.status);
      remote_at_end.push_back(memory.num_remote());
    });
    ASSERT_TRUE(called.ok()) << called.error().message;
    last = *called;
  }
  // A READ whose result has a Write chunk of so many segments.
  void begin_read(std::size_t num_segments) {
    rooms.emplace_back(num_segments, Octets(2000));
    scattered.emplace_back();
    for (Octets& room : rooms.back()) scattered.back().emplace_back(room);
    CallSpec spec = call_of(test_binding(), kRead);
    spec.result_items = ScatteredBytes(scattered.back());
    spec.max_results = 4;
    begin(spec);
  }
  v1::Header sent(std::size_t i) { return parse(requester->qp.sent.at(i)); }
  // The Reply to the Call that was sent i-th, whose chunks are left unused.
  Octets reply_to(std::size_t i) { return plain_reply(requester->qp.sent.at(i), 8); }
  void turn(int ms = 0) {
    requester->pump();
    requester->requester->on_time(at(ms));
  }
  // Without a responder: one Call is answered, so that there are credits for more.
  void get_credits() {
    begin_read(1);
    ASSERT_TRUE(requester->qp.inject(reply_to(0)));
    turn();
    ASSERT_THAT(ended, ElementsAre(CallStatus::kSuccess));
    ended.clear();
    remote_at_end.clear();
    requester->qp.local_invalidations.clear();
  }
  void TearDown() override {
    requester.reset();
    responder.reset();
    EXPECT_EQ(memory.size(), 0u);
    EXPECT_EQ(memory.num_windows(), 0u);
  }

  std::deque<std::vector<Octets>> rooms;
  std::deque<std::vector<MutBytes>> scattered;
  CallId last;
  std::vector<CallStatus> ended;
  std::vector<std::size_t> remote_at_end;
};

TEST_F(InvalidationTest, EachReplyInvalidatesAHandleOfItsOwnCall) {
  RecordProperty("proves", "R1-4.3.2-15 R1-4.3.2-16");
  connect(true);
  answer_with([](ServedCall&) { return ServedReply{}; });
  ASSERT_EQ(call(spec_of(kPlain)).status, CallStatus::kSuccess);
  std::map<std::uint32_t, ServedCallId> held;
  const Octets item = pattern(2999);
  const Message with_item = many_message({&item});
  const Message long_results = Message().word(1).opaque(pattern(3000)).word(2).opaque({}).word(4);
  responder->service.answer = [&](ServedCall& served) { held[served.xid] = served.id; };
  // An item each way, a Long Reply and a Long Call, all under way.
  const Message pair = pair_message(pattern(4001), pattern(5));
  CallSpec writes = spec_of(kPair, pair.without);
  const auto items = items_of(pair);
  writes.items = items;
  writes.xid = 0;
  begin(writes);
  Octets room(3000);
  CallSpec reads = spec_of(kMany, no_operations());
  reads.result_items = ScatteredBytes(MutBytes(room));
  reads.max_results = 20;
  reads.xid = 1;
  begin(reads);
  CallSpec long_reply = spec_of(kPlain, long_results.whole);
  const Octets short_args = Message().word(1).opaque({}).word(2).opaque({}).word(4).whole;
  long_reply.args = short_args;
  long_reply.max_results = 3100;
  long_reply.xid = 2;
  begin(long_reply);
  CallSpec long_call = spec_of(kPlain, long_results.whole);
  long_call.xid = 3;
  begin(long_call);
  run();
  ASSERT_THAT(held, SizeIs(4));
  const auto answer = [&](std::uint32_t i) {
    const Message none;
    const Message* answers[] = {&none, &with_item, &long_results, &none};
    responder->responder->reply(held[i], reply_with(*answers[i], responder->pool));
  };
  for (const std::uint32_t i : {2u, 0u, 3u, 1u}) answer(i);
  run();
  EXPECT_EQ(ended, std::vector(4, CallStatus::kSuccess));
  EXPECT_THAT(remote_at_end, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(room, [&] {
    Octets whole = item;
    whole.resize(3000);
    return whole;
  }());
  const auto& named = responder->qp.remote_invalidations;
  ASSERT_THAT(named, SizeIs(4));
  for (std::size_t i = 0; i < named.size(); ++i) {
    const std::uint32_t xid = parse(responder->qp.sent.at(1 + i)).xid;
    std::size_t call = 1;
    while (sent(call).xid != xid) ++call;
    EXPECT_THAT(handles_of(sent(call)), Contains(named[i]));
  }
  EXPECT_EQ(responder->responder->counters().invalidations, 4u);
  EXPECT_EQ(requester->requester->counters().remote_invalidations, 4u);
}

TEST_F(InvalidationTest, WithoutRThereArePlainSendsOnly) {
  RecordProperty("proves", "R1-4.3.2-17");
  connect(false);
  const Octets item = pattern(2999);
  answer_with([&](ServedCall&) { return reply_with(many_message({&item}), responder->pool); });
  Octets room(3000);
  CallSpec reads = spec_of(kMany, no_operations());
  reads.result_items = ScatteredBytes(MutBytes(room));
  reads.max_results = 20;
  EXPECT_EQ(call(reads).status, CallStatus::kSuccess);
  EXPECT_TRUE(responder->qp.remote_invalidations.empty());
  // The requester does it all.
  EXPECT_EQ(requester->qp.local_invalidations, handles_of(sent(0)));
}

// A header in error is answered by a plain Send, too: the owner of its chunks is unknown.
TEST_F(InvalidationTest, ErrorsInvalidateNothing) {
  connect(true);
  v1::Header header;
  header.xid = 5;
  header.proc = v1::Proc::kNomsg;
  header.lists.write_list = {{Segment{0x77000101, 100, 0}}};
  ASSERT_TRUE(responder->qp.inject(message(header, {})));
  responder->pump();
  ASSERT_EQ(responder->qp.sent.size(), 1u);
  EXPECT_EQ(parse(responder->qp.sent[0]).proc, v1::Proc::kError);
  EXPECT_TRUE(responder->qp.remote_invalidations.empty());
  // An error about a Reply that does not fit does not invalidate either.
  header.xid = 6;
  header.proc = v1::Proc::kMsg;
  answer_with([](ServedCall&) {
    ServedReply reply;
    reply.results = pattern(3000);
    return reply;
  });
  Octets call;
  xdr::XdrWriter out(call);
  emit_call(out, {6, kTestProgram, kTestVersion, kRead, {}, {}});
  ASSERT_TRUE(responder->qp.inject(message(header, call)));
  responder->pump();
  ASSERT_EQ(responder->qp.sent.size(), 2u);
  EXPECT_EQ(parse(responder->qp.sent[1]).proc, v1::Proc::kError);
  EXPECT_TRUE(responder->qp.remote_invalidations.empty());
}

TEST_F(InvalidationTest, TheOthersOfACallAreInvalidatedHereBeforeItsCallback) {
  RecordProperty("proves", "R1-4.3.2-19");
  make_requester({});
  begin_read(3);
  const auto handles = handles_of(sent(0));
  ASSERT_THAT(handles, SizeIs(3));
  EXPECT_EQ(requester->qp.num_binds, 3u);
  turn();  // the Call's Send has ended
  const std::size_t num_receives = requester->qp.num_receives();
  requester->qp.hold_completions = true;
  ASSERT_TRUE(requester->qp.inject(reply_to(0), handles[1]));
  turn();
  EXPECT_THAT(requester->qp.local_invalidations, ElementsAre(handles[0], handles[2]));
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(requester->qp.num_receives(), num_receives - 1);
  // The same Reply again has nothing to say.
  ASSERT_TRUE(requester->qp.inject(reply_to(0)));
  turn();
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(requester->requester->counters().replies_discarded, 1u);
  requester->qp.release();
  turn();
  EXPECT_THAT(ended, ElementsAre(CallStatus::kSuccess));
  EXPECT_THAT(remote_at_end, ElementsAre(0));
  EXPECT_EQ(requester->qp.num_receives(), num_receives);
  EXPECT_FALSE(requester->endpoint->failure());
}

TEST_F(InvalidationTest, AnyHandleOfAnyCallMayBeInvalidatedAndNoOtherCallMinds) {
  RecordProperty("proves", "R1-4.3.2-18");
  for (std::size_t tag = 0; tag < 6; ++tag) {
    SCOPED_TRACE(tag);
    ended.clear();
    make_requester({});
    get_credits();
    begin_read(3);
    begin_read(3);
    auto handles = handles_of(sent(1));
    const auto others = handles_of(sent(2));
    // Nothing but windows is told to the peer, and nothing else is open to it.
    EXPECT_THAT(memory.bound(), IsSupersetOf(handles));
    EXPECT_THAT(memory.bound(), IsSupersetOf(others));
    EXPECT_EQ(memory.num_remote(), memory.bound().size());
    handles.insert(handles.end(), others.begin(), others.end());
    const std::size_t first = tag / 3;
    ASSERT_TRUE(requester->qp.inject(reply_to(1 + first), handles[tag]));
    turn();
    ASSERT_THAT(ended, ElementsAre(CallStatus::kSuccess));
    // The other one's are as they were.
    EXPECT_EQ(memory.bound(), first == 0 ? others : std::vector(handles.begin(), handles.begin() + 3));
    ASSERT_TRUE(requester->qp.inject(reply_to(2 - first)));
    turn();
    EXPECT_THAT(ended, ElementsAre(CallStatus::kSuccess, CallStatus::kSuccess));
    EXPECT_FALSE(requester->endpoint->failure());
  }
}

TEST_F(InvalidationTest, AHandleOfAnotherCallEndsTheConnection) {
  RecordProperty("proves", "R1-4.3.2-16");
  make_requester({});
  get_credits();
  begin_read(1);
  begin_read(1);
  ASSERT_TRUE(requester->qp.inject(reply_to(1), handles_of(sent(2)).front()));
  turn();
  ASSERT_TRUE(requester->endpoint->failure());
  EXPECT_THAT(*requester->endpoint->failure(), HasSubstr("not of the Call"));
  EXPECT_TRUE(ended.empty());
}

TEST_F(InvalidationTest, AFailedInvalidationEndsTheConnectionBeforeTheCall) {
  RecordProperty("proves", "R1-5.5.4-02");
  make_requester({});
  begin_read(2);
  memory.faults.fail_invalidations = true;
  ASSERT_TRUE(requester->qp.inject(reply_to(0), handles_of(sent(0)).front()));
  turn();
  turn(5);
  EXPECT_TRUE(requester->endpoint->failure());
  EXPECT_TRUE(ended.empty());
  requester->requester->on_closed("closed");
  EXPECT_EQ(memory.num_remote(), 0u);
  turn(5);
  EXPECT_THAT(ended, ElementsAre(CallStatus::kDisconnected));
}

TEST_F(InvalidationTest, CancelledWhileItIsFenced) {
  make_requester({});
  get_credits();
  begin_read(2);
  const std::size_t num_receives = requester->qp.num_receives();
  requester->qp.hold_completions = true;
  ASSERT_TRUE(requester->qp.inject(reply_to(1)));
  turn();
  EXPECT_TRUE(requester->requester->cancel(last));
  EXPECT_EQ(memory.num_remote(), 0u);
  turn();
  EXPECT_THAT(ended, ElementsAre(CallStatus::kCancelled));
  requester->qp.release();
  turn();
  EXPECT_EQ(requester->qp.num_receives(), num_receives);
  EXPECT_FALSE(requester->endpoint->failure());
  // Its credit is free: its Reply has come.
  for (int i = 0; i < 8; ++i) begin_read(1);
  EXPECT_EQ(requester->qp.sent.size(), 10u);
}

// The queued invalidations name its windows, so these go when they have ended, and not before.
TEST_F(InvalidationTest, WindowsOutliveTheInvalidationsThatNameThem) {
  make_requester({});
  get_credits();
  turn();
  const std::size_t before = memory.num_windows();
  begin_read(3);
  turn();
  ASSERT_EQ(memory.num_windows(), before + 3);
  requester->qp.hold_completions = true;
  ASSERT_TRUE(requester->qp.inject(reply_to(1)));
  turn();
  ASSERT_EQ(requester->qp.local_invalidations.size(), 3u);
  turn(1001);  // its time is over while they are queued
  EXPECT_THAT(ended, ElementsAre(CallStatus::kTimeout));
  EXPECT_EQ(memory.num_windows(), before + 3);
  EXPECT_EQ(memory.num_remote(), 0u) << "the regions are gone, and what was bound to them with these";
  requester->qp.release();
  turn(1001);
  EXPECT_EQ(memory.num_windows(), before);
  EXPECT_FALSE(requester->endpoint->failure());
}

// Two Calls end in either order. The windows of each go with its own invalidations, while the invalidations of the
// other are still queued.
TEST_F(InvalidationTest, EachCallsWindowsGoWithItsOwnInvalidations) {
  for (const bool first_ends_first : {true, false}) {
    SCOPED_TRACE(first_ends_first);
    make_requester({});
    get_credits();
    turn();
    begin_read(2);
    const CallId first = last;
    begin_read(3);
    const CallId second = last;
    turn();
    requester->qp.hold_completions = true;
    ASSERT_TRUE(requester->qp.inject(reply_to(1)));
    ASSERT_TRUE(requester->qp.inject(reply_to(2)));
    turn();
    ASSERT_EQ(requester->qp.local_invalidations.size(), 5u);
    EXPECT_TRUE(requester->requester->cancel(first_ends_first ? first : second));
    EXPECT_TRUE(requester->requester->cancel(first_ends_first ? second : first));
    turn();
    EXPECT_THAT(ended, ElementsAre(CallStatus::kCancelled, CallStatus::kCancelled));
    EXPECT_EQ(memory.num_windows(), 5u) << "all are still named";
    requester->qp.release(2);
    turn();
    EXPECT_EQ(memory.num_windows(), 3u) << "those of the second are";
    requester->qp.release();
    turn();
    EXPECT_EQ(memory.num_windows(), 0u);
    EXPECT_FALSE(requester->endpoint->failure());
    ended.clear();
  }
}

// The requester reads nothing of an error's payload. It still fences the Call's memory first. Afterwards nothing is
// left of the Call.
TEST_F(InvalidationTest, ARefusedHeaderLeavesNothingBehind) {
  make_requester({});
  get_credits();
  turn();
  for (const v1::Err err : {v1::Err::kVers, v1::Err::kChunk}) {
    SCOPED_TRACE(static_cast<int>(err));
    ended.clear();
    begin_read(3);
    turn();
    v1::Header header;
    header.xid = parse(requester->qp.sent.back()).xid;
    header.credit = 8;
    header.proc = v1::Proc::kError;
    header.err = err;
    header.vers_low = header.vers_high = 2;
    const std::size_t num_receives = requester->qp.num_receives();
    requester->qp.local_invalidations.clear();
    requester->qp.hold_completions = true;
    ASSERT_TRUE(requester->qp.inject(message(header, {})));
    turn();
    EXPECT_TRUE(ended.empty()) << "its memory is not fenced yet";
    EXPECT_EQ(requester->qp.local_invalidations, handles_of(parse(requester->qp.sent.back())));
    requester->qp.release();
    requester->qp.hold_completions = false;
    turn();
    EXPECT_THAT(ended, ElementsAre(err == v1::Err::kVers ? CallStatus::kVersMismatch : CallStatus::kTransportError));
    EXPECT_EQ(memory.num_windows(), 0u);
    EXPECT_EQ(memory.num_remote(), 0u);
    EXPECT_EQ(requester->qp.num_receives(), num_receives);
    EXPECT_EQ(requester->requester->num_sent(), 0u) << "its credit is free";
  }
  EXPECT_FALSE(requester->endpoint->failure());
}

// The peer got the handles once. After the Reply they are ours, even before the queue has invalidated them.
TEST_F(InvalidationTest, AHandleThatIsBeingFencedIsNotThePeersToInvalidate) {
  RecordProperty("proves", "R1-4.3.2-16");
  make_requester({});
  get_credits();
  turn();
  begin_read(3);
  turn();
  const auto handles = handles_of(sent(1));
  requester->qp.hold_completions = true;
  ASSERT_TRUE(requester->qp.inject(reply_to(1), handles[0]));
  turn();
  EXPECT_THAT(requester->qp.local_invalidations, ElementsAre(handles[1], handles[2]));
  EXPECT_EQ(requester->requester->counters().local_invalidations, 2u + 1) << "one was get_credits'";
  EXPECT_FALSE(requester->endpoint->failure());
  // It is bound until the queued request gets there.
  ASSERT_TRUE(requester->qp.inject(reply_to(1), handles[2]));
  turn();
  ASSERT_TRUE(requester->endpoint->failure());
  EXPECT_THAT(*requester->endpoint->failure(), HasSubstr("not of the Call"));
  EXPECT_TRUE(ended.empty());
  requester->qp.break_connection();
  turn();
  requester->requester->on_closed("closed");
  turn();
  EXPECT_THAT(ended, ElementsAre(CallStatus::kDisconnected));
  EXPECT_EQ(memory.num_remote(), 0u);
}

TEST_F(InvalidationTest, CancelledWhenItsReplyHasArrivedUnseen) {
  make_requester({});
  get_credits();
  begin_read(1);
  ASSERT_TRUE(requester->qp.inject(reply_to(1), handles_of(sent(1)).front()));
  EXPECT_TRUE(requester->requester->cancel(last));
  EXPECT_EQ(memory.num_remote(), 0u);
  turn();
  EXPECT_THAT(ended, ElementsAre(CallStatus::kCancelled));
  EXPECT_FALSE(requester->endpoint->failure());
}

TEST_F(InvalidationTest, ACallWaitsUntilTheSendQueueTakesItsBinds) {
  make_requester({.credits = 4, .max_send_wr = 0});  // 8 requests
  get_credits();
  turn();
  requester->qp.hold_completions = true;
  begin_read(4);
  begin_read(4);
  EXPECT_EQ(requester->qp.sent.size(), 2u);
  EXPECT_EQ(memory.num_remote(), 4u);
  requester->qp.release();
  requester->qp.hold_completions = false;
  turn();
  EXPECT_EQ(requester->qp.sent.size(), 3u);
  begin_read(8);
  turn();
  EXPECT_THAT(ended, ElementsAre(CallStatus::kLocalError));
  EXPECT_FALSE(requester->endpoint->failure());
}

TEST_F(InvalidationTest, TheEndOfAConnectionFencesWindowsAndTheNextOneHasNew) {
  make_requester({.retransmits = true});
  begin_read(2);
  const auto before = handles_of(sent(0));
  requester->qp.break_connection();
  requester->pump();
  requester->requester->suspend("cut");
  EXPECT_EQ(memory.num_remote(), 0u);
  EXPECT_TRUE(memory.bound().empty());
  FakeCq cq;
  FakeQp qp(memory, cq);
  Endpoint::Config shape = requester->endpoint->config();
  auto endpoint = std::move(*Endpoint::create(requester->pd, shape));
  ASSERT_TRUE(endpoint->attach(qp).ok());
  Link link(*endpoint, profile_1(), Link::End::kClient);
  requester->requester->resume(link);
  requester->requester->start(kThreshold, kThreshold);
  ASSERT_EQ(qp.sent.size(), 1u);
  const auto after = handles_of(parse(qp.sent[0]));
  EXPECT_EQ(memory.bound(), after);
  for (const std::uint32_t handle : before) EXPECT_THAT(after, ::testing::Not(Contains(handle)));
  requester->requester->on_closed("done");
  requester->requester->on_time(at(1));
  requester.reset();
}

}  // namespace
}  // namespace weft::rpcrdma::testing
