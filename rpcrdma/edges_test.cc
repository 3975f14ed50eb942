// Small slips in the engines that other tests miss: limits to the last one, and cleaning up after a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpcrdma/duplicate_request_cache.h"
#include "rpcrdma/testing/responder.h"

namespace weft::rpcrdma::testing {
namespace {

TEST(RequesterEdges, ItemsStandAtWordsAndInOrder) {
  FakeMemory memory;
  RequesterEnd end(memory, {});
  const Octets data(8);
  const Octets args = write_args(8);
  CallSpec spec = call_of(test_binding(), kWrite, args);
  const auto refuses = [&](const std::vector<ArgumentItem>& items) {
    spec.items = items;
    const auto called = end.requester->call(spec, {});
    EXPECT_FALSE(called.ok());
    return called.ok() ? std::string() : called.error().message;
  };
  const std::string place = "an item's position is not a place in the arguments";
  EXPECT_EQ(refuses({{2, ConstBytes(data)}}), place);
  EXPECT_EQ(refuses({{8, ConstBytes(data)}, {4, ConstBytes(data)}}), place);
  EXPECT_EQ(refuses({{args.size() + 4, ConstBytes(data)}}), place);
  spec.items = {};
  spec.max_verf = 401;
  EXPECT_FALSE(end.requester->call(spec, {}).ok());
}

// The Call that could not be sent does not keep the only Send buffer.
TEST(RequesterEdges, ACallThatCannotBeRegisteredGivesItsSendBufferBack) {
  FakeMemory memory;
  Octets room(9000);
  std::vector<CallStatus> ended;
  RequesterEnd end(memory, {.credits = 1});
  CallSpec spec = call_of(test_binding(), kRead);
  spec.result_items = ScatteredBytes(MutBytes(room));
  const auto call = [&] {
    ASSERT_TRUE(end.requester->call(spec, [&](const Reply& reply) { ended.push_back(reply.status); }).ok());
    end.pump();
    end.requester->on_time(at(0));
  };
  end.pd.fail_registration = true;
  call();
  EXPECT_THAT(ended, ::testing::ElementsAre(CallStatus::kLocalError));
  end.pd.fail_registration = false;
  call();
  EXPECT_EQ(end.qp.sent.size(), 1u);
}

TEST(EndpointEdges, TheFirstReasonIsTheOneThatStays) {
  FakeMemory memory;
  RequesterEnd end(memory, {});
  end.endpoint->fail("what happened");
  end.endpoint->fail("what followed from it");
  EXPECT_EQ(end.endpoint->failure(), "what happened");
}

struct ResponderEdges : ResponderTest {
  ResponderEdges() { open({.max_item = 100000}); }
};

// RFC 5531 section 9: results follow SUCCESS alone.
TEST_F(ResponderEdges, ARefusalHasNoResults) {
  for (const auto accept : {ServedReply::Accept::kSystemErr, ServedReply::Accept::kGarbageArgs}) {
    end->service.answer = [&](ServedCall& served) {
      ServedReply reply;
      reply.accept = accept;
      reply.results = {1, 2, 3, 4};
      Buffer buffer = end->pool.take(8);
      reply.add_item(std::move(buffer), 8);
      end->responder->reply(served.id, std::move(reply));
    };
    call(kRead);
    EXPECT_EQ(payload_of(end->qp.sent.back()), rpc_reply(xid, {}, static_cast<AcceptStat>(accept)));
  }
}

TEST_F(ResponderEdges, AServiceIsAskedForNoMoreThanMaxItem) {
  std::optional<std::size_t> capacity;
  end->service.answer = [&](ServedCall& served) {
    capacity = served.result_item_capacity();
    end->responder->reply(served.id, {});
  };
  v1::Header header;
  header.lists.write_list = {{writable(200000)}};
  call(kRead, header);
  EXPECT_EQ(capacity, 100000u);
}

// The time without progress counts, not the time with something under way.
TEST_F(ResponderEdges, APeerThatTakesSomethingIsNotStalled) {
  end->service.answer = [&](ServedCall& served) { end->responder->reply(served.id, {}); };
  end->qp.hold_completions = true;
  call(kNull);
  end->responder->on_time(at(0));
  end->qp.release();
  end->pump();
  call(kNull);
  end->responder->on_time(at(29000));
  end->responder->on_time(at(31000));
  EXPECT_FALSE(end->endpoint->failure());
  end->responder->on_time(at(58999));
  EXPECT_FALSE(end->endpoint->failure());
  end->responder->on_time(at(59000));
  EXPECT_TRUE(end->endpoint->failure());
}

TEST(DuplicateRequestCacheEdges, FourConnectionsWaitForOneCallAndNoMore) {
  DuplicateRequestCache cache{DuplicateRequestLimits{}};
  const RequestKey key{"10.0.0.1", 7, 100003, 3, 8, 100, 1};
  const auto from = [](std::uint64_t connection) { return ServedCallId{connection << 32}; };
  EXPECT_EQ(cache.on_call(key, key.client, from(1)), DuplicateRequestCache::Verdict::kRun);
  for (std::uint64_t connection = 2; connection <= 5; ++connection) {
    EXPECT_EQ(cache.on_call(key, key.client, from(connection)), DuplicateRequestCache::Verdict::kWait) << connection;
  }
  EXPECT_EQ(cache.on_call(key, key.client, from(6)), DuplicateRequestCache::Verdict::kDrop);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
