#pragma once

#include "verbs-shim/soft/handle.h"

// Connections of tests that have none.
namespace weft::verbs::soft {

inline constexpr Handle kA{0, 1};
inline constexpr Handle kB{1, 1};
inline constexpr Handle kC{2, 1};
inline constexpr Handle kD{3, 1};

}  // namespace weft::verbs::soft
