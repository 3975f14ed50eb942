#pragma once

#include <coroutine>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>

namespace weft::nfs {

template <typename T = void>
class Task;

namespace detail {

// The common part of all promises of Tasks. A Task that ends while its awaiter still starts it does not resume that
// awaiter: the awaiter goes on by itself. So a loop over Tasks which never suspend needs no more stack than one of
// them.
struct PromiseBase {
  std::coroutine_handle<> awaiter = nullptr;
  bool is_starting = false;
  bool has_ended = false;

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    void await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
      PromiseBase& promise = coroutine.promise();
      promise.has_ended = true;
      // The awaiter may destroy this coroutine, so nothing of it is used afterwards.
      if (!promise.is_starting) promise.awaiter.resume();
    }
    void await_resume() noexcept {}
  };

  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { std::abort(); }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> value;

  Task<T> get_return_object();
  template <typename U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
};

}  // namespace detail

// Task is a coroutine that begins when it is awaited, once, and runs in its awaiter's thread. Everything that its
// parameters refer to lives until it has ended.
template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;

  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> awaiter) {
    promise_type& promise = coroutine_.promise();
    promise.awaiter = awaiter;
    promise.is_starting = true;
    coroutine_.resume();
    promise.is_starting = false;
    return !promise.has_ended;
  }
  T await_resume() {
    if constexpr (!std::is_void_v<T>) return std::move(*coroutine_.promise().value);
  }

 private:
  std::coroutine_handle<promise_type> coroutine_;
};

namespace detail {

template <typename T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

}  // namespace detail
}  // namespace weft::nfs
