#include "apps/nfs/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace weft::nfs {
namespace {

// Started is a coroutine that begins at once. No other coroutine waits for it.
struct Started {
  struct promise_type {
    Started get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() noexcept { std::abort(); }
  };
};

// Gate holds the coroutine that waits for it until open().
struct Gate {
  std::coroutine_handle<> waiting = nullptr;
  void open() { std::exchange(waiting, nullptr).resume(); }
};
struct WaitFor {
  Gate& gate;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) { gate.waiting = coroutine; }
  void await_resume() const {}
};

Task<int> one(Gate* gate) {
  if (gate != nullptr) co_await WaitFor{*gate};
  co_return 1;
}

Task<long> sum(long num, Gate* last) {
  long total = 0;
  for (long i = 0; i < num; ++i) total += co_await one(i + 1 == num ? last : nullptr);
  co_return total;
}

Started run(Task<long> task, long& result) {
  result = co_await std::move(task);
}

TEST(Task, ALoopThatNeverSuspendsNeedsNoStack) {
  long result = 0;
  run(sum(1'000'000, nullptr), result);
  EXPECT_EQ(result, 1'000'000);
}

TEST(Task, WhatSuspendsGoesOnWhereItWas) {
  Gate gate;
  long result = 0;
  run(sum(1000, &gate), result);
  EXPECT_EQ(result, 0);
  gate.open();
  EXPECT_EQ(result, 1000);
}

TEST(Task, ATaskThatIsNeverAwaitedGivesBackItsParameters) {
  const auto owned = std::make_shared<int>(1);
  {
    const auto keep = [](std::shared_ptr<int> value) -> Task<int> { co_return *value; };
    const Task<int> task = keep(owned);
    EXPECT_EQ(owned.use_count(), 2);
  }
  EXPECT_EQ(owned.use_count(), 1);
}

Task<std::unique_ptr<std::string>> make_text() {
  co_return std::make_unique<std::string>("text");
}

Started take_text(std::string& out) {
  out = *co_await make_text();
}

TEST(Task, ValuesMove) {
  std::string text;
  take_text(text);
  EXPECT_EQ(text, "text");
}

}  // namespace
}  // namespace weft::nfs
