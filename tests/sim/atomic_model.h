#pragma once

// The values that Atomics have to find and to leave, worked out apart from the code under test.

#include <array>
#include <cstdint>
#include <cstring>

#include "rdmap/work.h"
#include "tests/sim/world.h"

namespace weft::sim {

inline constexpr std::size_t kNumWords = 3;
inline constexpr std::uint64_t kUntouchedWord = 0xa5a5a5a5a5a5a5a5;

using Words = std::array<std::uint64_t, kNumWords>;

// The outcome of an Atomic on a word, bit by bit from the lowest (RFC 7306 sections 5.1.1 and 5.1.2).
inline std::uint64_t atomic_outcome(const rdmap::AtomicOperands& o, std::uint64_t original) {
  std::uint64_t outcome = 0;
  bool carry = false;
  bool differs = false;
  for (unsigned i = 0; i < 64; ++i) {
    const auto bit = [i](std::uint64_t word) { return (word >> i & 1) != 0; };
    const bool was = bit(original), operand = bit(o.add_swap), masked = bit(o.add_swap_mask);
    bool is = masked ? operand : was;
    if (o.op == rdmap::AtomicOp::kFetchAdd) {
      is = (was != operand) != carry;
      carry = !masked && (was ? operand || carry : operand && carry);
    } else if (bit(o.compare_mask) && was != bit(o.compare)) {
      differs = true;
    }
    outcome |= std::uint64_t{is} << i;
  }
  return differs ? original : outcome;
}

// Operands of either kind, every sort of mask. About half of the CmpSwaps find the compared value.
inline rdmap::AtomicOperands random_atomic(Random& random, std::uint64_t original) {
  const auto word = [&] { return static_cast<std::uint64_t>(random.between(0, SIZE_MAX - 1)); };
  const auto mask = [&] {
    return random.pick<std::uint64_t>({0, ~std::uint64_t{0}, std::uint64_t{1} << 63, 0x8080808080808080, word()});
  };
  rdmap::AtomicOperands o;
  o.op = random.one_in(2) ? rdmap::AtomicOp::kFetchAdd : rdmap::AtomicOp::kCmpSwap;
  o.add_swap = random.one_in(4) ? 1 : word();
  o.add_swap_mask = mask();
  o.compare_mask = mask();
  // Bits outside the mask may differ all they like.
  o.compare = random.one_in(2) ? word() : (original & o.compare_mask) | (word() & ~o.compare_mask);
  return o;
}

// The words of a region, which are numbers in this machine's byte order.
inline Words words_of(const std::vector<std::uint8_t>& octets) {
  Words words;
  std::memcpy(words.data(), octets.data(), sizeof(words));
  return words;
}

}  // namespace weft::sim
