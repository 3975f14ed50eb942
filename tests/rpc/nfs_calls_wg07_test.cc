// Calls of the NFS family over wg07, between both engines and with their real bindings: the upper-layer binding for
// version 2 (draft-ietf-nfsv4-nfs-ulb-v2).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "nfsulb/bindings.h"
#include "nfsulb/testing/compound.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/gss.h"
#include "rpcrdma/testing/wg07.h"

namespace weft::rpcrdma::testing {
namespace {

using nfsulb::kNfsAclProgram;
using nfsulb::kNfsAclV3;
using nfsulb::kNfsProgram;
using nfsulb::kNfsV3;
using nfsulb::kNfsV4;
using nfsulb::testing::compound_args;
using nfsulb::testing::kCompound;
using nfsulb::testing::lookup;
using nfsulb::testing::op;
using nfsulb::testing::putfh;
using nfsulb::testing::Xdr;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::SizeIs;
namespace wg07 = v2_wg07;

constexpr std::uint32_t kNfsRemove = 12, kNfsReaddir = 16, kGetacl = 1;
// Items go by chunk, whatever their length.
constexpr ChunkUse kByChunk{.max_write_chunks = 3, .max_continued_call = 0, .max_continued_reply = 0};

struct NfsOverWg07 : ::testing::Test {
  struct More {
    bool reserve_credit = false;
    bool properties = false;  // the server's segment count is 64
  };
  void open(ChunkUse chunks = {}, ResponderEnd::Options options = {}) { open(chunks, options, More{}); }
  void open(ChunkUse chunks, ResponderEnd::Options options, const More& more) {
    requester.reset();
    responder.reset();
    ended.clear();
    options.protocols = {Protocol::k2Wg07};
    responder = std::make_unique<ResponderEnd>(memory, options);
    programs.clear();
    for (const nfsulb::BoundProgram& program : nfsulb::bound_programs()) {
      programs.push_back({&program.binding, &responder->service});
      programs.back().takes_gss = true;
    }
    Responder::Config config;
    config.credits = {.min = options.credits, .initial = options.credits, .max = options.credits};
    config.max_write_chunks = options.max_write_chunks;
    responder->responder = std::make_unique<Responder>(responder->pd, *responder->link, responder->pool,
                                                       responder->budget, programs, config);
    responder->responder->start(options.reply_threshold, options.ord);
    requester = std::make_unique<RequesterEnd>(
        memory,
        RequesterEnd::Options{
            .credits = 16, .reserve_credit = more.reserve_credit, .chunks = chunks, .protocol = Protocol::k2Wg07});
    if (more.properties) {
      requester->link->exchange_properties({}, {});
      responder->link->exchange_properties({.segment_count = 64}, {});
    }
    requester->qp.keep_sent = responder->qp.keep_sent = true;
    FakeQp::connect(requester->qp, responder->qp);
    answer_with([] { return ServedReply{}; });
    call(kNfsProgram, kNfsV3, 0, {});
    ended.clear();
    forget_sent();
  }
  ~NfsOverWg07() override { requester.reset(); }

