#include "rpcrdma/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <type_traits>
#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/gather.h"
#include "verbs-shim/api/explain.h"

namespace weft::rpcrdma {

namespace {

// Index space of a wr_id's low half: Receives have kReceiveBit. Unsignaled requests have no entry; they have this bit
// and their slot.
constexpr std::uint32_t kUnsignaledBit = 0x40000000;
constexpr std::uint32_t kNoBuffer = 0xffffffff;

}  // namespace

verbs::Result<std::unique_ptr<Endpoint>> Endpoint::create(verbs::Pd& pd, const Config& config) {
  std::unique_ptr<Endpoint> endpoint(new Endpoint(pd, config));
  if (!endpoint->reserve_own_buffers())
    return verbs::Error{ENOMEM, "there is no memory for Send and Receive buffers, or it cannot be registered"};
  if (config.receives != nullptr) {
    endpoint->lease_ = std::make_shared<ReceivePool::Lease>(*config.receives);
    config.receives->enter();
    endpoint->receives_client_ = config.receives->grown().enter(config.address);
    endpoint->grown_ = endpoint->receives_client_.lease();
    if (!endpoint->set_share(config.num_receives)) return verbs::Error{ENOMEM, "all shared Receives are promised"};
  }
  return endpoint;
}

Endpoint::Endpoint(verbs::Pd& pd, const Config& config) : config_(config), send_pool_(config.sends) {
  if (config.receives == nullptr) {
    own_receives_ = std::make_unique<MessagePool>(pd, config.receive_len, config.num_receives);
  }
  if (config.sends == nullptr) {
    own_sends_ = std::make_unique<MessagePool>(pd, config.send_len, config.num_sends);
    send_pool_ = own_sends_.get();
  }
}

// These pools get no buffers back while a Call waits for one, so they are full from the start.
bool Endpoint::reserve_own_buffers() {
  return (own_receives_ == nullptr || own_receives_->reserve(config_.num_receives)) &&
         (own_sends_ == nullptr || own_sends_->reserve(config_.num_sends));
}

Endpoint::~Endpoint() {
  // The queue pair is gone, so it no longer uses these buffers. A service may still read Receive buffers.
  for (const std::uint32_t slot : free_sends_) sends_[slot] = kNoBuffer;
  for (const std::uint32_t buffer : sends_) {
    if (buffer != kNoBuffer) send_pool_->give_back(buffer);
  }
  if (lease_ == nullptr) return;
  config_.receives->release(share_);
  config_.receives->leave();
  for (const std::uint32_t slot : free_receives_) receives_[slot] = kNoBuffer;
  std::erase(receives_, kNoBuffer);
  lease_->leave_behind(std::move(receives_));
}

verbs::QpInitAttr Endpoint::qp_attr(verbs::Cq& cq, verbs::Cq* receive_cq) const {
  verbs::QpInitAttr attr;
  attr.send_cq = &cq;
  attr.recv_cq = receive_cq != nullptr ? receive_cq : &cq;
  if (config_.receives != nullptr) attr.srq = &config_.receives->srq();
  attr.cap.max_send_wr = config_.max_send_wr;
  attr.cap.max_recv_wr = config_.num_receives;
  attr.cap.max_send_sge = config_.max_send_sge;
  attr.cap.max_recv_sge = 1;
  return attr;
}

verbs::Status Endpoint::attach(verbs::Qp& qp) {
  qp_ = &qp;
  if (config_.receives != nullptr) return {};
  for (std::uint32_t slot = 0; slot < config_.num_receives; ++slot) {
    const auto buffer = own_receives_->take();
    if (!buffer) return verbs::Error{ENOMEM, "no memory for Receives"};
    receives_.push_back(*buffer);
    if (!post_receive(ReceiveSlot{slot})) return verbs::Error{EIO, *failure_};
  }
  return {};
}

std::optional<Work> Endpoint::on_completion(const verbs::Wc& wc) {
  const auto index = static_cast<std::uint32_t>(wc.wr_id);
  const bool is_receive = (index & kReceiveBit) != 0;
  if (wc.status != verbs::WcStatus::kSuccess) {
    failed_by_completion_ = failed_by_completion_ || !failure_;
    // A flush follows from an earlier failure or from the end of the connection, and this cause is reported elsewhere.
    if (wc.status != verbs::WcStatus::kWrFlushErr) {
      fail("a work request failed: " + verbs::explain(wc));
    } else {
      fail("the connection ended");
    }
    if (wc.status == verbs::WcStatus::kRemAccessErr && !is_receive) on_refused(index);
    if (is_receive && lease_ != nullptr) config_.receives->give_back(config_.receives->take(wc.wr_id));
    return {};
  }
  if (is_receive) {
    ++num_held_;
    auto work = lease_ != nullptr ? on_shared_receive(config_.receives->take(wc.wr_id))
                                  : std::optional(Work::receive_in(ReceiveSlot{index & ~kReceiveBit}));
    if (work && verbs::has(wc.wc_flags, verbs::WcFlags::kWithInv)) work->invalidated = wc.invalidated_rkey;
    return work;
  }
  if (index >= entries_.size()) return {};
  const Entry entry = entries_[index];
  queued_ -= entry.retires;
  ++progress_;
  (entry.work.kind() == WorkKind::kRead ? pulled_ : pushed_) += entry.octets;
  free_entries_.push_back(index);
  return entry.work;
}

void Endpoint::on_refused(std::uint32_t index) {
  if (index >= entries_.size()) {
    if ((index & kUnsignaledBit) != 0)
      refused_write_ = SendSlot{index & ~kUnsignaledBit};  // only Writes have remote memory
    return;
  }
  const Work& work = entries_[index].work;
  if (work.kind() == WorkKind::kRead) refused_read_ = work.call();
  if (work.kind() == WorkKind::kWrite) refused_write_ = work.send();
}

std::optional<Work> Endpoint::on_shared_receive(std::uint32_t buffer) {
  const std::size_t num_taken = receives_.size() - free_receives_.size();
  if (violates("R1-4.3.1-04", num_taken >= share_ + kExtraReceives)) {
    fail_overrun("the peer sends more than it was granted");
  }
  if (failure_) {
    // It gets no answer any more.
    config_.receives->give_back(buffer);
    return {};
  }
  if (free_receives_.empty()) {
    free_receives_.push_back(static_cast<std::uint32_t>(receives_.size()));
    receives_.push_back(kNoBuffer);
  }
  const std::uint32_t slot = free_receives_.back();
  free_receives_.pop_back();
  receives_[slot] = buffer;
  return Work::receive_in(ReceiveSlot{slot});
}

bool Endpoint::set_share(std::uint32_t num) {
  if (config_.receives == nullptr) return num <= config_.num_receives;
  const Amount grown_before = grown_.amount();
  const Amount grown = num > config_.num_receives ? num - config_.num_receives : 0;
  if (grown_.resize(grown) != Ledger::Verdict::kFits) return false;
  if (num > share_ && !config_.receives->reserve(num - share_)) {
    (void)grown_.resize(grown_before);
    return false;
  }
  if (num < share_) config_.receives->release(share_ - num);
  share_ = num;
  return true;
}

std::uint32_t Endpoint::num_ready() const {
  const std::uint32_t all = lease_ != nullptr ? share_ : config_.num_receives;
  return all - std::min(all, num_held_);
}

std::shared_ptr<const void> Endpoint::memory() const {
  if (lease_ != nullptr) return lease_;
  return own_receives_->memory();
}

ConstBytes Endpoint::received(ReceiveSlot slot, std::size_t len) const {
  return ConstBytes(receive_pool().octets(receives_[index_of(slot)])).first(std::min(len, config_.receive_len));
}

bool Endpoint::post_receive(ReceiveSlot receive) {
  const std::uint32_t slot = index_of(receive);
  if (failure_ || qp_ == nullptr) return false;
  if (num_held_ != 0) --num_held_;  // at first, none held a message
  if (lease_ != nullptr) {
    free_receives_.push_back(slot);
    if (config_.receives->give_back(receives_[slot])) return true;
    fail("cannot post a shared Receive");
    return false;
  }
  const std::uint32_t buffer = receives_[slot];
  const verbs::Sge sge = sge_of(own_receives_->octets(buffer).first(config_.receive_len), own_receives_->lkey(buffer));
  verbs::RecvWr wr;
  wr.wr_id = std::uint64_t{config_.serial} << 32 | kReceiveBit | slot;
  wr.sg_list = std::span(&sge, 1);
  const auto status = qp_->post_recv(wr);
  if (!status.ok()) fail("cannot post a Receive: " + status.error().message);
  return status.ok();
}

std::optional<SendSlot> Endpoint::take_send() {
  if (free_sends_.empty() && sends_.size() == config_.num_sends) return {};
  const auto buffer = send_pool_->take();
  if (!buffer) return {};
  if (free_sends_.empty()) {
    free_sends_.push_back(static_cast<std::uint32_t>(sends_.size()));
    sends_.push_back(kNoBuffer);
  }
  const std::uint32_t slot = free_sends_.back();
  free_sends_.pop_back();
  sends_[slot] = *buffer;
  return SendSlot{slot};
}

void Endpoint::give_send(SendSlot slot) {
  send_pool_->give_back(sends_[index_of(slot)]);
  free_sends_.push_back(index_of(slot));
}

MutBytes Endpoint::send_buffer(SendSlot slot) const {
  return send_pool_->octets(sends_[index_of(slot)]);
}

std::uint32_t Endpoint::send_lkey(SendSlot slot) const {
  return send_pool_->lkey(sends_[index_of(slot)]);
}

bool Endpoint::post_send(SendSlot slot, std::size_t len) {
  const verbs::Sge sge = sge_of(send_buffer(slot).first(len), send_lkey(slot));
  return post_send(slot, std::span(&sge, 1));
}

bool Endpoint::post_send(SendSlot slot, std::span<const verbs::Sge> sges, std::optional<std::uint32_t> invalidate) {
  verbs::SendWr wr;
  wr.sg_list = sges;
  wr.opcode = invalidate ? verbs::WrOpcode::kSendWithInv : verbs::WrOpcode::kSend;
  wr.invalidate_rkey = invalidate.value_or(0);
  wr.send_flags = verbs::SendFlags::kSignaled;
  return post(wr, Work::send_from(slot));
}

bool Endpoint::post_read(std::span<const verbs::Sge> sges, std::uint64_t remote_addr, std::uint32_t rkey,
                         CallSlot call) {
  return post_rdma(verbs::WrOpcode::kRdmaRead, sges, remote_addr, rkey, Work::read_for(call), true);
}

bool Endpoint::post_write(std::span<const verbs::Sge> sges, std::uint64_t remote_addr, std::uint32_t rkey,
                          SendSlot reply, bool signaled) {
  return post_rdma(verbs::WrOpcode::kRdmaWrite, sges, remote_addr, rkey, Work::write_for(reply), signaled);
}

bool Endpoint::post_rdma(verbs::WrOpcode opcode, std::span<const verbs::Sge> sges, std::uint64_t remote_addr,
                         std::uint32_t rkey, Work work, bool signaled) {
  verbs::SendWr wr;
  wr.sg_list = sges;
  wr.opcode = opcode;
  wr.send_flags = signaled ? verbs::SendFlags::kSignaled : verbs::SendFlags::kNone;
  wr.remote_addr = remote_addr;
  wr.rkey = rkey;
  return post(wr, work);
}

bool Endpoint::post_bind(const verbs::MwBind& bind) {
  verbs::SendWr wr;
  wr.opcode = verbs::WrOpcode::kBindMw;
  wr.send_flags = verbs::SendFlags::kNone;
  wr.bind_mw = bind;
  return post(wr, {});
}

bool Endpoint::post_invalidate(std::uint32_t handle, ReceiveSlot reply, bool signaled) {
  verbs::SendWr wr;
  wr.opcode = verbs::WrOpcode::kLocalInv;
  wr.send_flags = signaled ? verbs::SendFlags::kSignaled : verbs::SendFlags::kNone;
  wr.invalidate_rkey = handle;
  return post(wr, Work::invalidate_for(reply));
}

bool Endpoint::post(const verbs::SendWr& wr, Work work) {
  if (failure_ || qp_ == nullptr) return false;
  const bool signaled = verbs::has(wr.send_flags, verbs::SendFlags::kSignaled);
  std::uint32_t index = kUnsignaledBit | work.index();
  std::uint64_t octets = 0;
  for (const verbs::Sge& sge : wr.sg_list) octets += sge.length;
  if (send_queue_room() == 0) {
    fail("the send queue is full");
    return false;
  }
  if (signaled) {
    if (free_entries_.empty()) {
      free_entries_.push_back(static_cast<std::uint32_t>(entries_.size()));
      entries_.emplace_back();
    }
    index = free_entries_.back();
    free_entries_.pop_back();
    entries_[index] = Entry{work, unsignaled_ + 1, unsignaled_octets_ + octets};
  }
  verbs::SendWr posted = wr;
  posted.wr_id = std::uint64_t{config_.serial} << 32 | index;
  const auto status = qp_->post_send(posted);
  if (!status.ok()) {
    fail("cannot post a work request: " + status.error().message);
    return false;
  }
  ++queued_;
  unsignaled_ = signaled ? 0 : unsignaled_ + 1;
  unsignaled_octets_ = signaled ? 0 : unsignaled_octets_ + octets;
  return true;
}

void Endpoint::trim() {
  const auto release = [](auto& table, auto& free) {
    if (free.size() != table.size()) return;
    std::remove_reference_t<decltype(table)>().swap(table);
    std::remove_reference_t<decltype(free)>().swap(free);
  };
  release(entries_, free_entries_);
  release(sends_, free_sends_);
  if (lease_ != nullptr) release(receives_, free_receives_);
}

std::uint64_t Endpoint::octets_pulled() const {
  return qp_ == nullptr ? pulled_ : std::max(pulled_, qp_->counters().read_octets_rx);
}

std::uint64_t Endpoint::octets_pushed() const {
  if (qp_ == nullptr) return pushed_;
  // In this order: octets that leave in between do not count.
  const verbs::QpCounters counters = qp_->counters();
  const std::uint64_t taken = std::max(pushed_, counters.send_octets_tx + counters.write_octets_tx);
  return taken - std::min<std::uint64_t>(taken, qp_->num_unsent());
}

void Endpoint::fail_overrun(std::string why) {
  overrun_ = overrun_ || !failure_;
  fail_violation(std::move(why));
}

void Endpoint::fail_violation(std::string why) {
  violated_ = violated_ || !failure_;
  fail(std::move(why));
}

void Endpoint::fail(std::string why) {
  if (!failure_) failure_ = std::move(why);
}

}  // namespace weft::rpcrdma
