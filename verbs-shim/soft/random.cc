#include "verbs-shim/soft/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

namespace weft::verbs::soft {

std::uint32_t RandomSource::next() {
  if (next_ == pool_.size()) {
    // getrandom gives up to 256 octets whole or not at all. Without them no STag is safe to give out.
    ssize_t n = 0;
    do {
      n = ::getrandom(pool_.data(), sizeof(pool_), 0);
    } while (n < 0 && errno == EINTR);
    if (n != static_cast<ssize_t>(sizeof(pool_))) std::abort();
    next_ = 0;
  }
  return pool_[next_++];
}

}  // namespace weft::verbs::soft
