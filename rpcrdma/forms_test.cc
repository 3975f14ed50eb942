// Every form that Calls and Replies can take, with the synthetic program: several items each way, gathered and
// scattered, both engines together and each against a peer made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

verbs::TimePoint at(int ms) {
  return verbs::TimePoint{} + std::chrono::seconds(1000) + std::chrono::milliseconds(ms);
}

CallSpec spec_of(std::uint32_t procedure, ConstBytes args = {}) {
  CallSpec spec;
  spec.program = kSyntheticProgram;
  spec.version = kSyntheticVersion;
  spec.procedure = procedure;
  spec.binding = &synthetic_binding();
  spec.args = args;
  return spec;
}

const Octets& no_operations() {
  static const Octets args = many_message({}).whole;
  return args;
}

std::vector<ArgumentItem> items_of(const Message& message) {
  std::vector<ArgumentItem> items;
  for (const Message::Item& item : message.items) items.push_back({item.offset, item.octets});
  return items;
}

// Arguments or results as they are whole, from what came without the items.
template <typename Items>
Octets put_together(ConstBytes without, const Items& items) {
  Octets whole;
  xdr::XdrWriter out(whole);
  std::size_t done = 0;
  for (const auto& [position, octets] : items) {
    out.raw(without.subspan(done, position - done));
    out.opaque_fixed(octets);
    done = position;
  }
  out.raw(without.subspan(done));
  return whole;
}

Octets whole_args(const ServedCall& call) {
  std::vector<std::pair<std::size_t, ConstBytes>> items;
  for (const ServedItem& item : call.items) items.emplace_back(item.position, item.data.octets());
  return put_together(call.args, items);
}

// Answers with `message`, its items in Buffers of their own.
ServedReply reply_with(const Message& message, BufferPool& pool) {
  ServedReply reply;
  std::size_t done = 0;
  xdr::XdrWriter out(reply.results);
  for (const Message::Item& item : message.items) {
    out.raw(ConstBytes(message.without).subspan(done, item.offset - done));
    done = item.offset;
    Buffer buffer = pool.take(std::max<std::size_t>(item.octets.size(), 1));
    std::copy(item.octets.begin(), item.octets.end(), buffer.octets().begin());
    reply.add_item(std::move(buffer), item.octets.size());
  }
  out.raw(ConstBytes(message.without).subspan(done));
  return reply;
}

struct Outcome {
  CallStatus status = CallStatus::kLocalError;
  Octets results;
  std::vector<std::optional<std::size_t>> item_lens;
  Octets message;
  std::string text;
  std::size_t remote_regions = 0;
};

// Both engines.
struct FormsTest : ::testing::Test {
  void open(ChunkUse chunks = {}, std::size_t threshold = 1024, ResponderEnd::Options options = {}) {
    requester.reset();
    responder.reset();
    options.inline_threshold = options.reply_threshold = threshold;
    responder = std::make_unique<ResponderEnd>(memory, options);
    requester = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{.inline_threshold = threshold,
                                                                             .call_threshold = threshold,
                                                                             .reply_threshold = threshold,
                                                                             .chunks = chunks});
    FakeQp::connect(requester->qp, responder->qp);
  }
  void run() {
    while (requester->pump() + responder->pump() != 0) {
    }
    requester->requester->on_time(at(0));
  }
  Outcome call(const CallSpec& spec) {
    Outcome outcome;
    const auto called = requester->requester->call(spec, [&](const Reply& reply) {
      outcome = {reply.status,
                 copy_of(reply.results),
                 {reply.item_lens.begin(), reply.item_lens.end()},
                 copy_of(reply.message),
                 reply.text,
                 memory.num_remote()};
    });
    EXPECT_TRUE(called.ok()) << called.error().message;
    run();
    EXPECT_EQ(memory.num_remote(), 0u);
    EXPECT_EQ(outcome.remote_regions, 0u);
    EXPECT_EQ(responder->budget.used, 0u);
    return outcome;
  }
  void answer_with(std::function<ServedReply(ServedCall&)> make) {
    responder->service.answer = [this, make = std::move(make)](ServedCall& served) {
      seen_args.push_back(whole_args(served));
      num_items.push_back(served.items.size());
      responder->responder->reply(served.id, make(served));
    };
  }

  FakeMemory memory;
  std::vector<Octets> seen_args;
  std::vector<std::size_t> num_items;
  std::unique_ptr<ResponderEnd> responder;
  std::unique_ptr<RequesterEnd> requester;
};

struct Sizes {
  std::size_t first, second;
};
const std::vector<Sizes> kSizes{{0, 0}, {5, 7}, {5, 4001}, {4001, 5}, {4097, 4099}, {70001, 3}, {1, 60002}};

TEST_F(FormsTest, SeveralArgumentsArriveWholeHoweverTheyAreSent) {
  RecordProperty("proves", "R1-4.4.4-04 R1-4.4.5-03 U1-6.4.1-01 U1-6.4.2-06");
  for (const ChunkUse chunks :
       {ChunkUse{}, ChunkUse{.max_read_chunks = 2}, ChunkUse{.max_read_chunks = 2, .roundup_in_read_chunks = true},
        ChunkUse{.max_read_chunks = 2, .long_calls_with_items = true}, ChunkUse{.max_segments = 2}}) {
    for (const Sizes& sizes : kSizes) {
      open(chunks);
      answer_with([](ServedCall&) { return ServedReply{}; });
      const Message message = pair_message(pattern(sizes.first, 1), pattern(sizes.second, 2));
      const auto items = items_of(message);
      CallSpec spec = spec_of(kPair, message.without);
      spec.items = items;
      EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
      ASSERT_EQ(seen_args.size(), 1u);
      EXPECT_EQ(seen_args.back(), message.whole) << sizes.first << " " << sizes.second;
      const auto& counters = requester->requester->counters();
      EXPECT_LE(counters.read_chunks, chunks.max_read_chunks);
      if (chunks.max_read_chunks == 2) {
        EXPECT_EQ(counters.long_calls, 0u);
        EXPECT_EQ(counters.read_chunks, (sizes.first > 900 ? 1u : 0u) + (sizes.second > 900 ? 1u : 0u));
      }
      seen_args.clear();
    }
  }
}

