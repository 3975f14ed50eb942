#include "rdmap/send_queue.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>
#include <variant>

#include "mpa/wire/release_memory.h"
#include "rdmap/sge.h"

namespace weft::rdmap {

namespace {

constexpr std::size_t kKeptInlineLen = 256;

// Whether the operation takes a receive of the peer, and with it an MSN of queue 0.
bool takes_receive(SendOp op) {
  return op == SendOp::kSend || op == SendOp::kSendInvalidate || op == SendOp::kImmediate ||
         op == SendOp::kWriteImmediate;
}

WorkOp work_op(SendOp op) {
  switch (op) {
    case SendOp::kSend:
    case SendOp::kSendInvalidate:
    case SendOp::kImmediate: return WorkOp::kSend;
    case SendOp::kRdmaWrite:
    case SendOp::kWriteImmediate: return WorkOp::kRdmaWrite;
    case SendOp::kRdmaRead: return WorkOp::kRdmaRead;
    case SendOp::kAtomic: return WorkOp::kAtomic;
    case SendOp::kBindWindow: return WorkOp::kBindWindow;
    case SendOp::kInvalidateWindow: return WorkOp::kInvalidateWindow;
  }
  return WorkOp::kSend;
}

// len: octets of the request's memory.
bool consistent(const SendWr& wr, std::uint64_t len) {
  if (len > std::numeric_limits<std::uint32_t>::max()) return false;
  const bool has_inline = !wr.inline_data.empty();
  switch (wr.op) {
    case SendOp::kSend: return true;
    // RDMAP-5.3-13: the request has to name an STag. A caller that names none leaves 0 there, and no device here hands
    // out 0.
    case SendOp::kSendInvalidate: return wr.remote_stag != ddp::Stag{};
    case SendOp::kWriteImmediate:
      if (!std::holds_alternative<ImmediateData>(wr.args)) return false;
      [[fallthrough]];
    case SendOp::kRdmaWrite:
      // A source must not let its own tagged offset wrap (DDP-A-25).
      return len == 0 || len - 1 <= std::numeric_limits<std::uint64_t>::max() - wr.remote_to;
    case SendOp::kRdmaRead: return !has_inline;
    case SendOp::kImmediate: return len == 0 && std::holds_alternative<ImmediateData>(wr.args);  // EXT-6.1-01
    case SendOp::kAtomic: return !has_inline && len == kAtomicLen && std::holds_alternative<AtomicOperands>(wr.args);
    case SendOp::kBindWindow: return len == 0 && std::holds_alternative<ddp::WindowBind>(wr.args);
    case SendOp::kInvalidateWindow: return len == 0;
  }
  return false;
}

std::uint64_t length_of(const SendWr& wr) {
  return wr.inline_data.empty() ? total_len(wr.sg_list) : wr.inline_data.size();
}

}  // namespace

bool is_consistent(const SendWr& wr) {
  return consistent(wr, length_of(wr));
}

PostResult SendQueue::post(const SendWr& wr) {
  const std::size_t num_own = !entries_.empty() && entries_.front().own ? 1 : 0;
  if (entries_.size() - num_own >= max_wr_) return PostResult::kQueueFull;
  const std::uint64_t len = length_of(wr);
  if (!consistent(wr, len)) return PostResult::kInvalid;
  SendEntry& entry = entries_.extend();
  entry.wr = wr;
  entry.len = len;
  entry.msn = {};
  entry.read = 0;
  entry.left = false;
  entry.done = false;
  entry.status = WorkStatus::kSuccess;
  entry.own = false;
  number(entry);
  return PostResult::kOk;
}

void SendQueue::number(SendEntry& entry) {
  if (takes_receive(entry.wr.op)) {
    entry.msn = next_send_msn_;
    next_send_msn_ = next_send_msn_.next();
  } else if (is_answered(entry.wr.op)) {  // EXT-5.2-01
    entry.msn = next_read_msn_;
    next_read_msn_ = next_read_msn_.next();
  }
}

void SendQueue::put_own_first(SendWr wr) {
  Ring<SendEntry> posted = std::exchange(entries_, {});
  assert(posted.begin_seq() == 0);
  next_send_msn_ = next_read_msn_ = ddp::Msn{1};
  SendEntry entry;
  entry.wr = std::move(wr);
  entry.own = true;
  number(entries_.push_back(std::move(entry)));
  for (; !posted.empty(); posted.pop_front()) number(entries_.push_back(std::move(posted.front())));
}

bool SendQueue::may_leave(std::uint64_t seq, std::size_t reads_in_batch) const {
  if (!entries_.holds(seq)) return false;
  const SendEntry& entry = entries_[seq];
  const std::size_t reads = open_reads_.size() + reads_in_batch;
  if (entry.wr.fence && reads > 0) return false;
  // The peer made a slot for a Read of the stream's own, so our own ORD does not matter (MPA2-9.1-08).
  return !is_answered(entry.wr.op) || reads < ord_ || entry.own;  // RDMAP-6.1-07, EXT-5.2-01
}

bool SendQueue::lacks_ord(std::uint64_t seq) const {
  return ord_ == 0 && entries_.holds(seq) && is_answered(entries_[seq].wr.op) && !entries_[seq].own;
}

std::uint64_t SendQueue::skip_done(std::uint64_t seq) const {
  seq = std::max(seq, entries_.begin_seq());
  while (entries_.holds(seq) && entries_[seq].done && is_local(entries_[seq].wr.op)) ++seq;
  return seq;
}

SendEntry* SendQueue::oldest_answered(SendOp op) {
  if (open_reads_.empty()) return nullptr;
  SendEntry& oldest = entries_[open_reads_.front()];
  return oldest.wr.op == op && oldest.left ? &oldest : nullptr;
}

void SendQueue::finish_read(WorkStatus status) {
  const std::uint64_t seq = open_reads_.front();
  open_reads_.pop_front();
  finish(seq, status);
}

void SendQueue::finish(std::uint64_t seq, WorkStatus status) {
  entries_[seq].done = true;
  entries_[seq].status = status;
  complete_in_order();
}

void SendQueue::complete_in_order() {
  while (!entries_.empty() && entries_.front().done && entries_.front().status == WorkStatus::kSuccess)
    complete_front(std::nullopt);
}

void SendQueue::complete_front(const std::optional<Terminate>& why) {
  SendEntry& entry = entries_.front();
  const bool failed = entry.status != WorkStatus::kSuccess;
  if (!entry.own && (entry.wr.signaled || failed)) {
    auto& c = events_.extend().emplace<Completion>();
    c.wr_id = entry.wr.wr_id;
    c.note = entry.wr.note;
    c.op = work_op(entry.wr.op);
    c.status = entry.status;
    if (!failed && is_answered(entry.wr.op)) c.byte_len = static_cast<std::uint32_t>(entry.len);
    if (failed) c.terminate = why;
  }
  // The slot keeps a little memory for reuse, but not much: a queue has many slots.
  if (entry.wr.inline_data.capacity() > kKeptInlineLen) release_memory(entry.wr.inline_data);
  entries_.pop_front();
}

void SendQueue::flush(const std::optional<Terminate>& why, std::optional<ddp::Msn> refused, WorkStatus refused_status) {
  open_reads_.clear();
  while (!entries_.empty()) {
    SendEntry& entry = entries_.front();
    // The outcome of requests that left behind a failed Read is unknown too (RDMAP-6.2.1-03).
    if (!entry.done || entry.status == WorkStatus::kSuccess) {
      const bool blamed = refused && is_answered(entry.wr.op) && entry.msn == *refused;
      entry.status = blamed ? refused_status : WorkStatus::kFlushed;
    }
    complete_front(why);
  }
}

}  // namespace weft::rdmap
