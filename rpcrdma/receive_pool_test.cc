#include "rpcrdma/receive_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "rpcrdma/endpoint.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/vectors.h"

namespace weft::rpcrdma::testing {
namespace {

struct ReceivePoolTest : ::testing::Test {
  void open(std::uint32_t max_receives, std::uint32_t slack, std::uint32_t max_grown = UINT32_MAX) {
    pool = std::move(*ReceivePool::create(
        pd, {.receive_len = 1024, .max_grown = max_grown, .shares = {.max_receives = max_receives, .slack = slack}}));
  }
  FakeSrq& srq() { return static_cast<FakeSrq&>(pool->srq()); }
  // A device does this when a message arrives.
  std::uint32_t take() {
    const std::uint64_t wr_id = srq().receives.front().wr_id;
    srq().receives.pop_front();
    return pool->take(wr_id);
  }

  FakeMemory memory;
  FakePd pd{memory};
  std::unique_ptr<ReceivePool> pool;
};

TEST_F(ReceivePoolTest, PostsWhatIsReservedAndTheSlack) {
  open(100, 4);
  EXPECT_EQ(srq().size(), 4u);
  ASSERT_TRUE(pool->reserve(8));
  EXPECT_EQ(srq().size(), 12u);
  EXPECT_EQ(pool->registered(), 16u * 1024);
  ASSERT_TRUE(pool->reserve(88));
  EXPECT_EQ(srq().size(), 100u);
  EXPECT_FALSE(pool->reserve(1));
  EXPECT_EQ(pool->shares().reserved(), 96u);
  EXPECT_EQ(srq().size(), 100u);
}

TEST_F(ReceivePoolTest, ABufferIsPostedAgainWhenItsMessageWasDone) {
  open(100, 2);
  ASSERT_TRUE(pool->reserve(3));
  const std::uint32_t first = take();
  const std::uint32_t second = take();
  EXPECT_NE(first, second);
  EXPECT_EQ(srq().size(), 3u);
  EXPECT_TRUE(pool->give_back(first));
  EXPECT_EQ(srq().size(), 4u);
  // A Receive that no reservation covers any more is not posted again.
  pool->release(1);
  EXPECT_TRUE(pool->give_back(second));
  EXPECT_EQ(srq().size(), 4u);
  EXPECT_EQ(pool->num_receives(), 4u);
}

// 100 connections with 8 credits each, on a device that keeps 10 for a turn.
TEST_F(ReceivePoolTest, OfWhatIdleConnectionsReserveLittleIsPosted) {
  RecordProperty("proves", "R1-4.3.1-09");
  pool = std::move(*ReceivePool::create(
      pd, {.receive_len = 1024, .shares = {.max_receives = 2000, .slack = 12, .max_posted = 20}, .reserve = 10}));
  for (std::uint32_t i = 1; i <= 100; ++i) {
    pool->enter();
    ASSERT_TRUE(pool->reserve(8));
    EXPECT_EQ(srq().size(), std::min(8 * i, i / ReceiveShares::kConnectionsPerPosted + 20) + 12);
  }
  EXPECT_EQ(pool->shares().reserved(), 800u);
  // All of them send at once, one after the other, and get no answer. Each finds the promised Receives, and the reserve
  // beside them.
  std::vector<std::uint32_t> held;
  for (int i = 0; i < 100; ++i) {
    pool->refill();
    ASSERT_GE(srq().size(), 8u + 10);
    for (int j = 0; j < 8; ++j) held.push_back(take());
  }
  pool->refill();
  EXPECT_EQ(pool->num_receives(), 800u + 12);  // only the slack is left, for peers that may not have it
  const std::size_t busy = pool->registered();
  for (const std::uint32_t slot : held) EXPECT_TRUE(pool->give_back(slot));
  EXPECT_EQ(srq().size(), 100 / ReceiveShares::kConnectionsPerPosted + 20 + 12);
  // Posted Receives stay. The pool frees the rest.
  pool->trim();
  EXPECT_LE(pool->registered(), busy - 50 * 16 * 1024 / 2);
  for (int i = 0; i < 100; ++i) {
    pool->release(8);
    pool->leave();
  }
  EXPECT_EQ(pool->shares().reserved(), 0u);
}

// A message that has begun to arrive holds a Receive before the pool hears of it.
TEST_F(ReceivePoolTest, TheReserveIsThereWhateverPeersHaveBegun) {
  pool = std::move(*ReceivePool::create(
      pd, {.receive_len = 1024, .shares = {.max_receives = 100, .slack = 10, .max_posted = 2}, .reserve = 10}));
  for (int i = 0; i < 4; ++i) {
    pool->enter();
    ASSERT_TRUE(pool->reserve(2));
    take();
    take();
  }
  for (int i = 0; i < 4; ++i) srq().receives.pop_front();
  pool->refill();
  EXPECT_GE(srq().size(), 10u);
}

// However many peers begin a message and do not end it: others find their Receives, and idle connections cost none.
TEST_F(ReceivePoolTest, OneThatHasBegunToFillIsReplacedUntilItsMessageIsDone) {
  RecordProperty("proves", "R1-4.3.1-09");
  pool = std::move(*ReceivePool::create(
      pd, {.receive_len = 1024, .shares = {.max_receives = 2000, .slack = 12, .max_posted = 20}, .reserve = 10}));
  for (int i = 0; i < 100; ++i) {
    pool->enter();
    ASSERT_TRUE(pool->reserve(8));
  }
  const std::uint32_t at_rest = pool->num_receives();
  EXPECT_LT(at_rest, 100u);
  std::vector<std::uint64_t> begun;
  for (std::uint32_t i = 1; i <= 100; ++i) {
    begun.push_back(srq().receives.front().wr_id);
    srq().receives.pop_front();
    pool->refill();
    ASSERT_EQ(srq().size(), at_rest);
    ASSERT_EQ(pool->num_receives(), at_rest + i) << "one for each message";
  }
  for (const std::uint64_t wr_id : begun) {
    const std::uint32_t slot = pool->take(wr_id);
    pool->refill();
    ASSERT_TRUE(pool->give_back(slot));
  }
  EXPECT_EQ(pool->num_receives(), at_rest);
  pool->refill();
  EXPECT_EQ(srq().size(), at_rest);
}

TEST_F(ReceivePoolTest, MemoryThatIsNotNeededGoesAndIsHadAgain) {
  open(100, 4);
  ASSERT_TRUE(pool->reserve(60));
  EXPECT_EQ(pool->registered(), 64u * 1024);
  std::vector<std::uint32_t> held;
  while (srq().size() != 0) held.push_back(take());
  pool->release(60);
  for (const std::uint32_t slot : held) EXPECT_TRUE(pool->give_back(slot));
  EXPECT_EQ(pool->registered(), 64u * 1024);
  pool->trim();
  EXPECT_EQ(srq().size(), 4u);
  EXPECT_EQ(pool->registered(), 16u * 1024);
  EXPECT_EQ(memory.size(), 1u);
  ASSERT_TRUE(pool->reserve(60));
  EXPECT_EQ(srq().size(), 64u);
  EXPECT_EQ(pool->registered(), 64u * 1024);
  std::set<std::uint64_t> addresses;
  for (const FakeSrq::Receive& receive : srq().receives) addresses.insert(receive.sge.addr);
  EXPECT_EQ(addresses.size(), 64u);
}

TEST_F(ReceivePoolTest, IsLowBeforeItIsEmpty) {
  open(68, 4);
  EXPECT_FALSE(pool->is_low("a"));
  ASSERT_TRUE(pool->reserve(56));
  EXPECT_FALSE(pool->is_low("a"));
  ASSERT_TRUE(pool->reserve(1));
  EXPECT_TRUE(pool->is_low("a"));
  pool->release(1);
  EXPECT_FALSE(pool->is_low("a"));
}

TEST_F(ReceivePoolTest, WithoutMemoryNothingIsPromised) {
  open(100, 4);
  pd.fail_registration = true;
  EXPECT_FALSE(pool->reserve(50));
  EXPECT_EQ(pool->shares().reserved(), 0u);
  pd.fail_registration = false;
  EXPECT_TRUE(pool->reserve(50));
  EXPECT_EQ(srq().size(), 54u);
}

// A Receive that the device refused belongs to no connection, and is posted when the device takes Receives again.
TEST_F(ReceivePoolTest, WhatCannotBePostedIsNotTaken) {
  open(100, 4);
  srq().fail_post = true;
  EXPECT_FALSE(pool->reserve(8));
  EXPECT_EQ(pool->shares().reserved(), 0u);
  EXPECT_EQ(pool->num_receives(), 4u);
  srq().fail_post = false;
  ASSERT_TRUE(pool->reserve(8));
  EXPECT_EQ(srq().size(), 12u);
}

// A client that was busy once keeps its grant while it is idle. It leaves as much to its address, and its address to
// the others, so that each client that comes finds something.
TEST_F(ReceivePoolTest, GrantsThatGrewLeaveReceivesForConnectionsToCome) {
  open(68, 4, 16);
  const auto make = [this](const char* address) {
    Endpoint::Config shape;
    shape.num_receives = 8;
    shape.receive_len = shape.send_len = 1024;
    shape.receives = pool.get();
    shape.address = address;
    return std::move(*Endpoint::create(pd, shape));
  };
  const auto most = [](Endpoint& endpoint) {
    while (endpoint.set_share(endpoint.share() + 1)) {
    }
    return endpoint.share();
  };
  auto busy = make("a");
  EXPECT_EQ(most(*busy), 8u + 5);
  auto neighbour = make("a");
  EXPECT_EQ(most(*neighbour), 8u + 2);
  auto other = make("b");
  EXPECT_EQ(most(*other), 8u + 3);
  EXPECT_TRUE(pool->is_low("a"));
  EXPECT_TRUE(pool->is_low("b"));
  // They grow when others have become smaller, or are gone.
  busy.reset();
  other.reset();
  EXPECT_EQ(most(*neighbour), 8u + 5);
  EXPECT_EQ(pool->shares().reserved(), 13u);
}

// Two Responders on one pool.
struct SharedReceives : ReceivePoolTest {
  struct End {
    End(SharedReceives& test, std::uint32_t number, std::uint32_t credits, std::uint32_t most) : qp(test.memory, cq) {
      qp.srq = &test.srq();
      qp.number = number;
      Endpoint::Config shape;
      shape.serial = number;
      shape.num_receives = credits;
      shape.num_sends = most + kExtraReceives;
      shape.receive_len = 1024;
      shape.send_len = 1024 + Responder::kSendExtra;
      shape.receives = test.pool.get();
      shape.sends = &test.sends;
      endpoint = std::move(*Endpoint::create(test.pd, shape));
      link.emplace(*endpoint, profile_1(), Link::End::kServer);
      Responder::Config config;
      config.credits = {.min = credits, .initial = credits, .max = most};
      responder = std::make_unique<Responder>(test.pd, *link, test.buffers, test.budget, test.programs, config);
      responder->start(1024, 4);
      EXPECT_TRUE(endpoint->attach(qp).ok());
    }
    ~End() { endpoint->detach(); }
    void pump() {
      verbs::Wc wc;
      while (cq.poll(std::span(&wc, 1)) == 1) link->on_completion(wc);
    }
    // A NULL Call that asks for 32 credits.
    void call() { qp.inject(load_vector("V01").octets); }
    std::uint32_t last_grant() { return parse(qp.sent.back()).credit; }

