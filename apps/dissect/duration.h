#pragma once

#include <string>

#include "apps/dissect/packet.h"

namespace weft::apps::dissect {

// duration_str: "999 ns", "20.00 us", "1.50 s". Integers alone: this is in every Reply's line.
std::string duration_str(Timestamp time);

}  // namespace weft::apps::dissect
