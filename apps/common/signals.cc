#include "apps/common/signals.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace weft::apps {
namespace {

// A signal handler has no argument of its own, so it can only use globals of the process.
std::atomic<int> g_signal{0};  // the first signal that came
std::atomic<int> g_fd{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  int saved = errno;
  int none = 0;
  g_signal.compare_exchange_strong(none, number, std::memory_order_relaxed);
  std::uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(g_fd.load(std::memory_order_relaxed), &one, sizeof(one));
  errno = saved;
}

}  // namespace

StopSignals::StopSignals() {
  g_signal = 0;
  g_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = on_signal;
  // The second signal has its default action, so that a second Ctrl-C stops the program at once.
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
  return g_signal.load(std::memory_order_relaxed) != 0;
}

int StopSignals::fd() const {
  return g_fd.load(std::memory_order_relaxed);
}

int stop_signal() {
  return g_signal.load(std::memory_order_relaxed);
}

void die_by(int signal_number) {
  std::fflush(nullptr);
  signal(signal_number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal_number);
  std::_Exit(128 + signal_number);  // not reached: the default action of both signals ends the process
}

}  // namespace weft::apps
