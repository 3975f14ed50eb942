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
  std::uint64_t len = 0;   // octets to send or to read
  ddp::Msn msn;            // queue 0: Sends, Immediates, also behind a Write; queue 1: Reads, Atomics
  std::uint64_t read = 0;  // Read: octets of the Response placed so far
  bool left = false;       // Read, Atomic: TCP has the whole request
  bool done = false;       // its outcome is known; it completes after all earlier requests
  WorkStatus status = WorkStatus::kSuccess;
  bool own = false;  // the stream's own (rtr.h): it has no completion
};

// kNobodysStag is the STag of messages that access no octet. Some hardware refuses STag 0 even there (PEER-H-15).
inline constexpr ddp::Stag kNobodysStag{1};

// sink_stag and sink_to give the sink that a Read Request names: the first entry of the scatter list. The other entries
// are not named: a Response is matched with its request, and its STag and TO are never resolved.
inline ddp::Stag sink_stag(const SendWr& wr) {
  return wr.sg_list.empty() ? kNobodysStag : wr.sg_list.front().key;
}
inline std::uint64_t sink_to(const SendWr& wr) {
  return wr.sg_list.empty() ? 0 : wr.sg_list.front().addr;
}

// request_id is the Request Identifier of an Atomic: its MSN on queue 1, so that outstanding Atomics differ.
inline std::uint32_t request_id(const SendEntry& entry) {
  return entry.msn.value;
}

// SendQueue holds the requests that have not completed, in the order they were posted. It decides which request may
// leave next (ORD, fence), and it completes requests in order (RFC 5040 section 5.5 rules 13 and 15). Sequence numbers
// name the requests.
class SendQueue {
 public:
  // max_wr: the most outstanding requests. Completions go to events, which outlives the queue. first: the first MSN of
  // both queues. It is 1, except in a test of the MSN after 0xffffffff.
  SendQueue(std::size_t max_wr, Ring<Event>& events, ddp::Msn first = {})
      : max_wr_(max_wr), events_(events), next_send_msn_(first), next_read_msn_(first) {}

  void set_ord(std::uint16_t ord) { ord_ = ord; }

  [[nodiscard]] PostResult post(const SendWr& wr);

  // put_own_first puts a request of the stream's own ahead of all requests, even requests posted during startup.
  // Precondition: nothing has left yet.
  void put_own_first(SendWr wr);

  // may_leave tells whether request seq may be framed now, or carried out if it is a local request. The batch under way
  // already holds reads_in_batch Read and Atomic Requests.
  bool may_leave(std::uint64_t seq, std::size_t reads_in_batch) const;

  // lacks_ord tells whether request seq is a Read or an Atomic while the agreed ORD is 0: "RDMA Reads will not be used"
  // (RFC 6581 section 9.1). No answer will ever make room for this request.
  bool lacks_ord(std::uint64_t seq) const;

  SendEntry& operator[](std::uint64_t seq) { return entries_[seq]; }
  const SendEntry& operator[](std::uint64_t seq) const { return entries_[seq]; }
  std::uint64_t end_seq() const { return entries_.end_seq(); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  // Gives back the memory that only a long queue needs.
  void trim() {
    entries_.trim();
    open_reads_.trim();
  }
  // Returns the first request from seq on that is still to be framed or carried out. Local requests that are done are
  // skipped: after a rewind to a place before them they must not run again.
  std::uint64_t skip_done(std::uint64_t seq) const;

  // TCP has taken some of the Read or Atomic Request seq: it occupies an ORD slot now.
  void on_read_sent(std::uint64_t seq) { open_reads_.push_back(seq); }
  // TCP has taken the request's last octet: the peer may answer it from now on.
  void on_read_left(std::uint64_t seq) { entries_[seq].left = true; }
  // oldest_read gives the oldest request that waits for its answer if it is a Read, oldest_atomic if it is an Atomic.
  // Null otherwise, or if no request waits. A request waits only once its last octet has left: an earlier answer is
  // refused (RDMAP-5.2.2-05). Answers come in the order of the requests (RFC 5040 section 5.5 rule 20, RFC 7306 section
  // 7).
  SendEntry* oldest_read() { return oldest_answered(SendOp::kRdmaRead); }
  SendEntry* oldest_atomic() { return oldest_answered(SendOp::kAtomic); }
  // Ends the oldest request that waits for its answer.
  void finish_read(WorkStatus status);
  // Ends request seq: one that needs no answer, or any request that never left.
  void finish(std::uint64_t seq, WorkStatus status);

  // Ends all requests. A request without an outcome of its own gets kFlushed. why goes into every failed completion.
  // refused: the MSN on queue 1 of the Read or Atomic Request that the peer's Terminate blames. It ends with
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
