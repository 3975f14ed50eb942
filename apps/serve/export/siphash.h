#pragma once

#include <cstdint>
#include <string_view>

namespace weft::serve {

// SipHashKey is the key of siphash, 128 bits.
struct SipHashKey {
  std::uint64_t k0 = 0, k1 = 0;
};

// siphash is SipHash-2-4 with a result of 64 bits: a peer without the key cannot choose inputs that collide.
std::uint64_t siphash(const SipHashKey& key, std::string_view input);

}  // namespace weft::serve
