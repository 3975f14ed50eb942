#include "apps/serve/backend/disk_calls.h"

#include <linux/magic.h>
#include <sys/uio.h>
#include <sys/vfs.h>

namespace weft::serve {

ssize_t pread_nowait(int fd, void* data, std::size_t len, off_t offset) {
  const iovec part{data, len};
  return ::preadv2(fd, &part, 1, offset, RWF_NOWAIT);
}

ssize_t pwrite_nowait(int fd, const void* data, std::size_t len, off_t offset) {
  const iovec part{const_cast<void*>(data), len};
  return ::pwritev2(fd, &part, 1, offset, RWF_NOWAIT);
}

bool lies_in_memory(int fd) {
  struct statfs fs {};
  return ::fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

}  // namespace weft::serve
