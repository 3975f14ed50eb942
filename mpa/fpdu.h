#pragma once

#include <algorithm>
#include <cstddef>

namespace weft::mpa {

// The FPDU of RFC 5044 section 4.1 without Markers: ULPDU_Length (2), ULPDU, PAD (0 to 3, zero), CRC (4). All in
// octets.
inline constexpr std::size_t kUlpduLengthLen = 2;
inline constexpr std::size_t kCrcLen = 4;

// The MULPDU is always in this range, however small or large the EMSS (MPA-3-04).
inline constexpr std::size_t kMinMulpdu = 128;
inline constexpr std::size_t kMaxMulpdu = 64768;

// The largest value of the field. A ULPDU beyond kMaxMulpdu is never legal to send (MPA-3-09), but software peers on
// loopback send one.
inline constexpr std::size_t kMaxUlpduLength = 65535;

constexpr std::size_t pad_len(std::size_t ulpdu_len) {
  return (4 - (kUlpduLengthLen + ulpdu_len) % 4) % 4;
}

// fpdu_len gives the length of the whole FPDU of a ULPDU, without Markers: always a multiple of 4.
constexpr std::size_t fpdu_len(std::size_t ulpdu_len) {
  return kUlpduLengthLen + ulpdu_len + pad_len(ulpdu_len) + kCrcLen;
}

// mulpdu is the largest ULPDU whose FPDU fits an empty segment of emss octets (RFC 5044 section 4.5). markers: whether
// the peer asked for Markers in our FPDUs. The EMSS of a connection changes: call mulpdu again before each message is
// cut.
constexpr std::size_t mulpdu(std::size_t emss, bool markers) {
  const std::size_t markers_len = markers ? 4 * ((emss + 511) / 512) : 0;
  const std::size_t overhead = kUlpduLengthLen + kCrcLen + markers_len + emss % 4;  // MPA-4.5-02, MPA-4.5-03
  return std::clamp(emss > overhead ? emss - overhead : 0, kMinMulpdu, kMaxMulpdu);
}

}  // namespace weft::mpa
