#pragma once

#include <cstdint>
#include <vector>

namespace weft::ends {

// The soft RNIC names registered memory by random STags. fix_stags makes them known before: the first registrations of
// the process get `stags` in this order, later ones get other fixed values. Called once, before a device is opened.
// Programs for captures alone: an STag that a peer can guess protects nothing.
void fix_stags(std::vector<std::uint32_t> stags);

}  // namespace weft::ends
