#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <functional>

#include "base/time.h"

namespace weft::serve {

// pread_nowait and pwrite_nowait are pread(2) and pwrite(2) that do not wait for a device: RWF_NOWAIT of preadv2(2).
// Instead of waiting they fail (EAGAIN, or EOPNOTSUPP if the filesystem cannot) or stop short.
ssize_t pread_nowait(int fd, void* data, std::size_t len, off_t offset);
ssize_t pwrite_nowait(int fd, const void* data, std::size_t len, off_t offset);

// lies_in_memory: whether no device stands behind a file that reading or writing could wait for (tmpfs, ramfs).
// Swapped-out pages of a tmpfs come back as any page of a process does.
bool lies_in_memory(int fd);

// DiskCalls are the system calls that reach the device, and the clock. Tests replace them to hold them or to let them
// fail. pread, pwrite, fsync and fdatasync return as the system calls of the same names do.
struct DiskCalls {
  std::function<ssize_t(int fd, void* data, std::size_t len, off_t offset)> pread = ::pread;
  std::function<ssize_t(int fd, const void* data, std::size_t len, off_t offset)> pwrite = ::pwrite;
  std::function<int(int fd)> fsync = ::fsync;
  std::function<int(int fd)> fdatasync = ::fdatasync;
  std::function<ssize_t(int fd, void* data, std::size_t len, off_t offset)> pread_nowait = serve::pread_nowait;
  std::function<ssize_t(int fd, const void* data, std::size_t len, off_t offset)> pwrite_nowait = serve::pwrite_nowait;
  std::function<bool(int fd)> lies_in_memory = serve::lies_in_memory;
  std::function<TimePoint()> now = std::chrono::steady_clock::now;
};

}  // namespace weft::serve
