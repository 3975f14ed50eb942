#include "verbs-shim/ibv/device.h"

#include <cerrno>

namespace weft::verbs {

Result<std::unique_ptr<Device>> open_ibv_device(const std::string& name) {
  return Error{ENOSYS, "the ibv backend is not built" + (name.empty() ? "" : ", so " + name + " cannot be opened") +
                           "; use the soft backend"};
}

}  // namespace weft::verbs
