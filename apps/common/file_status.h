#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace weft::apps {

// FileStatus is what stat(2) says of a file.
using FileStatus = struct stat;

inline std::optional<FileStatus> file_status(int fd) {
  FileStatus status{};
  if (::fstat(fd, &status) != 0) return std::nullopt;
  return status;
}

// Symbolic links are followed. Empty: there is no file of this name, or it cannot be reached.
inline std::optional<FileStatus> file_status(const std::string& path) {
  FileStatus status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

// Whether both are one file, whatever names led to it.
inline bool is_same_file(const FileStatus& one, const FileStatus& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

}  // namespace weft::apps
