#include "verbs-shim/soft/pd.h"

#include <cerrno>
#include <string>

#include "verbs-shim/soft/mr.h"
#include "verbs-shim/soft/mw.h"
#include "verbs-shim/soft/srq.h"

namespace weft::verbs::soft {

Result<std::unique_ptr<Mr>> SoftPd::reg_mr(void* addr, std::size_t length, Access access) {
  if ((has(access, Access::kRemoteWrite) || has(access, Access::kRemoteAtomic)) && !has(access, Access::kLocalWrite)) {
    return Error{EINVAL, "remote write and remote atomic access need local write access"};
  }
  const auto base = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(addr));
  if (length == 0 || length > UINT64_MAX - base) return Error{EINVAL, "an empty region, or one that wraps"};
  const auto stag = fleet_.core().regions().add(number_, base, length, access);
  if (!stag) return Error{ENOMEM, "as many memory regions as the device allows"};
  return std::unique_ptr<Mr>(std::make_unique<SoftMr>(fleet_, addr, length, *stag));
}

Result<std::unique_ptr<Mw>> SoftPd::alloc_mw() {
  const auto stag = fleet_.core().regions().add_window(number_);
  if (!stag) return Error{ENOMEM, "as many memory windows as the device allows"};
  return std::unique_ptr<Mw>(std::make_unique<SoftMw>(fleet_, *stag));
}

Result<std::unique_ptr<Srq>> SoftPd::create_srq(const SrqAttr& attr) {
  const SoftConfig& limits = fleet_.core().config();
  if (limits.max_srq == 0) return Error{EOPNOTSUPP, "this device was opened without shared receive queues"};
  if (attr.max_wr == 0 || attr.max_wr > limits.max_srq_wr) {
    return Error{EINVAL, "a shared receive queue holds 1 to " + std::to_string(limits.max_srq_wr) + " receives"};
  }
  if (attr.max_sge > limits.max_srq_sge) {
    return Error{EINVAL, "more scatter/gather elements than max_srq_sge, " + std::to_string(limits.max_srq_sge)};
  }
  if (attr.srq_limit > attr.max_wr) return Error{EINVAL, "a limit above max_wr of the shared receive queue"};
  if (!fleet_.core().claim_srq()) return Error{ENOMEM, "as many shared receive queues as the device allows"};
  return std::unique_ptr<Srq>(std::make_unique<SoftSrq>(fleet_.core(), number_, attr));
}

}  // namespace weft::verbs::soft
