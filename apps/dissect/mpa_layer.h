#pragma once

#include "apps/dissect/frame.h"
#include "apps/dissect/mpa_half.h"

// The words of the dissector for MPA (RFC 5044, RFC 6581).
namespace weft::apps::dissect {

void tell_startup_frame(const mpa::StartupFrame& startup, const Options& options, Frame& frame);
void tell_bad_startup_frame(const mpa::BadFrame& bad, const Options& options, Frame& frame);
void tell_fpdu(const Fpdu& fpdu, const Options& options, Frame& frame);

// terms_of gives the terms of the half connection that `from` sends, by the startup frames of both sides.
MpaHalf::Terms terms_of(const mpa::StartupFrame& from, const mpa::StartupFrame& to);

}  // namespace weft::apps::dissect
