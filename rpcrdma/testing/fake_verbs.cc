#include "rpcrdma/testing/fake_verbs.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace weft::rpcrdma::testing {

namespace {

std::uint8_t* pointer_to(std::uint64_t addr) {
  return reinterpret_cast<std::uint8_t*>(addr);
}

// The engines broke the rules of the verbs API. Later results would mean nothing.
[[noreturn]] void misuse(const char* what, std::uint32_t key) {
  std::fprintf(stderr, "fake verbs: %s while a queued request names it (key 0x%x)\n", what, key);
  std::abort();
}

}  // namespace

void FakeMemory::check_unpinned(std::uint32_t key, const char* what) const {
  if (pins_.contains(name_of(key))) misuse(what, key);
}

void FakeMemory::unpin(std::uint32_t key) {
  const auto at = pins_.find(name_of(key));
  if (at != pins_.end() && --at->second == 0) pins_.erase(at);
}

void FakeMemory::remove(std::uint32_t key) {
  check_unpinned(key, "a region is destroyed");
  regions_.erase(key);
  std::erase_if(regions_, [key](const auto& entry) { return entry.second.over == key; });
}

std::size_t FakeMemory::num_remote() const {
  std::size_t num = 0;
  for (const auto& [key, region] : regions_) {
    num +=
        verbs::has(region.access, verbs::Access::kRemoteRead) || verbs::has(region.access, verbs::Access::kRemoteWrite)
            ? 1
            : 0;
  }
  return num;
}

void FakeMemory::remove_window(std::uint32_t key) {
  check_unpinned(key, "a window is destroyed");
  --num_windows_;
  regions_.erase(key);
  windows_.erase(key / kKeysPerWindow);
}

bool FakeMemory::bind(const verbs::Qp& stream, const verbs::MwBind& bind) {
  const auto region = regions_.find(bind.mr->lkey());
  const bool writes = verbs::has(bind.access, verbs::Access::kRemoteWrite);
  if (region == regions_.end() || !verbs::has(region->second.access, verbs::Access::kMwBind)) return false;
  if (writes && !verbs::has(region->second.access, verbs::Access::kLocalWrite)) return false;
  const std::uint32_t before = bind.mw->rkey();
  if (bind.rkey == before || bind.rkey / kKeysPerWindow != before / kKeysPerWindow || regions_.contains(before)) {
    return false;
  }
  std::uint8_t* octets = pointer_to(bind.addr);
  if (octets < region->second.octets || octets + bind.length > region->second.octets + region->second.len) return false;
  static_cast<FakeMw*>(bind.mw)->set_rkey(bind.rkey);
  windows_[bind.rkey / kKeysPerWindow] = bind.rkey;
  regions_[bind.rkey] = {octets, bind.length, bind.access, std::nullopt, &stream, bind.mr->lkey()};
  return true;
}

bool FakeMemory::invalidate(const verbs::Qp& stream, std::uint32_t key) {
  const auto at = regions_.find(key);
  if (at == regions_.end() || at->second.stream != &stream) return false;
  regions_.erase(at);
  return true;
}

bool FakeMemory::invalidate_own(const verbs::Qp& stream, std::uint32_t key) {
  if (faults.fail_invalidations) return false;
  const auto at = windows_.find(key / kKeysPerWindow);
  if (at == windows_.end() || at->second != key) return false;
  return !regions_.contains(key) || invalidate(stream, key);
}

std::vector<std::uint32_t> FakeMemory::bound() const {
  std::vector<std::uint32_t> keys;
  for (const auto& [key, region] : regions_) {
    if (region.stream != nullptr) keys.push_back(key);
  }
  return keys;
}

std::uint8_t* FakeMemory::find(std::uint32_t key, std::uint64_t addr, std::uint64_t len, verbs::Access needed) const {
  const auto at = regions_.find(key);
  if (at == regions_.end() || !verbs::has(at->second.access, needed)) return nullptr;
  const std::uint64_t base = at->second.first.value_or(reinterpret_cast<std::uintptr_t>(at->second.octets));
  if (addr < base || addr - base > at->second.len || len > at->second.len - (addr - base)) return nullptr;
  return at->second.octets + (addr - base);
}

verbs::Result<std::unique_ptr<verbs::Mr>> FakePd::reg_mr(void* addr, std::size_t length, verbs::Access access) {
  FakeMemory::Faults& faults = memory_.faults;
  const std::size_t number = ++faults.registrations;
  const bool is_later = faults.and_all_later_ones && faults.fail_registration_at != 0;
  if (is_later ? number >= faults.fail_registration_at : number == faults.fail_registration_at) {
    return verbs::Error{ENOMEM, "this registration made to fail"};
  }
  if (fail_registration) return verbs::Error{ENOMEM, "registration made to fail"};
  return std::unique_ptr<verbs::Mr>(new FakeMr(memory_, {static_cast<std::uint8_t*>(addr), length, access}));
}

