#pragma once

#include <optional>

#include "tests/wire_v2/message.h"

namespace weft::wire_v2 {

// judge: what is wrong with a message that could be parsed, where no sender may send it, whatever came before.
std::optional<Fault> judge(const Message& message);

}  // namespace weft::wire_v2
