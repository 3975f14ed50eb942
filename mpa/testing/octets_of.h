#pragma once

#include <cstdint>
#include <vector>

#include "mpa/fpdu_reader.h"

namespace weft::mpa::testing {

// octets_of copies a whole ULPDU.
inline std::vector<std::uint8_t> octets_of(const Ulpdu& ulpdu) {
  std::vector<std::uint8_t> octets(ulpdu.size());
  ulpdu.copy(0, octets);
  return octets;
}

}  // namespace weft::mpa::testing
