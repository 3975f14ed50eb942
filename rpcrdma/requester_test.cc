#include "rpcrdma/requester.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

using std::chrono::milliseconds;

verbs::TimePoint at(int ms) {
  return verbs::TimePoint{} + std::chrono::seconds(1000) + milliseconds(ms);
}

// What a callback said, copied.
struct Outcome {
  CallStatus status = CallStatus::kLocalError;
  Octets results;
  std::optional<std::size_t> item_len;
  std::string text;
  std::size_t remote_regions = 0;  // that the peer could still reach when the callback ran
};

struct RequesterTest : ::testing::Test {
  void open(RequesterEnd::Options options = {}) { end = std::make_unique<RequesterEnd>(memory, options); }

  void call(CallSpec spec = {}) {
    spec.program = kTestProgram;
    spec.version = kTestVersion;
    spec.binding = &test_binding();
    const auto status = end->requester->call(spec, [this](const Reply& reply) {
      outcomes.push_back({reply.status,
                          {reply.results.begin(), reply.results.end()},
                          reply.item_len,
                          reply.text,
                          memory.num_remote()});
    });
    EXPECT_TRUE(status.ok());
  }

  // Everything that happened up to `ms` is looked at.
  void run(int ms = 0) {
    end->pump();
    end->requester->on_time(at(ms));
  }

  const Octets& sent(std::size_t i) { return end->qp.sent.at(i); }

  // The plain answer to Call i, granting `credits`.
  Octets reply_to(std::size_t i, std::uint32_t credits, const Octets& results = {}) {
    v1::Header header = parse(sent(i));
    header.proc = v1::Proc::kMsg;
    header.credit = credits;
    header.lists.read_list.clear();
    for (auto& chunk : header.lists.write_list) {
      for (auto& segment : chunk) segment.length = 0;
    }
    if (header.lists.reply_chunk) {
      for (auto& segment : *header.lists.reply_chunk) segment.length = 0;
    }
    return message(header, rpc_reply(header.xid, results));
  }

  void deliver(const Octets& octets, int ms = 0) {
    ASSERT_TRUE(end->qp.inject(octets));
    run(ms);
  }

  FakeMemory memory;
  std::vector<Outcome> outcomes;
  std::unique_ptr<RequesterEnd> end;  // its end runs callbacks
};

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

TEST_F(RequesterTest, AGrantOfZeroCountsAsOne) {
  open();
  call();
  call();
  call();
  run();
  deliver(reply_to(0, 0));
  EXPECT_EQ(end->qp.sent.size(), 2u);
}

TEST_F(RequesterTest, FitsTheThresholdExactlyAndThenChangesForm) {
  RecordProperty("proves", "R1-4.5.1-01 R1-5.2.4-05 R1-5.3.1-01 R1-5.3.2-01 R1-4.5.3-01 R1-4.5.3-02 R1-4.5.3-03");
  const std::size_t fits = 1024 - 28 - 40;
  for (const std::size_t len : {fits, fits + 4}) {
    open({.call_threshold = 1024});
    const Octets args = pattern(len);
    CallSpec spec;
    spec.args = args;
    call(spec);
    const v1::Header header = parse(sent(0));
    if (len == fits) {
      EXPECT_EQ(sent(0).size(), 1024u);
      EXPECT_EQ(header.proc, v1::Proc::kMsg);
      EXPECT_TRUE(header.lists.read_list.empty());
    } else {
      EXPECT_EQ(header.proc, v1::Proc::kNomsg);
      EXPECT_EQ(sent(0).size(), v1::header_len(header.lists));
      ASSERT_EQ(header.lists.read_list.size(), 1u);
      EXPECT_EQ(header.lists.read_list[0].position, 0u);
      EXPECT_EQ(header.lists.read_list[0].target.length, 40 + len);
    }
    EXPECT_TRUE(header.lists.write_list.empty());
    EXPECT_FALSE(header.lists.reply_chunk);
  }
}

