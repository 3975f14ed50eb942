#include "apps/common/progress.h"

#include <poll.h>

#include <array>
#include <chrono>
#include <ctime>

namespace weft::apps {

void wait_readable(std::initializer_list<int> fds, std::optional<verbs::TimePoint> until) {
  constexpr std::size_t kMaxFds = 16;
  std::array<pollfd, kMaxFds> polled;
  nfds_t num = 0;
  for (int fd : fds) {
    if (fd >= 0 && num < kMaxFds) polled[num++] = pollfd{fd, POLLIN, 0};
  }
  timespec timeout{};
  if (until) {
    auto left = std::chrono::nanoseconds(*until - std::chrono::steady_clock::now()).count();
    if (left < 0) left = 0;
    constexpr auto kNsPerS = 1'000'000'000;
    timeout.tv_sec = left / kNsPerS;
    timeout.tv_nsec = left % kNsPerS;
  }
  // EINTR is one more reason to look around, as is everything else that ends the sleep.
  ppoll(polled.data(), num, until ? &timeout : nullptr, nullptr);
}

}  // namespace weft::apps
