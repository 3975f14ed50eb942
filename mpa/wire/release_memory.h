#pragma once

#include <vector>

namespace weft {

// release_memory empties a vector and gives its memory back. `v = {}` only empties it: this assignment of no elements
// keeps the capacity.
template <typename T>
void release_memory(std::vector<T>& v) {
  std::vector<T>().swap(v);
}

}  // namespace weft
