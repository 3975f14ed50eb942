// Clients and servers with threads of their own, over soft RNICs on 127.0.0.1, used by several threads at once.
// scripts/tsan runs this program.
#include "rpcrdma/threaded.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/rpc/world.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::chrono::seconds kLongWait{10};

// Value is something that one thread sets and another waits for.
template <typename T>
class Watched {
 public:
  template <typename Change>
  void change(Change change) {
    const std::scoped_lock lock(mutex_);
    change(value_);
    changed_.notify_all();
  }
  template <typename Test>
  [[nodiscard]] bool wait_until(Test test) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLongWait, [&] { return test(value_); });
  }
  T take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(value_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  T value_{};
};

// READ answers from `data`, WRITE with the sum of its octets. Buffers are taken in on_call. The test answers, on any
// thread.
class Deferring : public Service {
 public:
  struct Held {
    ServedCall call;
    Buffer room;
  };

  void on_call(ServedCall call) override {
    Held held{std::move(call), {}};
    if (held.call.procedure == kRead) {
      held.room = server->server().buffers().take(read_len(held.call));
      EXPECT_TRUE(held.room);
    }
    if (at_once) return answer(std::move(held));
    this->held.change([&](std::vector<Held>& all) { all.push_back(std::move(held)); });
  }

  // Any thread.
  void answer(Held held) {
    ServedReply reply;
    if (held.call.procedure == kRead) {
      xdr::XdrReader in(held.call.args);
      std::uint32_t offset = 0;
      EXPECT_TRUE(in.u32(offset));
      const std::size_t len = held.room.octets().size();
      std::copy_n(data.begin() + offset, len, held.room.octets().begin());
      xdr::XdrWriter(reply.results).u32(static_cast<std::uint32_t>(len));
      reply.add_item(std::move(held.room), len);
    } else if (held.call.procedure == kWrite) {
      EXPECT_EQ(held.call.items.size(), 1u);
      std::uint32_t sum = 0;
      for (const std::uint8_t octet : held.call.items.at(0).data.octets()) sum += octet;
      xdr::XdrWriter(reply.results).u32(sum);
    }
    server->reply(std::move(held.call), std::move(reply));
  }

  static std::size_t read_len(const ServedCall& call) {
    xdr::XdrReader in(call.args);
    std::uint32_t len = 0;
    EXPECT_TRUE(in.skip(4) && in.u32(len));
    return len;
  }

  ThreadedServer* server = nullptr;
  const Octets data = pattern(1 << 20);
  std::atomic<bool> at_once = false;
  Watched<std::vector<Held>> held;
};

std::unique_ptr<verbs::Device> open_device() {
  verbs::SoftConfig config;
  if (const char* workers = std::getenv("WEFT_WORKERS")) {
    config.num_workers = static_cast<std::uint32_t>(std::atoi(workers));
  }
  return verbs::testing::tapped(std::move(*verbs::open_soft_device(config)));
}

struct ThreadedTest : ::testing::Test {
  ThreadedTest() {
    auto made = ThreadedServer::listen(open_device(), loopback(0), programs, {.min_credits = 32});
    server = std::move(*made);
    service.server = server.get();
    EXPECT_TRUE(server->start().ok());
  }
  std::unique_ptr<ThreadedClient> connect(const ClientConfig& config = {}) {
    auto made = ThreadedClient::connect(open_device(), server->local_addr(), config);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }
  // One that has had a Reply, and with it its credits.
  std::unique_ptr<ThreadedClient> warm_client() {
    auto client = connect();
    service.at_once = true;
    EXPECT_EQ(client->call_and_wait(World::null_call()).status, CallStatus::kSuccess);
    service.at_once = false;
    return client;
  }
  [[nodiscard]] bool wait_for_held(std::size_t num) {
    return service.held.wait_until([num](const auto& held) { return held.size() == num; });
  }
  void answer_all() {
    for (auto& held : service.held.take()) service.answer(std::move(held));
  }
  // Octets that the server's pool has out.
  std::size_t in_use() {
    Watched<std::optional<std::size_t>> in_use;
    server->post([&](Server& its) { in_use.change([&](auto& value) { value = its.buffers().in_use(); }); });
    EXPECT_TRUE(in_use.wait_until([](const auto& value) { return value.has_value(); }));
    return in_use.take().value_or(SIZE_MAX);
  }
  // A client may have its Reply before the server knows that it was sent.
  void expect_buffers_back() {
    const auto give_up = Clock::now() + kLongWait;
    std::size_t left = in_use();
    while (left != 0 && Clock::now() < give_up) left = in_use();
    EXPECT_EQ(left, 0u);
  }

