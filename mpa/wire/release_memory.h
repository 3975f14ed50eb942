#pragma once

#include <vector>

namespace weft {

// release_memory empties a vector and gives its memory back. `v = {}` only empties it: that is an assignment of no
// elements, which keeps the room for the old ones.
template <typename T>
void release_memory(std::vector<T>& v) {
  std::vector<T>().swap(v);
}

}  // namespace weft
