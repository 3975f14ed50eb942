#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>

#include "apps/serve/export/outcome.h"

namespace weft::serve {

// FileKey names one file for as long as it exists. If the filesystem keeps birth times, no other file has the same key,
// not even a later one with the same inode number. dev is 0 for the filesystem of the export's root, so that keys
// survive a renumbering of devices. On overlayfs the birth time is the first that was seen: the first change of a file
// copies it to the upper layer, and the copy has a new birth time.
struct FileKey {
  std::uint64_t dev = 0;
  std::uint64_t ino = 0;
  std::int64_t btime_ns = 0;  // 0 if the filesystem has none
  friend bool operator==(const FileKey&, const FileKey&) = default;
  bool has_inode_of(const FileKey& other) const { return dev == other.dev && ino == other.ino; }
};

// FileKeyHash leaves the birth time out, so that keys with one inode number share a bucket (PathIndex::twin).
struct FileKeyHash {
  std::size_t operator()(const FileKey& key) const {
    std::uint64_t h = key.ino * 0x9e3779b97f4a7c15u ^ key.dev;
    return static_cast<std::size_t>((h ^ h >> 31) * 0xbf58476d1ce4e5b9u);
  }
};

// FileStat is the result of statx(2) for one file.
struct FileStat {
  mode_t mode = 0;  // type and permissions
  std::uint32_t nlink = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t size = 0;
  std::uint64_t used = 0;  // octets on disk
  std::uint64_t dev = 0;   // major << 32 | minor
  std::uint64_t ino = 0;
  std::uint32_t rdev_major = 0, rdev_minor = 0;
  timespec atime{}, mtime{}, ctime{}, btime{};

  bool is_dir() const { return S_ISDIR(mode); }
  bool is_regular() const { return S_ISREG(mode); }
  bool is_symlink() const { return S_ISLNK(mode); }
  FileKey key(std::uint64_t root_dev) const;
};

// stat_fd is for the open descriptor itself, O_PATH descriptors included.
Outcome<FileStat> stat_fd(int fd);

// lies_on_overlay: whether the filesystem of an open descriptor is overlayfs.
bool lies_on_overlay(int fd);

}  // namespace weft::serve
