#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::apps::dissect {

// HeldMessages bounds the octets of unfinished untagged messages, over all connections.
struct HeldMessages {
  static constexpr std::size_t kMax = 64 << 20;
  std::size_t now = 0;
  std::vector<std::uint8_t> last = {};  // the last message that became whole, for its frame
};

}  // namespace weft::apps::dissect
