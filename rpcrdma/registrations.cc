#include "rpcrdma/registrations.h"

#include <utility>

namespace weft::rpcrdma {

verbs::Status Registrations::add(verbs::Pd& pd, bool window, void* octets, std::size_t len, verbs::Access access,
                                 Segment& segment) {
  const bool is_written = verbs::has(access, verbs::Access::kRemoteWrite);
  const auto local = is_written ? verbs::Access::kLocalWrite : verbs::Access::kNone;
  One one;
  one.access = access;
  auto mr = pd.reg_mr(octets, len, local | (window ? verbs::Access::kMwBind : access));
  if (!mr.ok()) return mr.error();
  one.mr = std::move(*mr);
  one.handle = one.mr->rkey();
  if (window) {
    auto mw = pd.alloc_mw();
    if (!mw.ok()) return mw.error();
    one.mw = std::move(*mw);
    one.handle = verbs::inc_rkey(one.mw->rkey());
    ++num_windows_;
  }
  segment = Segment{one.handle, static_cast<std::uint32_t>(len), reinterpret_cast<std::uintptr_t>(octets)};
  all_.push_back(std::move(one));
  return {};
}

bool Registrations::bind(Endpoint& endpoint) {
  for (One& one : all_) {
    if (!one.mw) continue;
    verbs::MwBind bind;
    bind.mw = one.mw.get();
    bind.rkey = one.handle;
    bind.mr = one.mr.get();
    bind.addr = reinterpret_cast<std::uintptr_t>(one.mr->addr());
    bind.length = one.mr->length();
    bind.access = one.access;
    if (!endpoint.post_bind(bind)) return false;
    one.live = true;
    ++num_live_;
  }
  return true;
}

std::vector<std::uint32_t> Registrations::live_handles() const {
  std::vector<std::uint32_t> handles;
  for (const One& one : all_) {
    if (one.live) handles.push_back(one.handle);
  }
  return handles;
}

bool Registrations::on_invalidated(std::uint32_t handle) {
  for (One& one : all_) {
    if (!one.live || one.handle != handle) continue;
    one.live = false;
    --num_live_;
    return true;
  }
  return false;
}

bool Registrations::post_invalidations(Endpoint& endpoint, ReceiveSlot slot) {
  for (One& one : all_) {
    if (!one.live) continue;
    if (!endpoint.post_invalidate(one.handle, slot, num_live_ == 1)) return false;
    one.live = false;
    --num_live_;
  }
  return true;
}

void Registrations::clear() {
  // Windows are destroyed before their regions.
  for (One& one : all_) one.mw.reset();
  all_.clear();
  num_windows_ = num_live_ = 0;
}

std::vector<std::unique_ptr<verbs::Mw>> Registrations::clear_keeping_windows() {
  std::vector<std::unique_ptr<verbs::Mw>> windows;
  for (One& one : all_) {
    if (one.mw) windows.push_back(std::move(one.mw));
  }
  clear();
  return windows;
}

}  // namespace weft::rpcrdma
