#pragma once

#include <algorithm>
#include <string_view>

#include "base/bytes.h"

namespace weft {

inline bool begins_with(ConstBytes octets, std::string_view text) {
  return octets.size() >= text.size() && std::equal(text.begin(), text.end(), octets.begin());
}

}  // namespace weft
