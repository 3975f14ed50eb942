#include "tests/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace weft::testing {
namespace {

std::string address_in(const std::string& ready_line, const std::string& name) {
  std::string key = " " + name;
  key += '=';
  const std::size_t at = ready_line.find(key);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size();
  return ready_line.substr(begin, ready_line.find(' ', begin) - begin);
}

// Spawns the program with the given write ends as stdout and stderr (-1 leaves it as it is), and with `in` as
// stdin (-1: /dev/null).
pid_t spawn(const std::vector<std::string>& words, int out, int err, int in = -1) {
  std::vector<std::string> copies = {WEFT_BINARY};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (in >= 0) posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  if (in < 0) posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  if (err >= 0) posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = -1;
  if (posix_spawn(&pid, WEFT_BINARY, &actions, nullptr, argv.data(), environ) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

void wait_for(pid_t pid, Outcome& outcome) {
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + outcome.signal;
}

int wait_for(pid_t pid) {
  Outcome outcome;
  wait_for(pid, outcome);
  return outcome.status;
}

std::pair<int, int> make_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  return {ends[0], ends[1]};
}

}  // namespace

Outcome run_weft(const std::vector<std::string>& words) {
  return RunningWeft(words).finish();
}

RunningWeft::RunningWeft(const std::vector<std::string>& words, int input, bool has_small_pipes) {
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  if (has_small_pipes) {
    for (const int end : {out_write, err_write}) fcntl(end, F_SETPIPE_SZ, 4096);
  }
  pid_ = spawn(words, out_write, err_write, input);
  close(out_write);
  close(err_write);
  fds_[0] = out_read;
  fds_[1] = err_read;
}

RunningWeft::~RunningWeft() {
  if (pid_ >= 0) {
    kill(pid_, SIGKILL);
    testing::wait_for(pid_);
  }
  for (const int fd : fds_) {
    if (fd >= 0) close(fd);
  }
}

bool RunningWeft::read_some() {
  std::array<pollfd, 2> polled = {pollfd{fds_[0], POLLIN, 0}, pollfd{fds_[1], POLLIN, 0}};
  if ((fds_[0] < 0 && fds_[1] < 0) || poll(polled.data(), polled.size(), -1) < 0) return false;
  for (std::size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    std::array<char, 4096> chunk;
    const ssize_t n = read(fds_[i], chunk.data(), chunk.size());
    if (n > 0) {
      (i == 0 ? outcome_.out : outcome_.err).append(chunk.data(), std::size_t(n));
    } else {
      close(std::exchange(fds_[i], -1));
    }
  }
  return true;
}

bool RunningWeft::wait_for(const std::string& part) {
  while (outcome_.out.find(part) == std::string::npos && outcome_.err.find(part) == std::string::npos) {
    if (!read_some()) return false;
  }
  return true;
}

void RunningWeft::send_signal(int number) {
  kill(pid_, number);
}

void RunningWeft::wait_written() {
  pollfd polled{fds_[0], POLLIN, 0};
  poll(&polled, 1, -1);
}

bool RunningWeft::ends_unread() {
  constexpr int kMinuteMs = 60'000;
  pollfd polled{static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)), POLLIN, 0};
  const bool has_ended = poll(&polled, 1, kMinuteMs) == 1;
  close(polled.fd);
  return has_ended;
}

void RunningWeft::leave() {
  close(std::exchange(fds_[0], -1));
}

Outcome RunningWeft::finish() {
  while (read_some()) {
  }
  testing::wait_for(std::exchange(pid_, -1), outcome_);
  return outcome_;
}

Outcome run_weft_on_terminal(const std::vector<std::string>& words) {
  Outcome outcome;
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return outcome;
  const int other = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  const pid_t pid = spawn(words, other, other);
  close(other);
  std::array<char, 4096> chunk;
  // At the end of the last writer the read fails (EIO).
  for (ssize_t n = 0; (n = read(terminal, chunk.data(), chunk.size())) > 0;) {
    outcome.out.append(chunk.data(), std::size_t(n));
  }
  close(terminal);
  wait_for(pid, outcome);
  return outcome;
}

WeftListener::WeftListener(const std::vector<std::string>& words) {
  auto [out_read, out_write] = make_pipe();
  pid_ = spawn(words, out_write, -1);
  out_ = out_read;
  close(out_write);
  char c = 0;
  while (read(out_, &c, 1) == 1 && c != '\n') ready_line_ += c;
}

WeftListener::~WeftListener() {
  if (pid_ >= 0) stop(SIGKILL);
  close(out_);
}

int WeftListener::stop(int signal_number) {
  if (pid_ < 0) return -1;
  kill(pid_, signal_number);
  return wait_for(std::exchange(pid_, -1));
}

void WeftListener::send_signal(int number) {
  kill(pid_, number);
}

std::string WeftListener::address(const std::string& name) const {
  return address_in(ready_line_, name);
}

}  // namespace weft::testing
