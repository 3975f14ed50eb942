#include "apps/top/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace weft::apps::top {
namespace {

// ECMA-48 control sequences, and those of xterm for the second screen.
constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kClearLine = "\x1b[K";
constexpr const char* kClearBelow = "\x1b[J";

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// A signal ends the wait for a key; nothing else has to be done.
void on_resize(int) {}

void set_resize_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGWINCH, &action, nullptr);
}

}  // namespace

Page page_of_stdout() {
  constexpr std::size_t kUsualWidth = 80, kUsualHeight = 24;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {.width = 120};
  // A terminal that does not know its size, like one of script(1) behind a pipe, says 0.
  return {.width = size.ws_col != 0 ? size.ws_col : kUsualWidth,
          .height = size.ws_row != 0 ? size.ws_row : kUsualHeight};
}

bool Terminal::is_there() {
  return ::isatty(STDOUT_FILENO) == 1;
}

Terminal::Terminal() {
  termios mode{};
  if (::tcgetattr(STDIN_FILENO, &mode) == 0) {
    before_ = mode;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    mode.c_cc[VMIN] = 0;
    mode.c_cc[VTIME] = 0;
    // A stopped program, and one that SIGQUIT ends, would leave its screen behind.
    mode.c_cc[VSUSP] = mode.c_cc[VQUIT] = _POSIX_VDISABLE;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  }
  set_resize_handler(on_resize);
  write_out(kEnter);
}

Terminal::~Terminal() {
  write_out(kLeave);
  set_resize_handler(SIG_DFL);
  if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

void Terminal::show(const std::vector<std::string>& lines) {
  std::string text = kHome;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\r\n";
    text += lines[i] + kClearLine;
  }
  write_out(text + kClearBelow);
}

std::optional<char> Terminal::wait_key(std::chrono::steady_clock::time_point until, int stop_fd) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  pollfd polled[] = {{.fd = stop_fd, .events = POLLIN, .revents = 0},
                     {.fd = before_ && has_input_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
  const int ms = static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 3'600'000));
  if (::poll(polled, 2, ms) <= 0 || polled[1].revents == 0) return {};
  char key = 0;
  const ssize_t num = ::read(STDIN_FILENO, &key, 1);
  if (num == 1) return key;
  has_input_ = num < 0;  // at the end of the input poll would return at once
  return {};
}

}  // namespace weft::apps::top