TEST_F(FormsTest, GatheredArgumentsAreSegmentsOfOneChunk) {
  RecordProperty("proves", "U1-6.4.2-04");
  for (const bool roundup : {false, true}) {  // for which there is no segment left
    open({.roundup_in_read_chunks = roundup});
    answer_with([](ServedCall&) { return ServedReply{}; });
    const Octets data = pattern(4096 * 15 + 333);
    std::vector<ConstBytes> parts;
    for (std::size_t from = 0; from < data.size(); from += 4096) {
      parts.push_back(ConstBytes(data).subspan(from, std::min<std::size_t>(4096, data.size() - from)));
    }
    parts.insert(parts.begin() + 3, ConstBytes{});  // takes no segment
    const Message message = pair_message(data, {1, 2, 3});
    const std::vector<ArgumentItem> items{{message.items[0].offset, parts},
                                          {message.items[1].offset, message.items[1].octets}};
    CallSpec spec = spec_of(kPair, message.without);
    spec.items = items;
    EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
    EXPECT_EQ(seen_args.at(0), message.whole);
    EXPECT_EQ(num_items.at(0), 1u);
    EXPECT_EQ(responder->qp.rdma.size(), 16u);
    seen_args.clear();
    num_items.clear();

    const ConstBytes last = parts.back();
    parts.back() = last.first(100);
    parts.push_back(last.subspan(100));  // a seventeenth
    const std::vector<ArgumentItem> too_many{{message.items[0].offset, parts}, items[1]};
    spec.items = too_many;
    EXPECT_FALSE(requester->requester->call(spec, nullptr).ok());
    Octets room(17);
    std::vector<MutBytes> rooms;
    for (std::uint8_t& octet : room) rooms.emplace_back(&octet, 1);
    spec.items = {};
    spec.result_items = ScatteredBytes(rooms);
    EXPECT_FALSE(requester->requester->call(spec, nullptr).ok());
    spec.result_items = ScatteredBytes(std::span<const MutBytes>(rooms).first(16));
    EXPECT_TRUE(requester->requester->call(spec, nullptr).ok());
  }
}

TEST_F(FormsTest, RoundupInAReadChunkIsASegmentAndCountsNothing) {
  RecordProperty("proves", "R1-4.4.5.1-02");
  for (const std::size_t len : {5001u, 5002u, 5003u, 5004u}) {
    open({.roundup_in_read_chunks = true});
    requester->qp.keep_sent = true;
    answer_with([](ServedCall&) { return ServedReply{}; });
    const Message message = pair_message(pattern(len), {});
    const auto items = items_of(message);
    CallSpec spec = spec_of(kPair, message.without);
    spec.items = items;
    EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
    EXPECT_EQ(seen_args.back(), message.whole);
    const std::vector<ReadSegment> list = parse(requester->qp.sent.at(0)).lists.read_list;
    std::size_t total = 0;
    for (const ReadSegment& segment : list) total += segment.target.length;
    EXPECT_EQ(total, xdr::round_up(len));
    EXPECT_EQ(list.size(), len % 4 == 0 ? 1u : 2u);
    const Octets payload = payload_of(requester->qp.sent[0]);
    EXPECT_EQ(Octets(payload.begin() + 40, payload.end()), message.without);
  }
}

TEST_F(FormsTest, LongCallsGatherItemsOrAreCopiedWhereSegmentsAreFew) {
  open({.max_segments = 16, .max_read_chunks = 1});
  answer_with([](ServedCall&) { return ServedReply{}; });
  const Message message = pair_message(pattern(2001, 1), pattern(3002, 2));
  const auto items = items_of(message);
  CallSpec spec = spec_of(kPair, message.without);
  spec.items = items;
  EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
  EXPECT_EQ(requester->requester->counters().long_calls, 1u);
  EXPECT_EQ(responder->qp.rdma.size(), 5u);  // head, item, between, item, tail
  open({.max_segments = 4, .max_read_chunks = 1});
  answer_with([](ServedCall&) { return ServedReply{}; });
  EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
  EXPECT_EQ(responder->qp.rdma.size(), 1u);
  EXPECT_EQ(seen_args.at(0), message.whole);
  EXPECT_EQ(seen_args.at(1), message.whole);
}

TEST_F(FormsTest, LongCallBesideReadChunksOfItsItems) {
  RecordProperty("proves", "U1-6.4.2-02");
  const Octets first = pattern(3001, 1);
  const Octets second = pattern(5002, 2);
  // So many present items that the rest alone is too long for the threshold.
  std::vector<const Octets*> all(300, nullptr);
  all[0] = &first;
  all[299] = &second;
  const Message message = many_message(all);
  for (const std::size_t max_read_chunks : {1u, 2u}) {
    open({.max_read_chunks = max_read_chunks, .long_calls_with_items = true});
    answer_with([](ServedCall&) { return ServedReply{}; });
    const auto items = items_of(message);
    CallSpec spec = spec_of(kMany, message.without);
    spec.items = items;
    EXPECT_EQ(call(spec).status, CallStatus::kSuccess);
    EXPECT_EQ(seen_args.back(), message.whole);
    EXPECT_EQ(num_items.back(), max_read_chunks);
    EXPECT_EQ(requester->requester->counters().long_calls, 1u);
    EXPECT_EQ(requester->requester->counters().read_chunks, max_read_chunks);
  }
}

