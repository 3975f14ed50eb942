#pragma once

#include <variant>

#include "tests/wire_v2/message.h"

// The result of rpcgen's routines for a message whose version and type its draft knows, without the payload.
namespace weft::wire_v2 {

std::variant<Message, Fault> parse_cel05(Octets octets);
std::variant<Message, Fault> parse_wg07(Octets octets);

// Whether a value is XDR of the property's type, whole.
bool is_value_of_cel05(const Property& property);
bool is_value_of_wg07(const Property& property);

}  // namespace weft::wire_v2
