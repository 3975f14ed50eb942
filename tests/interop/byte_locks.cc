// Locks ranges of a file with fcntl, step by step, and names each step with an unexpected outcome.
//
//   byte_locks FILE STEP...
//     read:FROM:LEN   write:FROM:LEN   unlock:FROM:LEN    at once
//     wait:FROM:LEN                                       to write; waits for the holder of the lock
//     refused:FROM:LEN                                    to write, which has to be refused
//     free:FROM:LEN   held:FROM:LEN                       whether another process keeps us from writing
//     tell:PATH       await:PATH                          makes a file; waits for one, two minutes at most
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

namespace {

// True where it was locked; errno is 0 where it was refused.
bool set_lock(int fd, int command, short type, long from, long len) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = from;
  range.l_len = len;
  if (::fcntl(fd, command, &range) < 0) {
    if (errno == EAGAIN || errno == EACCES) errno = 0;
    return false;
  }
  errno = 0;
  return command != F_GETLK || range.l_type == F_UNLCK;
}

bool run_step(int fd, const std::string& step) {
  const std::size_t colon = step.find(':');
  const std::string what = step.substr(0, colon), rest = step.substr(colon + 1);
  if (what == "tell") return std::fclose(std::fopen(rest.c_str(), "w")) == 0;
  if (what == "await") {
    for (int n = 0; n < 2400 && !std::filesystem::exists(rest); ++n) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return std::filesystem::exists(rest);
  }
  char* end = nullptr;
  const long from = std::strtol(rest.c_str(), &end, 10), len = std::strtol(end + 1, nullptr, 10);
  if (what == "read") return set_lock(fd, F_SETLK, F_RDLCK, from, len);
  if (what == "write") return set_lock(fd, F_SETLK, F_WRLCK, from, len);
  if (what == "unlock") return set_lock(fd, F_SETLK, F_UNLCK, from, len);
  if (what == "wait") return set_lock(fd, F_SETLKW, F_WRLCK, from, len);
  if (what == "refused") return !set_lock(fd, F_SETLK, F_WRLCK, from, len) && errno == 0;
  if (what == "free") return set_lock(fd, F_GETLK, F_WRLCK, from, len);
  if (what == "held") return !set_lock(fd, F_GETLK, F_WRLCK, from, len) && errno == 0;
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int fd = ::open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    std::perror(argv[1]);
    return 1;
  }
  for (int i = 2; i < argc; ++i) {
    if (run_step(fd, argv[i])) continue;
    std::fprintf(stderr, "byte_locks: %s %s: %s\n", argv[1], argv[i], errno == 0 ? "otherwise" : std::strerror(errno));
    return 1;
  }
  return 0;
}
