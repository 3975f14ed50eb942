#include "apps/serve/export/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <string>

namespace weft::serve {
namespace {

Outcome<Fd> openat2_beneath(int dir_fd, const char* path, int flags, mode_t mode, Walk walk) {
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  if (walk.cached) how.resolve |= RESOLVE_CACHED;
  if (!walk.cross_mounts) how.resolve |= RESOLVE_NO_XDEV;
  long fd = -1;
  do {
    fd = ::syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return last_errno();
  return Fd(static_cast<int>(fd));
}

}  // namespace

int check_name(std::string_view name) {
  if (name.size() > NAME_MAX) return ENAMETOOLONG;
  if (name.empty() || name.find('/') != name.npos || name.find('\0') != name.npos) return EACCES;
  return 0;
}

Outcome<Fd> open_beneath(int dir_fd, std::string_view path, int flags, mode_t mode, Walk walk) {
  constexpr std::size_t kPiece = PATH_MAX - 1;
  Fd held;
  while (path.size() > kPiece) {
    std::size_t cut = path.rfind('/', kPiece);
    if (cut == path.npos || cut == 0) return Errno{ENAMETOOLONG};
    Outcome<Fd> next =
        openat2_beneath(dir_fd, std::string(path.substr(0, cut)).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, walk);
    if (!next) return next.error();
    held = std::move(next.value());
    dir_fd = held.get();
    path.remove_prefix(cut + 1);
  }
  return openat2_beneath(dir_fd, path.empty() ? "." : std::string(path).c_str(), flags, mode, walk);
}

std::string openat2_fault(int error) {
  const std::string why = std::strerror(error);
  switch (error) {
    case ENOSYS: return why + ": openat2(2) needs Linux 5.6 or later";
    case EPERM:
      return why + ": something forbids openat2(2), most likely a container; its seccomp profile must allow it";
    case EACCES: return why + ": the user that runs this may not search the directory (chmod +x, or run as its owner)";
    default: return "openat2(2): " + why;
  }
}

Outcome<Fd> open_path_beneath(int dir_fd, std::string_view path, Walk walk) {
  return open_beneath(dir_fd, path, O_PATH | O_NOFOLLOW, 0, walk);
}

ProcFdPath::ProcFdPath(int fd) {
  std::snprintf(text, sizeof text, "/proc/self/fd/%d", fd);
}

Outcome<Fd> reopen(int path_fd, int flags) {
  int fd = -1;
  do {
    fd = ::open(ProcFdPath(path_fd).text, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return last_errno();
  return Fd(fd);
}

}  // namespace weft::serve
