#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "mpa/error.h"
#include "mpa/fpdu.h"
#include "mpa/marker.h"
#include "mpa/staging.h"
#include "mpa/startup_frame.h"

namespace weft::mpa {

// Ulpdu is one ULPDU as it lies in staging, the Markers still among its octets. Valid until the next Staging::space().
class Ulpdu {
 public:
  // fpdu: begins with the first octet on the wire, and ends no earlier than the octets that are asked for.
  Ulpdu(ConstBytes fpdu, MarkerLayout layout, std::size_t len) : fpdu_(fpdu), layout_(layout), len_(len) {}

  // Octets of the ULPDU, as its length field says.
  std::size_t size() const { return len_; }

  // view gives octets [offset, offset + len) in one piece: in place, or copied to scratch if a Marker interrupts them.
  // Precondition: they are inside the ULPDU; scratch has room for len octets if Markers are in use.
  ConstBytes view(std::size_t offset, std::size_t len, MutBytes scratch) const;

  // copy puts the out.size() octets from offset on into out, without the Markers. Precondition: inside the ULPDU.
  void copy(std::size_t offset, MutBytes out) const;

 private:
  ConstBytes fpdu_;
  MarkerLayout layout_;
  std::size_t len_;
};

// PartialFpdu is the FPDU at the front of staging while some of it is still missing.
struct PartialFpdu {
  MarkerLayout layout;
  std::size_t ulpdu_len = 0;
  ConstBytes arrived;  // from its first octet on the wire; at least the ULPDU_Length

  // The number of octets of the ULPDU that have arrived.
  std::size_t arrived_ulpdu_len() const;
  Ulpdu ulpdu() const { return {arrived, layout, ulpdu_len}; }
};

// FpduReader takes FPDUs out of a half connection in Full Operation (RFC 5044 sections 4 and 6). It locates the start,
// verifies CRC and Markers, and only then hands the ULPDU up (MPA-6-01). It holds no octets itself: an unfinished FPDU
// stays pending in the staging.
class FpduReader {
 public:
  // NeedMore: at least this number of octets is missing.
  using Next = std::variant<NeedMore, Ulpdu, Error>;

  // crc: whether CRCs are in use. markers: whether we asked for them. max_ulpdu_len: a longer ULPDU_Length gives
  // Error::kMarker at once, like a length of 0. The default allows every value of the field, since Linux siw on
  // loopback exceeds the RFC's 64768 (MPA-3-09).
  explicit FpduReader(bool crc, bool markers = false, std::size_t max_ulpdu_len = kMaxUlpduLength)
      : crc_(crc), markers_(markers), max_ulpdu_len_(max_ulpdu_len) {}

  // next consumes one FPDU from staging and returns its ULPDU, or NeedMore. After an error it returns this error for
  // ever and consumes nothing (MPA-8-11).
  Next next(Staging& staging);

  // partial returns the FPDU whose rest next asked for, or nothing if not even its length has arrived.
  std::optional<PartialFpdu> partial(const Staging& staging) const;

  // skip counts an FPDU that DirectFpdu received and verified; stream_len: its octets with Markers. fail latches the
  // error that DirectFpdu found.
  void skip(std::size_t stream_len) { position_ += stream_len; }
  Error fail(Error error);

  bool crc() const { return crc_; }
  const std::optional<Error>& error() const { return error_; }

  // The octets of Full Operation before the next FPDU. The position modulo 512 determines the Markers (MPA-4.3-06).
  std::uint64_t position() const { return position_; }

 private:
  MarkerLayout layout() const { return markers_ ? MarkerLayout::at(position_) : MarkerLayout(); }

  bool crc_;
  bool markers_;
  std::size_t max_ulpdu_len_;
  std::uint64_t position_ = 0;
  std::optional<Error> error_;
};

// marker_fits checks Marker number i of an FPDU against its position (RFC 5044 section 6).
bool marker_fits(const MarkerLayout& layout, std::size_t i, std::span<const std::uint8_t, kMarkerLen> marker);

}  // namespace weft::mpa
