#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rpcrdma/budget.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "rpcrdma/channel.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/credit_policy.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/replay_cache.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/service.h"
#include "rpcrdma/v1/header.h"
#include "rpcrdma/v1/receive.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// ResponderCounters: for tests, logs and the curious.
struct ResponderCounters {
  std::uint64_t calls_served = 0;
  std::uint64_t discarded = 0;  // messages without an answer
  std::uint64_t err_vers = 0;
  std::uint64_t err_chunk = 0;
  std::uint64_t garbage_args = 0;   // found here, not by a service
  std::uint64_t reply_chunks = 0;   // Replies through the Reply chunk
  std::uint64_t write_chunks = 0;   // items through a Write chunk
  std::uint64_t invalidations = 0;  // Replies that invalidate a handle
  std::uint64_t replays = 0;        // Calls that a service has had before
};

// Responder is the answering half of RPC-over-RDMA version 1 on one connection: it pulls Read chunks by RDMA Read,
// hands whole Calls to the services, pushes results by RDMA Write, and answers what is wrong with a header (RFC 8166
// section 4.5). A state machine over a Channel, without connection manager, clock or thread.
//
// Each Call occupies its Receive until its answer is posted, so a peer that ignores its grant runs out of Receives, and
// what stands there can be shown to the service as it is.
//
// inputs: on_receive, on_send_done, on_read_done, on_write_done, reply, admit, on_time. outputs: Service::on_call,
// next_timeout, and Channel::failure for what must end the connection.
class Responder {
 public:
  struct Config {
    CreditPolicy::Config credits;       // initial is at most the Channel's Receives, max too where they are its own
    std::uint32_t reverse_credits = 0;  // Receives that are there for Replies to our own Calls (RFC 8167)
    std::size_t reply_threshold = v1::kMinHeader;
    // Segments and chunks of one Call's lists (RFC 8267 section 6.4.2).
    std::size_t max_segments = 128;
    std::size_t max_read_chunks = 16;
    std::size_t max_write_chunks = 16;
    std::size_t max_items = 256;  // DDP-eligible arguments in a Call that has Read chunks
    std::size_t max_call = 1 << 20;
    std::size_t max_item = 4 << 20;
    std::size_t max_held = 64 << 20;  // octets of the budget for this connection
    std::size_t guaranteed = 0;       // of these, whatever the budget says
    std::uint32_t ord = 0;            // RDMA Reads under way at once
    std::uint32_t max_sge = 4;        // of one RDMA Write
    bool invalidates = false;         // both peers set R (RFC 8797)
    std::chrono::milliseconds stall_timeout{30000};
    // The same while others wait for memory that this connection may hold (BudgetShare::is_wanted).
    std::chrono::milliseconds short_stall_timeout{30000};
    std::string peer;
    std::string peer_group;
    ReplayCache* replays = nullptr;  // Replies of programs with keeps_replies, and what was fatal; null: neither
    std::string client;              // what it knows the peer by
    EventLog* log = nullptr;         // outlives the responder; null: none
  };

  // Octets of a Send buffer beyond the inline threshold that the responder wants for itself: an RPC header without
  // verifier, and a roundup.
  static constexpr std::size_t kSendExtra = 64;

  // All of these outlive the responder.
  Responder(verbs::Pd& pd, Channel& channel, BufferPool& pool, Budget& budget, std::span<const Program> programs,
            Config config);
  ~Responder();

  // The reads and the threshold that connection set-up settled; before the first on_receive.
  void start(std::size_t reply_threshold, std::uint32_t ord);
  void on_receive(std::uint32_t slot, std::size_t len);
  void on_send_done(std::uint32_t slot);
  void on_read_done(std::uint32_t slot);
  // The Read that ended the connection, since the peer does not own what its chunk names.
  void on_read_refused(std::uint32_t slot);
  // The same of a Write: by the Send buffer of its answer, or by what the peer's Terminate names.
  void on_write_refused(std::uint32_t send);
  void on_write_refused(std::uint32_t handle, std::uint64_t offset);
  // A Write that was signaled for the room in the send queue has ended.
  void on_write_done();
  // reply answers a Call that a service got; false where the id is not one that waits for an answer.
  bool reply(CallId id, ServedReply&& reply);
  // admit starts waiting Calls that the budget allows now.
  void admit();
  // For the Budget: it is this connection's turn to start a Call.
  void take_turn() { start_waiting(true); }
  void on_time(verbs::TimePoint now);
  std::optional<verbs::TimePoint> next_timeout() const;
  // trim gives back what Calls took and no Call needs now; where some are under way it does nothing.
  void trim();
  // Whether the Send buffer is one that an answer is in.
  bool is_sending(std::uint32_t send) const;
  // Whether one Call more is one more than was granted.
  bool is_at_limit() const { return calls_under_way_ >= credits_.promised(); }
  // Whether requests are under way or Calls wait for their share of the budget: then on_time is to be called.
  bool has_work() const { return channel_.busy() || !waiting_.empty() || !answers_.empty(); }

  // Whether a service has Calls that it has not answered.
  bool has_served_calls() const;

  const ResponderCounters& counters() const { return counters_; }

 private:
  // responder_state.h
  struct ServedMemory;
  struct CallSlot;
  struct Answer;
  struct Outgoing;