TEST_F(FormsTest, ElementsOfAnArrayMoveWholeAndTheCountStays) {
  RecordProperty("proves", "R1-4.4.4.1-02");
  open();
  const Message message = table_message(500);
  answer_with([&](ServedCall& served) {
    EXPECT_EQ(served.args.size(), 8u);  // the count of rows, and what stands behind them
    EXPECT_EQ(copy_of(served.args), message.without);
    EXPECT_EQ(copy_of(served.items.at(0).data.octets()), message.items[0].octets);
    return reply_with(message, responder->pool);
  });
  const auto items = items_of(message);
  CallSpec spec = spec_of(kTable, message.without);
  spec.items = items;
  Octets room(6000);
  spec.result_items = room;
  spec.max_results = 8;
  const Outcome outcome = call(spec);
  EXPECT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_EQ(seen_args.at(0), message.whole);
  EXPECT_EQ(outcome.results, message.without);
  EXPECT_EQ(room, message.items[0].octets);
}

TEST_F(FormsTest, OptionalDataMovesAndItsPresenceStays) {
  RecordProperty("proves", "R1-4.4.4.2-01 R1-4.4.6.2-02");
  const Octets first = pattern(3001, 1);
  const Octets second = pattern(5002, 2);
  for (const bool has_first : {true, false}) {
    open({.max_read_chunks = 2, .max_write_chunks = 2});
    const Message message = option_message(has_first ? &first : nullptr, &second);
    answer_with([&](ServedCall& served) {
      EXPECT_EQ(copy_of(served.args), message.without);
      return reply_with(message, responder->pool);
    });
    const auto items = items_of(message);
    CallSpec spec = spec_of(kOption, message.without);
    spec.items = items;
    Octets one(5002, 0xa5);
    Octets two(5002, 0xa5);
    const std::vector<ScatteredBytes> rooms{MutBytes(one), MutBytes(two)};
    spec.result_items = rooms;
    spec.max_results = 20;
    const Outcome outcome = call(spec);
    EXPECT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    EXPECT_EQ(seen_args.back(), message.whole);
    EXPECT_EQ(outcome.results, message.without);
    // The chunk that the absent one leaves is the next one's.
    if (has_first) {
      EXPECT_THAT(outcome.item_lens, ::testing::ElementsAre(3001u, 5002u));
      EXPECT_EQ(Octets(one.begin(), one.begin() + 3001), first);
      EXPECT_EQ(two, second);
    } else {
      EXPECT_THAT(outcome.item_lens, ::testing::ElementsAre(5002u, 0u));
      EXPECT_EQ(one, second);
    }
  }
}

TEST_F(FormsTest, ResultsFillTheirChunksInOrderAndTheRestIsInline) {
  RecordProperty("proves",
                 "R1-5.3.2-03 R1-5.3.2-05 U1-6.4.1-03 U1-6.4.1-04 U1-6.4.1-05 U1-6.4.1-06 U1-6.4.1-07 U1-6.4.3-01 "
                 "R1-4.4.6-07");
  const Octets a = pattern(3001, 1);
  const Octets b = pattern(333, 2);
  const Octets c = pattern(2002, 3);
  const Octets d = pattern(71, 4);
  // The third fails: its chunk comes back unused, the last has none.
  const Message message = many_message({&a, &b, nullptr, &c, &d});
  open({.max_write_chunks = 4});
  answer_with([&](ServedCall& served) {
    EXPECT_THAT(served.result_capacities,
                ::testing::ElementsAre(::testing::Optional(4000u), std::nullopt, ::testing::Optional(4000u),
                                       ::testing::Optional(2500u)));
    ServedReply reply = reply_with(message, responder->pool);
    reply.items[2].operation = 3;
    reply.items[3].operation = 4;
    return reply;
  });
  Octets room_a(4000, 0xa5);
  Octets room_none(4000, 0xa5);
  Octets room_c(2500, 0xa5);
  const std::vector<MutBytes> parts{MutBytes(room_c).first(1000), MutBytes(room_c).subspan(1000)};
  const std::vector<ScatteredBytes> rooms{MutBytes(room_a), {}, MutBytes(room_none), parts};
  CallSpec spec = spec_of(kMany, no_operations());
  spec.result_items = rooms;
  spec.max_results = 600;
  const Outcome outcome = call(spec);
  ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_THAT(outcome.item_lens, ::testing::ElementsAre(::testing::Optional(3001u), std::nullopt,
                                                        ::testing::Optional(0u), ::testing::Optional(2002u)));
  EXPECT_EQ(Octets(room_a.begin(), room_a.begin() + 3001), a);
  EXPECT_EQ(Octets(room_c.begin(), room_c.begin() + 2002), c);
  EXPECT_EQ(room_none, Octets(4000, 0xa5));
  EXPECT_EQ(put_together(outcome.results,
                         std::vector<std::pair<std::size_t, ConstBytes>>{
                             {message.items[0].offset, a}, {message.items[2].offset + xdr::round_up(b.size()), c}}),
            message.whole);
}