  void answer_with(std::function<ServedReply()> make) {
    responder->service.answer = [this, make = std::move(make)](ServedCall& served) {
      responder->responder->reply(served.id, make());
    };
  }
  void answer_with(Octets results) {
    answer_with([results = std::move(results)] {
      ServedReply reply;
      reply.results = results;
      return reply;
    });
  }
  // With as much room for its results as its binding says it takes.
  CallSpec spec_of(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, const Xdr& given) {
    args = given.octets();
    CallSpec spec = call_of(*nfsulb::find_binding(program, version), procedure, args);
    EXPECT_EQ(spec.binding->bound_reply(procedure, args, {}, {}, bound), Walked::kWhole);
    spec.max_results = bound.rest;
    rooms.assign(bound.items.size(), {});
    scattered.clear();
    for (std::size_t i = 0; i < bound.items.size(); ++i) {
      rooms[i].assign(bound.items[i], 0xa5);
      scattered.emplace_back(MutBytes(rooms[i]));
    }
    spec.result_items = scattered;
    return spec;
  }
  CallSpec compound(std::uint32_t minor_version, const std::vector<Xdr>& operations) {
    return spec_of(kNfsProgram, kNfsV4, kCompound, compound_args(minor_version, operations));
  }
  void call(const CallSpec& spec) {
    const auto called = requester->requester->call(spec, [this](const rpcrdma::Reply& reply) {
      ended.push_back(reply.status);
      text = reply.text;
      results = copy_of(reply.results);
      item_lens.assign(reply.item_lens.begin(), reply.item_lens.end());
    });
    ASSERT_TRUE(called.ok()) << called.error().message;
    run();
  }
  void call(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, const Xdr& given) {
    call(spec_of(program, version, procedure, given));
  }
  void run() {
    while (requester->pump() + responder->pump() != 0) {
    }
    requester->requester->on_time(at(0));
  }
  void expect_success() {
    ASSERT_THAT(ended, SizeIs(1));
    EXPECT_EQ(ended[0], CallStatus::kSuccess) << text;
  }
  void forget_sent() {
    requester->qp.sent.clear();
    responder->qp.sent.clear();
  }
  // Of the Call, which has one message; grants may follow it.
  ChunkListsView lists_of_call() {
    for (std::size_t i = 1; i < requester->qp.sent.size(); ++i) {
      EXPECT_TRUE(wg07_parse(requester->qp.sent[i]).is<wg07::Grant>());
    }
    return wg07_parse(requester->qp.sent.front()).body<wg07::CallInline>().lists;
  }
  ChunkListsView lists_of_reply() { return wg07_parse(responder->qp.sent.back()).body<wg07::ReplyInline>().lists; }
  // The Reply came in several messages, without a Reply chunk.
  void expect_continued(const Octets& wanted) {
    expect_success();
    EXPECT_FALSE(lists_of_call().reply_chunk);
    ASSERT_GT(responder->qp.sent.size(), 1u);
    EXPECT_TRUE(wg07_parse(responder->qp.sent.front()).is<wg07::ReplyMiddle>());
    EXPECT_TRUE(wg07_parse(responder->qp.sent.back()).is<wg07::ReplyInline>());
    EXPECT_EQ(results, wanted);
  }
  // Puts `len` octets behind the results, and before them what stands there.
  void put_item(ServedReply& reply, const Xdr& before, std::uint32_t len) {
    put(reply, before);
    Buffer buffer = responder->pool.take(len);
    std::ranges::copy(pattern(len), buffer.octets().begin());
    reply.add_item(std::move(buffer), len);
  }
  static void put(ServedReply& reply, const Xdr& octets) {
    reply.results.insert(reply.results.end(), octets.octets().begin(), octets.octets().end());
  }

