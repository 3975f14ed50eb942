#pragma once

#include "apps/dissect/frame.h"
#include "mpa/startup_frame.h"

// The rules of MPA's startup frames that the wire shows (RFC 5044 section 7.1, RFC 6581 sections 6 to 10).
namespace weft::apps::dissect {

// judge_startup_frame judges a frame by itself. peer: the other side's frame, if it came before; null otherwise.
void judge_startup_frame(const mpa::StartupFrame& startup, const mpa::StartupFrame* peer, Frame& frame);

}  // namespace weft::apps::dissect
