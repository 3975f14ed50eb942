#pragma once

#include "verbs-shim/soft/handle.h"

// Handles for tests that have no connections.
namespace weft::verbs::soft {

inline constexpr Handle kA{0, 1};
inline constexpr Handle kB{1, 1};
inline constexpr Handle kC{2, 1};
inline constexpr Handle kD{3, 1};

}  // namespace weft::verbs::soft
