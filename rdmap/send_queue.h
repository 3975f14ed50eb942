#pragma once

#include <cstdint>
#include <optional>

#include "ddp/segment.h"
#include "rdmap/ring.h"
#include "rdmap/stream_events.h"
#include "rdmap/work.h"

namespace weft::rdmap {

// SendEntry is a posted request on its way through the send queue.
struct SendEntry {
  SendWr wr;
  std::uint64_t len = 0;   // octets of the message, or to be read
  ddp::Msn msn;            // on queue 0: Sends, Immediates, the one behind a Write; on queue 1: Reads, Atomics
  std::uint64_t read = 0;  // Read: octets of the response placed so far
  bool left = false;       // Read, Atomic: TCP has all of the request
  bool done = false;       // its outcome is known; it completes once everything before it has
  WorkStatus status = WorkStatus::kSuccess;
  bool rtr = false;  // the stream's own RTR indication: it has no completion
};

// kNobodysStag stands in messages that name no octet: some hardware refuses STag 0 even there (PEER-H-15).
inline constexpr ddp::Stag kNobodysStag{1};

// sink_stag and sink_to are what a Read Request names as its sink: the first entry of the scatter list, whatever
// follows it, since responses are matched with their request and never resolved by the peer's word.
inline ddp::Stag sink_stag(const SendWr& wr) {
  return wr.sg_list.empty() ? kNobodysStag : wr.sg_list.front().key;
}
inline std::uint64_t sink_to(const SendWr& wr) {
  return wr.sg_list.empty() ? 0 : wr.sg_list.front().addr;
}

// request_id is the Request Identifier of an Atomic: its MSN on queue 1, so that outstanding ones differ.
inline std::uint32_t request_id(const SendEntry& entry) {
  return entry.msn.value;
}

// SendQueue holds the requests that have not completed, in the order they were posted. It decides what may leave next
// (ORD, fence) and completes in order (RFC 5040 section 5.5 rules 13 and 15). Requests are named by sequence number.
class SendQueue {
 public:
  // max_wr outstanding requests; completions go to events, which outlives the queue. first: the MSN that both queues
  // begin with, 1 but for a test of what follows 0xffffffff.
  SendQueue(std::size_t max_wr, Ring<Event>& events, ddp::Msn first = {})
      : max_wr_(max_wr), events_(events), next_send_msn_(first), next_read_msn_(first) {}

  void set_ord(std::uint16_t ord) { ord_ = ord; }

  [[nodiscard]] PostResult post(const SendWr& wr);

  // put_rtr_first makes this the first request of all, ahead of what was posted during startup. Precondition: nothing
  // has left yet.
  void put_rtr_first(SendWr rtr);

  // may_leave: whether request seq may be framed now (or carried out, where it is a local one), when the batch under
  // way already holds reads_in_batch Read and Atomic Requests.
  bool may_leave(std::uint64_t seq, std::size_t reads_in_batch) const;

  // lacks_ord: request seq is a Read or an Atomic where the ORD agreed on is 0, "RDMA Reads will not be used" (RFC 6581
  // section 9.1). No answer will ever make room for it.
  bool lacks_ord(std::uint64_t seq) const;

  SendEntry& operator[](std::uint64_t seq) { return entries_[seq]; }
  const SendEntry& operator[](std::uint64_t seq) const { return entries_[seq]; }
  std::uint64_t end_seq() const { return entries_.end_seq(); }
  bool empty() const { return entries_.empty(); }
  // Gives back memory that only a long queue needs.
  void trim() {
    entries_.trim();
    open_reads_.trim();
  }
  // The first request from seq on that is still to be framed or carried out. Local requests that are done are passed
  // over: whoever rewinds to a place before them must not carry them out again.
  std::uint64_t skip_done(std::uint64_t seq) const;

  // The Read or Atomic Request of seq was (at least in part) handed to TCP: it takes an ORD slot.
  void on_read_sent(std::uint64_t seq) { open_reads_.push_back(seq); }
  // The same, to its last octet: from here on it may be answered.
  void on_read_left(std::uint64_t seq) { entries_[seq].left = true; }
  // The oldest request that waits for its answer, where that is a Read or an Atomic; null otherwise, and where none
  // waits. One whose last octet is still here waits for none yet: who answers it is refused (RDMAP-5.2.2-05). Answers
  // come in the order of the requests (RFC 5040 section 5.5 rule 20, RFC 7306 section 7).
  SendEntry* oldest_read() { return oldest_answered(SendOp::kRdmaRead); }
  SendEntry* oldest_atomic() { return oldest_answered(SendOp::kAtomic); }
  // Ends the oldest request that waits for its answer.
  void finish_read(WorkStatus status);
  // Ends request seq, one that no answer ends, or any that never left.
  void finish(std::uint64_t seq, WorkStatus status);

  // Ends everything: what has no outcome of its own gets kFlushed. why goes into every failed completion.
  // refused: a Read or Atomic Request (its MSN on queue 1) that the peer's Terminate blames, to be ended with
  // refused_status.
  void flush(const std::optional<Terminate>& why, std::optional<ddp::Msn> refused = std::nullopt,
             WorkStatus refused_status = WorkStatus::kFlushed);

 private:
  void number(SendEntry& entry);
  SendEntry* oldest_answered(SendOp op);
  void complete_front(const std::optional<Terminate>& why);
  void complete_in_order();

  std::size_t max_wr_;
  std::uint16_t ord_ = 0;
  Ring<Event>& events_;
  Ring<SendEntry> entries_;
  Ring<std::uint64_t> open_reads_;  // sequence numbers
  ddp::Msn next_send_msn_;
  ddp::Msn next_read_msn_;
};

}  // namespace weft::rdmap
