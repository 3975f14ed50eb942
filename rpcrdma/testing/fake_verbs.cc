#include "rpcrdma/testing/fake_verbs.h"

#include <cerrno>
#include <cstring>

namespace weft::rpcrdma::testing {

namespace {

std::uint8_t* pointer_to(std::uint64_t addr) {
  return reinterpret_cast<std::uint8_t*>(addr);
}

}  // namespace

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

std::uint8_t* FakeMemory::find(std::uint32_t key, std::uint64_t addr, std::uint64_t len, verbs::Access needed) const {
  const auto at = regions_.find(key);
  if (at == regions_.end() || !verbs::has(at->second.access, needed)) return nullptr;
  const std::uint64_t base = at->second.zero_based ? 0 : reinterpret_cast<std::uintptr_t>(at->second.octets);
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

verbs::Status FakeSrq::post_recv(const verbs::RecvWr& wr) {
  if (fail_post || receives.size() == max_wr_) return verbs::Error{ENOMEM, "the shared receive queue is full"};
  receives.push_back({wr.wr_id, wr.sg_list[0]});
  return {};
}

int FakeCq::poll(std::span<verbs::Wc> wc) {
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

bool FakeQp::inject(ConstBytes message) {
  if (broken_) return false;
  std::deque<Receive>& receives = srq != nullptr ? srq->receives : receives_;
  if (receives.empty() || message.size() > receives.front().sge.length) {
    break_connection();
    return false;
  }
  const Receive receive = receives.front();
  receives.pop_front();
  if (!message.empty()) std::memcpy(pointer_to(receive.sge.addr), message.data(), message.size());
  cq_.push({.wr_id = receive.wr_id,
            .opcode = verbs::WcOpcode::kRecv,
            .byte_len = static_cast<std::uint32_t>(message.size()),
            .qp_num = number});
  return true;
}

void FakeQp::break_connection() {
  if (broken_) return;
  broken_ = true;
  release();
  for (const Receive& receive : receives_) {
    cq_.push({.wr_id = receive.wr_id, .status = verbs::WcStatus::kWrFlushErr});
  }
  receives_.clear();
  if (peer_ != nullptr) peer_->break_connection();
}

void FakeQp::release() {
  for (const verbs::Wc& wc : held_) cq_.push(wc);
  held_.clear();
}

void FakeQp::complete(const verbs::SendWr& wr, verbs::WcOpcode opcode, std::uint32_t len) {
  if (!verbs::has(wr.send_flags, verbs::SendFlags::kSignaled)) return;
  const verbs::Wc wc{.wr_id = wr.wr_id, .opcode = opcode, .byte_len = len};
  if (hold_completions) {
    held_.push_back(wc);
  } else {
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

verbs::Status FakeQp::post_send(const verbs::SendWr& wr) {
  const std::size_t number = ++memory_.faults.posts;
  if (fail_post_send || number == memory_.faults.fail_post_at) {
    return verbs::Error{ENOMEM, "post_send made to fail"};
  }
  if (number == memory_.faults.cut_at) break_connection();
  if (broken_) {
    cq_.push({.wr_id = wr.wr_id, .status = verbs::WcStatus::kWrFlushErr});
    return {};
  }
  std::uint32_t len = 0;
  for (const verbs::Sge& sge : wr.sg_list) len += sge.length;
  if (wr.opcode != verbs::WrOpcode::kSend) {
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
  if (peer_ != nullptr) peer_->inject(message);
  if (peer_ == nullptr || keep_sent) sent.push_back(std::move(message));
  complete(wr, verbs::WcOpcode::kSend, len);
  return {};
}

}  // namespace weft::rpcrdma::testing
