#include "apps/serve/export/file_stat.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace weft::serve {
namespace {

timespec to_timespec(const struct statx_timestamp& t) {
  timespec out{};
  out.tv_sec = static_cast<time_t>(t.tv_sec);
  out.tv_nsec = static_cast<long>(t.tv_nsec);
  return out;
}

std::uint64_t dev_number(std::uint32_t major, std::uint32_t minor) {
  return std::uint64_t{major} << 32 | minor;
}

}  // namespace

FileKey FileStat::key(std::uint64_t root_dev) const {
  return FileKey{.dev = dev == root_dev ? 0 : dev,
                 .ino = ino,
                 .btime_ns = static_cast<std::int64_t>(btime.tv_sec) * 1'000'000'000 + btime.tv_nsec};
}

bool lies_on_overlay(int fd) {
  struct statfs fs {};
  return ::fstatfs(fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

Outcome<FileStat> stat_fd(int fd) {
  struct statx raw {};
  if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &raw) != 0) return last_errno();
  FileStat out;
  out.mode = raw.stx_mode;
  out.nlink = raw.stx_nlink;
  out.uid = raw.stx_uid;
  out.gid = raw.stx_gid;
  out.size = raw.stx_size;
  out.used = raw.stx_blocks * 512;
  out.dev = dev_number(raw.stx_dev_major, raw.stx_dev_minor);
  out.ino = raw.stx_ino;
  out.rdev_major = raw.stx_rdev_major;
  out.rdev_minor = raw.stx_rdev_minor;
  out.atime = to_timespec(raw.stx_atime);
  out.mtime = to_timespec(raw.stx_mtime);
  out.ctime = to_timespec(raw.stx_ctime);
  if ((raw.stx_mask & STATX_BTIME) != 0) out.btime = to_timespec(raw.stx_btime);
  return out;
}

}  // namespace weft::serve
