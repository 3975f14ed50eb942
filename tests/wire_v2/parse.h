#pragma once

#include <variant>

#include "tests/wire_v2/message.h"

// What rpcgen's routines make of a message that has a version and a type that its draft knows; the payload is left out.
namespace weft::wire_v2 {

std::variant<Message, Fault> parse_cel05(Octets octets);
std::variant<Message, Fault> parse_wg07(Octets octets);

// Whether a value is XDR of the property's type, whole.
bool is_value_of_cel05(const Property& property);
bool is_value_of_wg07(const Property& property);

}  // namespace weft::wire_v2
