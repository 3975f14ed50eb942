#pragma once

// A framer for tests that shares nothing with FpduWriter and MarkerLayout: one octet after the other, as RFC 5044
// section 4 says it.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "mpa/crc32c.h"

namespace weft::mpa::testing {

class NaiveFramer {
 public:
  NaiveFramer(bool crc, bool markers, std::uint64_t position = 0) : crc_(crc), markers_(markers), position_(position) {}

  // The octets of one FPDU, the Marker before it included where one is due.
  std::vector<std::uint8_t> frame(ConstBytes ulpdu) {
    fpdu_.clear();
    length_at_.reset();
    put_marker_if_due();
    length_at_ = position_;
    put(static_cast<std::uint8_t>(ulpdu.size() >> 8));
    put(static_cast<std::uint8_t>(ulpdu.size() & 0xff));
    for (std::uint8_t octet : ulpdu) put(octet);
    for (std::size_t len = 2 + ulpdu.size(); len % 4 != 0; ++len) put(0);
    put_marker_if_due();
    const std::uint32_t crc = crc_ ? crc32c(fpdu_) : 0;
    for (int i = 0; i < 4; ++i) put(static_cast<std::uint8_t>(crc >> (8 * i)));
    return fpdu_;
  }

  std::uint64_t position() const { return position_; }

 private:
  void put_raw(std::uint8_t octet) {
    fpdu_.push_back(octet);
    ++position_;
  }
  void put_marker_if_due() {
    if (!markers_ || position_ % 512 != 0) return;
    const std::uint64_t distance = length_at_ ? position_ - *length_at_ : 0;
    put_raw(0);
    put_raw(0);
    put_raw(static_cast<std::uint8_t>(distance >> 8));
    put_raw(static_cast<std::uint8_t>(distance & 0xff));
  }
  void put(std::uint8_t octet) {
    put_marker_if_due();
    put_raw(octet);
  }

  bool crc_;
  bool markers_;
  std::uint64_t position_;
  std::vector<std::uint8_t> fpdu_;
  std::optional<std::uint64_t> length_at_;
};

}  // namespace weft::mpa::testing