TEST_F(RequesterTest, ItemGoesInlineOrAsReadChunkWithoutRoundup) {
  RecordProperty("proves", "R1-4.4.5.1-01 R1-4.4.5.1-03 R1-4.4.5-05 R1-4.4.2-02 R1-4.4.4.1-01 R1-4.4.4-05");
  for (const std::size_t len : {0ul, 5ul, 512ul, 5095ul}) {
    open({.call_threshold = 1024});
    Octets args = write_args(len);
    args.insert(args.end(), {1, 2, 3, 4});
    const Octets data = pattern(len);
    CallSpec spec;
    spec.procedure = kWrite;
    spec.args = args;
    spec.items = ArgumentItem{write_position(), data};
    call(spec);
    const v1::Header header = parse(sent(0));
    EXPECT_EQ(header.proc, v1::Proc::kMsg);
    Octets inline_args = write_args(len);
    if (len < 1000) {
      EXPECT_TRUE(header.lists.read_list.empty());
      inline_args.insert(inline_args.end(), data.begin(), data.end());
      inline_args.resize(xdr::round_up(inline_args.size()));
    } else {
      ASSERT_EQ(header.lists.read_list.size(), 1u);
      EXPECT_EQ(header.lists.read_list[0].position, 40 + write_position());
      EXPECT_EQ(header.lists.read_list[0].target.length, len);
    }
    inline_args.insert(inline_args.end(), {1, 2, 3, 4});
    const Octets payload = payload_of(sent(0));
    EXPECT_EQ(Octets(payload.begin() + 40, payload.end()), inline_args) << len;
  }
}

TEST_F(RequesterTest, ChunksForResultsFromTheBoundOfTheReply) {
  RecordProperty("proves",
                 "R1-5.3.3-01 R1-5.3.3-02 R1-5.3.3-03 R1-4.5.3-07 R1-4.4.6-02 R1-4.4.6.1-01 R1-5.3.2-04 R1-8.2-01");
  Octets room(70000);
  struct Case {
    std::size_t item, max_results;
    bool write, reply;
  };
  for (const Case& c : {Case{0, 1024 - 28 - 24, false, false}, Case{0, 1024 - 28 - 20, false, true},
                        Case{800, 1024 - 28 - 24 - 800, false, false}, Case{801, 1024 - 28 - 24 - 800, true, false},
                        Case{65537, 128, true, false}, Case{65537, 1024 - 28 - 24 - 24, true, false},
                        Case{65537, 1024 - 28 - 24 - 20, true, true}}) {
    open({.reply_threshold = 1024, .chunks = {.write_list_with_reply_chunk = true}});
    CallSpec spec;
    spec.procedure = kRead;
    spec.result_items = MutBytes(room).first(c.item);
    spec.max_results = c.max_results;
    call(spec);
    const v1::Header header = parse(sent(0));
    ASSERT_EQ(header.lists.write_list.size(), c.write ? 1u : 0u) << c.item << " " << c.max_results;
    if (c.write) {
      EXPECT_EQ(total_length(header.lists.write_list[0]), c.item);
    }
    ASSERT_EQ(header.lists.reply_chunk.has_value(), c.reply) << c.item << " " << c.max_results;
    if (c.reply) {
      EXPECT_GE(total_length(*header.lists.reply_chunk), 24 + c.max_results);
    }
  }
}

// What Linux serves: it is not offered a Write list and a Reply chunk together unless that was asked for.
TEST_F(RequesterTest, WithoutLeaveTheReplyChunkHasItsItemsToo) {
  std::vector<std::uint8_t> room(5000);
  open({.reply_threshold = 1024});
  CallSpec spec;
  spec.procedure = kRead;
  spec.result_items = MutBytes(room);
  spec.max_results = 2000;
  call(spec);
  const v1::Header header = parse(sent(0));
  EXPECT_TRUE(header.lists.write_list.empty());
  ASSERT_TRUE(header.lists.reply_chunk);
  EXPECT_GE(total_length(*header.lists.reply_chunk), 24 + 2000 + room.size());
}

