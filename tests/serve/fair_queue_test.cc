#include "apps/serve/fair_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::serve {
namespace {

class Named : public DiskTask {
 public:
  explicit Named(std::string name, bool is_wanted) : name(std::move(name)), is_wanted_(is_wanted) {}
  void run() override {}
  void finish() override {}
  bool is_wanted_without_client() const override { return is_wanted_; }
  const std::string name;

 private:
  bool is_wanted_;
};

class FairQueueTest : public ::testing::Test {
 protected:
  void push(std::uint32_t connection, const std::string& group, const std::string& name, bool is_wanted = false) {
    queue.push({connection, group}, std::make_unique<Named>(name, is_wanted));
  }
  void push_many(int num, std::uint32_t connection, const std::string& group, const std::string& name) {
    for (int i = 0; i < num; ++i) push(connection, group, name);
  }
  static std::string name_of(const DiskTask& task) { return dynamic_cast<const Named&>(task).name; }
  // The next task, which goes on running; empty where there is none.
  std::string start() {
    auto taken = queue.take();
    if (!taken) return {};
    last = taken->connection;
    return name_of(*taken->task);
  }
  // The next `num` tasks, each of which ends before the one after it.
  std::string run(int num) {
    std::string names;
    for (int i = 0; i < num; ++i) {
      const std::string name = start();
      if (name.empty()) break;
      names += name;
      queue.done(last);
    }
    return names;
  }

  FairQueue queue;
  std::uint32_t last = 0;
};

TEST_F(FairQueueTest, OneClientsTasksComeInTheirOrder) {
  for (const char* name : {"a", "b", "c"}) push(1, "x", name);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(run(9), "abc");
  EXPECT_EQ(queue.size(), 0u);
}

TEST_F(FairQueueTest, ConnectionsOfOneAddressTakeTurns) {
  push_many(30, 1, "x", "a");
  push_many(3, 2, "x", "b");
  push_many(2, 3, "x", "c");
  EXPECT_EQ(run(9), "abcabcaba");
}

// Thirty connections of one address are worth no more than the one of another.
TEST_F(FairQueueTest, AddressesTakeTurnsBeforeConnectionsDo) {
  for (std::uint32_t i = 1; i <= 30; ++i) push_many(8, i, "x", "a");
  push_many(4, 100, "y", "b");
  push_many(2, 200, "z", "c");
  EXPECT_EQ(run(12), "abcabcababaa");
}

// A client whose tasks take long does not get all workers: it is the turn of the client that has the fewest.
TEST_F(FairQueueTest, AClientWhoseTasksRunStandsBehindOneThatHasNone) {
  push_many(30, 1, "x", "a");
  push_many(3, 2, "y", "b");
  EXPECT_EQ(start(), "a");
  EXPECT_EQ(start(), "b");
  queue.done(2);
  EXPECT_EQ(start(), "b");
  queue.done(2);
  EXPECT_EQ(start(), "b");
  EXPECT_EQ(start(), "a") << "nobody else has work, so no worker stays idle";
}

TEST_F(FairQueueTest, AClientThatWasSilentIsServedFirstAndOnce) {
  push(2, "y", "b");
  EXPECT_EQ(run(1), "b");
  push_many(9, 1, "x", "a");
  EXPECT_EQ(run(3), "aaa");
  push_many(9, 2, "y", "b");
  EXPECT_EQ(run(4), "baba");
}

// A connection that was made a moment ago has not waited.
TEST_F(FairQueueTest, ConnectingAgainWinsNothing) {
  push_many(9, 1, "x", "a");
  EXPECT_EQ(run(1), "a");
  std::string order;
  for (std::uint32_t i = 10; i < 14; ++i) {
    push(i, "x", "n");
    order += run(2);
    queue.remove(i);
  }
  EXPECT_EQ(order, "anananan") << "a place behind those that wait, each time";
}

TEST_F(FairQueueTest, OneAddressNeverHasAllWorkers) {
  FairQueue bounded(2);
  for (std::uint32_t i = 1; i <= 9; ++i) bounded.push({i, "x"}, std::make_unique<Named>("a", false));
  const auto first = bounded.take(), second = bounded.take();
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(bounded.take());
  bounded.push({100, "y"}, std::make_unique<Named>("b", false));
  const auto other = bounded.take();
  ASSERT_TRUE(other);
  EXPECT_EQ(name_of(*other->task), "b");
  EXPECT_FALSE(bounded.take());
  bounded.done(first->connection);
  EXPECT_TRUE(bounded.take());
  EXPECT_FALSE(bounded.take());
}

TEST_F(FairQueueTest, ATaskIsNextOnlyIfItMayRun) {
  FairQueue two(2);
  EXPECT_FALSE(two.has_next());
  for (int i = 0; i < 3; ++i) two.push({1, "a"}, std::make_unique<Named>("a", false));
  EXPECT_TRUE(two.has_next());
  ASSERT_TRUE(two.take() && two.take());
  EXPECT_FALSE(two.has_next());
  two.push({2, "b"}, std::make_unique<Named>("b", false));
  EXPECT_TRUE(two.has_next());
  ASSERT_TRUE(two.take());
  EXPECT_FALSE(two.has_next());
  two.done(1);
  EXPECT_TRUE(two.has_next());
}

TEST_F(FairQueueTest, ALostConnectionLeavesWhatIsWantedWithoutIt) {
  push_many(3, 1, "x", "a");
  push(1, "x", "kept", true);
  push(1, "x", "also", true);
  push(2, "x", "b");
  EXPECT_EQ(start(), "a");
  const auto unwanted = queue.remove(1);
  EXPECT_EQ(unwanted.size(), 2u);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.size_of("x"), 3u);
  EXPECT_EQ(run(1), "b");
  queue.done(1);
  EXPECT_EQ(queue.num_connections(), 2u) << "two tasks of the lost one are still to come";
  EXPECT_EQ(run(9), "keptalso");
  EXPECT_EQ(queue.num_connections(), 1u);
  queue.remove(2);
  queue.remove(77);
  EXPECT_EQ(queue.num_connections(), 0u);
  EXPECT_EQ(queue.size_of("x"), 0u);
}

}  // namespace
}  // namespace weft::serve
