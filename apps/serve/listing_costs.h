#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "apps/nfs3/types.h"

namespace weft::serve {

// ListingCosts remembers what a READDIR or READDIRPLUS of a directory took lately. Where a filesystem gives no cookies
// that last, each Call reads the whole directory, so its cost depends on the directory and not on the octets that the
// Call asks for (DirListing). By its octets alone, such a Call of a newcomer would pass ordinary Calls.
// Only the server's thread uses it; any thread may use a Cost.
class ListingCosts {
 public:
  // Cost is what listings of one directory took lately, in microseconds; 0 if none has ended.
  using Cost = std::atomic<std::int64_t>;
  // The directories that are remembered besides the ones that Calls under way list. Of more, the cheapest is forgotten.
  static constexpr std::size_t kMost = 256;

  // The cost that all listings of this directory share.
  std::shared_ptr<Cost> of(const nfs3::NfsFh3& dir);
  // A listing took so long. After a short one the cost falls by an eighth at most. A Call may be refused before the
  // directory is read, and its time says nothing of the directory.
  static void note(Cost& cost, std::chrono::microseconds took);

 private:
  std::unordered_map<std::string, std::shared_ptr<Cost>> costs_;  // by the octets of the handle
};

}  // namespace weft::serve
