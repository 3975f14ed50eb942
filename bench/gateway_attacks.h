#pragma once

#include <vector>

#include "tests/exhaust/attacks.h"

namespace weft::bench {

// Attacks of TCP clients of `weft gateway` with the defaults, before a `weft serve`.
std::vector<exhaust::Attack> gateway_attacks(const exhaust::Handles& of);

}  // namespace weft::bench
