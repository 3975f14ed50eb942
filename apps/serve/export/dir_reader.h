#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "apps/serve/export/outcome.h"

namespace weft::serve {

// DirEntry is one struct linux_dirent64.
struct DirEntry {
  std::uint64_t ino = 0;
  std::uint64_t cookie = 0;  // d_off: the filesystem's number for the place behind this entry
  unsigned char type = 0;    // DT_*
  std::string name;
};

// DirReader reads a directory entry by entry (getdents64(2)). It borrows the descriptor, which was opened for reading.
class DirReader {
 public:
  explicit DirReader(int fd) : fd_(fd) {}

  // seek moves to the place behind the entry that had this cookie; 0 is the beginning. EINVAL: the filesystem does not
  // take the cookie.
  int seek(std::uint64_t cookie);
  // next: false at the end of the directory.
  Outcome<bool> next(DirEntry& entry);

 private:
  int fd_;
  std::size_t at_ = 0, len_ = 0;
  alignas(8) std::array<unsigned char, 32768> buffer_;
};

}  // namespace weft::serve