  FakeMemory memory;
  std::vector<ServedProgram> programs;
  std::unique_ptr<ResponderEnd> responder;
  std::unique_ptr<RequesterEnd> requester;
  Octets args;
  ReplyBound bound;
  std::vector<Octets> rooms;
  std::vector<ScatteredBytes> scattered;
  std::vector<CallStatus> ended;
  std::string text;
  Octets results;
  std::vector<std::optional<std::size_t>> item_lens;
};

TEST_F(NfsOverWg07, EachProgramHasItsBinding) {
  RecordProperty("proves", "U2-1-1 U2-1-2 U2-3-1 U2-4-1 U2-4.2-1");
  open();
  for (const nfsulb::BoundProgram& program : nfsulb::bound_programs()) {
    ended.clear();
    call(program.binding.program, program.binding.version, 0, {});
    expect_success();
    EXPECT_EQ(responder->service.calls.back().program, program.binding.program);
    EXPECT_EQ(responder->service.calls.back().version, program.binding.version);
    const Binding& binding = *nfsulb::find_binding(program.binding.program, program.binding.version);
    EXPECT_EQ(&binding, &program.binding);
    EXPECT_TRUE(binding.walk_arguments && binding.walk_results && binding.bound_reply && binding.has_result_items);
  }
}

TEST_F(NfsOverWg07, WhatIsShortOffersNoChunks) {
  RecordProperty("proves", "U2-3.1-2");
  const std::pair<std::uint32_t, Xdr> calls[] = {
      {1, Xdr().opaque(28)}, {3, Xdr().opaque(28).opaque(9)}, {4, Xdr().opaque(28).u32(63)}};
  for (const auto& [procedure, given] : calls) {
    open();
    call(kNfsProgram, kNfsV3, procedure, given);
    EXPECT_EQ(lists_of_call(), ChunkListsView{}) << procedure;
  }
}

TEST_F(NfsOverWg07, AReadOffersAsMuchAsItAsksFor) {
  RecordProperty("proves", "U2-3.1-3");
  open();
  for (const std::uint32_t count : {32768u, 65536u}) {
    forget_sent();
    call(kNfsProgram, kNfsV3, 6, Xdr().opaque(28).u64(0).u32(count));
    const auto lists = lists_of_call();
    ASSERT_THAT(lists.write_list, SizeIs(1));
    EXPECT_EQ(total_length(lists.write_list[0]), count);
  }
}

TEST_F(NfsOverWg07, ALongListingOffersRoomForItsBound) {
  RecordProperty("proves", "U2-3.1-1 U2-3.1-4 U2-3.1-5");
  open();
  call(kNfsProgram, kNfsV3, kNfsReaddir, Xdr().opaque(28).u64(0).u64(0).u32(65536));
  const auto lists = lists_of_call();
  ASSERT_TRUE(lists.reply_chunk);
  EXPECT_GE(total_length(*lists.reply_chunk), 65536u);
  EXPECT_GE(total_length(*lists.reply_chunk), bound.rest + 24);
  EXPECT_THAT(lists.write_list, SizeIs(0));
}

TEST_F(NfsOverWg07, WithoutAReplyChunkALongReplyIsContinued) {
  RecordProperty("proves", "U2-3.1-6");
  open();
  answer_with(pattern(7000));
  call(kNfsProgram, kNfsV3, kNfsReaddir, Xdr().opaque(28).u64(0).u64(0).u32(8000));
  expect_continued(pattern(7000));
}

TEST_F(NfsOverWg07, ATransportErrorEndsItsCallAlone) {
  RecordProperty("proves", "U2-3.1-7 U2-5.6-2");
  for (const auto err : {wg07::Err::kReplyResource, wg07::Err::kBadXdr}) {
    open();
    responder->service.answer = nullptr;
    call(kNfsProgram, kNfsV3, kNfsRemove, Xdr().opaque(28).opaque(9));
    ASSERT_THAT(requester->qp.sent, SizeIs(1));
    const std::uint32_t xid = wg07_parse(requester->qp.sent[0]).header.xid;
    ASSERT_TRUE(requester->qp.inject(wg07_octets(xid, 1000, wg07::Error{.err = err})));
    run();
    EXPECT_THAT(ended, ElementsAre(CallStatus::kTransportError));
    EXPECT_THAT(requester->qp.sent, SizeIs(1)) << "it is not sent again";
    EXPECT_FALSE(requester->endpoint->failure());
    ended.clear();
    answer_with([] { return ServedReply{}; });
    call(kNfsProgram, kNfsV3, 0, {});
    expect_success();
  }
}

TEST_F(NfsOverWg07, AnAccessControlListOfAnyLengthArrives) {
  RecordProperty("proves", "U2-4.2-1 U2-4.2-3 U2-4.2-4");
  open();
  const Octets acl = pattern(4096 * 12);
  answer_with(acl);
  call(kNfsAclProgram, kNfsAclV3, kGetacl, Xdr().opaque(28).u32(15));
  expect_continued(acl);
  EXPECT_TRUE(bound.is_estimate);
  (void)spec_of(kNfsAclProgram, kNfsAclV3, 2, Xdr().opaque(28).u32(15).words({0, 0, 0, 0}));  // SETACL
  EXPECT_FALSE(bound.is_estimate);
}

TEST_F(NfsOverWg07, AttributesOfAnyLengthArriveWithoutAReplyChunk) {
  RecordProperty("proves", "U2-5.2-1 U2-5.2.1-1");
  for (const std::uint32_t attribute : {1u << 12, 1u << 24}) {  // acl, fs_locations
    open();
    answer_with(pattern(30000));
    call(compound(0, {putfh(), nfsulb::testing::getattr({attribute})}));
    expect_continued(pattern(30000));
    EXPECT_TRUE(bound.is_estimate);
  }
}

TEST_F(NfsOverWg07, NoReplyChunkIsLongerThanTheSessionAllows) {
  RecordProperty("proves", "U2-5.2.2-1");
  const Xdr readdir = op(nfsulb::testing::kOpReaddir, Xdr().u64(0).u64(0).words({8192, 65536, 1, 2}));
  constexpr std::size_t kMaxReply = 20000;
  for (const std::size_t max_verf : {0u, 400u}) {
    open(kByChunk);
    CallSpec spec = compound(1, {nfsulb::testing::sequence(), putfh(), readdir});
    const std::size_t estimate = spec.max_results;
    spec.max_verf = max_verf;
    const ReplyLimits limits{.max_reply = kMaxReply, .max_verf = max_verf};
    ASSERT_EQ(spec.binding->bound_reply(kCompound, args, {}, limits, bound), Walked::kWhole);
    spec.max_results = bound.rest;
    EXPECT_LT(spec.max_results, estimate);
    call(spec);
    const auto lists = lists_of_call();
    ASSERT_TRUE(lists.reply_chunk);
    EXPECT_EQ(total_length(*lists.reply_chunk), kMaxReply);
  }
}

TEST_F(NfsOverWg07, ReadPlusHasNoWriteChunk) {
  RecordProperty("proves", "U2-5.1.1-1 U2-5.1.1-3");
  for (const std::uint32_t count : {1000u, 8000u, 65536u}) {
    open();
    const Octets answer = pattern(count / 2);
    answer_with(answer);
    call(compound(2, {nfsulb::testing::sequence(), putfh(),
                      op(nfsulb::testing::kOpReadPlus, Xdr().fixed(16).u64(0).u32(count))}));
    expect_success();
    EXPECT_THAT(lists_of_call().write_list, SizeIs(0));
    EXPECT_EQ(results, answer);
  }
}

// PUTFH LOOKUP READ PUTFH LOOKUP READLINK PUTFH LOOKUP READ.
struct NfsCompound : NfsOverWg07 {
  CallSpec three_reads() {
    return compound(0, {putfh(), lookup(), nfsulb::testing::read(3000), putfh(), lookup(), op(27), putfh(), lookup(),
                        nfsulb::testing::read(2000)});
  }
  void answer_three_reads() {
    answer_with([this] {
      using nfsulb::testing::ok;
      const Xdr found = Xdr().add(ok(22)).add(ok(15));
      ServedReply reply;
      put_item(reply, Xdr().u32(0).opaque(5).u32(9).add(found).add(nfsulb::testing::read_ok(3000)), 3000);
      put_item(reply, Xdr().add(found).add(nfsulb::testing::readlink_ok(40)), 40);
      put_item(reply, Xdr().add(found).add(nfsulb::testing::read_ok(1996)), 1996);
      return reply;
    });
  }
  static std::vector<std::size_t> lengths(const ChunkListsView& lists) {
    std::vector<std::size_t> all;
    for (const SegmentArray& chunk : lists.write_list) all.push_back(total_length(chunk));
    return all;
  }
};

TEST_F(NfsCompound, ReadOperationsFillTheirChunksInOrder) {
  RecordProperty("proves", "U2-5.4.1-2 U2-5.4.1-4 U2-5.4.1-5 U2-5.4.3-1");
  open(kByChunk);
  answer_three_reads();
  call(three_reads());
  expect_success();
  EXPECT_THAT(lengths(lists_of_call()), ElementsAre(3000u, rooms[1].size(), 2000u));
  EXPECT_THAT(lengths(lists_of_reply()), ElementsAre(3000u, 40u, 1996u));
  EXPECT_THAT(item_lens, ElementsAre(Optional(3000u), Optional(40u), Optional(1996u)));
  EXPECT_EQ(rooms[0], pattern(3000));
  EXPECT_TRUE(std::ranges::equal(ConstBytes(rooms[1]).first(40), pattern(40)));
  EXPECT_TRUE(std::ranges::equal(ConstBytes(rooms[2]).first(1996), pattern(1996)));
}

TEST_F(NfsCompound, AnEmptyChunkAsksForItsResultInline) {
  RecordProperty("proves", "U2-5.4.1-6 U2-5.4.3-1");
  open(kByChunk);
  answer_three_reads();
  CallSpec spec = three_reads();
  scattered[1] = {};
  spec.result_items = scattered;
  call(spec);
  expect_success();
  EXPECT_THAT(lists_of_call().write_list.at(1), SizeIs(0));
  EXPECT_THAT(item_lens, ElementsAre(Optional(3000u), std::nullopt, Optional(1996u)));
  const Octets link = pattern(40);
  EXPECT_NE(std::ranges::search(results, link).begin(), results.end()) << "the text stands in the results";
}

TEST_F(NfsCompound, WithoutAChunkResultsAreInline) {
  RecordProperty("proves", "U2-5.4.1-3 U2-5.4.1-10 U2-5.4.2-3");
  for (const std::size_t num : {0u, 1u}) {
    open(num == 0 ? ChunkUse{.max_write_chunks = 0} : ChunkUse{.max_continued_reply = 0});
    answer_three_reads();
    CallSpec spec = three_reads();
    if (num == 0) {
      spec.result_items = {};
      spec.max_results = 9000;
    }
    call(spec);
    expect_success();
    EXPECT_LE(wg07_parse(requester->qp.sent[0]).body<wg07::CallInline>().lists.write_list.size(), num);
    const Octets last = pattern(1996);
    EXPECT_NE(std::ranges::search(results, last).begin(), results.end());
  }
}

TEST_F(NfsCompound, ChunksOfOperationsThatFailedComeBackUnused) {
  RecordProperty("proves", "U2-5.4.1-7 U2-5.4.1-8 U2-5.4.1-9");
  for (const bool is_empty : {false, true}) {
    open(kByChunk);
    const Octets failed = nfsulb::testing::compound_res(
                              5, {nfsulb::testing::ok(22), nfsulb::testing::ok(15), nfsulb::testing::failed(25, 5)})
                              .octets();
    if (is_empty) responder->service.answer = nullptr;
    if (!is_empty) answer_with(failed);
    call(three_reads());
    if (is_empty) {  // as the binding's words have it: without segments
      const std::uint32_t xid = wg07_parse(requester->qp.sent[0]).header.xid;
      const wg07::ReplyInline body{.lists = {.write_list = {{}, {}, {}}}};
      ASSERT_TRUE(requester->qp.inject(wg07_octets(xid, 1000, body, rpc_reply(xid, failed))));
      run();
    } else {
      EXPECT_THAT(lengths(lists_of_reply()), ElementsAre(0u, 0u, 0u));
      EXPECT_THAT(lists_of_reply().write_list, Each(SizeIs(1)));
    }
    expect_success();
    EXPECT_EQ(results, failed);
    EXPECT_THAT(item_lens, Each(Optional(0u)));
  }
}

TEST_F(NfsCompound, ArgumentsAreToldApartByTheirPositions) {
  RecordProperty("proves", "U2-5.4.1-1");
  open({.max_read_chunks = 2, .max_continued_call = 0});
  const Octets first = pattern(5000, 1), second = pattern(6000, 2);
  const Xdr before = Xdr().opaque(5).u32(0).u32(3).add(putfh()).add(nfsulb::testing::write(5000));
  const Xdr whole = Xdr(before).add(nfsulb::testing::write(6000));
  args = whole.octets();
  const std::vector<ArgumentItem> items{{before.size(), ConstBytes(first)}, {whole.size(), ConstBytes(second)}};
  CallSpec spec = call_of(nfsulb::testing::nfs4(), kCompound, args);
  spec.items = items;
  std::vector<Octets> got;
  responder->service.answer = [&](ServedCall& served) {
    for (const ServedItem& item : served.items) got.push_back(copy_of(item.data.octets()));
    responder->responder->reply(served.id, {});
  };
  call(spec);
  expect_success();
  EXPECT_THAT(lists_of_call().read_list, SizeIs(2));
  EXPECT_THAT(got, ElementsAre(first, second));
}

// A Call chunk, one Read chunk and one Write chunk.
TEST_F(NfsCompound, EveryServerTakesOneChunkOfEachKind) {
  RecordProperty("proves", "U2-5.4.2-2");
  open({.write_list_with_reply_chunk = true,
        .max_continued_call = 0,
        .max_continued_reply = 0,
        .long_calls_with_items = true},
       {.max_write_chunks = 1});
  const Octets data = pattern(5000);
  const Xdr before = Xdr().opaque(5).u32(2).u32(4).add(putfh()).add(nfsulb::testing::write(5000));
  args = Xdr(before)
             .add(op(nfsulb::testing::kOpSetxattr, Xdr().u32(0).opaque(9).opaque(6000)))
             .add(nfsulb::testing::read(6000))
             .octets();
  const ArgumentItem item{before.size(), ConstBytes(data)};
  Octets room(6000);
  CallSpec spec = call_of(nfsulb::testing::nfs4(), kCompound, args);
  spec.items = item;
  spec.result_items = room;
  spec.max_results = 1000;
  Octets got_args, got_data;
  responder->service.answer = [&](ServedCall& served) {
    got_args = copy_of(served.args);
    ASSERT_EQ(served.items.size(), 1u);
    got_data = copy_of(served.items[0].data.octets());
    responder->responder->reply(served.id, {});
  };
  call(spec);
  ASSERT_THAT(requester->qp.sent, SizeIs(1));
  const auto lists = wg07_parse(requester->qp.sent[0]).body<wg07::CallExternal>().lists;
  EXPECT_FALSE(lists.call_chunk.empty());
  EXPECT_THAT(lists.read_list, SizeIs(1));
  EXPECT_THAT(lists.write_list, SizeIs(1));
  EXPECT_EQ(got_args, args);
  EXPECT_EQ(got_data, data);
  EXPECT_THAT(ended, SizeIs(1));
}

TEST_F(NfsCompound, RefusedWriteChunksAreLeftOutOfTheNextTry) {
  RecordProperty("proves", "U2-5.4.2-5");
  open(kByChunk, {.max_write_chunks = 1});
  answer_three_reads();
  call(three_reads());
  expect_success();
  ASSERT_THAT(requester->qp.sent, SizeIs(2));
  const auto error = wg07_parse(responder->qp.sent[0]).body<wg07::Error>();
  EXPECT_EQ(error.err, wg07::Err::kWriteChunks);
  EXPECT_EQ(error.arm.max_chunks, 1u);
  EXPECT_TRUE(wg07_parse(requester->qp.sent[1]).body<wg07::CallInline>().lists.write_list.empty());
}

TEST_F(NfsOverWg07, WrappedCallsHaveNoDataChunks) {
  RecordProperty("proves", "U2-5.4.2-7 U2-7-1");
  for (const GssService service : {GssService::kIntegrity, GssService::kPrivacy}) {
    const OpaqueAuth cred = gss_cred(service);
    open();
    CallSpec spec = spec_of(kNfsProgram, kNfsV3, 6, Xdr().opaque(28).u64(0).u32(6000));
    spec.cred = &cred;
    EXPECT_FALSE(requester->requester->call(spec, {}).ok()) << "its results are not to be placed";
    spec.result_items = {};
    spec.max_results = 6200;
    answer_with(pattern(6100));
    call(spec);
    expect_continued(pattern(6100));
    EXPECT_THAT(lists_of_call().write_list, SizeIs(0));
  }
}

TEST_F(NfsOverWg07, SlotsAndCreditsNeedNotMatch) {
  RecordProperty("proves", "U2-5.6-1");
  open();
  responder->service.answer = nullptr;
  for (int slot = 0; slot < 64; ++slot) call(compound(1, {nfsulb::testing::sequence(), putfh()}));
  const std::size_t num_at_once = responder->service.calls.size();
  EXPECT_LT(num_at_once, 64u);
  for (std::size_t i = 0; i < responder->service.calls.size(); ++i) {
    responder->responder->reply(responder->service.calls[i].id, {});
    run();
  }
  EXPECT_EQ(ended, std::vector(64, CallStatus::kSuccess));
}

TEST_F(NfsOverWg07, ACreditIsKeptToSeeWhetherTheServerLives) {
  RecordProperty("proves", "U2-3.3.1-3 U2-5.7.2-1");
  open({}, {}, {.reserve_credit = true});
  responder->service.answer = nullptr;
  for (int i = 0; i < 40; ++i) call(kNfsProgram, kNfsV3, 1, Xdr().opaque(28));
  const std::size_t before = requester->qp.sent.size();
  EXPECT_LT(before, 40u);
  const auto check = requester->requester->health_check();
  ASSERT_TRUE(check);
  call(*check);
  EXPECT_THAT(requester->qp.sent, SizeIs(before + 1));
}

// Two Write chunks of 9 and of 8 segments.
struct NfsSegments : NfsOverWg07 {
  void call_for(std::size_t num_first, std::size_t num_second) {
    forget_sent();
    ended.clear();
    answer_with(nfsulb::testing::compound_res(5, {nfsulb::testing::failed(22, 5)}).octets());
    CallSpec spec = compound(0, {putfh(), nfsulb::testing::read(9000), nfsulb::testing::read(9000)});
    first = pieces_of(rooms[0], num_first);
    second = pieces_of(rooms[1], num_second);
    scattered = {ScatteredBytes(first), ScatteredBytes(second)};
    spec.result_items = scattered;
    call(spec);
  }
  static std::vector<MutBytes> pieces_of(Octets& room, std::size_t num) {
    std::vector<MutBytes> pieces;
    for (std::size_t i = 0; i < num; ++i) pieces.push_back(MutBytes(room).subspan(i * 1000, 1000));
    return pieces;
  }

