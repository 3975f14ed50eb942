// Messages of the reverse direction: how long they are, with chunks and without.
#include <gtest/gtest.h>

#include "rpcrdma/testing/reverse.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

TEST_F(ReverseTest, WithoutSupportForChunksTheClientAnswersErrChunk) {
  RecordProperty("proves", "R1-7.3.4-04");
  open_client();
  ASSERT_TRUE(client->qp.inject(load_vector("V24").octets));
  run();
  ASSERT_EQ(client->qp.sent.size(), 1u);
  EXPECT_EQ(to_hex(client->qp.sent[0]), to_hex(load_vector("V25").octets));
  for (const char* id : {"V03", "V07", "V11"}) {
    ASSERT_TRUE(client->qp.inject(load_vector(id).octets));
    run();
    EXPECT_EQ(parse(client->qp.sent.back()).err, v1::Err::kChunk) << id;
  }
  EXPECT_TRUE(client->service.calls.empty());
  EXPECT_FALSE(client->endpoint->failure());
  ASSERT_TRUE(client->qp.inject(load_vector("V21").octets));
  run();
  EXPECT_EQ(client->service.calls.size(), 1u);
}

TEST_F(ReverseTest, TheServerHearsErrChunkAsAnEndOfItsCall) {
  open_server();
  CallSpec spec = call_of(callback_binding());
  spec.xid = 0x22220004;
  call_client(spec);
  ASSERT_TRUE(server->qp.inject(load_vector("V25").octets));
  run();
  EXPECT_EQ(reverse_ended, std::vector{CallStatus::kTransportError});
  EXPECT_FALSE(server->endpoint->failure());
}

TEST_F(ReverseTest, MessagesWithoutChunksFitTheirThreshold) {
  RecordProperty("proves", "R1-7.3.3-01 R1-7.3.3-02");
  open({.thresholds = {1024, 4096}}, {.thresholds = {4096, 1024}});
  const Octets too_long(2000), longest(1024 - 28 - 40), longer(1024 - 28 - 40 + 4);
  for (const Octets* args : {&too_long, &longer}) {
    call_client(call_of(callback_binding(), 1, *args));
    run();
  }
  EXPECT_EQ(reverse_ended, (std::vector{CallStatus::kLocalError, CallStatus::kLocalError}));
  EXPECT_EQ(server->qp.num_sends, 0u);

  // Its Reply may be as long as a forward Call.
  std::size_t results = 4096 - 28 - 24;
  client->service.answer = [&](ServedCall& call) {
    ServedReply reply;
    reply.results = pattern(results);
    client->reverse->reply(call.id, std::move(reply));
  };
  call_client(call_of(callback_binding(), 1, longest));
  run();
  EXPECT_EQ(reverse_ended.back(), CallStatus::kSuccess);
  EXPECT_EQ(server->qp.sent.at(0).size(), 1024u);
  EXPECT_EQ(client->qp.sent.at(0).size(), 4096u);
  results += 4;
  call_client(call_of(callback_binding(), 1, longest));
  run();
  EXPECT_EQ(reverse_ended.back(), CallStatus::kTransportError);
}

TEST_F(ReverseTest, CallsWithoutChunksAreAsLongAsClientsAreKnownToTake) {
  open({.thresholds = {8192, 8192}}, {.thresholds = {8192, 8192}});
  const Octets longest(4096 - 28 - 40), longer(4096 - 28 - 40 + 4);
  call_client(call_of(callback_binding(), 1, longer));
  call_client(call_of(callback_binding(), 1, longest));
  run();
  run();
  EXPECT_EQ(reverse_ended, (std::vector{CallStatus::kSuccess, CallStatus::kLocalError}));
}

// Long messages and a Write chunk, in the reverse direction as in the forward one, with the same binding.
TEST_F(ReverseTest, ChunksWhereBothEndsTakeThem) {
  RecordProperty("proves", "R1-7.3.4-03 R1-7.4-01");
  open({.chunks = true}, {.chunks = true});
  const Octets args = pattern(20000), results = pattern(30000, 2);
  Octets got_args, got_results;
  client->service.answer = [&](ServedCall& call) {
    got_args = copy_of(call.args);
    ServedReply reply;
    reply.results = results;
    client->reverse->reply(call.id, std::move(reply));
  };
  CallSpec spec = call_of(callback_binding(), 1, args);
  spec.max_results = results.size();
  ASSERT_TRUE(server->reverse->calls()
                  .call(spec,
                        [&](const Reply& reply) {
                          EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                          got_results = copy_of(reply.results);
                        })
                  .ok());
  run();
  EXPECT_EQ(got_args, args);
  EXPECT_EQ(got_results, results);

  const Octets data = pattern(5000, 3);
  const Octets without = write_args(data.size());
  client->service.answer = [&](ServedCall& call) {
    ASSERT_EQ(call.items.size(), 1u);
    EXPECT_EQ(copy_of(call.items[0].data.octets()), data);
    client->reverse->reply(call.id, {});
  };
  spec = call_of(test_binding(), kWrite, without);
  spec.items = ArgumentItem{write_position(), ConstBytes(data)};
  call_client(spec);
  run();
  EXPECT_EQ(reverse_ended, successes(1));
  EXPECT_EQ(memory.num_remote(), 0u);
  // A program without a binding has nothing to reduce in either direction.
  spec.binding = nullptr;
  spec.program = kCallback;
  spec.version = 1;
  spec.items = ArgumentItem{0, ConstBytes(data)};
  EXPECT_FALSE(server->reverse->calls().call(spec, {}).ok());
}

}  // namespace
}  // namespace weft::rpcrdma::testing
