#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "verbs-shim/api/log.h"
#include "verbs-shim/api/verbs.h"

namespace weft::verbs {

// IbvConfig configures one RDMA device of the kernel.
struct IbvConfig {
  std::string name;       // as `rdma link` shows it; empty: the first one
  std::uint8_t ird = 16;  // most that ConnParam::responder_resources gets, if the device has as many
  std::uint8_t ord = 16;  // most that ConnParam::initiator_depth gets
  Log log = {};           // tells of connect requests that were turned away
};

// open_ibv_device opens an RDMA device of the kernel through libibverbs and librdmacm. It moves by itself
// (Caps::own_progress). Errors: ENOSYS (a build without the two libraries), ENODEV (no such device), and the errors of
// the kernel.
Result<std::unique_ptr<Device>> open_ibv_device(const IbvConfig& config = {});

}  // namespace weft::verbs