TEST_F(RequesterTest, NothingIsReachableWhenTheCallbackRuns) {
  RecordProperty("proves", "R1-5.4.1-01 R1-10.1.3-01 R1-10.1.2-01");
  open({.call_threshold = 1024, .reply_threshold = 1024, .chunks = {.write_list_with_reply_chunk = true}});
  const Octets args = write_args(9000);
  const Octets data = pattern(9000);
  Octets room(9000);
  CallSpec spec;
  spec.procedure = kSwap;
  spec.args = args;
  spec.items = ArgumentItem{write_position(), data};
  spec.result_items = room;
  spec.max_results = 3000;
  call(spec);
  EXPECT_EQ(memory.num_remote(), 3u);
  v1::Header header = parse(sent(0));
  const Octets whole = rpc_reply(header.xid, pattern(1000));
  // The peer writes into both chunks.
  Octets item = pattern(77);
  const auto put = [this](const Segment& segment, const Octets& octets) {
    auto* to = memory.find(segment.handle, segment.offset, octets.size(), verbs::Access::kRemoteWrite);
    ASSERT_NE(to, nullptr);
    std::copy(octets.begin(), octets.end(), to);
  };
  put(header.lists.write_list[0][0], item);
  put(header.lists.reply_chunk->at(0), whole);
  header.lists.read_list.clear();
  header.lists.write_list[0][0].length = 77;
  header.lists.reply_chunk->at(0).length = static_cast<std::uint32_t>(whole.size());
  header.proc = v1::Proc::kNomsg;
  deliver(message(header, {}));
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].status, CallStatus::kSuccess);
  EXPECT_EQ(outcomes[0].results, pattern(1000));
  EXPECT_EQ(outcomes[0].item_len, 77u);
  EXPECT_EQ(outcomes[0].remote_regions, 0u);
  EXPECT_TRUE(std::equal(item.begin(), item.end(), room.begin()));
}

TEST_F(RequesterTest, ItemLenTellsChunkFromInline) {
  open({.reply_threshold = 1024});
  Octets room(5000);
  CallSpec spec;
  spec.result_items = room;
  call(spec);
  run();
  deliver(reply_to(0, 8, {0, 0, 0, 70}));
  EXPECT_EQ(outcomes.at(0).item_len, 0u);
  spec.result_items = MutBytes(room).first(10);
  call(spec);
  run();
  deliver(reply_to(1, 8));
  EXPECT_FALSE(outcomes.at(1).item_len);
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
      EXPECT_EQ(outcomes[0].status, vector.id == "M44" ? CallStatus::kErrChunk : CallStatus::kErrVers);
      deliver(vector.octets);
      EXPECT_EQ(outcomes.size(), 1u) << vector.id;
    }
    EXPECT_EQ(end->qp.num_receives(), end->channel->config().num_receives);
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
  // Both credits are with Calls that nobody answers: there is no going on.
  EXPECT_TRUE(end->channel->failure());
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
  EXPECT_FALSE(end->channel->failure());
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
  EXPECT_TRUE(end->channel->failure());
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

// Both engines, end to end.
struct PairTest : ::testing::Test {
  void open(std::size_t threshold, std::uint32_t credits) {
    responder = std::make_unique<ResponderEnd>(
        memory, ResponderEnd::Options{
                    .credits = credits, .inline_threshold = threshold, .reply_threshold = threshold, .ord = 4});
    requester = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{.credits = credits,
                                                                             .inline_threshold = threshold,
                                                                             .call_threshold = threshold,
                                                                             .reply_threshold = threshold});
    FakeQp::connect(requester->qp, responder->qp);
  }
  void run() {
    while (requester->pump() + responder->pump() != 0) {
    }
    requester->requester->on_time(at(0));
  }

  FakeMemory memory;
  std::unique_ptr<ResponderEnd> responder;
  std::unique_ptr<RequesterEnd> requester;
};