  static constexpr ChunkUse kManySegments{
      .max_segments = 64, .max_write_chunks = 2, .max_continued_call = 0, .max_continued_reply = 0};
  std::vector<MutBytes> first, second;
};

TEST_F(NfsSegments, SixteenOfAllChunksTogetherUnlessTheServerTakesMore) {
  RecordProperty("proves", "U2-5.4.2-1 U2-5.4.2-4 U2-5.4.2-6");
  open(kManySegments);
  call_for(9, 8);
  EXPECT_THAT(ended, ElementsAre(CallStatus::kLocalError));
  EXPECT_THAT(requester->qp.sent, SizeIs(0));
  call_for(8, 8);
  expect_success();
  forget_sent();
  call(kNfsProgram, kNfsV3, 6, Xdr().opaque(28).u64(0).u32(5 << 19));
  const ChunkListsView long_read = lists_of_call();
  ASSERT_THAT(long_read.write_list, ElementsAre(SizeIs(3)));
  for (const Segment& segment : long_read.write_list[0]) EXPECT_LE(segment.length, 1u << 20);
  open(kManySegments, {}, {.properties = true});
  call_for(9, 8);
  expect_success();
  const auto lists = lists_of_call();
  ASSERT_THAT(lists.write_list, SizeIs(2));
  EXPECT_EQ(lists.write_list[0].size() + lists.write_list[1].size(), 17u);
}

// An argument with `before` up to the count of its octets.
struct Argument {
  std::uint32_t program, version, procedure;
  Xdr before, behind;
};

struct NfsItems : NfsOverWg07 {
  // Whether the requester takes 5000 octets as an item there.
  bool takes(const Argument& argument) {
    forget_sent();
    args = Xdr(argument.before).add(argument.behind).octets();
    const ArgumentItem item{argument.before.size(), ConstBytes(data)};
    CallSpec spec = call_of(*nfsulb::find_binding(argument.program, argument.version), argument.procedure, args);
    spec.items = item;
    const bool taken = requester->requester->call(spec, [](const rpcrdma::Reply&) {}).ok();
    run();
    return taken;
  }
  // The items among the results of a Call.
  std::size_t num_results(std::uint32_t program, std::uint32_t version, std::uint32_t procedure, const Xdr& given) {
    (void)spec_of(program, version, procedure, given);
    return bound.items.size();
  }
  static Xdr compound_of(std::uint32_t minor_version, const Xdr& operation) {
    return Xdr().opaque(5).u32(minor_version).u32(2).add(putfh()).add(operation);
  }

