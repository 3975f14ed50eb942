#include <cerrno>

#include "verbs-shim/ibv/device.h"

namespace weft::verbs {

Result<std::unique_ptr<Device>> open_ibv_device(const IbvConfig& config) {
  return Error{ENOSYS, "this build cannot use RDMA devices" +
                           (config.name.empty() ? std::string() : ", so " + config.name + " cannot be opened") +
                           ": install libibverbs-dev and librdmacm-dev, configure and build again"};
}

}  // namespace weft::verbs