  Deferring service;
  const std::array<ServedProgram, 1> programs{ServedProgram{&test_binding(), &service}};
  std::unique_ptr<ThreadedServer> server;
};

TEST_F(ThreadedTest, ManyThreadsCallOneClient) {
  service.at_once = true;
  auto client = connect();
  std::vector<std::thread> callers;
  std::atomic<int> num_right = 0;
  constexpr std::uint32_t kLen = 20001;
  for (std::uint32_t i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      Octets room(kLen);
      for (std::uint32_t n = 0; n < 20; ++n) {
        const std::uint32_t offset = (i * 20 + n) * 997;
        const Octets args = read_args(offset, kLen);
        const CallResult result = client->call_and_wait(World::read_call(args, room));
        EXPECT_EQ(result.status, CallStatus::kSuccess) << result.text;
        EXPECT_EQ(result.item_len, kLen);
        EXPECT_EQ(result.results.size(), 4u);
        if (std::equal(room.begin(), room.end(), service.data.begin() + offset)) ++num_right;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(num_right, 80);
  expect_buffers_back();
}

TEST_F(ThreadedTest, RepliesComeFromOtherThreadsInAnyOrder) {
  auto client = warm_client();
  const Octets data = pattern(100000, 7);
  const Octets args = write_args(data.size());
  std::uint32_t sum = 0;
  for (const std::uint8_t octet : data) sum += octet;
  std::vector<Octets> args_of_reads;
  std::vector<Octets> rooms(7, Octets(30000));
  for (std::uint32_t i = 0; i < 7; ++i) args_of_reads.push_back(read_args(i * 1000, 30000));

  Watched<std::vector<std::size_t>> ended;
  for (std::size_t i = 0; i < 8; ++i) {
    const CallSpec spec = i == 7 ? World::write_call(args, data) : World::read_call(args_of_reads[i], rooms[i]);
    const auto called = client->call(spec, [&, i](const Reply& reply) {
      EXPECT_EQ(reply.status, CallStatus::kSuccess) << reply.text;
      if (i == 7) {
        std::uint32_t got = 0;
        EXPECT_TRUE(xdr::XdrReader(reply.results).u32(got));
        EXPECT_EQ(got, sum);
      }
      ended.change([&](auto& all) { all.push_back(i); });
    });
    ASSERT_TRUE(called.ok());
    ASSERT_TRUE(wait_for_held(i + 1));
  }
  // Two threads answer, each the last of its half first.
  auto held = service.held.take();
  const auto answer = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = to; i-- > from;) service.answer(std::move(held[i]));
  };
  std::thread one([&] { answer(0, 4); });
  std::thread other([&] { answer(4, 8); });
  one.join();
  other.join();
  ASSERT_TRUE(ended.wait_until([](const auto& all) { return all.size() == 8; }));
  const auto order = ended.take();
  const auto place = [&](std::size_t i) { return std::find(order.begin(), order.end(), i); };
  EXPECT_LT(place(3), place(0));
  EXPECT_LT(place(7), place(4));
  for (std::size_t i = 0; i < 7; ++i) {
    const auto from = service.data.begin() + static_cast<std::ptrdiff_t>(i) * 1000;
    EXPECT_TRUE(std::equal(rooms[i].begin(), rooms[i].end(), from)) << i;
  }
  expect_buffers_back();
}

TEST_F(ThreadedTest, CallbacksRunOnTheClientsThread) {
  service.at_once = true;
  auto client = connect();
  Watched<std::vector<std::thread::id>> threads;
  const auto note = [&](const Reply&) { threads.change([](auto& all) { all.push_back(std::this_thread::get_id()); }); };
  ASSERT_TRUE(client->post([&](Client&) { note({}); }));
  ASSERT_TRUE(client
                  ->call(World::null_call(),
                         [&](const Reply& reply) {
                           note(reply);
                           // From a callback: calls are queued, and waiting is refused.
                           EXPECT_EQ(client->call_and_wait(World::null_call()).status, CallStatus::kLocalError);
                           EXPECT_TRUE(client->call(World::null_call(), note).ok());
                         })
                  .ok());
  ASSERT_TRUE(threads.wait_until([](const auto& all) { return all.size() == 3; }));
  const auto all = threads.take();
  EXPECT_NE(all[0], std::this_thread::get_id());
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
}

