#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpcrdma/testing/engines.h"

// A requester whose peer is the test.
namespace weft::rpcrdma::testing {

struct RequesterTest : ::testing::Test {
  // A copy of a callback's Reply.
  struct Outcome {
    CallStatus status = CallStatus::kLocalError;
    Octets results;
    std::optional<std::size_t> item_len;
    std::string text;
    std::size_t remote_regions = 0;  // that the peer could still reach when the callback ran
    bool did_not_run = false;
  };

  void open(RequesterEnd::Options options = {}) { end = std::make_unique<RequesterEnd>(memory, options); }

  void call(CallSpec spec = {}) {
    spec.program = kTestProgram;
    spec.version = kTestVersion;
    if (spec.binding == nullptr) spec.binding = &test_binding();
    const auto status = end->requester->call(spec, [this](const Reply& reply) {
      outcomes.push_back({reply.status,
                          {reply.results.begin(), reply.results.end()},
                          reply.item_len,
                          reply.text,
                          memory.num_remote(),
                          reply.did_not_run});
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
    return plain_reply(sent(i), credits, results);
  }

  // An answer to Call i of version 1, a Long Call with a Reply chunk: the whole Reply is inline.
  Octets long_reply_to(std::size_t i, std::uint32_t credits) {
    v1::Header header = parse(sent(i));
    const std::uint32_t xid = header.xid;
    header.proc = v1::Proc::kMsg;
    header.credit = credits;
    header.lists.read_list.clear();
    header.lists.write_list.clear();
    if (header.lists.reply_chunk) {
      for (Segment& segment : *header.lists.reply_chunk) segment.length = 0;
    }
    return ::weft::rpcrdma::testing::message(header, rpc_reply(xid, {}));
  }

  void deliver(const Octets& octets, int ms = 0) {
    ASSERT_TRUE(end->qp.inject(octets));
    run(ms);
  }

  FakeMemory memory;
  std::vector<Outcome> outcomes;
  std::unique_ptr<RequesterEnd> end;  // its end runs callbacks
};

}  // namespace weft::rpcrdma::testing