verbs::Result<std::unique_ptr<verbs::Srq>> FakePd::create_srq(const verbs::SrqAttr& attr) {
  return std::unique_ptr<verbs::Srq>(new FakeSrq(attr.max_wr));
}

verbs::Result<std::unique_ptr<verbs::Mw>> FakePd::alloc_mw() {
  if (fail_registration) return verbs::Error{ENOMEM, "window made to fail"};
  return std::unique_ptr<verbs::Mw>(new FakeMw(memory_));
}

verbs::Status FakeSrq::post_recv(const verbs::RecvWr& wr) {
  if (fail_post || receives.size() == max_wr_) return verbs::Error{ENOMEM, "the shared receive queue is full"};
  receives.push_back({wr.wr_id, wr.sg_list[0]});
  return {};
}

int FakeCq::poll(std::span<verbs::Wc> wc) {
  if (overflowed) return -1;
  std::size_t num = 0;
  while (num < wc.size() && !wcs_.empty()) {
    wc[num++] = wcs_.front();
    wcs_.pop_front();
  }
  return static_cast<int>(num);
}

verbs::Status FakeQp::post_recv(const verbs::RecvWr& wr) {
  if (broken_) {
    cq_.push({.wr_id = wr.wr_id, .status = verbs::WcStatus::kWrFlushErr});
    return {};
  }
  receives_.push_back({wr.wr_id, wr.sg_list[0]});
  return {};
}

bool FakeQp::inject(ConstBytes message, std::optional<std::uint32_t> invalidate) {
  if (broken_) return false;
  std::deque<Receive>& receives = srq != nullptr ? srq->receives : receives_;
  if (receives.empty() || message.size() > receives.front().sge.length ||
      (invalidate && !memory_.invalidate(*this, *invalidate))) {
    break_connection();
    return false;
  }
  if (peer_ == nullptr) tap_.heard(message);
  const Receive receive = receives.front();
  receives.pop_front();
  if (!message.empty()) std::memcpy(pointer_to(receive.sge.addr), message.data(), message.size());
  FakeCq& cq = recv_cq != nullptr ? *recv_cq : cq_;
  cq.push({.wr_id = receive.wr_id,
           .opcode = verbs::WcOpcode::kRecv,
           .wc_flags = invalidate ? verbs::WcFlags::kWithInv : verbs::WcFlags::kNone,
           .byte_len = static_cast<std::uint32_t>(message.size()),
           .qp_num = number,
           .invalidated_rkey = invalidate.value_or(0)});
  return true;
}

void FakeQp::break_connection() {
  if (broken_) return;
  broken_ = true;
  release();  // requests that were not carried out are flushed
  for (const Receive& receive : receives_) {
    cq_.push({.wr_id = receive.wr_id, .status = verbs::WcStatus::kWrFlushErr});
  }
  receives_.clear();
  if (peer_ != nullptr) peer_->break_connection();
}

void FakeQp::release(std::size_t num) {
  std::vector<Held> released = std::exchange(held_, {});
  const auto end = released.begin() + static_cast<std::ptrdiff_t>(std::min(num, released.size()));
  held_.assign(std::make_move_iterator(end), std::make_move_iterator(released.end()));
  released.erase(end, released.end());
  for (const Held& held : released) {
    if (!finish(held)) {
      cq_.push({.wr_id = held.wc.wr_id, .status = verbs::WcStatus::kWrFlushErr});
    } else if (held.is_signaled) {
      cq_.push(held.wc);
    }
  }
}

// Takes a request from the queue; false where it was not carried out.
bool FakeQp::finish(const Held& held) {
  for (const auto& [octets, before] : held.sources) {
    if (std::memcmp(octets, before.data(), before.size()) != 0) misuse("octets change", held.keys.at(0));
  }
  for (const std::uint32_t key : held.keys) memory_.unpin(key);
  if (!held.invalidates) return true;
  if (!broken_ && !memory_.invalidate_own(*this, *held.invalidates)) break_connection();
  return !broken_;
}

void FakeQp::forget() {
  for (const Held& held : std::exchange(held_, {})) {
    for (const std::uint32_t key : held.keys) memory_.unpin(key);
  }
}

void FakeQp::hold(const verbs::SendWr& wr, const verbs::Wc& wc) {
  Held& held = held_.emplace_back();
  held.wc = wc;
  held.is_signaled = verbs::has(wr.send_flags, verbs::SendFlags::kSignaled);
  const bool is_sent = wr.opcode != verbs::WrOpcode::kRdmaRead;
  for (const verbs::Sge& sge : wr.sg_list) {
    held.keys.push_back(sge.lkey);
    const std::uint8_t* octets = pointer_to(sge.addr);
    if (is_sent) held.sources.push_back({octets, {octets, octets + sge.length}});
  }
  if (wr.opcode == verbs::WrOpcode::kBindMw) held.keys = {wr.bind_mw.mr->lkey(), wr.bind_mw.rkey};
  if (wr.opcode == verbs::WrOpcode::kLocalInv) held.keys = {*(held.invalidates = wr.invalidate_rkey)};
  for (const std::uint32_t key : held.keys) memory_.pin(key);
}

