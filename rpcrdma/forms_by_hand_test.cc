// Each engine against a peer made by hand: the messages that it refuses, and the messages that it must take.
#include "rpcrdma/testing/forms.h"

namespace weft::rpcrdma::testing {
namespace {

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
  // The one Reply in words.
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
    EXPECT_EQ(end->budget.used(), 0u);
    EXPECT_EQ(end->qp.num_receives(), end->endpoint->config().num_receives);
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

// Every combination of none, one and sixteen segments in the four places, as far as the header fits.
TEST_F(HandMadeCalls, ServersTakeWhatEveryServerMustTake) {
  RecordProperty("proves", "U1-6.4.2-05");
  const Octets data = pattern(1600);
  const Message message = many_message({&data});
  Octets result(1600);
  const Octets reply_room(3200);
  // `num` segments that together are the octets of `whole`.
  const auto cut = [](const Segment& whole, std::size_t num) {
    SegmentArray segments;
    for (std::uint32_t i = 0; i < num; ++i) {
      const auto each = static_cast<std::uint32_t>(whole.length / num);
      segments.push_back({whole.handle, i + 1 == num ? whole.length - each * i : each, whole.offset + each * i});
    }
    return segments;
  };
  const auto served = [&](std::size_t zero, std::size_t read, std::size_t write, std::size_t reply) {
    open({.inline_threshold = 1024,
          .reply_threshold = 1024,
          .max_segments = 32,
          .max_read_chunks = 1,
          .max_write_chunks = 1,
          .max_items = 1});
    const Octets payload = rpc(kMany, read != 0 ? message.without : no_operations());
    v1::Header h = header();
    h.proc = zero != 0 ? v1::Proc::kNomsg : v1::Proc::kMsg;
    for (const Segment& one : cut(offer(payload), zero)) h.lists.read_list.push_back({0, one});
    for (const Segment& one : cut(offer(data), read)) {
      h.lists.read_list.push_back({position(message.items[0].position), one});
    }
    if (write != 0) h.lists.write_list = {cut(room(result), write)};
    if (reply != 0) h.lists.reply_chunk = cut(room(reply_room), reply);
    std::fill(result.begin(), result.end(), 0);
    end->service.answer = [&](ServedCall& call) {
      EXPECT_EQ(call.items.size(), read != 0 ? 1u : 0u);
      end->responder->reply(call.id, write != 0 ? reply_with(message, end->pool) : ServedReply{});
    };
    EXPECT_TRUE(end->qp.inject(testing::message(h, zero == 0 ? payload : Octets{})));
    end->pump();
    return said() == "SUCCESS" && (write == 0 || result == data);
  };
  std::size_t num_served = 0;
  for (const std::size_t zero : {0u, 1u, 16u}) {
    for (const std::size_t read : {0u, 1u, 16u}) {
      for (const std::size_t write : {0u, 1u, 16u}) {
        for (const std::size_t reply : {0u, 1u, 16u}) {
          const std::size_t header_len = 28 + 24 * (zero + read) + 8 + 4 + 16 * (write + reply);
          if (header_len + (zero == 0 ? 100 : 0) > 1024) continue;
          EXPECT_TRUE(served(zero, read, write, reply)) << zero << " " << read << " " << write << " " << reply;
          ++num_served;
        }
      }
    }
  }
  EXPECT_GT(num_served, 60u);
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
    EXPECT_FALSE(end->endpoint->failure());
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
    EXPECT_FALSE(end->endpoint->failure());
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
