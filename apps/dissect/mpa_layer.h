#pragma once

#include <cstddef>
#include <optional>

#include "apps/dissect/frame.h"
#include "apps/dissect/mpa_half.h"
#include "apps/dissect/rdmap_decoder.h"

// The words of the dissector for MPA (RFC 5044, RFC 6581).
namespace weft::apps::dissect {

void tell_startup_frame(const mpa::StartupFrame& startup, const Options& options, Frame& frame);
void tell_bad_startup_frame(const mpa::BadFrame& bad, const Options& options, Frame& frame);
void tell_fpdu(const Fpdu& fpdu, const Options& options, Frame& frame);
// tell_damaged tells of len octets between FPDUs, of which no CRC fits.
void tell_damaged(std::uint64_t len, const Options& options, Frame& frame);
// bad_marker: a Marker before the field does not fit.
void tell_empty_ulpdu(bool bad_marker, const Options& options, Frame& frame);

// find_rpcrdma_private_data gives the place of the private data of RFC 8797, of any version. A provider may have put
// words of its own in front (section 5.1).
std::optional<std::size_t> find_rpcrdma_private_data(ConstBytes octets);

// terms_of gives the terms of the half connection that `from` sends, by the startup frames of both sides.
MpaHalf::Terms terms_of(const mpa::StartupFrame& from, const mpa::StartupFrame& to);
// start_of gives what the layers above MPA need to know of the side that sent `own`.
RdmapDecoder::Start start_of(const mpa::StartupFrame& own, const mpa::StartupFrame& other);

}  // namespace weft::apps::dissect
