// Every form that Calls and Replies can take: several items each way, gathered and scattered, both engines together.
#include "rpcrdma/testing/forms.h"

namespace weft::rpcrdma::testing {
namespace {

struct Sizes {
  std::size_t first, second;
};
const std::vector<Sizes> kSizes{{0, 0}, {5, 7}, {5, 4001}, {4001, 5}, {4097, 4099}, {70001, 3}, {1, 60002}};

TEST_F(FormsTest, SeveralArgumentsArriveWholeHoweverTheyAreSent) {
  RecordProperty("proves", "R1-4.4.4-04 R1-4.4.5-03 U1-6.4.1-01 U1-6.4.2-06");
  for (const ChunkUse& chunks :
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
    EXPECT_EQ(served.args.size(), 8u);  // the count of rows, and the field behind them
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
    open({.max_write_chunks = max, .write_list_with_reply_chunk = true});
    answer_with([&](ServedCall& served) {
      EXPECT_EQ(served.result_capacities.size(), max);
      return reply_with(message, responder->pool);
    });
    CallSpec spec = spec_of(kMany, no_operations());
    spec.result_items = rooms;
    spec.max_results = 20;
    const Outcome outcome = call(spec);
    ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    // An item without a Write chunk comes through a Reply chunk that is large enough for it.
    EXPECT_EQ(requester->requester->counters().reply_chunks, max == 2 ? 0u : 1u);
    EXPECT_EQ(requester->requester->counters().write_chunks, max);
    EXPECT_EQ(outcome.message.size(), 24 + 4 + 16 + (max < 1 ? 3004u : 0u) + (max < 2 ? 1336u : 0u));
    EXPECT_THAT(outcome.item_lens, ::testing::ElementsAre(3001u, 1333u));
    EXPECT_EQ(outcome.results, message.without);
    EXPECT_EQ(room_a, a);
    EXPECT_EQ(room_b, b);
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

TEST_F(FormsTest, ResultsThatTheServiceNumbersBeyondTheWriteChunksAreNotReduced) {
  open();
  const Octets data = pattern(801);
  const Message message = many_message({&data});
  answer_with([&](ServedCall&) {
    ServedReply reply = reply_with(message, responder->pool);
    reply.items[0].operation = 1;
    return reply;
  });
  CallSpec spec = spec_of(kMany, no_operations());
  Octets room(9000);
  spec.result_items = room;
  spec.max_results = 20;
  EXPECT_EQ(call(spec).status, CallStatus::kBadReply);
  EXPECT_TRUE(responder->qp.rdma.empty());
}

TEST_F(FormsTest, AWriteChunkIsForOneItem) {
  open({.max_write_chunks = 2});
  const Octets a = pattern(801, 1);
  const Octets b = pattern(700, 2);
  const Message message = many_message({&a, &b});
  for (const std::size_t number : {0u, 1u}) {
    answer_with([&](ServedCall&) {
      ServedReply reply = reply_with(message, responder->pool);
      for (ResultItem& item : reply.items) item.operation = number;
      return reply;
    });
    Octets first(900, 0xa5), second(900, 0xa5);
    const std::vector<ScatteredBytes> rooms{MutBytes(first), MutBytes(second)};
    CallSpec spec = spec_of(kMany, no_operations());
    spec.result_items = rooms;
    spec.max_results = 20;
    EXPECT_EQ(call(spec).status, CallStatus::kBadReply);
    // The second item overwrote nothing.
    EXPECT_EQ(Octets((number == 0 ? first : second).begin(), (number == 0 ? first : second).begin() + 801), a);
    EXPECT_EQ(number == 0 ? second : first, Octets(900, 0xa5));
  }
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
  // There are four elements. One item is gathered, with the octets between and behind.
  EXPECT_EQ(responder->qp.last_send_sges, 3u);
}

TEST_F(FormsTest, ResultsInSlicesOfRegisteredMemory) {
  for (const bool with_chunks : {true, false}) {
    open({.max_write_chunks = 2}, with_chunks ? 1024 : 16384);
    const Octets a = pattern(3001, 1);
    const Octets b = pattern(2502, 2);
    const Message message = many_message({&a, &b});
    // All results are in one Buffer, like a record from another connection. The items stay at their place in it.
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
    EXPECT_EQ(outcome.message.size(), 24 + (with_chunks ? message.without : message.whole).size());
    EXPECT_EQ(outcome.results, message.without);
    EXPECT_EQ(room_a, a);
    EXPECT_EQ(room_b, b);
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

}  // namespace
}  // namespace weft::rpcrdma::testing
