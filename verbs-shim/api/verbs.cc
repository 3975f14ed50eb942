#include "verbs-shim/api/verbs.h"

#include <cerrno>

namespace weft::verbs {

Result<std::unique_ptr<Mw>> Pd::alloc_mw() {
  return Error{EOPNOTSUPP, "this device has no memory windows of type 2"};
}

}  // namespace weft::verbs
