#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace weft::apps {

// Samples keeps measured times in bounded memory, however long the measurement takes. It keeps all times up to `most`.
// Beyond that it keeps `most` of them, each with the same chance (a reservoir: algorithm R of J. Vitter, "Random
// Sampling with a Reservoir", 1985). The minimum is always exact. Times are in nanoseconds.
class Samples {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 20;

  explicit Samples(std::size_t most = kMost) : most_(most) { kept_.reserve(most); }

  void add(std::uint64_t ns);
  // The number of times added.
  std::uint64_t num() const { return num_; }
  std::size_t num_kept() const { return kept_.size(); }
  // 0 if there are none.
  std::uint64_t min() const { return num_ == 0 ? 0 : min_; }
  // The quantile, 0 <= q <= 1, by nearest rank among the kept times; 0 if there are none. Reorders the kept times.
  std::uint64_t quantile(double q);

 private:
  std::size_t most_;
  std::vector<std::uint64_t> kept_;
  std::uint64_t num_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  std::mt19937_64 random_;
};

}  // namespace weft::apps
