#include "rpcrdma/channel.h"

#include <cerrno>
#include <new>
#include <utility>

#include "verbs-shim/api/explain.h"

namespace weft::rpcrdma {

namespace {

// Index space of a wr_id's low half: Receives have the top bit, unsignaled Writes are kNoEntry.
constexpr std::uint32_t kReceiveBit = 0x80000000;
constexpr std::uint32_t kNoEntry = 0x7fffffff;

std::uint64_t address_of(const std::uint8_t* octets) {
  return reinterpret_cast<std::uintptr_t>(octets);
}

}  // namespace

verbs::Result<std::unique_ptr<Channel>> Channel::create(verbs::Pd& pd, const Config& config) {
  std::unique_ptr<Channel> channel(new Channel(config));
  const std::size_t len = config.num_receives * config.receive_len + config.num_sends * config.send_len;
  // Not cleared: pages that no message ever touches stay unused.
  channel->memory_.reset(new (std::nothrow) std::uint8_t[len]);
  if (!channel->memory_) return verbs::Error{ENOMEM, "no memory for Send and Receive buffers"};
  auto mr = pd.reg_mr(channel->memory_.get(), len, verbs::Access::kLocalWrite);
  if (!mr.ok()) return mr.error();
  channel->mr_ = std::move(*mr);
  for (std::uint32_t i = config.num_sends; i > 0; --i) channel->free_sends_.push_back(i - 1);
  channel->entries_.resize(config.max_send_wr);
  for (std::uint32_t i = config.max_send_wr; i > 0; --i) channel->free_entries_.push_back(i - 1);
  return channel;
}

verbs::QpInitAttr Channel::qp_attr(verbs::Cq& cq) const {
  verbs::QpInitAttr attr;
  attr.send_cq = &cq;
  attr.recv_cq = &cq;
  attr.cap.max_send_wr = config_.max_send_wr;
  attr.cap.max_recv_wr = config_.num_receives;
  attr.cap.max_send_sge = config_.max_send_sge;
  attr.cap.max_recv_sge = 1;
  return attr;
}

verbs::Status Channel::attach(verbs::Qp& qp) {
  qp_ = &qp;
  for (std::uint32_t slot = 0; slot < config_.num_receives; ++slot) {
    if (!post_receive(slot)) return verbs::Error{EIO, *failure_};
  }
  return {};
}

std::optional<Work> Channel::on_completion(const verbs::Wc& wc) {
  const auto index = static_cast<std::uint32_t>(wc.wr_id);
  if (wc.status != verbs::WcStatus::kSuccess) {
    // Flushes follow from what failed first, or from the end of the connection, which is reported elsewhere.
    if (wc.status != verbs::WcStatus::kWrFlushErr) {
      fail("a work request failed: " + verbs::explain(wc));
    } else {
      fail("the connection ended");
    }
    return {};
  }
  if ((index & kReceiveBit) != 0) return Work{WorkKind::kReceive, index & ~kReceiveBit};
  if (index >= entries_.size()) return {};
  const Entry entry = entries_[index];
  queued_ -= entry.retires;
  ++progress_;
  free_entries_.push_back(index);
  return entry.work;
}

ConstBytes Channel::received(std::uint32_t slot, std::size_t len) const {
  return ConstBytes(memory_.get() + slot * config_.receive_len, std::min(len, config_.receive_len));
}

bool Channel::post_receive(std::uint32_t slot) {
  if (failure_ || qp_ == nullptr) return false;
  const verbs::Sge sge{address_of(memory_.get() + slot * config_.receive_len),
                       static_cast<std::uint32_t>(config_.receive_len), mr_->lkey()};
  verbs::RecvWr wr;
  wr.wr_id = std::uint64_t{config_.serial} << 32 | kReceiveBit | slot;
  wr.sg_list = std::span(&sge, 1);
  const auto status = qp_->post_recv(wr);
  if (!status.ok()) fail("cannot post a Receive: " + status.error().message);
  return status.ok();
}

std::optional<std::uint32_t> Channel::take_send() {
  if (free_sends_.empty()) return {};
  const std::uint32_t slot = free_sends_.back();
  free_sends_.pop_back();
  return slot;
}

MutBytes Channel::send_buffer(std::uint32_t slot) const {
  return MutBytes(memory_.get() + config_.num_receives * config_.receive_len + slot * config_.send_len,
                  config_.send_len);
}

bool Channel::post_send(std::uint32_t slot, std::size_t len) {
  const verbs::Sge sge{address_of(send_buffer(slot).data()), static_cast<std::uint32_t>(len), mr_->lkey()};
  return post_send(slot, std::span(&sge, 1));
}

bool Channel::post_send(std::uint32_t slot, std::span<const verbs::Sge> sges) {
  verbs::SendWr wr;
  wr.sg_list = sges;
  wr.opcode = verbs::WrOpcode::kSend;
  wr.send_flags = verbs::SendFlags::kSignaled;
  return post(wr, Work{WorkKind::kSend, slot});
}

bool Channel::post_rdma(verbs::WrOpcode opcode, std::span<const verbs::Sge> sges, std::uint64_t remote_addr,
                        std::uint32_t rkey, std::uint32_t slot, bool signaled) {
  verbs::SendWr wr;
  wr.sg_list = sges;
  wr.opcode = opcode;
  wr.send_flags = signaled ? verbs::SendFlags::kSignaled : verbs::SendFlags::kNone;
  wr.remote_addr = remote_addr;
  wr.rkey = rkey;
  return post(wr, Work{opcode == verbs::WrOpcode::kRdmaRead ? WorkKind::kRead : WorkKind::kWrite, slot});
}

bool Channel::post(const verbs::SendWr& wr, Work work) {
  if (failure_ || qp_ == nullptr) return false;
  const bool signaled = verbs::has(wr.send_flags, verbs::SendFlags::kSignaled);
  std::uint32_t index = kNoEntry;
  if (send_queue_room() == 0 || (signaled && free_entries_.empty())) {
    fail("the send queue is full");
    return false;
  }
  if (signaled) {
    index = free_entries_.back();
    free_entries_.pop_back();
    entries_[index] = Entry{work, unsignaled_ + 1};
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
  return true;
}

void Channel::fail(std::string why) {
  if (!failure_) failure_ = std::move(why);
}

}  // namespace weft::rpcrdma
