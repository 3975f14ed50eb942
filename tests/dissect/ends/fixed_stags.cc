#include "tests/dissect/ends/fixed_stags.h"

#include <sys/random.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace weft::ends {
namespace {

std::vector<std::uint32_t>& wanted() {
  static std::vector<std::uint32_t> stags;
  return stags;
}

}  // namespace

void fix_stags(std::vector<std::uint32_t> stags) {
  wanted() = std::move(stags);
}

}  // namespace weft::ends

// verbs-shim/soft takes its random numbers from getrandom(2), 32 bits for each STag. This definition takes the place of
// the C library's.
extern "C" ssize_t getrandom(void* buffer, std::size_t len, unsigned /*flags*/) {
  constexpr std::uint32_t kFirst = 0xa0000001, kStep = 0x00010001;  // of the words behind the wanted ones
  auto* out = static_cast<std::byte*>(buffer);
  std::uint32_t other = kFirst;
  for (std::size_t at = 0; at < len; at += sizeof(std::uint32_t)) {
    const std::size_t i = at / sizeof(std::uint32_t);
    const std::uint32_t word =
        i < weft::ends::wanted().size() ? weft::ends::wanted()[i] : std::exchange(other, other + kStep);
    std::memcpy(out + at, &word, std::min(sizeof word, len - at));
  }
  return static_cast<ssize_t>(len);
}
