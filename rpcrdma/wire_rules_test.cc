// Rules that every message, or every registration, has to keep, held against all that two engines say to each other.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/sanitizers.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/vectors.h"

#ifdef WEFT_UNDER_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weft::rpcrdma::testing {
namespace {

std::uint32_t word_at(const Octets& octets, std::size_t offset) {
  std::uint32_t value = 0;
  EXPECT_TRUE(xdr::XdrReader(ConstBytes(octets).subspan(offset)).u32(value));
  return value;
}

struct WireRules : ::testing::Test {
  void open(std::size_t threshold, std::uint32_t credits) {
    requester.reset();
    responder.reset();
    responder = std::make_unique<ResponderEnd>(
        memory, ResponderEnd::Options{.credits = credits, .inline_threshold = threshold, .reply_threshold = threshold});
    requester = std::make_unique<RequesterEnd>(
        memory, RequesterEnd::Options{.credits = credits,
                                      .inline_threshold = threshold,
                                      .call_threshold = threshold,
                                      .reply_threshold = threshold,
                                      .chunks = {.max_read_chunks = 2, .max_write_chunks = 2}});
    FakeQp::connect(requester->qp, responder->qp);
    requester->qp.keep_sent = responder->qp.keep_sent = true;
    responder->service.answer = [this](ServedCall& served) {
      ServedReply reply;
      if (served.procedure == kMany) {
        reply.results = many_message({&item}).without;
        Buffer buffer = responder->pool.take(item.size());
        std::copy(item.begin(), item.end(), buffer.octets().begin());
        reply.add_item(std::move(buffer), item.size());
      } else {
        reply.results = results;
      }
      responder->responder->reply(served.id, std::move(reply));
    };
  }
  void run(int ms = 0) {
    while (requester->pump() + responder->pump() != 0) {
    }
    requester->requester->on_time(at(ms));
    responder->responder->on_time(at(ms));
  }
  // A Call of this procedure, with its arguments.
  CallStatus call(std::uint32_t procedure, const Message& message = {}, MutBytes room = {}) {
    std::vector<ArgumentItem> items;
    for (const Message::Item& one : message.items) items.push_back({one.offset, one.octets});
    CallSpec spec;
    spec.program = kSyntheticProgram;
    spec.version = kSyntheticVersion;
    spec.procedure = procedure;
    spec.binding = &synthetic_binding();
    spec.args = message.without;
    spec.items = items;
    spec.result_items = room;
    spec.max_results = room.empty() ? results.size() : 12;
    CallStatus status = CallStatus::kTimeout;
    EXPECT_TRUE(requester->requester->call(spec, [&](const Reply& reply) { status = reply.status; }).ok());
    run();
    return status;
  }
  // Calls in every form, then one that is answered with ERR_CHUNK and one with ERR_VERS.
  void say_everything() {
    item = pattern(5001);
    Octets room(6000);
    for (const std::size_t args : {std::size_t{0}, std::size_t{3000}}) {
      for (const std::size_t len : {std::size_t{0}, std::size_t{3000}}) {
        results = pattern(len);
        EXPECT_EQ(call(0, Message().opaque(pattern(args))), CallStatus::kSuccess);
      }
    }
    results.clear();
    EXPECT_EQ(call(kPair, pair_message(pattern(4001), pattern(5))), CallStatus::kSuccess);
    EXPECT_EQ(call(kPair, pair_message(pattern(4001), pattern(5002))), CallStatus::kSuccess);
    EXPECT_EQ(call(kMany, many_message({}), room), CallStatus::kSuccess);
    EXPECT_EQ(call(kMany, many_message({})), CallStatus::kTransportError);  // bounded wrongly
    v1::Header foreign;
    foreign.xid = 77;
    foreign.vers = 2;
    responder->qp.inject(message(foreign, {}));
    run();
  }

