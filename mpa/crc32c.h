#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.h"

namespace weft::mpa {

// Crc32c is the CRC of RFC 5044 section 4.4 (the same as in iSCSI, RFC 7143 section 13.1) over any number of pieces.
class Crc32c {
 public:
  void update(ConstBytes octets);

  // copy copies octets to `to` and updates the CRC with the copy: others may write the octets meanwhile. It is fast
  // where copies_in_one_pass() says so. Precondition: `to` has room, and the two do not overlap.
  void copy(std::uint8_t* to, ConstBytes octets);
  static bool copies_in_one_pass();

  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = 0xffffffff;
};

// crc32c returns the CRC of one piece.
inline std::uint32_t crc32c(ConstBytes octets) {
  Crc32c crc;
  crc.update(octets);
  return crc.value();
}

// emit_crc puts a CRC into its field: least significant octet first, unlike every other field of MPA (MPA-4.4-14).
inline void emit_crc(std::span<std::uint8_t, 4> out, std::uint32_t crc) {
  for (int i = 0; i < 4; ++i) out[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(crc >> (8 * i));
}

// parse_crc is the inverse of emit_crc.
inline std::uint32_t parse_crc(std::span<const std::uint8_t, 4> octets) {
  return std::uint32_t{octets[0]} | std::uint32_t{octets[1]} << 8 | std::uint32_t{octets[2]} << 16 |
         std::uint32_t{octets[3]} << 24;
}

}  // namespace weft::mpa
