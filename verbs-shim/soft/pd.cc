#include "verbs-shim/soft/pd.h"

#include <cerrno>

namespace weft::verbs::soft {

Result<std::unique_ptr<Mr>> SoftPd::reg_mr(void* addr, std::size_t length, Access access) {
  if ((has(access, Access::kRemoteWrite) || has(access, Access::kRemoteAtomic)) && !has(access, Access::kLocalWrite)) {
    return Error{EINVAL, "remote write and remote atomic access need local write access"};
  }
  const auto base = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(addr));
  if (length == 0 || length > UINT64_MAX - base) return Error{EINVAL, "an empty region, or one that wraps"};
  const auto stag = device_.regions().add(number_, base, length, access);
  if (!stag) return Error{ENOMEM, "as many memory regions as the device allows"};
  return std::unique_ptr<Mr>(std::make_unique<SoftMr>(device_, addr, length, *stag));
}

Result<std::unique_ptr<Mw>> SoftPd::alloc_mw() {
  const auto stag = device_.regions().add_window(number_);
  if (!stag) return Error{ENOMEM, "as many memory windows as the device allows"};
  return std::unique_ptr<Mw>(std::make_unique<SoftMw>(device_, *stag));
}

}  // namespace weft::verbs::soft
