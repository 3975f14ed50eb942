// The memory of a server's clients at rest, counted at operator new while the server runs. The clock is the test's.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/rpc/world.h"

namespace {

// What was allocated while the server ran, and is not freed. The devices have no threads here.
bool is_servers = false;
long held = 0;

// In front of all memory, so that its end is counted with its beginning. As long as the strictest alignment of new.
struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) Head {
  std::size_t counted;
};

}  // namespace

void* operator new(std::size_t len) {
  auto* const head = static_cast<Head*>(std::malloc(sizeof(Head) + len));
  if (head == nullptr) std::abort();
  head->counted = is_servers ? len : 0;
  held += static_cast<long>(head->counted);
  return head + 1;
}
// The forms for arrays and without exceptions, too: sanitizers bring their own, which would not come by here.
void* operator new[](std::size_t len) {
  return operator new(len);
}
void* operator new(std::size_t len, const std::nothrow_t& /*unused*/) noexcept {
  return operator new(len);
}
void* operator new[](std::size_t len, const std::nothrow_t& /*unused*/) noexcept {
  return operator new(len);
}
void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  auto* const head = static_cast<Head*>(memory) - 1;
  held -= static_cast<long>(head->counted);
  std::free(head);
}
void operator delete(void* memory, std::size_t /*len*/) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory, std::size_t /*len*/) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*unused*/) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory, const std::nothrow_t& /*unused*/) noexcept {
  operator delete(memory);
}

namespace weft::rpcrdma::testing {
namespace {

// Octets of the heap for a client at rest: the objects of its connection. Its socket is the kernel's.
constexpr long kMostAtRest = 10 * 1024;

// What tables of all clients together may grow by once they have been busy together.
constexpr long kTables = 64 * 1024;

struct RestTest : World {
  static constexpr int kDepth = 16;

  void SetUp() override {
    is_servers = true;
    listen();
    is_servers = false;
  }
  // What the server holds, but for buffers of messages, which come in slabs.
  long objects() const {
    const ServerMemory memory = server->memory();
    return held - static_cast<long>(memory.receives + memory.sends);
  }
  void process() {
    is_servers = true;
    server->process(now);
    is_servers = false;
    for (Client* client : clients) client->process(now);
  }
  // Each of these clients makes `depth` Calls, which the server has all at the same time.
  void work(std::size_t first, std::size_t end, std::size_t depth) {
    std::size_t num_ended = 0;
    const std::size_t num = (end - first) * depth;
    file.hold = true;
    for (std::size_t i = first; i < end; ++i) {
      for (std::size_t j = 0; j < depth; ++j) {
        ASSERT_TRUE(clients[i]
                        ->call(null_call(),
                               [&](const Reply& reply) {
                                 EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
                                 ++num_ended;
                               })
                        .ok());
      }
    }
    const auto give_up = Clock::now() + std::chrono::seconds(20);
    while (num_ended < num) {
      ASSERT_LT(Clock::now(), give_up);
      const std::size_t num_held = file.held.size();
      process();
      // A client may have one Call under way before its first Reply, then a few, then all.
      if (file.held.size() != num_held) continue;
      is_servers = true;
      file.answer_held();
      is_servers = false;
    }
    file.hold = false;
    for (int i = 0; i < 3; ++i) process();
  }
  // Seconds in which nothing comes.
  void rest(int seconds = 4) {
    for (int i = 0; i < seconds; ++i) {
      now += std::chrono::seconds(1);
      process();
    }
  }
  void open(std::size_t num) {
    for (std::size_t i = 0; i < num; ++i) {
      owned.push_back(connect({.credits = 32}));
      clients.push_back(owned.back().get());
      const auto give_up = Clock::now() + std::chrono::seconds(20);
      while (owned.back()->state() == Client::State::kConnecting && Clock::now() < give_up) process();
      ASSERT_EQ(owned.back()->state(), Client::State::kReady);
    }
  }

  TimePoint now = Clock::now();
  std::vector<std::unique_ptr<Client>> owned;
};

TEST_F(RestTest, AClientAtRestHoldsItsObjectsAlone) {
  constexpr std::size_t kNum = 64;
  open(8);
  work(0, 8, kDepth);
  rest();
  const long before = objects();
  open(kNum);
  work(8, 8 + kNum, kDepth);
  const long busy = objects() - before;
  rest();
  const long each = (objects() - before) / static_cast<long>(kNum);
  RecordProperty("octets_at_rest", std::to_string(each));
  EXPECT_LE(each, kMostAtRest);
  EXPECT_GT(busy / static_cast<long>(kNum), each + 2048) << "what rests has given back what it held";

  // They go on as if they had not rested, again and again, and hold no more afterwards. The queue of Receives keeps
  // room for as many as were posted at once.
  work(0, 8 + kNum, kDepth);
  rest();
  const long at_rest = objects();
  for (int round = 0; round < 3; ++round) {
    work(0, 8 + kNum, kDepth);
    rest();
    EXPECT_LE(objects(), at_rest + kTables) << round;
  }
  // One that works keeps what it needs, beside those that rest.
  for (int second = 0; second < 5; ++second) {
    work(0, 1, kDepth);
    now += std::chrono::milliseconds(900);
  }
  EXPECT_LE(objects(), at_rest + 2 * kTables);
}

// Nobody wakes the program for clients at rest.
TEST_F(RestTest, WhenAllRestNothingIsDue) {
  open(4);
  work(0, 4, kDepth);
  ASSERT_TRUE(server->next_timeout());
  rest(10);
  EXPECT_EQ(server->next_timeout(), std::nullopt);
}

// A peer that sends a Call whenever it has just come to rest costs no more memory than others.
TEST_F(RestTest, OneThatRestsAndWorksInTurnGrowsNothing) {
  open(2);
  work(0, 2, 1);
  rest();
  const long at_rest = objects();
  for (int i = 0; i < 100; ++i) {
    work(0, 1, 1);
    now += std::chrono::milliseconds(1100);
    process();
    now += std::chrono::milliseconds(1100);
    process();
  }
  rest();
  EXPECT_LE(objects(), at_rest + kTables / 4);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
