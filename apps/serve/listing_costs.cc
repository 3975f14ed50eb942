#include "apps/serve/listing_costs.h"

#include <algorithm>

namespace weft::serve {

std::shared_ptr<ListingCosts::Cost> ListingCosts::of(const nfs3::NfsFh3& dir) {
  const ConstBytes octets = dir.octets();
  const std::string key(octets.begin(), octets.end());
  if (const auto at = costs_.find(key); at != costs_.end()) return at->second;
  if (costs_.size() >= kMost) {
    costs_.erase(std::ranges::min_element(costs_, {}, [](const auto& one) { return one.second->load(); }));
  }
  return costs_.emplace(key, std::make_shared<Cost>(0)).first->second;
}

}  // namespace weft::serve
