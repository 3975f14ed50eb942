#pragma once

#include <cstdint>
#include <utility>

namespace weft::verbs::soft {

// Handle names an element of a SlotMap. Its generation distinguishes the element from earlier elements of the slot: a
// handle that outlives its element finds nothing. A default Handle names nothing.
struct Handle {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  bool operator==(const Handle&) const = default;
  template <typename H>
  friend H AbslHashValue(H hash, const Handle& handle) {
    return H::combine(std::move(hash), handle.index, handle.generation);
  }
};

}  // namespace weft::verbs::soft
