#include "apps/common/samples.h"

#include <algorithm>
#include <cmath>

namespace weft::apps {

void Samples::add(std::uint64_t ns) {
  ++num_;
  min_ = std::min(min_, ns);
  if (kept_.size() < most_) {
    kept_.push_back(ns);
  } else if (const std::uint64_t at = random_() % num_; at < most_) {
    kept_[at] = ns;
  }
}

std::uint64_t Samples::quantile(double q) {
  if (kept_.empty()) return 0;
  const auto rank = std::size_t(std::ceil(q * double(kept_.size())));
  const std::size_t index = std::min(rank == 0 ? 0 : rank - 1, kept_.size() - 1);
  std::nth_element(kept_.begin(), kept_.begin() + std::ptrdiff_t(index), kept_.end());
  return kept_[index];
}

}  // namespace weft::apps
