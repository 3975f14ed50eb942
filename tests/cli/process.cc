#include "tests/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace weft::testing {
namespace {

// Spawns the program with the given write ends as stdout and stderr (-1 leaves it as it is).
pid_t spawn(const std::vector<std::string>& words, int out, int err) {
  std::vector<std::string> copies = {WEFT_BINARY};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  if (err >= 0) posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = -1;
  if (posix_spawn(&pid, WEFT_BINARY, &actions, nullptr, argv.data(), environ) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::pair<int, int> make_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) ends = {-1, -1};
  return {ends[0], ends[1]};
}

}  // namespace

Outcome run_weft(const std::vector<std::string>& words) {
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  Outcome outcome;
  pid_t pid = spawn(words, out_write, err_write);
  close(out_write);
  close(err_write);
  std::array<pollfd, 2> fds = {pollfd{out_read, POLLIN, 0}, pollfd{err_read, POLLIN, 0}};
  std::array<std::string*, 2> texts = {&outcome.out, &outcome.err};
  int open = 2;
  while (open > 0 && poll(fds.data(), fds.size(), -1) > 0) {
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      std::array<char, 4096> chunk;
      ssize_t n = read(fds[i].fd, chunk.data(), chunk.size());
      if (n > 0) {
        texts[i]->append(chunk.data(), std::size_t(n));
      } else {
        fds[i].fd = -1;
        --open;
      }
    }
  }
  close(out_read);
  close(err_read);
  outcome.status = wait_for(pid);
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

std::string WeftListener::address(const std::string& name) const {
  std::string key = " " + name;
  key += '=';
  std::size_t at = ready_line_.find(key);
  if (at == std::string::npos) return {};
  std::size_t begin = at + key.size();
  return ready_line_.substr(begin, ready_line_.find(' ', begin) - begin);
}

}  // namespace weft::testing