// READs and WRITEs of awkward sizes, inline and in chunks, at the smallest and largest thresholds.
TEST_F(PairTest, DataOfEverySizeArrives) {
  RecordProperty("proves", "R1-8.3-02 R1-4.4.1-01 R1-3.2.2-03 R1-4.1-01 R1-4.5.3-04 R1-5.2.1-01 R1-4.3.1-10");
  for (const auto& [threshold, credits] :
       std::vector<std::pair<std::size_t, std::uint32_t>>{{1024, 1}, {4096, 16}, {65536, 128}, {262144, 4}}) {
    open(threshold, credits);
    const std::vector<std::size_t> sizes{0, 1, 2, 3, 4, 5, 900, 1023, 1024, 1025, 4095, 4097, 65535, 65537, 262143};
    std::size_t num_ended = 0;
    responder->service.answer = [&](ServedCall& served) {
      ServedReply reply;
      xdr::XdrReader in(served.args);
      std::uint32_t len = 0;
      if (served.procedure == kRead) {
        ASSERT_TRUE(in.u32(len));
        Buffer buffer = responder->pool.take(std::max<std::size_t>(len, 1));
        const Octets data = pattern(len, 3);
        std::copy(data.begin(), data.end(), buffer.octets().begin());
        xdr::XdrWriter out(reply.results);
        out.u32(len);
        reply.add_item(std::move(buffer), len);
        out.u32(0xeeeeeeee);
      } else {
        // Echoes the whole argument as a result without an item: through the Reply chunk where it is long.
        reply.results = copy_of(served.args);
        for (const ServedItem& item : served.items) {
          reply.results.insert(reply.results.end(), item.data.octets().begin(), item.data.octets().end());
          reply.results.resize(xdr::round_up(reply.results.size()));
        }
      }
      responder->responder->reply(served.id, std::move(reply));
    };
    for (const std::size_t len : sizes) {
      Octets args;
      xdr::XdrWriter(args).u32(static_cast<std::uint32_t>(len));
      Octets room(std::max<std::size_t>(len, 1), 0xa5);
      CallSpec read;
      read.program = kTestProgram;
      read.version = kTestVersion;
      read.procedure = kRead;
      read.binding = &test_binding();
      read.args = args;
      read.result_items = room;
      read.max_results = 8;
      ASSERT_TRUE(requester->requester
                      ->call(read,
                             [&](const Reply& reply) {
                               ++num_ended;
                               ASSERT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                               Octets got;
                               if (reply.item_len) {
                                 got.assign(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(*reply.item_len));
                                 EXPECT_EQ(reply.results.size(), 8u);
                               } else {
                                 got.assign(reply.results.begin() + 4,
                                            reply.results.begin() + 4 + static_cast<std::ptrdiff_t>(len));
                               }
                               EXPECT_EQ(got, pattern(len, 3)) << len;
                             })
                      .ok());
      run();
      const Octets write = write_args(len);
      const Octets data = pattern(len, 9);
      CallSpec spec = read;
      spec.procedure = kWrite;
      spec.args = write;
      spec.items = ArgumentItem{write.size(), data};
      spec.result_items = {};
      spec.max_results = write.size() + len + 4;
      ASSERT_TRUE(requester->requester
                      ->call(spec,
                             [&](const Reply& reply) {
                               ++num_ended;
                               ASSERT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                               Octets whole = write;
                               whole.insert(whole.end(), data.begin(), data.end());
                               whole.resize(xdr::round_up(whole.size()));
                               EXPECT_EQ(Octets(reply.results.begin(), reply.results.end()), whole) << len;
                             })
                      .ok());
      run();
    }
    EXPECT_EQ(num_ended, 2 * sizes.size());
    // The requester never moves data itself.
    EXPECT_TRUE(requester->qp.rdma.empty());
    EXPECT_EQ(memory.num_remote(), 0u);
    EXPECT_EQ(responder->budget.used, 0u);
    EXPECT_FALSE(requester->channel->failure());
    EXPECT_FALSE(responder->channel->failure());
  }
}

TEST_F(PairTest, LongCallGathersArgumentsAroundTheItem) {
  open(1024, 4);
  Octets args = write_args(5001);
  const Octets tail = pattern(2000, 5);
  args.insert(args.end(), tail.begin(), tail.end());
  const Octets data = pattern(5001, 6);
  CallSpec spec;
  spec.program = kTestProgram;
  spec.version = kTestVersion;
  spec.procedure = kWrite;
  spec.binding = &test_binding();
  spec.args = args;
  spec.items = ArgumentItem{write_position(), data};
  ASSERT_TRUE(requester->requester->call(spec, nullptr).ok());
  run();
  ASSERT_EQ(responder->service.calls.size(), 1u);
  Octets whole = write_args(5001);
  whole.insert(whole.end(), data.begin(), data.end());
  whole.resize(xdr::round_up(whole.size()));
  whole.insert(whole.end(), tail.begin(), tail.end());
  EXPECT_EQ(copy_of(responder->service.calls[0].args), whole);
  EXPECT_TRUE(responder->service.calls[0].items.empty());
}

TEST_F(PairTest, ManyCallsAtOnceAllEndOnce) {
  open(1024, 16);
  responder->service.answer = [&](ServedCall& served) { responder->responder->reply(served.id, {}); };
  std::size_t num_ended = 0;
  for (int i = 0; i < 500; ++i) {
    CallSpec spec;
    spec.program = kTestProgram;
    spec.version = kTestVersion;
    ASSERT_TRUE(requester->requester
                    ->call(spec,
                           [&](const Reply& reply) {
                             EXPECT_EQ(reply.status, CallStatus::kSuccess);
                             ++num_ended;
                           })
                    .ok());
  }
  run();
  EXPECT_EQ(num_ended, 500u);
  EXPECT_EQ(requester->requester->num_outstanding(), 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
