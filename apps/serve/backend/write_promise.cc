#include "apps/serve/backend/write_promise.h"

#include <random>

#include "mpa/wire/cursor.h"

namespace weft::serve {

WritePromise::WritePromise() {
  std::random_device random;
  value_ = std::uint64_t{random()} << 32 | random();
}

nfs3::Verf WritePromise::verf() const {
  nfs3::Verf verf{};
  Writer writer{MutBytes(verf)};
  static_cast<void>(writer.u64(value_.load()));
  return verf;
}

}  // namespace weft::serve
