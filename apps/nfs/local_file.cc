#include "apps/nfs/local_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

namespace weft::nfs {
namespace {

constexpr int kMaxAttempts = 16;

// The mask cannot be read without being set; there is one thread that changes it, and only here.
mode_t current_umask() {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

}  // namespace

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

std::string temporary_name(const std::string& name) {
  constexpr std::size_t kMaxKept = NAME_MAX - std::string_view("..weft-XXXXXXXX").size();
  return fmt::format(".{}.weft-{:08x}", name.substr(0, kMaxKept), std::random_device()());
}

absl::Status errno_status(int error, const std::string& what) {
  const std::string text = what + ": " + std::strerror(error);
  return error == ENOENT ? absl::NotFoundError(text) : absl::UnknownError(text);
}

absl::StatusOr<LocalFile> LocalFile::create(int dir_fd, const std::string& name, const std::string& shown) {
  LocalFile file;
  file.name_ = name;
  file.shown_ = shown;
  file.dir_ = UniqueFd(openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!file.dir_) return errno_status(errno, shown);
  struct stat there {};
  if (fstatat(dir_fd, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode)) {
    return errno_status(EISDIR, shown);
  }
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    std::string temporary = temporary_name(name);
    file.fd_ = UniqueFd(openat(dir_fd, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.fd_) {
      file.temporary_ = std::move(temporary);
      return file;
    }
    if (errno != EEXIST) break;
  }
  return errno_status(errno, shown);
}

absl::StatusOr<LocalFile> LocalFile::open_path(const std::string& path) {
  struct stat there {};
  std::string target = path;
  if (stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return errno_status(EISDIR, path);
    if (!S_ISREG(there.st_mode)) {
      LocalFile file;
      file.shown_ = path;
      file.fd_ = UniqueFd(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
      if (!file.fd_) return errno_status(errno, path);
      return file;
    }
    const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
    if (real) target = real.get();
  }
  const std::size_t slash = target.rfind('/');
  const std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
  const std::string dir = slash == std::string::npos ? "." : target.substr(0, slash + 1);
  if (name.empty()) return errno_status(EISDIR, path);
  const UniqueFd dir_fd(open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir_fd) return errno_status(errno, path);
  return create(dir_fd.get(), name, path);
}

LocalFile::~LocalFile() {
  if (dir_ && !temporary_.empty()) unlinkat(dir_.get(), temporary_.c_str(), 0);
}

absl::Status LocalFile::commit(std::uint32_t mode, const timespec* mtime) {
  if (temporary_.empty()) return absl::OkStatus();
  constexpr mode_t kPermissions = 0777;
  if (fchmod(fd_.get(), mode & kPermissions & ~current_umask()) != 0) return errno_status(errno, shown_);
  if (mtime != nullptr) {
    const timespec times[2] = {{0, UTIME_OMIT}, *mtime};
    if (futimens(fd_.get(), times) != 0) return errno_status(errno, shown_);
  }
  // A file system may report a full disk or a lost server as late as this.
  if (close(fd_.release()) != 0) return errno_status(errno, shown_);
  if (renameat(dir_.get(), temporary_.c_str(), dir_.get(), name_.c_str()) != 0) return errno_status(errno, shown_);
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace weft::nfs
