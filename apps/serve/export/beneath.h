#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "apps/serve/export/outcome.h"
#include "base/fd.h"

// Names from a client reach the filesystem only through these functions.
namespace weft::serve {

// check_name: whether a client's name may be given to the kernel as one component. Returns 0, or ENAMETOOLONG (over
// NAME_MAX octets), or EACCES (empty, or holds '/' or NUL). "." and ".." pass; callers decide about them.
int check_name(std::string_view name);
inline bool is_dot(std::string_view name) {
  return name == ".";
}
inline bool is_dot_dot(std::string_view name) {
  return name == "..";
}

// Walk says how a path is followed.
struct Walk {
  bool cached = false;  // fail with EAGAIN if a step needs the disk (RESOLVE_CACHED)
  // Go on if a filesystem or a directory is mounted on the way; otherwise a mount is EXDEV (RESOLVE_NO_XDEV).
  bool cross_mounts = false;
};

// open_beneath is openat2(2) with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS, for a path of any
// length (a path beyond PATH_MAX is walked in pieces). flags and mode are as for openat(2); O_CLOEXEC is added. An
// empty path is ".".
Outcome<Fd> open_beneath(int dir_fd, std::string_view path, int flags, mode_t mode = 0, Walk walk = {});

// openat2_fault says why openat2(2) failed on the exported directory itself, and what to do about it.
std::string openat2_fault(int error);

// open_path_beneath: the file itself (a symbolic link too) as an O_PATH descriptor.
Outcome<Fd> open_path_beneath(int dir_fd, std::string_view path, Walk walk = {});

// reopen turns an O_PATH descriptor into one with the access that flags ask for. It opens the very same file, whatever
// its name is by now. Not for symbolic links.
Outcome<Fd> reopen(int path_fd, int flags);

// ProcFdPath writes "/proc/self/fd/N" for calls that take only a path.
struct ProcFdPath {
  explicit ProcFdPath(int fd);
  char text[32];
};

}  // namespace weft::serve
