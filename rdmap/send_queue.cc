#include "rdmap/send_queue.h"

#include <cassert>
#include <limits>
#include <utility>

#include "rdmap/sge.h"

namespace weft::rdmap {

namespace {

bool is_send_op(SendOp op) {
  return op == SendOp::kSend || op == SendOp::kSendInvalidate;
}

WorkOp work_op(SendOp op) {
  switch (op) {
    case SendOp::kSend:
    case SendOp::kSendInvalidate: return WorkOp::kSend;
    case SendOp::kRdmaWrite: return WorkOp::kRdmaWrite;
    case SendOp::kRdmaRead: return WorkOp::kRdmaRead;
  }
  return WorkOp::kSend;
}

}  // namespace

PostResult SendQueue::post(SendWr wr) {
  const std::size_t num_own = !entries_.empty() && entries_.front().rtr ? 1 : 0;
  if (entries_.size() - num_own >= max_wr_) return PostResult::kQueueFull;
  SendEntry entry;
  entry.len = wr.inline_data.empty() ? total_len(wr.sg_list) : wr.inline_data.size();
  if (entry.len > std::numeric_limits<std::uint32_t>::max()) return PostResult::kInvalid;
  if (!wr.inline_data.empty() && wr.op == SendOp::kRdmaRead) return PostResult::kInvalid;
  // A source must not let its own tagged offset wrap (notes A-25).
  if (wr.op == SendOp::kRdmaWrite && entry.len > 0 &&
      entry.len - 1 > std::numeric_limits<std::uint64_t>::max() - wr.remote_to)
    return PostResult::kInvalid;
  entry.wr = std::move(wr);
  append(std::move(entry));
  return PostResult::kOk;
}

void SendQueue::append(SendEntry entry) {
  if (is_send_op(entry.wr.op)) {
    entry.msn = next_send_msn_;
    next_send_msn_ = next_send_msn_.next();
  } else if (entry.wr.op == SendOp::kRdmaRead) {
    entry.msn = next_read_msn_;
    next_read_msn_ = next_read_msn_.next();
  }
  entries_.push_back(std::move(entry));
}

void SendQueue::put_rtr_first(SendWr rtr) {
  Ring<SendEntry> posted = std::exchange(entries_, {});
  assert(posted.begin_seq() == 0);
  next_send_msn_ = next_read_msn_ = ddp::Msn{1};
  SendEntry entry;
  entry.wr = std::move(rtr);
  entry.rtr = true;
  append(std::move(entry));
  for (; !posted.empty(); posted.pop_front()) append(std::move(posted.front()));
}

bool SendQueue::may_leave(std::uint64_t seq, std::size_t reads_in_batch) const {
  if (!entries_.holds(seq)) return false;
  const SendEntry& entry = entries_[seq];
  const std::size_t reads = open_reads_.size() + reads_in_batch;
  if (entry.wr.fence && reads > 0) return false;
  // An RTR indication by Read takes a slot that the peer made for it, whatever our own ORD is (MPA2-9.1-08).
  return entry.wr.op != SendOp::kRdmaRead || reads < ord_ || entry.rtr;  // RDMAP-6.1-07
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
  if (!entry.rtr && (entry.wr.signaled || failed)) {
    Completion c;
    c.wr_id = entry.wr.wr_id;
    c.op = work_op(entry.wr.op);
    c.status = entry.status;
    if (!failed && entry.wr.op == SendOp::kRdmaRead) c.byte_len = static_cast<std::uint32_t>(entry.len);
    if (failed) c.terminate = why;
    events_.push_back(c);
  }
  entries_.pop_front();
}

void SendQueue::flush(const std::optional<Terminate>& why, std::optional<ddp::Msn> refused, WorkStatus refused_status) {
  open_reads_.clear();
  while (!entries_.empty()) {
    SendEntry& entry = entries_.front();
    // What has left behind a Read that failed has an unknown fate too (RDMAP-6.2.1-03).
    if (!entry.done || entry.status == WorkStatus::kSuccess) {
      const bool blamed = refused && entry.wr.op == SendOp::kRdmaRead && entry.msn == *refused;
      entry.status = blamed ? refused_status : WorkStatus::kFlushed;
    }
    complete_front(why);
  }
}

}  // namespace weft::rdmap
