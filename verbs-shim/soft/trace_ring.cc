#include "verbs-shim/soft/trace_ring.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace weft::verbs::soft {

namespace {

// The end of the file's name from its last dot on. A dot that begins a name begins no ending.
std::size_t ending_at(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos || dot <= name ? path.size() : dot;
}

std::optional<timespec> written_at(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return std::nullopt;
  return file.st_mtim;
}

bool is_before(const timespec& one, const timespec& other) {
  return std::pair(one.tv_sec, one.tv_nsec) < std::pair(other.tv_sec, other.tv_nsec);
}

Error busy(const std::string& path) {
  return Error{EWOULDBLOCK, path + ": another trace is being written to it"};
}

// Whether another trace holds the lock of this file.
bool is_claimed(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

int claim(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return errno;
  if (!S_ISREG(file.st_mode)) return 0;
  // A file system without locks has none to respect.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return errno;
  return ::ftruncate(fd, 0) == 0 ? 0 : errno;
}

std::vector<std::string> ring_paths(const std::string& path, std::size_t num_files) {
  if (num_files == 0) return {path};
  const std::size_t ending = ending_at(path), width = std::to_string(num_files).size();
  std::vector<std::string> paths;
  for (std::size_t i = 1; i <= num_files; ++i) {
    const std::string number = std::to_string(i);
    paths.push_back(path.substr(0, ending) + "_" + std::string(width - number.size(), '0') + number +
                    path.substr(ending));
  }
  return paths;
}

Result<Fd> TraceRing::open_first() {
  std::optional<timespec> oldest;
  for (std::size_t i = 0; paths_.size() > 1 && i < paths_.size(); ++i) {
    if (is_claimed(paths_[i])) return busy(paths_[i]);
    const auto written = written_at(paths_[i]);
    if (i != 0 && (!oldest || (written && !is_before(*written, *oldest)))) continue;
    oldest = written;
    at_ = i;
  }
  return open();
}

Result<Fd> TraceRing::open_next() {
  if (paths_.size() == 1) return Error{ENOSPC, path() + ": it has one file"};
  at_ = (at_ + 1) % paths_.size();
  return open();
}

Result<Fd> TraceRing::open() {
  // O_NONBLOCK matters for FIFOs alone: neither their open nor their writes may wait for a reader.
  Fd fd(::open(path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!fd) {
    const int err = errno;
    const char* why = err == ENXIO ? "no program reads from this FIFO; start the reader first" : std::strerror(err);
    return Error{err, path() + ": " + why};
  }
  struct stat file {};
  if (paths_.size() > 1 && ::fstat(fd.get(), &file) == 0 && !S_ISREG(file.st_mode)) {
    return Error{EINVAL, path() + ": a ring is made of regular files"};
  }
  if (const int err = claim(fd.get()); err != 0) {
    return err == EWOULDBLOCK ? busy(path()) : Error{err, path() + ": " + std::strerror(err)};
  }
  ++num_opened_;
  return fd;
}

}  // namespace weft::verbs::soft
