#include "mpa/crc32c.h"

#include <algorithm>
#include <climits>

#include <isa-l/crc.h>

namespace weft::mpa {

void Crc32c::update(ConstBytes octets) {
  while (!octets.empty()) {
    const auto len = std::min<std::size_t>(octets.size(), INT_MAX);
    // ISA-L only reads, but takes a pointer to mutable octets.
    state_ = crc32_iscsi(const_cast<std::uint8_t*>(octets.data()), static_cast<int>(len), state_);
    octets = octets.subspan(len);
  }
}

}  // namespace weft::mpa