    FakeCq cq;
    FakeQp qp;
    std::unique_ptr<Endpoint> endpoint;
    std::optional<Link> link;
    std::unique_ptr<Responder> responder;
  };

  void answer_all() {
    for (ServedCall& call : service.calls) {
      for (End* end : {one.get(), two.get()}) {
        if (end != nullptr && end->endpoint->config().serial == call.connection.value)
          end->responder->reply(call.id, {});
      }
    }
    service.calls.clear();
  }
  void open_ends(std::uint32_t max_receives, std::uint32_t slack, std::uint32_t credits, std::uint32_t most) {
    open(max_receives, slack);
    one = std::make_unique<End>(*this, 1, credits, most);
    two = std::make_unique<End>(*this, 2, credits, most);
  }

  MessagePool sends{pd, 1024 + Responder::kSendExtra, 1000};
  BufferPool buffers{pd, 1 << 20, 8 << 20};
  Budget budget{{.all = 8 << 20}};
  TestService service;
  std::vector<ServedProgram> programs{{&test_binding(), &service}};
  std::unique_ptr<End> one, two;
};

TEST_F(SharedReceives, AreThereBeforeAGrantThatIsRaised) {
  RecordProperty("proves", "R1-4.3.1-07 R1-4.3.1-09");
  open_ends(200, 4, 4, 32);
  EXPECT_EQ(srq().size(), 12u);
  for (int i = 0; i < 4; ++i) one->call();
  one->pump();
  ASSERT_EQ(service.calls.size(), 4u);
  EXPECT_TRUE(one->qp.sent.empty());  // no Reply yet, and 8 may come, of which 4 have
  EXPECT_EQ(srq().size(), 12u);
  answer_all();
  EXPECT_EQ(one->last_grant(), 8u);
  EXPECT_EQ(srq().size(), 16u);
  // All that the other was promised is there, too.
  for (int i = 0; i < 8; ++i) one->call();
  for (int i = 0; i < 4; ++i) two->call();
  one->pump();
  two->pump();
  EXPECT_EQ(service.calls.size(), 12u);
  EXPECT_FALSE(one->endpoint->failure() || two->endpoint->failure());
}

TEST_F(SharedReceives, AGrantStaysWhereNoMoreAreLeft) {
  open_ends(4 + 10, 4, 4, 32);
  for (int i = 0; i < 4; ++i) one->call();
  one->pump();
  answer_all();
  EXPECT_EQ(one->last_grant(), 4u);
  EXPECT_EQ(pool->shares().reserved(), 8u);
}

TEST_F(SharedReceives, WhereFewAreLeftAGrantFallsAlthoughItIsUsed) {
  RecordProperty("proves", "R1-4.3.1-07");
  open_ends(4 + 20, 4, 4, 16);
  const auto use = [this](End& end, int num) {
    for (int i = 0; i < num; ++i) end.call();
    end.pump();
    answer_all();
    end.pump();
    return end.last_grant();
  };
  EXPECT_EQ(use(*one, 4), 8u);
  EXPECT_FALSE(pool->is_low("a"));
  EXPECT_EQ(use(*one, 8), 8u);  // 16 of 20 were promised then
  EXPECT_TRUE(pool->is_low("a"));
  EXPECT_EQ(use(*two, 4), 4u);
  EXPECT_EQ(use(*one, 8), 4u);
}

TEST_F(SharedReceives, WhoEndsGivesBackWhatItWasPromised) {
  open_ends(200, 4, 4, 32);
  for (int i = 0; i < 4; ++i) one->call();
  one->pump();
  answer_all();
  EXPECT_EQ(pool->shares().reserved(), 12u);
  one.reset();
  EXPECT_EQ(pool->shares().reserved(), 4u);
  EXPECT_EQ(sends.num_taken(), 0u);
  for (int i = 0; i < 4; ++i) two->call();
  two->pump();
  answer_all();
  EXPECT_EQ(srq().size(), 12u);  // as before: of 16 that were posted 4 were not posted again, then 4 were needed
}

TEST_F(SharedReceives, AServiceMayLookAtACallWhoseConnectionIsGone) {
  open_ends(200, 4, 4, 4);
  one->call();
  one->pump();
  ASSERT_EQ(service.calls.size(), 1u);
  const Octets header = copy_of(service.calls[0].header);
  const std::size_t posted = srq().size();
  one.reset();
  // Others' messages go elsewhere.
  for (int i = 0; i < 4; ++i) two->call();
  two->pump();
  EXPECT_EQ(copy_of(service.calls[0].header), header);
  for (const FakeSrq::Receive& receive : srq().receives) {
    EXPECT_NE(reinterpret_cast<const std::uint8_t*>(receive.sge.addr) + 28, service.calls[0].header.data());
  }
  EXPECT_EQ(pool->num_receives(), 12u);
  answer_all();
  EXPECT_EQ(pool->num_receives(), 8u);  // with the end of the last that looked at it
  EXPECT_EQ(srq().size(), 8u);
  EXPECT_EQ(posted, 11u);
}

TEST_F(SharedReceives, MayBeGivenBackAfterThePool) {
  open_ends(200, 4, 4, 4);
  one->call();
  one->pump();
  const Octets header = copy_of(service.calls[0].header);
  one.reset();
  two.reset();
  pool.reset();
  EXPECT_EQ(copy_of(service.calls[0].header), header);
  service.calls.clear();
}

TEST_F(SharedReceives, WhoTakesMoreThanItsGrantIsEndedAtOnceAndNobodyElse) {
  RecordProperty("proves", "R1-4.3.1-12");
  open_ends(200, 8, 4, 4);
  for (int i = 0; i < 7; ++i) one->call();
  one->pump();
  EXPECT_TRUE(one->endpoint->overrun());
  EXPECT_EQ(service.calls.size(), 4u + kExtraReceives);
  for (int i = 0; i < 4; ++i) two->call();
  two->pump();
  EXPECT_FALSE(two->endpoint->failure());
  EXPECT_EQ(service.calls.size(), 8u + kExtraReceives);
  service.calls.clear();
  one.reset();
  EXPECT_EQ(pool->shares().reserved(), 4u);
}

TEST_F(SharedReceives, WhatComesToAConnectionThatFailedIsForOthers) {
  open_ends(200, 4, 4, 4);
  const std::size_t posted = srq().size();
  one->endpoint->fail("over");
  for (int i = 0; i < 3; ++i) one->call();
  EXPECT_EQ(srq().size(), posted - 3);
  one->pump();
  EXPECT_TRUE(service.calls.empty());
  EXPECT_EQ(srq().size(), posted);
}

// A Receive that its queue pair had begun to fill comes back with its end.
TEST_F(SharedReceives, WhatIsFlushedIsForOthers) {
  open_ends(200, 4, 4, 4);
  const std::size_t posted = srq().size();
  const std::uint64_t begun = srq().receives.front().wr_id;
  srq().receives.pop_front();
  one->cq.push({.wr_id = begun, .status = verbs::WcStatus::kWrFlushErr});
  one->pump();
  EXPECT_TRUE(one->endpoint->failure());
  EXPECT_EQ(srq().size(), posted);
}

TEST_F(SharedReceives, OneThatCannotBePostedEndsItsConnection) {
  open_ends(200, 4, 4, 4);
  one->call();
  one->pump();
  ASSERT_EQ(service.calls.size(), 1u);
  srq().fail_post = true;
  answer_all();
  ASSERT_TRUE(one->endpoint->failure());
  EXPECT_EQ(*one->endpoint->failure(), "cannot post a shared Receive");
  EXPECT_TRUE(one->qp.sent.empty()) << "no answer before the Receive for the next Call (R1-4.3.1-09)";
}

TEST_F(SharedReceives, WhoSendsOnlyJunkIsEndedToo) {
  open_ends(200, 8, 4, 4);
  const auto junk = [&](int num) {
    for (int i = 0; i < num; ++i) {
      one->qp.inject(Octets(5));
      one->pump();
    }
  };
  junk(6);
  one->link->finish_turn();
  junk(6);
  EXPECT_FALSE(one->endpoint->failure());
  junk(1);
  EXPECT_TRUE(one->endpoint->overrun());
}

TEST_F(SharedReceives, AnIdleConnectionHasItsShareAndNoSendBuffers) {
  open(1000, 4);
  const std::size_t before = pool->registered() + sends.registered();
  std::vector<std::unique_ptr<End>> many;
  for (std::uint32_t i = 0; i < 100; ++i) {
    many.push_back(std::make_unique<End>(*this, i + 1, 8, 32));
    many.back()->call();
    many.back()->pump();
    many.back()->responder->reply(service.calls[0].id, {});
    many.back()->pump();
    service.calls.clear();
  }
  const std::size_t each = (pool->registered() + sends.registered() - before) / many.size();
  EXPECT_LE(each, 9u * 1024);
  EXPECT_LE(sends.registered(), 16 * sends.len());
}

}  // namespace
}  // namespace weft::rpcrdma::testing
