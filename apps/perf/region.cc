#include "apps/perf/region.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace weft::apps::perf {

absl::StatusOr<Region> Region::reserve(std::size_t size) {
  if (size == 0) return Region();
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError("no memory of " + std::to_string(size) + " bytes: " + std::strerror(errno));
  }
  return Region(static_cast<std::uint8_t*>(data), size);
}

Region::Region(Region&& other) noexcept
    : data_(other.data_), mapped_(std::exchange(other.mapped_, 0)), size_(std::exchange(other.size_, 0)) {}

Region::~Region() {
  if (mapped_ != 0) ::munmap(data_, mapped_);
}

bool Region::fill(std::size_t most) {
  const std::size_t num = std::min(most, mapped_ - size_);
  std::fill_n(data_ + size_, num, std::uint8_t{0x5a});
  size_ += num;
  return size_ == mapped_;
}

std::size_t Region::release(std::size_t most) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = size_;
  size_ = before > most ? (before - std::max<std::size_t>(most, 1)) / page * page : 0;
  if (size_ != mapped_) ::munmap(data_ + size_, std::exchange(mapped_, size_) - size_);
  return before - size_;
}

}  // namespace weft::apps::perf
