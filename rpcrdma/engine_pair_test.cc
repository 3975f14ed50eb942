// Both engines, end to end: Calls of the test program.
#include <gtest/gtest.h>

#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

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
      CallSpec read = call_of(test_binding(), kRead, args);
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
    EXPECT_EQ(responder->budget.used(), 0u);
    EXPECT_FALSE(requester->endpoint->failure());
    EXPECT_FALSE(responder->endpoint->failure());
  }
}

TEST_F(PairTest, LongCallGathersArgumentsAroundTheItem) {
  open(1024, 4);
  Octets args = write_args(5001);
  const Octets tail = pattern(2000, 5);
  args.insert(args.end(), tail.begin(), tail.end());
  const Octets data = pattern(5001, 6);
  CallSpec spec = call_of(test_binding(), kWrite, args);
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
