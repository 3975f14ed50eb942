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

}  // namespace

std::string temporary_name(const std::string& name) {
  constexpr std::size_t kMaxKept = NAME_MAX - std::string_view("..weft-XXXXXXXX").size();
  // For many small files, a std::random_device for each would take longer than writing them.
  std::uint32_t random = 0;
  if (getentropy(&random, sizeof(random)) != 0) random = std::random_device()();
  return fmt::format(".{}.weft-{:08x}", name.substr(0, kMaxKept), random);
}

absl::Status errno_status(int error, const std::string& what) {
  const std::string text = what + ": " + std::strerror(error);
  return error == ENOENT ? absl::NotFoundError(text) : absl::UnknownError(text);
}

absl::Status target_status(int error, const std::string& path) {
  struct stat there {};
  if (error != ENOENT || lstat(path.c_str(), &there) != 0 || !S_ISLNK(there.st_mode)) return errno_status(error, path);
  return absl::FailedPreconditionError(path +
                                       ": not written through a symbolic link whose target is missing. Try: remove the "
                                       "link, or name its target");
}

absl::StatusOr<LocalFile> LocalFile::create(int dir_fd, const std::string& name, const std::string& shown) {
  LocalFile file;
  file.name_ = name;
  file.shown_ = shown;
  file.dir_ = dir_fd;
  struct stat there {};
  if (fstatat(dir_fd, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode)) {
    return errno_status(EISDIR, shown);
  }
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    std::string temporary = temporary_name(name);
    file.fd_ = Fd(openat(dir_fd, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
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
      file.fd_ = Fd(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
      if (!file.fd_) return errno_status(errno, path);
      return file;
    }
    const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
    if (real) target = real.get();
  } else if (const int error = errno; lstat(path.c_str(), &there) == 0) {
    return target_status(error, path);
  }
  const std::size_t slash = target.rfind('/');
  const std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
  const std::string dir = slash == std::string::npos ? "." : target.substr(0, slash + 1);
  if (name.empty()) return errno_status(EISDIR, path);
  Fd dir_fd(open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir_fd) return errno_status(errno, path);
  auto file = create(dir_fd.get(), name, path);
  if (file.ok()) file->own_dir_ = std::move(dir_fd);
  return file;
}

LocalFile::~LocalFile() {
  if (!temporary_.empty()) unlinkat(dir_, temporary_.c_str(), 0);
}

absl::Status LocalFile::write(std::span<const std::uint8_t> octets) {
  while (!octets.empty()) {
    const ssize_t len = ::write(fd_.get(), octets.data(), octets.size());
    if (len < 0 && errno != EINTR) {
      return absl::UnknownError("cannot write " + shown_ + ": " + std::strerror(errno));
    }
    if (len > 0) octets = octets.subspan(static_cast<std::size_t>(len));
  }
  return absl::OkStatus();
}

absl::Status LocalFile::commit(const LocalAttributes& attributes) {
  if (temporary_.empty()) return absl::OkStatus();
  if (fchmod(fd_.get(), attributes.mode) != 0) return errno_status(errno, shown_);
  if (attributes.times && futimens(fd_.get(), attributes.times->data()) != 0) return errno_status(errno, shown_);
  if (attributes.sync && fsync(fd_.get()) != 0) return errno_status(errno, shown_);
  // A file system may report a full disk or a lost server only now.
  if (close(fd_.release()) != 0) return errno_status(errno, shown_);
  if (renameat(dir_, temporary_.c_str(), dir_, name_.c_str()) != 0) return errno_status(errno, shown_);
  temporary_.clear();
  return absl::OkStatus();
}

}  // namespace weft::nfs
