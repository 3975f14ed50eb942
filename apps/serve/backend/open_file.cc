#include "apps/serve/backend/open_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace weft::serve {

int OpenFile::sync(const DiskCalls& calls, bool data_only, WritePromise& promise, nfs3::Verf& verf) {
  std::lock_guard lock(sync_mutex_);
  is_dirty_.store(false);
  int error = (data_only ? calls.fdatasync(fd()) : calls.fsync(fd())) == 0 ? 0 : errno;
  if (error != 0) promise.broken();
  verf = promise.verf();
  return error;
}

ssize_t OpenFile::pread_now(const DiskCalls& calls, MutBytes into, off_t offset) const {
  return (lies_in_memory_ ? calls.pread : calls.pread_nowait)(fd(), into.data(), into.size(), offset);
}

ssize_t OpenFile::pwrite_now(const DiskCalls& calls, ConstBytes data, off_t offset) const {
  return (lies_in_memory_ ? calls.pwrite : calls.pwrite_nowait)(fd(), data.data(), data.size(), offset);
}

bool OpenFile::is_needed_for_writing() const {
  if (!is_writable_ || (was_written_.load() && !is_dirty())) return false;
  return ::faccessat(fd(), "", W_OK, AT_EACCESS | AT_EMPTY_PATH) != 0;
}

}  // namespace weft::serve
