#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace weft::mpa {

// A Marker stands at every 512th octet of a half connection in Full Operation, the first of them at octet 0: 16
// reserved bits, then FPDUPTR, the distance back to the ULPDU_Length of its FPDU (RFC 5044 section 4.2). A Marker
// between two FPDUs belongs to the second.
inline constexpr std::size_t kMarkerLen = 4;
inline constexpr std::size_t kMarkerSpacing = 512;                         // octets from one Marker's start to the next
inline constexpr std::size_t kMarkerRunLen = kMarkerSpacing - kMarkerLen;  // octets of FPDUs between two Markers

constexpr void emit_marker(std::span<std::uint8_t, kMarkerLen> out, std::uint16_t fpduptr) {
  out[0] = out[1] = 0;  // MPA-4.2-02
  out[2] = static_cast<std::uint8_t>(fpduptr >> 8);
  out[3] = static_cast<std::uint8_t>(fpduptr);
}

// parse_fpduptr reads a Marker and ignores its reserved half (MPA-4.2-03).
constexpr std::uint16_t parse_fpduptr(std::span<const std::uint8_t, kMarkerLen> marker) {
  return static_cast<std::uint16_t>(marker[2] << 8 | marker[3]);
}

// MarkerLayout gives the positions of one FPDU's Markers. It converts between two kinds of offset. `bare` offsets count
// the FPDU's own octets (ULPDU_Length, ULPDU, PAD, CRC). Stream offsets count its own octets and the Markers among
// them. Both start at the FPDU's first octet on the wire, which belongs to a Marker if one falls on the boundary.
class MarkerLayout {
 public:
  // For a half connection without Markers.
  constexpr MarkerLayout() = default;
  // For an FPDU that begins after stream_position octets of Full Operation. Only stream_position modulo 512 matters.
  static constexpr MarkerLayout at(std::uint64_t stream_position) {
    const auto phase = static_cast<std::size_t>(stream_position % kMarkerSpacing);
    return MarkerLayout(phase == 0 ? 0 : kMarkerSpacing - phase);
  }

  // The number of Markers ahead of bare octet `bare`.
  constexpr std::size_t num_before(std::size_t bare) const {
    return bare < first_ ? 0 : 1 + (bare - first_) / kMarkerRunLen;
  }
  // The stream offset of bare octet `bare`.
  constexpr std::size_t stream_offset(std::size_t bare) const { return bare + kMarkerLen * num_before(bare); }
  // The number of octets from `bare` on without a Marker between them.
  constexpr std::size_t run_len(std::size_t bare) const {
    return bare < first_ ? first_ - bare : kMarkerRunLen - (bare - first_) % kMarkerRunLen;
  }
  // The whole length on the wire of bare_len octets. Precondition: bare_len > 0.
  constexpr std::size_t stream_len(std::size_t bare_len) const { return stream_offset(bare_len - 1) + 1; }
  // The number of the FPDU's own octets among the first stream_len on the wire.
  constexpr std::size_t bare_len(std::size_t stream_len) const {
    if (stream_len <= first_) return stream_len;
    const std::size_t within = (stream_len - first_) % kMarkerSpacing;
    return first_ + (stream_len - first_) / kMarkerSpacing * kMarkerRunLen +
           (within > kMarkerLen ? within - kMarkerLen : 0);
  }

  // The number of whole Markers among the first stream_len octets on the wire.
  constexpr std::size_t num_within(std::size_t stream_len) const {
    if (stream_len < kMarkerLen || stream_len - kMarkerLen < first_) return 0;
    return 1 + (stream_len - kMarkerLen - first_) / kMarkerSpacing;
  }

  // Run is a range of the wire that is all Marker or all FPDU.
  struct Run {
    bool is_marker = false;
    std::size_t marker = 0;  // is_marker: the Marker's number, and its octets before the run
    std::size_t within = 0;
    std::size_t len = 0;  // octets up to the next change
  };
  // run_at gives the run from a stream offset on.
  constexpr Run run_at(std::size_t stream_offset) const {
    if (stream_offset < first_) return {false, 0, 0, first_ - stream_offset};
    const std::size_t behind = stream_offset - first_;
    const std::size_t within = behind % kMarkerSpacing;
    if (within < kMarkerLen) return {true, behind / kMarkerSpacing, within, kMarkerLen - within};
    return {false, 0, 0, kMarkerSpacing - within};
  }

  // The stream offset and the FPDUPTR of Marker number i, from 0. Precondition: the Marker exists.
  constexpr std::size_t marker_offset(std::size_t i) const { return first_ + i * kMarkerSpacing; }
  constexpr std::uint16_t fpduptr(std::size_t i) const {
    const std::size_t ulpdu_length_at = first_ == 0 ? kMarkerLen : 0;
    return static_cast<std::uint16_t>(i == 0 && first_ == 0 ? 0 : marker_offset(i) - ulpdu_length_at);
  }

 private:
  explicit constexpr MarkerLayout(std::size_t first) : first_(first) {}
  // Bare octets ahead of the first Marker.
  std::size_t first_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace weft::mpa
