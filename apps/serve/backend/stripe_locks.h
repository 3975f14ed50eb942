#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <span>

#include "apps/serve/export/file_stat.h"

namespace weft::serve {

// StripeLocks is a fixed number of mutexes. All files share them by hash.
class StripeLocks {
 public:
  // Held is the locks of up to kMaxFiles files, taken in the one order that cannot deadlock.
  class Held {
   public:
    static constexpr std::size_t kMaxFiles = 4;

    explicit operator bool() const { return num_ != 0; }
    // Whether it holds the lock of this file.
    bool covers(const FileKey& key) const {
      return std::find(at_.begin(), at_.begin() + num_, index(key)) != at_.begin() + num_;
    }
    void unlock() {
      for (; num_ != 0; --num_) locks_[num_ - 1] = {};
    }

   private:
    friend class StripeLocks;
    std::array<std::size_t, kMaxFiles> at_{};  // stripes
    std::array<std::unique_lock<std::mutex>, kMaxFiles> locks_;
    std::size_t num_ = 0;
  };

  // At most Held::kMaxFiles keys; the same key may come twice.
  Held lock(std::span<const FileKey> keys) {
    Held held;
    for (const FileKey& key : keys) {
      if (!held.covers(key)) held.at_[held.num_++] = index(key);
    }
    std::sort(held.at_.begin(), held.at_.begin() + held.num_);
    for (std::size_t i = 0; i < held.num_; ++i) held.locks_[i] = std::unique_lock(stripes_[held.at_[i]]);
    return held;
  }

  // Nothing if another thread has the lock.
  Held try_lock(const FileKey& key) {
    Held held;
    held.at_[0] = index(key);
    held.locks_[0] = std::unique_lock(stripes_[held.at_[0]], std::try_to_lock);
    held.num_ = held.locks_[0] ? 1 : 0;
    return held;
  }

 private:
  static constexpr std::size_t kNumStripes = 256;
  static std::size_t index(const FileKey& key) { return FileKeyHash{}(key) % kNumStripes; }

  std::array<std::mutex, kNumStripes> stripes_;
};

}  // namespace weft::serve
