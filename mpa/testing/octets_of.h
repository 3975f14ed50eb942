#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "mpa/fpdu_reader.h"
#include "mpa/fpdu_writer.h"

namespace weft::mpa::testing {

// octets_of copies a whole ULPDU.
inline std::vector<std::uint8_t> octets_of(const Ulpdu& ulpdu) {
  std::vector<std::uint8_t> octets(ulpdu.size());
  ulpdu.copy(0, octets);
  return octets;
}

// joined copies all that a writer has to send.
inline std::vector<std::uint8_t> joined(FpduWriter& writer) {
  std::vector<std::uint8_t> octets;
  for (const ConstBytes& piece : writer.buffers()) octets.insert(octets.end(), piece.begin(), piece.end());
  EXPECT_EQ(octets.size(), writer.pending_octets());
  return octets;
}

}  // namespace weft::mpa::testing