void FakeQp::complete(const verbs::SendWr& wr, verbs::WcOpcode opcode, std::uint32_t len) {
  const verbs::Wc wc{.wr_id = wr.wr_id, .opcode = opcode, .byte_len = len};
  if (hold_completions) {
    hold(wr, wc);
  } else if (verbs::has(wr.send_flags, verbs::SendFlags::kSignaled)) {
    cq_.push(wc);
  }
}

bool FakeQp::move(const verbs::SendWr& wr, std::uint32_t len) {
  const bool read = wr.opcode == verbs::WrOpcode::kRdmaRead;
  rdma.push_back({wr.opcode, wr.rkey, wr.remote_addr, len, num_sends});
  const auto needed = read ? verbs::Access::kRemoteRead : verbs::Access::kRemoteWrite;
  std::uint8_t* remote = memory_.find(wr.rkey, wr.remote_addr, len, needed);
  if (remote == nullptr) return false;
  for (const verbs::Sge& sge : wr.sg_list) {
    const auto local_access = read ? verbs::Access::kLocalWrite : verbs::Access::kNone;
    std::uint8_t* local = memory_.find(sge.lkey, sge.addr, sge.length, local_access);
    if (local == nullptr) return false;
    std::memcpy(read ? local : remote, read ? remote : local, sge.length);
    remote += sge.length;
  }
  return true;
}

// Binds and invalidations of windows, unsignaled ones too, complete where they fail.
verbs::Status FakeQp::post_local(const verbs::SendWr& wr) {
  const bool binds = wr.opcode == verbs::WrOpcode::kBindMw;
  if (binds) {
    ++num_binds;
  } else {
    local_invalidations.push_back(wr.invalidate_rkey);
  }
  const bool is_later = !binds && hold_completions;
  if (is_later || (binds ? memory_.bind(*this, wr.bind_mw) : memory_.invalidate_own(*this, wr.invalidate_rkey))) {
    complete(wr, binds ? verbs::WcOpcode::kBindMw : verbs::WcOpcode::kLocalInv, 0);
    return {};
  }
  cq_.push({.wr_id = wr.wr_id, .status = verbs::WcStatus::kMwBindErr});
  break_connection();
  return {};
}

verbs::Status FakeQp::post_send(const verbs::SendWr& wr) {
  const std::size_t number = ++memory_.faults.posts;
  if (fail_post_send || number == memory_.faults.fail_post_at) {
    return verbs::Error{ENOMEM, "post_send made to fail"};
  }
  if (wr.sg_list.size() > max_sge) return verbs::Error{EINVAL, "more elements than the queue pair takes"};
  if (number == memory_.faults.cut_at) break_connection();
  if (broken_) {
    cq_.push({.wr_id = wr.wr_id, .status = verbs::WcStatus::kWrFlushErr});
    return {};
  }
  tap_.posted(wr);
  return carry_out(wr);
}

verbs::Status FakeQp::carry_out(const verbs::SendWr& wr) {
  std::uint32_t len = 0;
  for (const verbs::Sge& sge : wr.sg_list) len += sge.length;
  if (wr.opcode == verbs::WrOpcode::kBindMw || wr.opcode == verbs::WrOpcode::kLocalInv) return post_local(wr);
  const bool invalidates = wr.opcode == verbs::WrOpcode::kSendWithInv;
  if (wr.opcode != verbs::WrOpcode::kSend && !invalidates) {
    if (!move(wr, len)) {
      cq_.push({.wr_id = wr.wr_id, .status = verbs::WcStatus::kRemAccessErr});
      break_connection();
      return {};
    }
    complete(wr, wr.opcode == verbs::WrOpcode::kRdmaRead ? verbs::WcOpcode::kRdmaRead : verbs::WcOpcode::kRdmaWrite,
             len);
    return {};
  }
  ++num_sends;
  last_send_sges = wr.sg_list.size();
  std::vector<std::uint8_t> message;
  for (const verbs::Sge& sge : wr.sg_list) {
    const std::uint8_t* local = memory_.find(sge.lkey, sge.addr, sge.length, verbs::Access::kNone);
    if (local == nullptr) return verbs::Error{EINVAL, "a Send from memory that is not registered"};
    message.insert(message.end(), local, local + sge.length);
  }
  if (invalidates) remote_invalidations.push_back(wr.invalidate_rkey);
  if (peer_ != nullptr) peer_->inject(message, invalidates ? std::optional(wr.invalidate_rkey) : std::nullopt);
  if (peer_ == nullptr || keep_sent) sent.push_back(std::move(message));
  complete(wr, verbs::WcOpcode::kSend, len);
  return {};
}

}  // namespace weft::rpcrdma::testing
