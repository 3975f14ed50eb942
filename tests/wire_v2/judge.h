#pragma once

#include <optional>

#include "tests/wire_v2/message.h"

namespace weft::wire_v2 {

// judge returns the fault of a message that parses but that no sender may ever send.
std::optional<Fault> judge(const Message& message);

}  // namespace weft::wire_v2
