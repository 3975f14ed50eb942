#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "mpa/marker.h"

namespace weft::apps::dissect {

// ulpdu_length reads the ULPDU_Length of an FPDU (RFC 5044 section 4). at: two octets or more.
inline std::size_t ulpdu_length(ConstBytes at) {
  return static_cast<std::size_t>(at[0]) << 8 | at[1];
}

// FpduFinder tries octets as the start of an FPDU where the framing or its terms are not known. An FPDU has a header
// that makes sense, and then a CRC that fits. Where no CRC may be in use, the headers behind the FPDU make sense, too.
// A value without I/O.
class FpduFinder {
 public:
  enum class Guess : std::uint8_t { kNo, kYes, kMore };

  // Shape: how an FPDU stands in the stream.
  struct Shape {
    bool markers = false;
    bool crc = true;          // the CRC is in use
    std::uint64_t phase = 0;  // markers: octets of Full Operation before the FPDU; only phase modulo 512 matters
    mpa::MarkerLayout layout(std::uint64_t at) const {
      return markers ? mpa::MarkerLayout::at(phase + at) : mpa::MarkerLayout();
    }
  };

  // num octets arrived. They pay for CRCs: a capture made to look like FPDUs everywhere must not take for ever.
  void on_octets(std::size_t num) { crc_budget_ += num * kCrcBudget; }

  // pays_for: whether the octets that arrived pay for looking at `len` octets again. It takes the price.
  bool pays_for(std::size_t len);
  // An FPDU of this shape; the terms are known.
  Guess try_known(ConstBytes octets, const Shape& shape);
  // An FPDU of any shape, which goes to `shape`. `place` names the first octet in the stream.
  Guess try_any(ConstBytes octets, std::uint64_t place, Shape& shape);
  // The FPDU behind one that was found with this shape.
  Guess try_next(ConstBytes octets, const Shape& shape);
  // Whether num headers make sense, the first one at the front and each other one behind the FPDU before it.
  static Guess try_headers(ConstBytes octets, const Shape& shape, unsigned num);

 private:
  static constexpr std::uint64_t kCrcBudget = 64;  // octets of CRC for each octet that arrives
  // Three headers that make sense by accident: once in 2^33 places of random octets.
  static constexpr unsigned kHeadersKnown = 2, kHeadersUnknown = 3;

  Guess try_shape(ConstBytes octets, std::uint64_t place, Shape& shape);
  bool crc_fits(ConstBytes wire);

  std::uint64_t crc_budget_ = 0;
  bool saw_crc_ = false;  // a CRC has fitted: CRCs are in use
  // The last place whose CRC did not fit, without and with Markers: it is computed once.
  std::array<std::uint64_t, 2> bad_crc_at_{UINT64_MAX, UINT64_MAX};
};

}  // namespace weft::apps::dissect
