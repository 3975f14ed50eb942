#include "apps/common/signals.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
std::array<std::atomic<bool>, NSIG> g_came;  // by signal
std::array<char, PATH_MAX> g_file;           // valid while g_has_file
std::atomic<bool> g_has_file{false};
static_assert(std::atomic<int>::is_always_lock_free);

// The second signal has its default action, so that a second Ctrl-C stops the program at once.
void on_second_signal(int number) {
  if (g_has_file.load()) unlink(g_file.data());
  signal(number, SIG_DFL);
  raise(number);  // comes when the handler returns
}

void on_signal(int number) {
  int saved = errno;
  if (g_came[static_cast<std::size_t>(number)].exchange(true)) return on_second_signal(number);
  int none = 0;
  g_signal.compare_exchange_strong(none, number, std::memory_order_relaxed);
  std::uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(g_fd.load(std::memory_order_relaxed), &one, sizeof(one));
  errno = saved;
}

}  // namespace

StopSignals::StopSignals() {
  g_signal = 0;
  for (auto& came : g_came) came = false;
  g_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  takes_hang_up_ = signal(SIGHUP, SIG_IGN) != SIG_IGN;  // nohup has the program ignore it
  if (takes_hang_up_) sigaction(SIGHUP, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

StopSignals::~StopSignals() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  if (takes_hang_up_) signal(SIGHUP, SIG_DFL);
  ::close(g_fd.exchange(-1));
}

bool StopSignals::requested() const {
  return g_signal.load(std::memory_order_relaxed) != 0;
}

int StopSignals::fd() const {
  return stop_fd();
}

int stop_fd() {
  return g_fd.load(std::memory_order_relaxed);
}

ssize_t read_unless_stopped(int fd, void* octets, std::size_t len) {
  for (;;) {
    std::array<pollfd, 2> polled = {pollfd{fd, POLLIN, 0}, pollfd{stop_fd(), POLLIN, 0}};
    // poll leaves a negative descriptor out, and would wait for the signal alone.
    if (fd >= 0) poll(polled.data(), polled.size(), -1);
    errno = EINTR;
    if (stop_signal() != 0) return -1;
    const ssize_t num = read(fd, octets, len);
    if (num >= 0 || errno != EINTR) return num;
  }
}

void remove_when_killed(std::string_view path) {
  g_has_file = false;
  if (path.empty() || path.size() >= g_file.size()) return;
  std::ranges::copy(path, g_file.begin());
  g_file[path.size()] = '\0';
  g_has_file = true;
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
  std::_Exit(128 + signal_number);  // not reached: the default action of these signals ends the process
}

}  // namespace weft::apps