  void take_slot(std::uint32_t slot);
  // A line about the Call with this XID.
  void tell(verbs::LogLevel level, std::uint32_t xid, std::string_view what, std::string_view why) const;
  std::chrono::milliseconds stall_timeout() const;
  CallId make_id(std::uint32_t generation, std::uint32_t slot) const;

  // Calls coming in (responder_receive.cc).
  void discard(std::uint32_t slot, const char* why);
  void settle_credits(std::uint32_t requested);
  bool is_short() const;
  // Reads the RPC header at the start of the Payload stream; false where the Call was answered or dropped.
  bool parse_payload(std::uint32_t slot, ConstBytes payload);
  bool match_program(std::uint32_t slot);
  bool match_read_chunks(std::uint32_t slot);
  bool match_arguments(CallSlot& call);

  // Their chunks and what they need (responder_pull.cc).
  void start_waiting(bool in_turn);
  BudgetShare::Verdict start_call(std::size_t at, bool only_guaranteed);
  std::size_t need_of(const CallSlot& call) const;
  static bool take_items(CallSlot& call, BufferPool& pool);
  void tell_memory_is_short(CallSlot& call) const;
  void pull(std::uint32_t slot);
  void pump_reads();
  void pulled(std::uint32_t slot);
  void pull_items_or_deliver(std::uint32_t slot);
  void deliver(std::uint32_t slot);
  bool is_replay(std::uint32_t slot);
  bool is_idempotent(const CallSlot& call);
  void drop_call(std::uint32_t slot);
  std::size_t result_room(const CallSlot& call) const;

  // Answers going out (responder_reply.cc).
  // why: for the log.
  void answer_error(std::uint32_t slot, v1::Err err, const char* why);
  void answer_stat(std::uint32_t slot, AcceptStat stat, const char* why);
  void tell_sends_are_short();
  void refuse(std::uint32_t slot, ReplyHeader&& rpc);
  void answer(std::uint32_t slot, ReplyHeader&& rpc, ServedReply&& reply);
  void pump();
  void build(Answer& answer, Outgoing& out, std::uint32_t send);
  std::optional<std::uint32_t> handle_of(const CallSlot& call) const;
  const char* build_rpc(Answer& answer, Outgoing& out, std::uint32_t send);
  void build_error(const CallSlot& call, v1::Err err, Outgoing& out, std::uint32_t send);
  void build_inline(const v1::Header& header, const ReplyHeader& rpc, Outgoing& out, std::uint32_t send);
  bool build_long(v1::Header& header, const ReplyHeader& rpc, Outgoing& out, std::uint32_t send);
  void pair_items(const CallSlot& call, const ServedReply& reply);
  bool reduce_items(const CallSlot& call, const ServedReply& reply, v1::Header& header, Outgoing& out);
  std::size_t gather_payload(const ServedReply& reply);
  bool post(Outgoing& out, std::uint32_t send);
  void release_call(std::uint32_t slot);
  void on_fatal(std::uint32_t xid, std::string_view refused);
  void remember_write(std::uint32_t xid, std::uint32_t handle, std::uint64_t offset, std::uint64_t len);

  // Where an answer was written to, as long as the peer may still refuse it.
  struct Written {
    std::uint32_t xid = 0;
    std::uint32_t handle = 0;
    std::uint64_t offset = 0;
    std::uint64_t len = 0;
  };
  static constexpr std::size_t kMaxWritten = 256;

  verbs::Pd& pd_;
  Channel& channel_;
  BufferPool& pool_;
  std::span<const Program> programs_;
  Config config_;
  BudgetShare share_;
  std::shared_ptr<ServedMemory> served_memory_;

  std::vector<CallSlot> calls_;         // one to each Receive that was filled since trim
  std::uint32_t first_generation_ = 0;  // of slots to come: above those that were
  std::deque<std::uint32_t> waiting_;   // for their share of the budget
  std::deque<std::uint32_t> pulling_;   // RDMA Reads yet to be posted
  std::uint32_t reads_under_way_ = 0;
  std::deque<Answer> answers_;            // for a Send buffer
  std::vector<Outgoing> outgoing_;        // one to each Send buffer taken since
  std::optional<std::uint32_t> posting_;  // Send buffer whose requests are not all posted
  std::vector<Written> written_;          // the last kMaxWritten, in a ring once there are so many
  std::size_t next_written_ = 0;
  std::optional<std::uint32_t> fatal_xid_;  // of the Call whose Read or Write the peer refused
  bool pumping_ = false;
  bool told_short_ = false;  // that Send buffers are, to the log
  CreditPolicy credits_;
  std::uint32_t calls_under_way_ = 0;
  std::uint32_t sends_under_way_ = 0;
  std::uint32_t discarded_in_turn_ = 0;

  // For one answer at a time:
  std::vector<bool> is_reduced_;  // one to each item of the reply
  std::vector<Slice> pieces_;     // of the Payload stream behind its RPC header; lkey 0: not registered
  std::vector<std::uint8_t> walked_;
  std::vector<std::uint32_t> item_lens_;
  std::vector<std::optional<EligibleItem>> found_results_;
  // For one Call:
  std::vector<std::size_t> positions_;
  std::vector<EligibleItem> found_arguments_;
  ReplyBound bound_;

  verbs::TimePoint now_{};
  std::optional<verbs::TimePoint> progress_at_;
  std::uint64_t progress_ = 0;
  ResponderCounters counters_;
};

}  // namespace weft::rpcrdma
