#include "verbs-shim/ibv/pd.h"

#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "verbs-shim/ibv/ibv_device.h"
#include "verbs-shim/ibv/mapping.h"

namespace weft::verbs::ibv {
namespace {

Error reg_error(std::size_t length, int errno_value) {
  Error error = call_error("cannot register " + std::to_string(length) + " bytes", errno_value);
  rlimit limit{};
  if (errno_value == ENOMEM && ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    error.message += "; this process may lock " + std::to_string(limit.rlim_cur) +
                     " bytes of memory: raise that (ulimit -l unlimited, or memlock in /etc/security/limits.conf)";
  }
  return error;
}

}  // namespace

IbvMr::~IbvMr() {
  if (device_.windows().num_windows(*this) > 0) device_.windows().release(*this);
  ::ibv_dereg_mr(mr_);
}

std::size_t IbvMr::num_windows() const {
  return device_.windows().num_windows(*this);
}

IbvMw::~IbvMw() {
  device_.windows().on_destroyed(*this);
  if (mw_ != nullptr) ::ibv_dealloc_mw(mw_);
}

void IbvMw::replace() {
  if (mw_ == nullptr) return;
  ibv_pd* pd = mw_->pd;
  ::ibv_dealloc_mw(mw_);
  mw_ = ::ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  set_rkey(mw_ != nullptr ? mw_->rkey : 0);
}

IbvPd::~IbvPd() {
  ::ibv_dealloc_pd(pd_);
}

Result<std::unique_ptr<Mr>> IbvPd::reg_mr(void* addr, std::size_t length, Access access) {
  if (length == 0) return invalid("a region has at least one byte");
  if (reinterpret_cast<std::uintptr_t>(addr) > UINTPTR_MAX - length) return invalid("the range wraps");
  if ((has(access, Access::kRemoteWrite) || has(access, Access::kRemoteAtomic)) && !has(access, Access::kLocalWrite)) {
    return invalid("kRemoteWrite and kRemoteAtomic need kLocalWrite");
  }
  ibv_mr* mr = ibv_reg_mr(pd_, addr, length, to_ibv(access));
  if (mr == nullptr) return reg_error(length, errno);
  return std::unique_ptr<Mr>(std::make_unique<IbvMr>(device_, mr));
}

Result<std::unique_ptr<Mw>> IbvPd::alloc_mw() {
  if (!device_.caps().mem_windows_type2) return Pd::alloc_mw();
  ibv_mw* mw = ::ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
  if (mw == nullptr) return call_error("ibv_alloc_mw", errno);
  return std::unique_ptr<Mw>(std::make_unique<IbvMw>(device_, mw));
}

Result<std::unique_ptr<Srq>> IbvPd::create_srq(const SrqAttr& attr) {
  const Caps& caps = device_.caps();
  if (caps.max_srq == 0) return Pd::create_srq(attr);
  if (attr.max_wr == 0 || attr.max_wr > caps.max_srq_wr || attr.max_sge > caps.max_srq_sge ||
      attr.srq_limit > attr.max_wr) {
    return Error{EINVAL, "a shared receive queue has at most " + std::to_string(caps.max_srq_wr) + " receives of " +
                             std::to_string(caps.max_srq_sge) + " sges on this device"};
  }
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = attr.max_wr, .max_sge = attr.max_sge, .srq_limit = attr.srq_limit};
  ibv_srq* srq = ::ibv_create_srq(pd_, &init);
  if (srq == nullptr) return call_error("ibv_create_srq", errno);
  auto out = std::make_unique<IbvSrq>(device_, srq, attr, init.attr);
  // ibv_create_srq ignores the limit; a separate call arms it.
  if (attr.srq_limit > 0) {
    if (Status status = out->modify(attr.srq_limit); !status) return status.error();
  }
  return std::unique_ptr<Srq>(std::move(out));
}

IbvSrq::IbvSrq(IbvDevice& device, ibv_srq* srq, const SrqAttr& asked, const ibv_srq_attr& granted)
    : device_(device), srq_(srq), attr_(asked), granted_(granted) {
  device_.hub().add(srq_, device_.async(), this);
}

IbvSrq::~IbvSrq() {
  device_.hub().remove(srq_);
  ::ibv_destroy_srq(srq_);
}

Status IbvSrq::post_recv(const RecvWr& wr) {
  if (wr.sg_list.size() > attr_.max_sge) return invalid("more sges than the shared receive queue takes");
  std::array<ibv_sge, kMaxSge> sges;
  ibv_recv_wr raw = to_ibv(wr, sges.data());
  if (device_.is_siw()) fill_empty(raw);
  ibv_recv_wr* bad = nullptr;
  left_.fetch_add(1, std::memory_order_relaxed);
  if (const int err = ::ibv_post_srq_recv(srq_, &raw, &bad); err != 0) {
    left_.fetch_sub(1, std::memory_order_relaxed);
    return call_error("ibv_post_srq_recv", err);
  }
  return {};
}

Status IbvSrq::modify(std::uint32_t srq_limit) {
  if (srq_limit > attr_.max_wr) return invalid("the limit is above max_wr");
  device_.hub().drain();  // later events belong to the new limit
  limit_ = srq_limit;
  ibv_srq_attr attr{};
  attr.srq_limit = srq_limit;
  if (const int err = ::ibv_modify_srq(srq_, &attr, IBV_SRQ_LIMIT); err != 0) {
    limit_ = 0;
    return call_error("ibv_modify_srq", err);
  }
  if (device_.is_software() && left_.load(std::memory_order_relaxed) < std::int64_t{srq_limit}) {
    device_.hub().raise(srq_, AsyncEventType::kSrqLimitReached);
  }
  return {};
}

Result<SrqAttr> IbvSrq::query() const {
  device_.hub().drain();
  ibv_srq_attr attr = granted_;  // siw's library has no query
  if (const int err = device_.is_siw() ? 0 : ::ibv_query_srq(srq_, &attr); err != 0) {
    return call_error("ibv_query_srq", err);
  }
  return SrqAttr{.max_wr = attr.max_wr, .max_sge = attr.max_sge, .srq_limit = limit_};
}

}  // namespace weft::verbs::ibv
