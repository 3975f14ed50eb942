#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace weft {

// SipHash is SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012): a hash of 64 bits under a
// secret key. A peer without the key cannot find two inputs with one hash. A plain value.
class SipHash {
 public:
  using Key = std::array<std::uint64_t, 2>;
  // A key that no peer can guess.
  static Key random_key();

  explicit SipHash(const Key& key);
  void add(ConstBytes octets);
  // The four octets of a word, the highest first.
  void add(std::uint32_t word);
  // The hash of all octets that were added.
  std::uint64_t value() const;

 private:
  void round();
  void take(std::uint64_t word);

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t last_ = 0;    // octets that are no word yet, the first one lowest
  std::uint64_t length_ = 0;  // of all octets
};

}  // namespace weft
