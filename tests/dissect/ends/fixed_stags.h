#pragma once

#include <cstdint>
#include <vector>

namespace weft::ends {

// The soft RNIC names registered memory by random STags. With fix_stags they are known before: the first registrations
// of the process get `stags` in this order, and further ones, up to 64 in all, get other fixed values. Call it once,
// before a device is opened. It is for captures alone: an STag that a peer can guess protects nothing.
void fix_stags(std::vector<std::uint32_t> stags);

}  // namespace weft::ends
