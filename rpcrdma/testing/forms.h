#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpcrdma/testing/engines.h"

// Calls of the synthetic program, and both engines to carry them.
namespace weft::rpcrdma::testing {

inline CallSpec spec_of(std::uint32_t procedure, ConstBytes args = {}) {
  return call_of(synthetic_binding(), procedure, args);
}

inline const Octets& no_operations() {
  static const Octets args = many_message({}).whole;
  return args;
}

inline std::vector<ArgumentItem> items_of(const Message& message) {
  std::vector<ArgumentItem> items;
  for (const Message::Item& item : message.items) items.push_back({item.offset, item.octets});
  return items;
}

// Puts arguments or results together from the items and the octets that came without them.
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

inline Octets whole_args(const ServedCall& call) {
  std::vector<std::pair<std::size_t, ConstBytes>> items;
  for (const ServedItem& item : call.items) items.emplace_back(item.position, item.data.octets());
  return put_together(call.args, items);
}

// Answers with `message`, its items in Buffers of their own, or with SYSTEM_ERR where no Buffer is available.
inline ServedReply reply_with(const Message& message, BufferPool& pool) {
  ServedReply reply;
  std::size_t done = 0;
  xdr::XdrWriter out(reply.results);
  for (const Message::Item& item : message.items) {
    out.raw(ConstBytes(message.without).subspan(done, item.offset - done));
    done = item.offset;
    Buffer buffer = pool.take(std::max<std::size_t>(item.octets.size(), 1));
    if (!buffer) {
      reply = {};
      reply.accept = ServedReply::Accept::kSystemErr;
      return reply;
    }
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
    if (protocol != Protocol::k1) options.protocols = {protocol};
    responder = std::make_unique<ResponderEnd>(memory, options);
    requester = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{.inline_threshold = threshold,
                                                                             .call_threshold = threshold,
                                                                             .reply_threshold = threshold,
                                                                             .chunks = chunks,
                                                                             .protocol = protocol});
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
    EXPECT_EQ(responder->budget.used(), 0u);
    return outcome;
  }
  void answer_with(std::function<ServedReply(ServedCall&)> make) {
    responder->service.answer = [this, make = std::move(make)](ServedCall& served) {
      seen_args.push_back(whole_args(served));
      num_items.push_back(served.items.size());
      responder->responder->reply(served.id, make(served));
    };
  }

  Protocol protocol = Protocol::k1;
  FakeMemory memory;
  std::vector<Octets> seen_args;
  std::vector<std::size_t> num_items;
  std::unique_ptr<ResponderEnd> responder;
  std::unique_ptr<RequesterEnd> requester;
};

}  // namespace weft::rpcrdma::testing