  FakeMemory memory;
  Octets item;
  Octets results;
  std::unique_ptr<ResponderEnd> responder;
  std::unique_ptr<RequesterEnd> requester;
};

TEST_F(WireRules, EveryMessageOfBothEnds) {
  RecordProperty("proves",
                 "R1-4.2-01 R1-4.3.1-03 R1-4.3.1-05 R1-4.5.2-01 R1-5-02 R1-5.1.4-01 R1-5.2.2-01 R1-5.2.3-01 "
                 "R1-5.6.1-01 R1-5.6.2-01 U1-3.1-02");
  open(1024, 8);
  say_everything();
  std::map<std::pair<bool, v1::Proc>, int> seen;
  for (const bool is_call : {true, false}) {
    for (const Octets& octets : is_call ? requester->qp.sent : responder->qp.sent) {
      const v1::Header header = parse(octets);
      const Octets payload = payload_of(octets);
      ++seen[{is_call, header.proc}];
      EXPECT_EQ(word_at(octets, 8), 8u);  // asked for, or granted
      const bool is_err_vers = header.proc == v1::Proc::kError && header.err == v1::Err::kVers;
      EXPECT_EQ(header.vers, is_err_vers ? 2u : 1u);
      if (header.proc == v1::Proc::kMsg) {
        EXPECT_EQ(word_at(payload, 0), header.xid);
        EXPECT_EQ(word_at(payload, 4), is_call ? 0u : 1u);
        EXPECT_EQ(octets.size(), profile_1().call_lengths.of(header.lists) + payload.size());
      } else {
        EXPECT_TRUE(payload.empty());
        EXPECT_TRUE(header.proc == v1::Proc::kNomsg || header.proc == v1::Proc::kError);
      }
      EXPECT_LE(octets.size(), 1024u);
    }
  }
  EXPECT_EQ(requester->qp.sent.size(), 8u);  // one for each Call: an error is not tried again
  EXPECT_GE((seen[{true, v1::Proc::kMsg}]), 3);
  EXPECT_GE((seen[{true, v1::Proc::kNomsg}]), 2);
  EXPECT_GE((seen[{false, v1::Proc::kMsg}]), 3);
  EXPECT_GE((seen[{false, v1::Proc::kNomsg}]), 2);
  EXPECT_EQ((seen[{false, v1::Proc::kError}]), 2);
  EXPECT_EQ((seen[{true, v1::Proc::kError}]), 0);
}

TEST_F(WireRules, ChunksAreOfferedByCallsAndOnlyThere) {
  RecordProperty("proves", "R1-4.4.3-03 R1-3.2.2-01 R1-3.2.2-04");
  open(1024, 8);
  say_everything();
  std::map<std::uint32_t, std::set<std::pair<std::uint32_t, std::uint64_t>>> offered;
  const auto each_segment = [](const v1::Header& header, auto with) {
    for (const ReadSegment& one : header.lists.read_list) with(one.target);
    for (const SegmentArray& chunk : header.lists.write_list) {
      for (const Segment& one : chunk) with(one);
    }
    if (header.lists.reply_chunk) {
      for (const Segment& one : *header.lists.reply_chunk) with(one);
    }
  };
  for (const Octets& octets : requester->qp.sent) {
    const v1::Header header = parse(octets);
    each_segment(header, [&](const Segment& one) {
      offered[header.xid].insert({one.handle, one.offset});
      EXPECT_GT(one.offset, 0xffffffffu);  // all of its 64 bits
    });
  }
  std::size_t num_returned = 0;
  for (const Octets& octets : responder->qp.sent) {
    const v1::Header header = parse(octets);
    EXPECT_TRUE(header.lists.read_list.empty());
    each_segment(header, [&](const Segment& one) {
      ++num_returned;
      EXPECT_TRUE(offered[header.xid].contains({one.handle, one.offset}));
    });
  }
  EXPECT_GE(num_returned, 3u);
  // The responder reads and writes offered memory only, and the requester hears of it by the Reply alone: it has a
  // completion for each Send of either side, and no other.
  EXPECT_GT(responder->qp.rdma.size(), 5u);
  EXPECT_TRUE(requester->qp.rdma.empty());
  EXPECT_EQ(requester->cq.num_pushed(), requester->qp.sent.size() + responder->qp.sent.size());
}

TEST_F(WireRules, OneCreditCarriesOneWholeTransactionAfterAnother) {
  RecordProperty("proves", "R1-4.3.1-01 R1-4.3.1-11 R1-4.3.2-02");
  open(1024, 1);
  for (int i = 0; i < 50; ++i) {
    results = pattern(i % 2 != 0 ? 3000 : 4);
    ASSERT_EQ(call(0, Message().opaque(pattern(i % 3 != 0 ? 2000 : 8))), CallStatus::kSuccess);
  }
  // The threshold has not changed: a Call that just fits goes inline.
  results.clear();
  Message fits;
  fits.opaque(pattern(1024 - 28 - 40 - 4));
  ASSERT_EQ(call(0, fits), CallStatus::kSuccess);
  EXPECT_EQ(requester->qp.sent.back().size(), 1024u);
  // An idle connection stays so.
  const std::size_t num = responder->qp.num_sends;
  for (int ms = 0; ms < 100000; ms += 1000) run(ms);
  EXPECT_EQ(responder->qp.num_sends, num);
}

TEST_F(WireRules, NothingButCreditsHoldsCallsBack) {
  RecordProperty("proves", "R1-4.3.1-14 R1-4.3.3-04");
  open(1024, 500);
  EXPECT_GT(responder->qp.num_receives(), 500u);  // from the start
  ASSERT_EQ(call(0), CallStatus::kSuccess);
  CallSpec spec;
  spec.program = kSyntheticProgram;
  spec.version = kSyntheticVersion;
  const std::size_t before = requester->qp.sent.size();
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(requester->requester->call(spec, nullptr).ok());
  EXPECT_EQ(requester->qp.sent.size() - before, 500u);  // all at once, and no clock ran
}

TEST_F(WireRules, LargerThresholdsCarryLargerMessages) {
  RecordProperty("proves", "R1-4.3.3-06");
  for (const std::size_t threshold : {4096u, 262144u}) {
    open(threshold, 4);
    Message fits;
    fits.opaque(pattern(threshold - 28 - 40 - 4));
    ASSERT_EQ(call(0, fits), CallStatus::kSuccess);
    EXPECT_EQ(requester->qp.sent.back().size(), threshold);
    EXPECT_EQ(responder->service.args.back(), fits.whole);
  }
}

TEST_F(WireRules, ReadChunksStayUntilTheReplyAndNoLonger) {
  RecordProperty("proves", "R1-4.4.5.2-03");
  open(1024, 4);
  const Octets data = pattern(5000);
  Message message = pair_message(data, {});
  const std::vector<ArgumentItem> items{{message.items[0].offset, data}};
  CallSpec spec;
  spec.program = kSyntheticProgram;
  spec.version = kSyntheticVersion;
  spec.procedure = kPair;
  spec.binding = &synthetic_binding();
  spec.args = message.without;
  spec.items = items;
  ASSERT_TRUE(requester->requester->call(spec, nullptr).ok());
  const Segment segment = parse(requester->qp.sent.back()).lists.read_list.at(0).target;
  const auto reaches = [&] {
    return memory.find(segment.handle, segment.offset, segment.length, verbs::Access::kRemoteRead) != nullptr;
  };
  requester->pump();
  requester->requester->on_time(at(500));  // the server takes its time
  EXPECT_TRUE(reaches());
  bool reached = false;
  responder->service.answer = [&](ServedCall& served) {
    reached = reaches();
    EXPECT_EQ(copy_of(served.items.at(0).data.octets()), data);
    responder->responder->reply(served.id, {});
  };
  run(600);
  EXPECT_TRUE(reached);
  EXPECT_FALSE(reaches());
}

// Memory that the peer can reach is not looked at meanwhile: with the address sanitizer any access is fatal.
TEST_F(WireRules, TheRequesterLeavesChunkMemoryAlone) {
  RecordProperty("proves", "R1-5.4.1-02 R1-4.4.6.2-04");
#ifdef WEFT_UNDER_ASAN
  RequesterEnd end(memory, {.call_threshold = 1024, .reply_threshold = 1024, .chunks = {.max_write_chunks = 1}});
  std::vector<std::uint8_t> data(8192);
  std::vector<std::uint8_t> room(8192);
  const Message message = pair_message(data, {});
  const std::vector<ArgumentItem> items{{message.items[0].offset, data}};
  CallSpec spec;
  spec.program = kSyntheticProgram;
  spec.version = kSyntheticVersion;
  spec.procedure = kPair;
  spec.binding = &synthetic_binding();
  spec.args = message.without;
  spec.items = items;
  spec.result_items = room;
  spec.max_results = 100;
  __asan_poison_memory_region(data.data(), data.size());
  __asan_poison_memory_region(room.data(), room.size());
  std::optional<std::size_t> item_len;
  CallStatus status = CallStatus::kTimeout;
  ASSERT_TRUE(end.requester
                  ->call(spec,
                         [&](const Reply& reply) {
                           status = reply.status;
                           item_len = reply.item_len;
                         })
                  .ok());
  end.pump();
  end.requester->on_time(at(0));
  v1::Header header = parse(end.qp.sent.at(0));
  header.lists.read_list.clear();
  header.lists.write_list.at(0).at(0).length = 0;  // this length counts, not the octets written
  const Octets nothing = pair_message({}, {}).whole;
  ASSERT_TRUE(end.qp.inject(testing::message(header, rpc_reply(header.xid, nothing))));
  end.pump();
  EXPECT_EQ(status, CallStatus::kSuccess);
  EXPECT_EQ(item_len, 0u);
  __asan_unpoison_memory_region(data.data(), data.size());
  __asan_unpoison_memory_region(room.data(), room.size());
#else
  GTEST_SKIP() << "needs the address sanitizer";
#endif
}

TEST_F(WireRules, TagsMayCountFromZero) {
  RecordProperty("proves", "R1-5.4.3-01 R1-5.4.2-01");
  ResponderEnd end(memory, {.inline_threshold = 1024, .reply_threshold = 1024});
  const Octets data = pattern(3001);
  Octets room(4000, 0xa5);
  FakeMr readable(memory,
                  {const_cast<std::uint8_t*>(data.data()), data.size(), verbs::Access::kRemoteRead, std::uint64_t{0}});
  FakeMr writable(memory, {room.data(), room.size(), verbs::Access::kRemoteWrite, std::uint64_t{0}});
  const Message message = many_message({&data});
  Octets rpc;
  xdr::XdrWriter out(rpc);
  emit_call(out, {5, kSyntheticProgram, kSyntheticVersion, kMany, {}, {}});
  out.raw(message.without);
  v1::Header header;
  header.xid = 5;
  header.lists.read_list = {{static_cast<std::uint32_t>(40 + message.items[0].position), {readable.rkey(), 3001, 0}}};
  header.lists.write_list = {{{writable.rkey(), 4000, 0}}};
  end.service.answer = [&](ServedCall& served) {
    EXPECT_EQ(copy_of(served.items.at(0).data.octets()), data);
    ServedReply reply;
    reply.results = message.without;
    reply.items.push_back({message.items[0].offset, 0, {served.items[0].data.octets(), served.items[0].data.lkey()}});
    reply.buffers.push_back(std::move(served.items[0].data));
    end.responder->reply(served.id, std::move(reply));
  };
  ASSERT_TRUE(end.qp.inject(testing::message(header, rpc)));
  end.pump();
  EXPECT_FALSE(end.endpoint->failure());
  EXPECT_EQ(Octets(room.begin(), room.begin() + 3001), data);
  EXPECT_EQ(room[3001], 0xa5);
}

TEST(ConnectionSetup, WithoutPrivateDataDefaultsApply) {
  RecordProperty("proves", "R1-4.3.2-14");
  verbs::Caps caps;
  caps.max_private_data = 4;
  EXPECT_TRUE(own_private_data(caps, 65536).empty());
  EXPECT_EQ(settle_thresholds(65536, {}, profile_1()).send, 1024u);
  EXPECT_EQ(settle_thresholds(65536, {}, profile_1()).receive, 1024u);
  caps.max_private_data = 8;
  EXPECT_EQ(own_private_data(caps, 65536).size(), 8u);
}

TEST(FrozenFields, ErrVersOfAnotherVersionIsUnderstood) {
  RecordProperty("proves", "R1-9-01");
  const Octets octets = load_vector("V18").octets;
  ASSERT_FALSE(octets.empty());
  const v1::Header header = parse(octets);
  EXPECT_EQ(header.proc, v1::Proc::kError);
  EXPECT_EQ(header.err, v1::Err::kVers);
  EXPECT_EQ(word_at(octets, 0), header.xid);
  EXPECT_EQ(word_at(octets, 4), header.vers);
  EXPECT_EQ(word_at(octets, 8), header.credit);
  EXPECT_EQ(word_at(octets, 12), 4u);
  EXPECT_EQ(word_at(octets, 16), 1u);
  EXPECT_EQ(word_at(octets, 20), header.vers_low);
  EXPECT_EQ(word_at(octets, 24), header.vers_high);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