TEST_F(ThreadedTest, ACallIsCancelledFromAnotherThread) {
  auto client = connect();
  Octets room(50000, 0xa5);
  const Octets args = read_args(0, 50000);
  Watched<std::vector<CallStatus>> ends;
  const auto note = [&](const Reply& reply) { ends.change([&](auto& all) { all.push_back(reply.status); }); };
  const auto ticket = client->call(World::read_call(args, room), note);
  ASSERT_TRUE(ticket.ok());
  ASSERT_TRUE(wait_for_held(1));
  client->cancel(ticket.value());
  ASSERT_TRUE(ends.wait_until([](const auto& all) { return all.size() == 1; }));
  client->cancel(ticket.value());  // has ended
  answer_all();
  // The memory was the caller's before the answer came.
  service.at_once = true;
  EXPECT_EQ(room, Octets(50000, 0xa5));
  client.reset();
  EXPECT_EQ(ends.take(), std::vector<CallStatus>{CallStatus::kCancelled});
}

TEST_F(ThreadedTest, TheClientsEndEndsEveryCallOnce) {
  auto client = warm_client();
  constexpr std::size_t kNum = 50;
  Watched<std::vector<std::size_t>> ended;
  std::atomic<int> num_refused = 0;
  for (std::size_t i = 0; i < kNum; ++i) {
    const auto called = client->call(World::null_call(), [&, i](const Reply& reply) {
      EXPECT_EQ(reply.status, CallStatus::kDisconnected);
      // No thread would answer it.
      if (!client->call(World::null_call(), nullptr).ok()) ++num_refused;
      ended.change([&](auto& all) { all.push_back(i); });
    });
    ASSERT_TRUE(called.ok());
  }
  ASSERT_TRUE(wait_for_held(32));
  // The callbacks still use `client`.
  client.get_deleter()(client.get());
  (void)client.release();
  auto all = ended.take();
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), kNum);
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(num_refused, int{kNum});
  answer_all();  // the clients are gone
  expect_buffers_back();
}

TEST_F(ThreadedTest, TheServersEndTakesTheAnswersThatItWasGiven) {
  auto client = connect();
  Octets room(50000);
  const Octets args = read_args(3, 50000);
  Watched<std::optional<CallStatus>> end;
  const auto called = client->call(World::read_call(args, room), [&](const Reply& reply) {
    end.change([&](auto& status) { status = reply.status; });
  });
  ASSERT_TRUE(called.ok());
  ASSERT_TRUE(wait_for_held(1));
  answer_all();
  server.reset();
  // Whether it still left is up to the sockets.
  ASSERT_TRUE(end.wait_until([](const auto& status) { return status.has_value(); }));
  EXPECT_EQ(client->call_and_wait(World::null_call()).status, CallStatus::kDisconnected);
}

TEST_F(ThreadedTest, WhatCannotBeCalledEndsInItsCallback) {
  auto client = connect();
  CallSpec spec = World::null_call();
  spec.binding = &plain_binding();  // another program's
  const CallResult refused = client->call_and_wait(spec);
  EXPECT_EQ(refused.status, CallStatus::kLocalError);
  EXPECT_TRUE(refused.did_not_run);
  EXPECT_FALSE(refused.text.empty());
}

TEST_F(ThreadedTest, ConnectFailsWhereNobodyListens) {
  const auto addr = server->local_addr();
  EXPECT_EQ(ThreadedClient::connect(open_device(), addr, {.credits = 0}).error().errno_value, EINVAL);
  server.reset();
  const auto refused = ThreadedClient::connect(open_device(), addr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().errno_value, ENOTCONN);
  EXPECT_NE(refused.error().message.find("127.0.0.1:"), std::string::npos) << refused.error().message;
}

TEST_F(ThreadedTest, ConnectTriesForAsLongAsItsPolicySays) {
  const auto addr = server->local_addr();
  server.reset();
  ClientConfig config;
  config.reconnect.max_time = std::chrono::hours(1);
  config.reconnect.max_attempts = 3;
  config.reconnect.first_delay = config.reconnect.max_delay = std::chrono::milliseconds(1);
  EXPECT_EQ(ThreadedClient::connect(open_device(), addr, config).error().errno_value, ENOTCONN);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
