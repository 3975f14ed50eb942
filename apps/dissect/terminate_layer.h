#pragma once

#include "apps/dissect/frame.h"
#include "base/bytes.h"

namespace weft::apps::dissect {

class LayerWriter;

// tell_terminate tells the body of a Terminate (RFC 5040 section 4.8), with both readings where Linux siw swapped the
// control word. is_whole: the capture has all octets of the body. A Terminate that blames the other side is a finding.
void tell_terminate(ConstBytes body, bool is_whole, Frame& frame, LayerWriter& layer);

}  // namespace weft::apps::dissect
