#pragma once

#include <cstddef>

#include "nfsulb/schema.h"

namespace weft::nfsulb {

// attribute_type returns the type of the NFSv4 attribute with this number (RFC 7863, RFC 8276), nullptr if there is
// none.
const Type* attribute_type(std::size_t number);

}  // namespace weft::nfsulb
