#include "apps/common/signals.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace weft::apps {
namespace {

// A signal handler has no argument of its own: what it touches can only be the process's.
std::atomic<bool> g_requested{false};
std::atomic<int> g_fd{-1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int) {
  int saved = errno;
  g_requested.store(true, std::memory_order_relaxed);
  std::uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(g_fd.load(std::memory_order_relaxed), &one, sizeof(one));
  errno = saved;
}

}  // namespace

StopSignals::StopSignals() {
  g_requested = false;
  g_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = on_signal;
  // The second one meets the default action: whoever presses Ctrl-C twice wants it to stop now.
  action.sa_flags = int(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

StopSignals::~StopSignals() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  close(g_fd.exchange(-1));
}

bool StopSignals::requested() const {
  return g_requested.load(std::memory_order_relaxed);
}

int StopSignals::fd() const {
  return g_fd.load(std::memory_order_relaxed);
}

}  // namespace weft::apps
