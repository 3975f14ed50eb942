#pragma once

#include "tests/wire_v2/message.h"

// A message as the fields that stand in it, in their order, under the names of its draft. Written by hand: no part of
// it comes from rpcgen.
namespace weft::wire_v2 {

struct Field {
  std::string name;
  Bytes octets;
};

std::vector<Field> fields_of(const Message& message);

// encode writes the octets of any message, right or wrong. It needs the profile, the type and the fields of this type.
// `kind` and `header_len` follow from them.
Bytes encode(const Message& message);

}  // namespace weft::wire_v2
