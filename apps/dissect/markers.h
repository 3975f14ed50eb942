#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.h"
#include "mpa/fpdu_reader.h"
#include "mpa/marker.h"

namespace weft::apps::dissect {

// marker_at returns Marker number i of the FPDU at the front of wire. Precondition: i < layout.num_within(wire.size()).
inline std::span<const std::uint8_t, mpa::kMarkerLen> marker_at(ConstBytes wire, const mpa::MarkerLayout& layout,
                                                                std::size_t i) {
  return wire.subspan(layout.marker_offset(i)).first<mpa::kMarkerLen>();
}

// markers_fit: whether each of the first `num` Markers leads to the start of its FPDU.
inline bool markers_fit(ConstBytes wire, const mpa::MarkerLayout& layout, std::size_t num) {
  for (std::size_t i = 0; i < num; ++i) {
    if (!mpa::marker_fits(layout, i, marker_at(wire, layout, i))) return false;
  }
  return true;
}

}  // namespace weft::apps::dissect
