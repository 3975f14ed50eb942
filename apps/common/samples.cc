#include "apps/common/samples.h"

#include <algorithm>
#include <cmath>

namespace weft::apps {

void Samples::add(std::uint64_t ns) {
  ++num_;
  min_ = std::min(min_, ns);
  if (kept_.size() < most_) {
    kept_.push_back(ns);
    return;
  }
  // The high bits of this generator are the good ones, and a double holds 53 of them.
  const auto at =
      static_cast<std::uint64_t>(static_cast<double>(random_() >> 11) * 0x1p-53 * static_cast<double>(num_));
  if (at < most_) kept_[at] = ns;
}

std::uint64_t Samples::quantile(double q) {
  if (kept_.empty()) return 0;
  const auto rank = std::size_t(std::ceil(q * double(kept_.size())));
  const std::size_t index = std::min(rank == 0 ? 0 : rank - 1, kept_.size() - 1);
  std::nth_element(kept_.begin(), kept_.begin() + std::ptrdiff_t(index), kept_.end());
  return kept_[index];
}

}  // namespace weft::apps
