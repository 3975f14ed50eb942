#include "apps/serve/export/siphash.h"

#include <bit>
#include <cstddef>

namespace weft::serve {
namespace {

struct State {
  std::uint64_t v0, v1, v2, v3;

  void rounds(int num) {
    for (int i = 0; i < num; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  }
  void take(std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
};

// Up to eight octets, the first in the lowest bits.
std::uint64_t word_of(std::string_view octets) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < octets.size(); ++i)
    word |= std::uint64_t{static_cast<unsigned char>(octets[i])} << (8 * i);
  return word;
}

}  // namespace

std::uint64_t siphash(const SipHashKey& key, std::string_view input) {
  State state{key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du, key.k0 ^ 0x6c7967656e657261u,
              key.k1 ^ 0x7465646279746573u};
  const std::uint64_t len = input.size();
  for (; input.size() >= 8; input.remove_prefix(8)) state.take(word_of(input.substr(0, 8)));
  state.take(word_of(input) | len << 56);
  state.v2 ^= 0xff;
  state.rounds(4);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace weft::serve
