#include "apps/common/progress.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <ctime>

namespace weft::apps {

void wait_readable(std::initializer_list<int> fds, std::optional<TimePoint> until) {
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
  // EINTR is a reason to look again, like every other end of the sleep.
  ppoll(polled.data(), num, until ? &timeout : nullptr, nullptr);
}

std::string HowItWaited::str() const {
  const std::string threads = progress.starts_with("threads=") ? progress + ", " : "";
  if (sleep_share == 0) return threads + "spun";
  // A share that rounds to 0% does not count as "spun".
  const double percent = 100 * sleep_share;
  return threads +
         (percent < 1 ? "slept in less than 1% of its waits" : fmt::format("slept in {:.0f}% of its waits", percent));
}

HowItWaited how_it_waited(const GlobalOptions& options, ProgressMode mode, const Waits& waits) {
  HowItWaited how;
  how.sleep_share = waits.sleep_share();
  if (options.num_workers > 0) {
    how.progress = fmt::format("threads={}", options.num_workers);
  } else {
    how.progress = mode == ProgressMode::kSpin ? "spin" : mode == ProgressMode::kBlock ? "block" : "adapt";
  }
  return how;
}

void Progress::drive(verbs::Device& device) {
  device_ = &device;
  device.set_busy_polling(mode_ != ProgressMode::kBlock);
}

void Progress::set_mode(ProgressMode mode) {
  if (mode == mode_) return;
  mode_ = mode;
  idle_ = false;
  if (device_ != nullptr) device_->set_busy_polling(mode != ProgressMode::kBlock);
}

}  // namespace weft::apps
