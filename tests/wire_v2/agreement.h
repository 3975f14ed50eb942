#pragma once

#include <string>

#include "tests/wire_v2/message.h"

namespace weft::wire_v2 {

// disagreement compares the codec of the engines with this folder's decoder over the same octets, which may be
// anything. They agree if
// - the decoder reads whatever the codec accepts, and both find the same fields;
// - the codec accepts whatever a sender may send, but for more properties than v2::kMaxProperties.
// Returns the difference; empty if there is none.
std::string disagreement(Octets octets, Profile profile);

}  // namespace weft::wire_v2