TEST_F(FormsTest, OneWriteChunkUnlessMoreAreAllowed) {
  RecordProperty("proves", "U1-6.4.2-03 U1-6.4.1-02 R1-4.4.6.2-06 R1-4.4.6.2-07");
  const Octets a = pattern(3001, 1);
  const Octets b = pattern(1333, 2);
  const Message message = many_message({&a, &b});
  Octets room_a(3001);
  Octets room_b(1333);
  const std::vector<ScatteredBytes> rooms{MutBytes(room_a), MutBytes(room_b)};
  for (const std::size_t max : {0u, 1u, 2u}) {
    open({.max_write_chunks = max});
    answer_with([&](ServedCall& served) {
      EXPECT_EQ(served.result_capacities.size(), max);
      return reply_with(message, responder->pool);
    });
    CallSpec spec = spec_of(kMany, no_operations());
    spec.result_items = rooms;
    spec.max_results = 20;
    const Outcome outcome = call(spec);
    ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    EXPECT_EQ(outcome.item_lens.size(), max);
    // What has no Write chunk comes through a Reply chunk that is large enough for it.
    EXPECT_EQ(requester->requester->counters().reply_chunks, max == 2 ? 0u : 1u);
    EXPECT_EQ(outcome.results.size(), 4 + 16 + (max < 1 ? 3004u : 0u) + (max < 2 ? 1336u : 0u));
  }
}

TEST_F(FormsTest, ResultsOfOtherProceduresAreNotReduced) {
  RecordProperty("proves", "R1-4.4.2-01");
  open();
  Message message;
  message.word(1).item(pattern(301)).word(2).item(pattern(5)).word(3);
  answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
  const Octets args = pair_message({}, {}).whole;
  CallSpec spec = spec_of(kPlain, args);
  Octets room(9000);
  spec.result_items = room;
  spec.max_results = 800;
  const Outcome outcome = call(spec);
  EXPECT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_EQ(outcome.results, message.whole);
  EXPECT_THAT(outcome.item_lens, ::testing::ElementsAre(0u));
}

TEST_F(FormsTest, ResultsThatTheBindingDoesNotFindAreNotReduced) {
  open();
  const Octets data = pattern(801);
  const Message message = many_message({&data});
  answer_with([&](ServedCall&) {
    ServedReply reply = reply_with(message, responder->pool);
    reply.items[0].position -= 4;  // before its count
    return reply;
  });
  CallSpec spec = spec_of(kMany, no_operations());
  Octets room(9000);
  spec.result_items = room;
  spec.max_results = 20;
  EXPECT_EQ(call(spec).status, CallStatus::kBadReply);
  EXPECT_TRUE(responder->qp.rdma.empty());
}

TEST_F(FormsTest, LongPiecesOfAReplyAreSentFromWhereTheyStand) {
  RecordProperty("proves", "R1-5.2.4-06");
  const Octets a = pattern(3001, 1);
  const Octets b = pattern(2500, 2);
  const Octets c = pattern(1500, 3);
  const Octets d = pattern(9, 4);
  const Message message = many_message({&a, &d, &b, &c});
  open({}, 16384);
  answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
  const Outcome outcome = call(spec_of(kMany, no_operations()));
  ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_EQ(outcome.results, message.whole);
  // Four elements are what there is: one is gathered, and what comes between and behind it.
  EXPECT_EQ(responder->qp.last_send_sges, 3u);
}

TEST_F(FormsTest, ResultsInSlicesOfRegisteredMemory) {
  for (const bool with_chunks : {true, false}) {
    open({.max_write_chunks = 2}, with_chunks ? 1024 : 16384);
    const Octets a = pattern(3001, 1);
    const Octets b = pattern(2502, 2);
    const Message message = many_message({&a, &b});
    // As a record that came from elsewhere: all in one Buffer, the items where they stand in it.
    answer_with([&](ServedCall& served) {
      ServedReply reply;
      Buffer record = responder->pool.take(24 + message.whole.size());
      const Octets header = rpc_reply(served.xid);
      std::copy(header.begin(), header.end(), record.octets().begin());
      std::copy(message.whole.begin(), message.whole.end(), record.octets().begin() + 24);
      reply.header = header;
      std::size_t from = 0;
      for (std::size_t i = 0; i < 2; ++i) {
        const Message::Item& item = message.items[i];
        const ConstBytes octets = record.octets();
        reply.more_results.push_back({octets.subspan(24 + from, item.position - from), record.lkey()});
        reply.items.push_back(
            {item.offset, i, {octets.subspan(24 + item.position, item.octets.size()), record.lkey()}});
        from = item.position + xdr::round_up(item.octets.size());
      }
      reply.buffers.push_back(std::move(record));
      return reply;
    });
    Octets room_a(3001);
    Octets room_b(2502);
    const std::vector<ScatteredBytes> rooms{MutBytes(room_a), MutBytes(room_b)};
    CallSpec spec = spec_of(kMany, no_operations());
    spec.result_items = rooms;
    spec.max_results = 20;
    const Outcome outcome = call(spec);
    ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    if (with_chunks) {
      EXPECT_EQ(outcome.results, message.without);
      EXPECT_EQ(room_a, a);
      EXPECT_EQ(room_b, b);
    } else {
      EXPECT_EQ(outcome.results, message.whole);
    }
  }
}

