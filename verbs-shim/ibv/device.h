#pragma once

#include <memory>
#include <string>

#include "verbs-shim/api/verbs.h"

namespace weft::verbs {

// open_ibv_device opens an RDMA device of the kernel through libibverbs and librdmacm; an empty name takes the first.
// Errors: ENOSYS in builds without this backend, which is every build so far.
Result<std::unique_ptr<Device>> open_ibv_device(const std::string& name);

}  // namespace weft::verbs
