#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/exhaust/attack.h"

namespace weft::exhaust {

// The mark of a record of `len` octets in one fragment (RFC 5531 section 11), and the first `num_octets` of the record.
inline Octets part_of_a_record(std::uint32_t len, std::size_t num_octets) {
  Octets octets = {static_cast<std::uint8_t>(0x80 | len >> 24), static_cast<std::uint8_t>(len >> 16),
                   static_cast<std::uint8_t>(len >> 8), static_cast<std::uint8_t>(len)};
  octets.resize(octets.size() + num_octets);
  return octets;
}

}  // namespace weft::exhaust
