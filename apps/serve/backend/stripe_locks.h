#pragma once

#include <array>
#include <mutex>
#include <utility>

#include "apps/serve/export/file_stat.h"

namespace weft::serve {

// StripeLocks are a fixed number of mutexes, shared by all files by hash.
class StripeLocks {
 public:
  using Lock = std::unique_lock<std::mutex>;

  Lock lock(const FileKey& key) { return Lock(stripes_[index(key)]); }
  // Owns nothing where another thread does.
  Lock try_lock(const FileKey& key) { return Lock(stripes_[index(key)], std::try_to_lock); }

  // For two files, in the one order that cannot deadlock; the second is empty where both share a stripe.
  std::pair<Lock, Lock> lock(const FileKey& a, const FileKey& b) {
    std::size_t i = index(a), j = index(b);
    if (i == j) return {Lock(stripes_[i]), Lock()};
    Lock first(stripes_[std::min(i, j)]);
    return {std::move(first), Lock(stripes_[std::max(i, j)])};
  }

 private:
  static constexpr std::size_t kNumStripes = 256;
  static std::size_t index(const FileKey& key) { return FileKeyHash{}(key) % kNumStripes; }

  std::array<std::mutex, kNumStripes> stripes_;
};

}  // namespace weft::serve
