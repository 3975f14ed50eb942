#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "nfsulb/bindings.h"
#include "nfsulb/testing/compound.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/wg07.h"

namespace weft::rpcrdma::testing {

namespace wg07 = v2_wg07;
using nfsulb::kNfsProgram;
using nfsulb::kNfsV3;
using nfsulb::kNfsV4;
using nfsulb::testing::compound_args;
using nfsulb::testing::kCompound;
using nfsulb::testing::Xdr;

// Calls of the NFS family over wg07, between both engines and with their real bindings.
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
    ASSERT_THAT(ended, ::testing::SizeIs(1));
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

}  // namespace weft::rpcrdma::testing