TEST_F(FormsTest, VerifiersAndCredentialsPassAsTheyAre) {
  const OpaqueAuth cred{1, pattern(21)};
  const OpaqueAuth verf{77, pattern(13, 2)};
  for (const std::size_t len : {std::size_t{4}, std::size_t{3000}}) {
    open();
    answer_with([&](ServedCall& served) {
      EXPECT_EQ(served.xid, 0xabcd0001u);
      EXPECT_EQ(served.cred.flavor, 1u);
      EXPECT_EQ(copy_of(served.cred.body), cred.body);
      EXPECT_EQ(served.verf.flavor, 77u);
      EXPECT_EQ(copy_of(served.verf.body), verf.body);
      Octets header;
      xdr::XdrWriter out(header);
      emit_call(out, {0xabcd0001, kSyntheticProgram, kSyntheticVersion, 0, cred, verf});
      EXPECT_EQ(copy_of(served.header), header);
      ServedReply reply;
      reply.verf = {6, pattern(400, 9)};
      reply.results = pattern(len);
      return reply;
    });
    CallSpec spec = spec_of(0);
    spec.xid = 0xabcd0001;
    spec.cred = &cred;
    spec.verf = &verf;
    spec.max_results = len;
    spec.max_verf = 400;
    const Outcome outcome = call(spec);
    ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    Octets message;
    xdr::XdrWriter out(message);
    emit_reply(out, {.xid = 0xabcd0001, .verf = {6, pattern(400, 9)}});
    out.raw(pattern(len));
    EXPECT_EQ(outcome.message, message);
    EXPECT_EQ(requester->requester->counters().reply_chunks, len > 1000 ? 1u : 0u);
  }
}

TEST_F(FormsTest, ARepliesHeaderInOctetsIsPassedOn) {
  open();
  Octets denied;
  xdr::XdrWriter out(denied);
  emit_reply(out, {.xid = 0xabcd0001,
                   .denied = true,
                   .verf = {},
                   .reject = RejectStat::kAuthError,
                   .auth = static_cast<AuthStat>(14)});
  answer_with([&](ServedCall&) {
    ServedReply reply;
    reply.header = denied;
    return reply;
  });
  CallSpec spec = spec_of(0);
  spec.xid = 0xabcd0001;
  const Outcome outcome = call(spec);
  EXPECT_EQ(outcome.status, CallStatus::kDenied);
  EXPECT_EQ(outcome.message, denied);
}

// Every combination of none, one and sixteen segments in the four places, as far as the header fits.
TEST_F(FormsTest, ServersTakeWhatEveryServerMustTake) {
  RecordProperty("proves", "U1-6.4.2-05");
  const std::vector<std::size_t> counts{0, 1, 16};
  const Octets data = pattern(1600);
  std::size_t num_served = 0;
  for (const std::size_t zero : counts) {
    for (const std::size_t read : counts) {
      for (const std::size_t write : counts) {
        for (const std::size_t reply : counts) {
          if (28 + 24 * (zero + read) + 24 + 16 * (write + reply) > 1024 - 100) continue;
          open({}, 1024, {.max_segments = 32, .max_read_chunks = 1, .max_write_chunks = 1, .max_items = 1});
          FakeQp peer_qp(memory, requester->cq);  // Replies go nowhere: they are looked at in `sent`
          ResponderEnd end(memory, {.inline_threshold = 1024,
                                    .reply_threshold = 1024,
                                    .max_segments = 32,
                                    .max_read_chunks = 1,
                                    .max_write_chunks = 1,
                                    .max_items = 1});
          std::vector<std::unique_ptr<FakeMr>> mrs;
          const auto offer = [&](ConstBytes octets, verbs::Access access) {
            auto* from = const_cast<std::uint8_t*>(octets.data());
            mrs.push_back(std::make_unique<FakeMr>(memory, FakeMemory::Region{from, octets.size(), access}));
            return Segment{mrs.back()->rkey(), static_cast<std::uint32_t>(octets.size()),
                           reinterpret_cast<std::uintptr_t>(from)};
          };
          const auto cut = [](ConstBytes octets, std::size_t num, std::size_t i) {
            const std::size_t each = octets.size() / num;
            return i + 1 == num ? octets.subspan(each * i) : octets.subspan(each * i, each);
          };
          const std::vector<const Octets*> one{&data};
          const Message message = many_message(one);
          Octets rpc;
          xdr::XdrWriter out(rpc);
          emit_call(out, {5, kSyntheticProgram, kSyntheticVersion, kMany, {}, {}});
          out.raw(read != 0 ? message.without : many_message({}).whole);
          v1::Header header;
          header.xid = 5;
          header.credit = 1;
          for (std::size_t i = 0; i < zero; ++i) {
            header.proc = v1::Proc::kNomsg;
            header.lists.read_list.push_back({0, offer(cut(rpc, zero, i), verbs::Access::kRemoteRead)});
          }
          for (std::size_t i = 0; i < read; ++i) {
            header.lists.read_list.push_back({static_cast<std::uint32_t>(40 + message.items[0].position),
                                              offer(cut(data, read, i), verbs::Access::kRemoteRead)});
          }
          Octets room(1600);
          Octets reply_room(3200);
          const auto writable = verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite;
          if (write != 0) header.lists.write_list.emplace_back();
          for (std::size_t i = 0; i < write; ++i) {
            header.lists.write_list[0].push_back(offer(cut(room, write, i), writable));
          }
          if (reply != 0) header.lists.reply_chunk.emplace();
          for (std::size_t i = 0; i < reply; ++i) {
            header.lists.reply_chunk->push_back(offer(cut(reply_room, reply, i), writable));
          }
          ASSERT_TRUE(end.qp.inject(testing::message(header, zero == 0 ? rpc : Octets{})));
          end.pump();
          ASSERT_EQ(end.service.calls.size(), 1u) << zero << " " << read << " " << write << " " << reply;
          EXPECT_EQ(end.service.calls[0].items.size(), read != 0 ? 1u : 0u);
          EXPECT_TRUE(end.responder->reply(end.service.calls[0].id,
                                           write != 0 ? reply_with(message, end.pool) : ServedReply{}));
          end.pump();
          ASSERT_EQ(end.qp.sent.size(), 1u);
          EXPECT_NE(parse(end.qp.sent[0]).proc, v1::Proc::kError);
          if (write != 0) {
            EXPECT_EQ(room, data);
          }
          ++num_served;
        }
      }
    }
  }
  EXPECT_GT(num_served, 60u);
}

