#pragma once

#include "apps/dissect/frame.h"

namespace weft::apps::dissect {

// place_findings gives each finding of a frame that has no place the octets that its rule is about, or the whole frame.
void place_findings(Frame& frame);

}  // namespace weft::apps::dissect
