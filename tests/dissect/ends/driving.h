#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "verbs-shim/api/result.h"

namespace weft::ends {

// The ends give up at the first error: value_of and check throw its text.
template <typename T>
T value_of(verbs::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result.value());
}
inline void check(const verbs::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

// run_until drives a device, a client or a server until done(), and sleeps while nothing moves. Of a device, done takes
// the events and completions.
template <typename Engine, typename Done>
void run_until(Engine& engine, Done done) {
  while (!done()) {
    if (engine.process(std::chrono::steady_clock::now()) != 0) continue;
    int wait = -1;
    if (const auto at = engine.next_timeout()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*at - std::chrono::steady_clock::now()).count();
      wait = static_cast<int>(std::clamp<decltype(left)>(left, 0, 60000));
    }
    pollfd fd{engine.fd(), POLLIN, 0};
    (void)::poll(&fd, 1, wait);
  }
}

}  // namespace weft::ends