// A Responder, and Calls made by hand.
struct HandMadeCalls : ::testing::Test {
  void open(ResponderEnd::Options options = {}) { end = std::make_unique<ResponderEnd>(memory, options); }
  Segment offer(const Octets& octets, verbs::Access access = verbs::Access::kRemoteRead) {
    auto* from = const_cast<std::uint8_t*>(octets.data());
    mrs.push_back(std::make_unique<FakeMr>(memory, FakeMemory::Region{from, octets.size(), access}));
    return {mrs.back()->rkey(), static_cast<std::uint32_t>(octets.size()), reinterpret_cast<std::uintptr_t>(from)};
  }
  Segment room(const Octets& octets) { return offer(octets, verbs::Access::kLocalWrite | verbs::Access::kRemoteWrite); }
  static v1::Header header() {
    v1::Header header;
    header.xid = 5;
    header.credit = 8;
    return header;
  }
  static std::uint32_t position(std::size_t in_args) { return static_cast<std::uint32_t>(40 + in_args); }
  static Octets rpc(std::uint32_t procedure, const Octets& args) {
    Octets octets;
    xdr::XdrWriter out(octets);
    emit_call(out, {5, kSyntheticProgram, kSyntheticVersion, procedure, {}, {}});
    out.raw(args);
    return octets;
  }
  // What the one Reply says.
  std::string said() {
    if (end->qp.sent.size() != 1) return "nothing, or too much";
    const v1::Header header = parse(end->qp.sent[0]);
    if (header.proc == v1::Proc::kError) return header.err == v1::Err::kChunk ? "ERR_CHUNK" : "ERR_VERS";
    const Octets payload = payload_of(end->qp.sent[0]);
    xdr::XdrReader in(payload);
    ReplyHeader reply;
    return parse_reply(in, reply) ? describe(reply) : "garbage";
  }
  std::string call(const v1::Header& header, const Octets& payload) {
    end->service.answer = [this](ServedCall& served) { end->responder->reply(served.id, {}); };
    EXPECT_TRUE(end->qp.inject(message(header, payload)));
    end->pump();
    EXPECT_EQ(end->budget.used, 0u);
    EXPECT_EQ(end->qp.num_receives(), end->channel->config().num_receives);
    return said();
  }

  FakeMemory memory;
  std::vector<std::unique_ptr<FakeMr>> mrs;
  std::unique_ptr<ResponderEnd> end;
};

TEST_F(HandMadeCalls, ReadChunksThatDoNotAgreeWithTheArgumentsAreGarbage) {
  RecordProperty("proves", "R1-8.1.1-01 R1-8.1.1-02 R1-5.5.2-05");
  const Octets first = pattern(301, 1);
  const Octets second = pattern(502, 2);
  const Octets rounded = pattern(504, 2);
  const Octets shorter = pattern(500, 2);
  const Message message = pair_message(first, second);
  const std::uint32_t at_first = position(message.items[0].position);
  const std::uint32_t at_second = position(message.items[1].position);
  const auto with = [&](std::vector<ReadSegment> list, std::uint32_t procedure = kPair,
                        ResponderEnd::Options options = {}) {
    open(options);
    v1::Header h = header();
    h.lists.read_list = std::move(list);
    const std::string said = call(h, rpc(procedure, message.without));
    // Nothing was pulled for a Call that is not processed.
    EXPECT_EQ(end->qp.rdma.empty(), said != "SUCCESS");
    EXPECT_EQ(end->service.calls.empty(), said != "SUCCESS");
    return said;
  };
  EXPECT_EQ(with({{at_first, offer(first)}, {at_second, offer(second)}}), "SUCCESS");
  EXPECT_EQ(with({{at_second, offer(second)}, {at_first, offer(first)}}), "SUCCESS");
  EXPECT_EQ(with({{at_first, offer(first)}, {at_second, offer(rounded)}}), "SUCCESS");
  // Counted in the reduced stream; overlapping the first; not where an item is; of another length; one too many.
  EXPECT_EQ(with({{at_first, offer(first)}, {position(message.items[1].offset), offer(second)}}), "GARBAGE_ARGS");
  EXPECT_EQ(with({{at_first, offer(first)}, {at_first + 8, offer(second)}}), "GARBAGE_ARGS");
  EXPECT_EQ(with({{at_first, offer(first)}, {at_second - 4, offer(second)}}), "GARBAGE_ARGS");
  EXPECT_EQ(with({{at_first, offer(first)}, {at_second, offer(shorter)}}), "GARBAGE_ARGS");
  EXPECT_EQ(with({{at_first, offer(first)}, {at_second, offer(second)}, {at_second + 504, offer(second)}}),
            "GARBAGE_ARGS");
  EXPECT_EQ(with({{at_first, offer(first)}, {36, offer(second)}}), "GARBAGE_ARGS");
  EXPECT_EQ(with({{at_first, offer(first)}, {at_second, offer(second)}}, kPlain), "GARBAGE_ARGS");
}

