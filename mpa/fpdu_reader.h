#pragma once

#include <cassert>
#include <optional>
#include <variant>

#include "mpa/error.h"
#include "mpa/fpdu.h"
#include "mpa/staging.h"
#include "mpa/startup_frame.h"
#include "mpa/wire/bytes.h"

namespace weft::mpa {

// Ulpdu is one validated ULPDU. The view is valid until the next Staging::space().
struct Ulpdu {
  ConstBytes octets;
};

// FpduReader takes FPDUs out of a half connection in Full Operation (RFC 5044 sections 4 and 6): start located, CRC
// verified, only then handed up (MPA-6-01). Holds no octets itself: an unfinished FPDU stays pending in the staging.
class FpduReader {
 public:
  // NeedMore: at least so many octets are missing.
  using Next = std::variant<NeedMore, Ulpdu, Error>;

  // crc: whether CRCs are in use. markers: whether we asked for them (not built yet). max_ulpdu_len: a longer
  // ULPDU_Length is answered with Error::kMarker as soon as it is seen, like a length of 0. The default takes all that
  // the field can say, since Linux siw on loopback goes beyond the 64768 of the RFC (MPA-3-09).
  explicit FpduReader(bool crc, bool markers = false, std::size_t max_ulpdu_len = kMaxUlpduLength)
      : crc_(crc), max_ulpdu_len_(max_ulpdu_len) {
    assert(!markers);
    (void)markers;
  }

  // next consumes one FPDU from staging and returns its ULPDU, or says what is missing. After an error it returns that
  // error for ever and consumes nothing (MPA-8-11).
  Next next(Staging& staging);

  const std::optional<Error>& error() const { return error_; }

 private:
  bool crc_;
  std::size_t max_ulpdu_len_;
  std::optional<Error> error_;
};

}  // namespace weft::mpa
