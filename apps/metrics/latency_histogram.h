#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::metrics {

// LatencyHistogram counts durations in buckets. A value.
class LatencyHistogram {
 public:
  // The upper bounds of all buckets but the last, in nanoseconds. A duration that is equal to a bound is below it.
  static constexpr std::array<std::uint64_t, 20> kBounds = {
      5'000,       10'000,      20'000,        50'000,        100'000,       200'000,       500'000,
      1'000'000,   2'000'000,   5'000'000,     10'000'000,    20'000'000,    50'000'000,    100'000'000,
      200'000'000, 500'000'000, 1'000'000'000, 2'000'000'000, 5'000'000'000, 10'000'000'000};
  static constexpr std::size_t kNumBuckets = kBounds.size() + 1;

  void add(std::uint64_t ns) {
    const auto at = std::lower_bound(kBounds.begin(), kBounds.end(), ns);
    ++counts_[static_cast<std::size_t>(at - kBounds.begin())];
    sum_ += ns;
  }

  const std::array<std::uint64_t, kNumBuckets>& counts() const { return counts_; }
  std::uint64_t sum() const { return sum_; }  // nanoseconds

  LatencyHistogram& operator+=(const LatencyHistogram& one) {
    for (std::size_t i = 0; i < kNumBuckets; ++i) counts_[i] += one.counts_[i];
    sum_ += one.sum_;
    return *this;
  }

 private:
  std::array<std::uint64_t, kNumBuckets> counts_{};
  std::uint64_t sum_ = 0;
};

}  // namespace weft::metrics
