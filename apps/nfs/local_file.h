#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace weft::nfs {

// kPermissions are the bits of a mode that get and put carry over.
inline constexpr std::uint32_t kPermissions = 0777;

// CloseDir closes the stream of a std::unique_ptr<DIR, CloseDir>.
struct CloseDir {
  void operator()(DIR* stream) const { closedir(stream); }
};

// temporary_name: ".NAME.weft-XXXXXXXX" with random digits; NAME is cut so that the whole fits 255 octets.
std::string temporary_name(const std::string& name);

// errno_status: "WHAT: No such file or directory", kNotFound for ENOENT, else kUnknown.
absl::Status errno_status(int error, const std::string& what);

// target_status is errno_status for a local name that should be written. It says so if the name is a symbolic link
// whose target is missing.
absl::Status target_status(int error, const std::string& path);

// LocalAttributes are the attributes that a complete file gets.
struct LocalAttributes {
  std::uint32_t mode = 0600;                                    // permission bits, as they are
  std::optional<std::array<timespec, 2>> times = std::nullopt;  // of access and of modification
  bool sync = false;                                            // on the disk before the name
};

// LocalFile is a file that get writes. A regular file is written under a temporary name and gets its final name in
// commit(). If it is destroyed before that, nothing of it is left. Other files (a device, a pipe) are written directly.
class LocalFile {
 public:
  // create begins the file `name` in the directory `dir_fd`. At commit() it replaces any file with that name, but no
  // directory. No symbolic link is followed. `shown` is the path in error messages. dir_fd outlives the LocalFile.
  static absl::StatusOr<LocalFile> create(int dir_fd, const std::string& name, const std::string& shown);
  // open_path is create for a path from the user: symbolic links are followed, devices and pipes opened. A link whose
  // target is missing is an error: to replace the link, or to make a file where it points, may be a mistake.
  static absl::StatusOr<LocalFile> open_path(const std::string& path);

  LocalFile(LocalFile&& other) noexcept = default;
  LocalFile& operator=(LocalFile&& other) = delete;
  ~LocalFile();

  int fd() const { return fd_.get(); }
  // write appends `octets`.
  absl::Status write(std::span<const std::uint8_t> octets);
  // commit gives the file its attributes and its name. It does nothing for a file that is written directly.
  absl::Status commit(const LocalAttributes& attributes);

 private:
  LocalFile() = default;

  int dir_ = -1;
  Fd own_dir_;  // used if dir_ is not the caller's
  Fd fd_;
  std::string name_;
  std::string temporary_;  // empty: written directly, or committed
  std::string shown_;
};

}  // namespace weft::nfs