TEST_F(HandMadeCalls, SeveralReadChunksArePulledUnderOneLimitOfReads) {
  RecordProperty("proves", "R1-4.3.1-13");
  const Octets first = pattern(1600, 1);
  const Octets second = pattern(801, 2);
  const Message message = pair_message(first, second);
  open({.ord = 3});
  v1::Header h = header();
  const Segment one = offer(first);
  for (std::uint32_t i = 0; i < 16; ++i) {
    h.lists.read_list.push_back({position(message.items[0].position), {one.handle, 100, one.offset + 100 * i}});
  }
  h.lists.read_list.push_back({position(message.items[1].position), offer(second)});
  end->qp.hold_completions = true;
  ASSERT_TRUE(end->qp.inject(testing::message(h, rpc(kPair, message.without))));
  std::size_t before = 0;
  while (end->service.calls.empty()) {
    end->pump();
    EXPECT_LE(end->qp.rdma.size() - before, 3u);
    if (end->qp.rdma.size() == before) break;
    before = end->qp.rdma.size();
    EXPECT_TRUE(end->service.calls.empty());
    end->qp.release();
  }
  end->pump();
  ASSERT_EQ(end->service.calls.size(), 1u);
  EXPECT_EQ(whole_args(end->service.calls[0]), message.whole);
}

TEST_F(HandMadeCalls, ComplexityBeyondTheLimits) {
  RecordProperty("proves", "U1-6.4.2-07 U1-6.4.2-08");
  const Octets data = pattern(100);
  const Octets space(100);
  const std::vector<const Octets*> three{&data, &data, &data};
  const Message message = many_message(three);
  const ResponderEnd::Options limits{.max_segments = 4, .max_read_chunks = 2, .max_write_chunks = 2, .max_items = 2};
  const auto say = [&](const std::function<void(v1::Header&)>& fill, const Octets& args) {
    open(limits);
    v1::Header h = header();
    fill(h);
    return call(h, rpc(kMany, args));
  };
  const Octets none = many_message({}).whole;
  const Segment readable = offer(data);
  const Segment writable = room(space);
  const std::uint32_t at = position(message.items[0].position);
  EXPECT_EQ(say([&](v1::Header& h) { h.lists.write_list = {{writable}, {writable}}; }, none), "SUCCESS");
  EXPECT_EQ(say([&](v1::Header& h) { h.lists.write_list = {{writable}, {writable}, {writable}}; }, none), "ERR_CHUNK");
  EXPECT_EQ(say([&](v1::Header& h) { h.lists.write_list = {SegmentArray(4, writable)}; }, none), "SUCCESS");
  EXPECT_EQ(say([&](v1::Header& h) { h.lists.write_list = {SegmentArray(5, writable)}; }, none), "ERR_CHUNK");
  EXPECT_EQ(say([&](v1::Header& h) { h.lists.reply_chunk = SegmentArray(5, writable); }, none), "ERR_CHUNK");
  EXPECT_EQ(say(
                [&](v1::Header& h) {
                  h.lists.read_list = {{at, readable}, {at + 4, readable}, {at + 8, readable}};
                },
                none),
            "ERR_CHUNK");
  // Three items are more than it reads out of arguments; two are not.
  const Message reduced = many_message({&data, &data});
  Octets two = reduced.without;
  two.insert(two.begin() + static_cast<std::ptrdiff_t>(reduced.items[1].offset), data.begin(), data.end());
  Octets args_of_three = message.without;
  for (const std::size_t i : {2u, 1u}) {
    args_of_three.insert(args_of_three.begin() + static_cast<std::ptrdiff_t>(message.items[i].offset), data.begin(),
                         data.end());
  }
  EXPECT_EQ(say([&](v1::Header& h) { h.lists.read_list = {{at, readable}}; }, two), "SUCCESS");
  EXPECT_EQ(say([&](v1::Header& h) { h.lists.read_list = {{at, readable}}; }, args_of_three), "GARBAGE_ARGS");
}

TEST_F(HandMadeCalls, RoomIsMeasuredBeforeAnythingIsWritten) {
  RecordProperty("proves", "U1-3.1-08 U1-3.1-01 U1-3-02");
  const Octets data = pattern(2000);
  const Octets large(4000);
  const Octets small(1999);
  const Message message = many_message({&data, &data});
  for (const bool second_is_small : {false, true}) {
    open({.reply_threshold = 1024});
    v1::Header h = header();
    h.lists.write_list = {{room(large)}, {room(second_is_small ? small : large)}};
    ASSERT_TRUE(end->qp.inject(testing::message(h, rpc(kMany, many_message({}).whole))));
    end->pump();
    ASSERT_EQ(end->service.calls.size(), 1u);
    EXPECT_TRUE(end->responder->reply(end->service.calls[0].id, reply_with(message, end->pool)));
    end->pump();
    EXPECT_EQ(said(), second_is_small ? "ERR_CHUNK" : "SUCCESS");
    EXPECT_EQ(end->qp.rdma.size(), second_is_small ? 0u : 2u);
    EXPECT_EQ(end->pool.in_use(), 0u);
    EXPECT_FALSE(end->channel->failure());
    // The next Call finds nothing left of it.
    EXPECT_EQ((end->qp.sent.clear(), call(header(), rpc(kMany, many_message({}).whole))), "SUCCESS");
  }
}

