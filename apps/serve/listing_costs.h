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
// Call asks for (DirListing). Such Calls of newcomers would otherwise pass ordinary Calls as if they cost as little.
// Only the server's thread uses it; any thread may use a Cost.
class ListingCosts {
 public:
  // Cost is what listings of one directory took lately, in microseconds; 0 if none has ended.
  using Cost = std::atomic<std::int64_t>;
  // Directories that are remembered besides those that are being listed. Of more, the cheapest one is forgotten.
  static constexpr std::size_t kMost = 256;

  // A listing took so long. A short one takes away an eighth at most: a Call that is refused before the directory is
  // read says nothing of it.
  static void note(Cost& cost, std::chrono::microseconds took);
  std::shared_ptr<Cost> of(const nfs3::NfsFh3& dir);

 private:
  std::unordered_map<std::string, std::shared_ptr<Cost>> costs_;  // by the octets of the handle
};

}  // namespace weft::serve
