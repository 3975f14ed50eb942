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

  // Room: the memory for `most` times is there from the beginning, or grows with the times that are kept.
  enum class Room : std::uint8_t { kAtOnce, kAsNeeded };

  explicit Samples(std::size_t most = kMost, Room room = Room::kAtOnce) : most_(most) {
    if (room == Room::kAtOnce) kept_.reserve(most);
  }

  void add(std::uint64_t ns);
  // The number of times added.
  std::uint64_t num() const { return num_; }
  std::size_t num_kept() const { return kept_.size(); }
  // Times for which there is memory.
  std::size_t room() const { return kept_.capacity(); }
  // 0 if there are none.
  std::uint64_t min() const { return num_ == 0 ? 0 : min_; }
  // The quantile, 0 <= q <= 1, by nearest rank among the kept times; 0 if there are none. Reorders the kept times.
  std::uint64_t quantile(double q);

 private:
  std::size_t most_;
  std::vector<std::uint64_t> kept_;
  std::uint64_t num_ = 0;
  std::uint64_t min_ = UINT64_MAX;
  // Small: a listener may have a Samples for each of many connections.
  std::linear_congruential_engine<std::uint64_t, 6364136223846793005u, 1442695040888963407u, 0> random_;
};

}  // namespace weft::apps