// A Requester, and Replies made by hand.
struct HandMadeReplies : ::testing::Test {
  void open(RequesterEnd::Options options = {.reply_threshold = 1024, .chunks = {.max_write_chunks = 2}}) {
    end = std::make_unique<RequesterEnd>(memory, options);
  }
  // Calls MANY with two rooms; answers with these results and these octets in the chunks.
  Outcome answered(const Octets& results, std::uint32_t first, std::uint32_t second) {
    open();
    Octets room_a(2000);
    Octets room_b(2000);
    const std::vector<ScatteredBytes> rooms{MutBytes(room_a), MutBytes(room_b)};
    const Octets args = many_message({}).whole;
    CallSpec spec = spec_of(kMany, args);
    spec.result_items = rooms;
    spec.max_results = 20;
    Outcome outcome;
    int num_ended = 0;
    EXPECT_TRUE(end->requester
                    ->call(spec,
                           [&](const Reply& reply) {
                             ++num_ended;
                             outcome.status = reply.status;
                             outcome.text = reply.text;
                             outcome.results = copy_of(reply.results);
                           })
                    .ok());
    end->pump();
    end->requester->on_time(at(0));
    v1::Header header = parse(end->qp.sent.at(0));
    EXPECT_EQ(header.lists.write_list.size(), 2u);
    header.lists.write_list.at(0).at(0).length = first;
    header.lists.write_list.at(1).at(0).length = second;
    EXPECT_TRUE(end->qp.inject(message(header, rpc_reply(header.xid, results))));
    end->pump();
    end->requester->on_time(at(1));
    EXPECT_EQ(num_ended, 1);
    EXPECT_EQ(end->qp.sent.size(), 1u);  // not sent again
    EXPECT_FALSE(end->channel->failure());
    return outcome;
  }

  FakeMemory memory;
  std::unique_ptr<RequesterEnd> end;
};

TEST_F(HandMadeReplies, ResultsThatDoNotAgreeWithTheirChunksEndTheCallForGood) {
  RecordProperty("proves", "R1-8.1.1-03 R1-8.1.1-04");
  const Octets a = pattern(1200, 1);
  const Octets b = pattern(301, 2);
  const Message both = many_message({&a, &b});
  EXPECT_EQ(answered(both.without, 1200, 301).status, CallStatus::kSuccess);
  // Counts that say otherwise; chunks the wrong way round.
  EXPECT_EQ(answered(both.without, 1199, 301).status, CallStatus::kBadReply);
  EXPECT_EQ(answered(both.without, 301, 1200).status, CallStatus::kBadReply);
  // Inline although a chunk was there for it: alone, and beside another.
  const Message short_one = many_message({&b});
  EXPECT_EQ(answered(short_one.whole, 0, 0).status, CallStatus::kBadReply);
  Octets second_inline = many_message({&a}).without;
  second_inline[3] = 2;
  const Octets tail(short_one.whole.begin() + 4, short_one.whole.end());
  second_inline.insert(second_inline.end(), tail.begin(), tail.end());
  const Outcome outcome = answered(second_inline, 1200, 0);
  EXPECT_EQ(outcome.status, CallStatus::kBadReply);
  EXPECT_TRUE(outcome.results.empty());
  EXPECT_FALSE(outcome.text.empty());
  // A failed operation has no item, and nothing else may be in its chunk; nor may anything be beyond the last.
  EXPECT_EQ(answered(many_message({nullptr, &b}).without, 0, 301).status, CallStatus::kSuccess);
  EXPECT_EQ(answered(many_message({nullptr, &b}).whole, 301, 0).status, CallStatus::kBadReply);
  EXPECT_EQ(answered(many_message({&b}).without, 301, 4).status, CallStatus::kBadReply);
  const Octets nothing;
  EXPECT_EQ(answered(many_message({&nothing}).whole, 0, 0).status, CallStatus::kSuccess);
}

TEST_F(HandMadeReplies, ItemsAreForProgramsWithABinding) {
  RecordProperty("proves", "R1-8-01");
  open();
  const Message message = pair_message(pattern(5), pattern(7));
  const auto items = items_of(message);
  Octets room(10);
  const auto refused = [&](const CallSpec& spec) {
    const auto called = end->requester->call(spec, nullptr);
    return called.ok() ? 0 : called.error().errno_value;
  };
  CallSpec good = spec_of(kPair, message.without);
  good.items = items;
  good.result_items = room;
  EXPECT_EQ(refused(good), 0);
  CallSpec spec = good;
  spec.binding = nullptr;
  EXPECT_EQ(refused(spec), EINVAL);
  spec.items = {};
  EXPECT_EQ(refused(spec), EINVAL);
  spec.result_items = {};
  EXPECT_EQ(refused(spec), 0);
  spec = good;
  spec.version = 2;
  EXPECT_EQ(refused(spec), EINVAL);
  spec = good;
  spec.procedure = kPlain;
  EXPECT_EQ(refused(spec), EINVAL);
  const std::vector<ArgumentItem> swapped{items[1], items[0]};
  spec = good;
  spec.items = swapped;
  EXPECT_EQ(refused(spec), EINVAL);
  const Octets other = pattern(8);
  const std::vector<ArgumentItem> longer{items[0], {items[1].position, other}};
  spec.items = longer;
  EXPECT_EQ(refused(spec), EINVAL);
  spec = spec_of(kPair, message.without);
  spec.xid = 77;
  spec.items = items;
  EXPECT_EQ(refused(spec), 0);
  EXPECT_EQ(refused(spec), EEXIST);
  EXPECT_EQ(memory.num_remote(), 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
