#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::verbs::soft {

// RandomSource gives unpredictable numbers from getrandom(2), fetched in batches.
class RandomSource {
 public:
  std::uint32_t next();

 private:
  std::array<std::uint32_t, 64> pool_{};
  std::size_t next_ = 64;
};

}  // namespace weft::verbs::soft
