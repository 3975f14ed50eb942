#include "apps/serve/export/dir_reader.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace weft::serve {
namespace {

// struct linux_dirent64, which the C library does not show under this name.
constexpr std::size_t kInoOffset = 0, kOffOffset = 8, kReclenOffset = 16, kTypeOffset = 18, kNameOffset = 19;

}  // namespace

int DirReader::seek(std::uint64_t cookie) {
  at_ = len_ = 0;
  if (cookie > static_cast<std::uint64_t>(INT64_MAX)) return EINVAL;
  return ::lseek(fd_, static_cast<off_t>(cookie), SEEK_SET) < 0 ? errno : 0;
}

Outcome<bool> DirReader::next(DirEntry& entry) {
  if (at_ == len_) {
    long n = 0;
    do {
      n = ::syscall(SYS_getdents64, fd_, buffer_.data(), buffer_.size());
    } while (n < 0 && errno == EINTR);
    if (n < 0) return last_errno();
    if (n == 0) return false;
    at_ = 0;
    len_ = static_cast<std::size_t>(n);
  }
  const unsigned char* record = buffer_.data() + at_;
  std::uint16_t reclen = 0;
  std::memcpy(&entry.ino, record + kInoOffset, sizeof entry.ino);
  std::memcpy(&entry.cookie, record + kOffOffset, sizeof entry.cookie);
  std::memcpy(&reclen, record + kReclenOffset, sizeof reclen);
  entry.type = record[kTypeOffset];
  const char* name = reinterpret_cast<const char*>(record + kNameOffset);
  entry.name.assign(name, ::strnlen(name, reclen - kNameOffset));
  at_ += reclen;
  return true;
}

}  // namespace weft::serve
