#include "mpa/staging.h"

#include <cstring>

namespace weft::mpa {

void Staging::compact() {
  const std::size_t len = end_ - begin_;
  if (len != 0) std::memmove(octets_.get(), octets_.get() + begin_, len);
  begin_ = 0;
  end_ = len;
}

}  // namespace weft::mpa
