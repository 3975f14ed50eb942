#pragma once

#include <unistd.h>

#include <cstddef>
#include <functional>

namespace weft::serve {

// DiskCalls are the system calls that reach the device, so that tests can hold them or let them fail. They return as
// pwrite(2), fsync(2) and fdatasync(2) do.
struct DiskCalls {
  std::function<ssize_t(int fd, const void* data, std::size_t len, off_t offset)> pwrite = ::pwrite;
  std::function<int(int fd)> fsync = ::fsync;
  std::function<int(int fd)> fdatasync = ::fdatasync;
};

}  // namespace weft::serve
