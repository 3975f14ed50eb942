#include "apps/serve/listing_costs.h"

#include <algorithm>
#include <limits>

namespace weft::serve {

std::shared_ptr<ListingCosts::Cost> ListingCosts::of(const nfs3::NfsFh3& dir) {
  const ConstBytes octets = dir.octets();
  const std::string key(octets.begin(), octets.end());
  if (const auto at = costs_.find(key); at != costs_.end()) return at->second;
  constexpr auto kKept = std::numeric_limits<std::int64_t>::max();  // a Call holds it
  const auto cost_of = [](const auto& one) { return one.second.use_count() > 1 ? kKept : one.second->load(); };
  while (costs_.size() >= kMost) {
    const auto cheapest = std::ranges::min_element(costs_, {}, cost_of);
    if (cost_of(*cheapest) == kKept) break;
    costs_.erase(cheapest);
  }
  return costs_.emplace(key, std::make_shared<Cost>(0)).first->second;
}

void ListingCosts::note(Cost& cost, std::chrono::microseconds took) {
  const std::int64_t before = cost.load();
  cost.store(std::max<std::int64_t>(took.count(), before - before / 8));
}

}  // namespace weft::serve
