#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace weft::mpa {

// CRC32c with the instructions crc32 and VPCLMULQDQ at once, each on its own part of the octets: for x86 processors
// that have no AVX-512. `state` is Crc32c's: the inverted CRC of the octets before.

// mixed_available: the processor has the instructions, and the operating system and GLIBC_TUNABLES allow them.
// Precondition of the two functions below.
bool mixed_available();

// mixed_is_fastest: they are there, and ISA-L has nothing faster.
bool mixed_is_fastest();

// mixed_update returns the state after octets.
std::uint32_t mixed_update(std::uint32_t state, ConstBytes octets);

// mixed_copy copies octets to `to` and returns the state after them, in one pass. It reads each octet once: the state
// is that of the copy also if others write the octets meanwhile. Precondition: `to` has room, and the two do not
// overlap.
std::uint32_t mixed_copy(std::uint32_t state, std::uint8_t* to, ConstBytes octets);

}  // namespace weft::mpa