  const Octets data = pattern(5000);
};

TEST_F(NfsItems, TheseArgumentsGoByReadChunk) {
  RecordProperty("proves", "U2-3-2 U2-5-1 U2-5.1-1");
  open({.max_continued_call = 0});
  const Xdr link = op(nfsulb::testing::kOpCreate, Xdr().u32(5).missing(5000));
  std::vector<Argument> all = {
      {kNfsProgram, 2, 8, Xdr().fixed(32).words({0, 0, 0}).missing(5000), {}},
      {kNfsProgram, kNfsV3, 7, Xdr().opaque(28).u64(0).u32(5000).u32(0).missing(5000), {}},
      {kNfsProgram, kNfsV3, 10, Xdr().opaque(28).opaque(5).words({0, 0, 0, 0, 0, 0}).missing(5000), {}},
  };
  for (const std::uint32_t minor_version : {0u, 1u, 2u}) {
    all.push_back({kNfsProgram, kNfsV4, kCompound, compound_of(minor_version, nfsulb::testing::write(5000)), {}});
    all.push_back({kNfsProgram, kNfsV4, kCompound, compound_of(minor_version, link), Xdr().opaque(3).u32(0).u32(0)});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(takes(all[i])) << i;
    EXPECT_THAT(lists_of_call().read_list, SizeIs(1)) << i;
  }
  for (const std::uint32_t version : {2u, 3u}) {
    const Xdr file = version == 2 ? Xdr().fixed(32) : Xdr().opaque(28);
    EXPECT_EQ(num_results(kNfsProgram, version, 5, file), 1u) << "READLINK";
    EXPECT_EQ(
        num_results(kNfsProgram, version, 6, version == 2 ? Xdr(file).words({0, 100, 0}) : Xdr(file).u64(0).u32(100)),
        1u);
  }
  for (const std::uint32_t minor_version : {0u, 1u, 2u}) {
    (void)compound(minor_version, {putfh(), nfsulb::testing::read(100), putfh(), op(nfsulb::testing::kOpReadlink)});
    EXPECT_THAT(bound.items, SizeIs(2));
  }
}

TEST_F(NfsItems, NothingElseDoes) {
  RecordProperty("proves", "U2-3-3 U2-4.2-2 U2-5.5.2-3 U2-6-1");
  open({.max_continued_call = 0});
  const Argument others[] = {
      {kNfsProgram, kNfsV3, 3, Xdr().opaque(28).missing(5000), {}},
      {kNfsProgram, kNfsV3, 8, Xdr().opaque(28).missing(5000), Xdr().u32(0)},
      {kNfsProgram, 2, 4, Xdr().fixed(32).missing(5000), {}},
      {kNfsAclProgram, kNfsAclV3, 2, Xdr().opaque(28).missing(5000), {}},
      {nfsulb::kNfs4CallbackProgram, 1, 1, Xdr().missing(5000), Xdr().words({0, 0, 0})},
      {kNfsProgram,
       kNfsV4,
       kCompound,
       compound_of(2, op(nfsulb::testing::kOpSetxattr, Xdr().u32(0).opaque(9).missing(5000))),
       {}},
      {kNfsProgram, kNfsV4, kCompound, compound_of(2, op(200, Xdr().missing(5000))), {}},  // of no known version
  };
  for (const Argument& other : others) {
    EXPECT_FALSE(takes(other)) << other.program << " " << other.version << " " << other.procedure;
    EXPECT_THAT(requester->qp.sent, SizeIs(0));
  }
  EXPECT_EQ(num_results(kNfsProgram, kNfsV3, kNfsReaddir, Xdr().opaque(28).u64(0).u64(0).u32(100)), 0u);
  EXPECT_EQ(num_results(kNfsProgram, kNfsV3, 3, Xdr().opaque(28).opaque(9)), 0u);
  EXPECT_EQ(num_results(kNfsAclProgram, kNfsAclV3, kGetacl, Xdr().opaque(28).u32(15)), 0u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
