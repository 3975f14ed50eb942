#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/queue.h"
#include "base/time.h"
#include "rpcrdma/budget.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "rpcrdma/call_observer.h"
#include "rpcrdma/chunk_lists.h"
#include "rpcrdma/credit_policy.h"
#include "rpcrdma/duplicate_request_cache.h"
#include "rpcrdma/earned_time.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/link.h"
#include "rpcrdma/reply_form.h"
#include "rpcrdma/rpc_message.h"
#include "rpcrdma/server_statistics.h"
#include "rpcrdma/service.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// Responder is the answering half of RPC-over-RDMA on one connection: it pulls Read chunks by RDMA Read, hands whole
// Calls to the services, pushes results by RDMA Write, and answers faulty headers (RFC 8166 section 4.5). A state
// machine over a Link, without connection manager, clock or thread.
//
// Each Call occupies its Receive until its answer is posted. A peer that ignores its grant therefore runs out of
// Receives, and the service can read the Call directly from the Receive buffer.
//
// inputs: on_receive, on_send_done, on_read_done, on_write_done, reply, admit, on_time. outputs: Service::on_call,
// next_timeout, and Endpoint::failure for faults that must end the connection.
class Responder {
 public:
  // AnswerRooms are objects for answers under way, with the memory of their lists. The responders of a server have them
  // together: as many as answers were under way at once, whoever had them. One thread.
  class AnswerRooms;
  static std::shared_ptr<AnswerRooms> make_answer_rooms();
  // Gives back those that were not needed since the last call. Returns whether there are others that are idle now.
  static bool trim(AnswerRooms& rooms);

  struct Config {
    CreditPolicy::Config credits;  // initial is at most the Endpoint's Receives; so is max if the Endpoint owns them
    std::uint32_t reverse_credits = 0;  // Receives for Replies to our own Calls (RFC 8167)
    // Segments and chunks of one Call's lists (RFC 8267 section 6.4.2).
    std::size_t max_segments = 128;
    std::size_t max_read_chunks = 16;
    std::size_t max_write_chunks = 16;
    std::size_t max_items = 256;  // DDP-eligible arguments in a Call that has Read chunks
    std::size_t max_call = 1 << 20;
    std::size_t max_continued_call = kMaxContinued;  // of a Call in several messages
    std::size_t max_item = 4 << 20;
    std::uint32_t ord = 0;        // RDMA Reads under way at once
    std::uint32_t max_sge = 4;    // of one RDMA Write
    bool invalidates = false;     // both peers set R (RFC 8797)
    bool can_invalidate = false;  // a handle that the Call names (Profile::names_invalidation)
    std::chrono::milliseconds stall_timeout{30000};
    // Beside it, while other connections wait for memory that this connection holds (BudgetShare::is_wanted).
    EarnedTime::Terms while_others_wait = {};
    // A Reply in several messages leaves within this time. A peer that gives some credits now and then does not stall.
    std::chrono::milliseconds max_reply_time{30000};
    std::string peer;
    std::string peer_group;
    DuplicateRequestCache* duplicate_requests =
        nullptr;              // Replies of programs with keeps_replies, and fatal Calls; null: neither
    std::string client;       // the peer's name in `duplicate_requests`
    EventLog* log = nullptr;  // outlives the responder; null: none
    std::shared_ptr<AnswerRooms> answer_rooms = nullptr;  // null: the responder has its own
  };

  // Octets of a Send buffer that the responder needs beyond the inline threshold: an RPC header without verifier, and a
  // roundup.
  static constexpr std::size_t kSendExtra = 64;

  // All of these outlive the responder.
  Responder(verbs::Pd& pd, Link& link, BufferPool& pool, Budget& budget, std::span<const ServedProgram> programs,
            Config config);
  ~Responder();

  // start sets the threshold and the number of RDMA Reads that connection set-up settled. It comes before the first
  // on_receive, and again if the first message decides the profile.
  void start(std::size_t reply_threshold, std::uint32_t ord);
  // settle: the peer told its properties. The threshold holds for Replies that are made from now on.
  void settle(std::size_t reply_threshold) { rules_.threshold = reply_threshold; }
  void on_receive(Arrival&& arrival);
  // refuse_parts answers parts of a Call with an error. receive: the Receive that the error answers, if one is held.
  void refuse_parts(std::optional<ReceiveSlot> receive, std::uint32_t xid, TransportError::Code code, const char* why);
  // Logs the fault of a message about properties.
  void tell_property_fault(const char* fault) const;
  // Messages may leave again.
  void on_room() { pump(); }
  // take_memory: this connection's part of the budget, for the parts of a Call, as Reassembly::Share::take. Within the
  // guarantee it takes as much as is needed now. Beyond it takes all that the Call may need, so no Call in the middle
  // of its parts waits with memory of others. If others have to end first, the connection waits in the budget's line.
  bool take_memory(Lease& lease, std::size_t least, std::size_t most);
  std::size_t max_continued_call() const { return config_.max_continued_call; }
  bool is_memory_wanted() const { return share_.is_wanted(); }
  // All parts that arrived were passed on, but for those that wait.
  void on_parts_passed(bool wait);
  void on_send_done(SendSlot send);
  void on_read_done(CallSlot slot);
  // This Call's Read ended the connection, because the peer does not own the memory that the chunk names.
  void on_read_refused(CallSlot slot);
  // The same for a Write, found by the Send buffer of its answer, or by the handle and offset in the peer's Terminate.
  void on_write_refused(SendSlot send);
  void on_write_refused(std::uint32_t handle, std::uint64_t offset);
  // A Write has ended that was signaled to free room in the send queue.
  void on_write_done();
  // reply answers a Call that a service received. False: no Call with this id waits for an answer.
  bool reply(ServedCallId id, ServedReply&& reply);
  // finish: the Call gets no Reply, and its Receive is free again. Result as of reply().
  bool finish(ServedCallId id);
  // admit starts waiting Calls that the budget allows now.
  void admit();
  // The Budget calls it when it is this connection's turn in one of its lines to start a Call.
  FairLine<BudgetShare*>::Offer take_turn(BudgetShare::Line line);
  void on_time(TimePoint now);
  std::optional<TimePoint> next_timeout() const;
  // trim gives back memory that Calls took and no Call needs now: for a connection at rest. It does nothing while Calls
  // are under way.
  void trim();
  // Whether the Send buffer holds an answer.
  bool is_sending(SendSlot send) const;
  // Whether one more Call would exceed the grant.
  bool is_at_limit() const { return calls_under_way_ >= link_.credits().grants.promised(); }
  // Whether requests are under way, Calls wait for their share of the budget, or answers wait to leave. If so, on_time
  // must be called.
  bool has_work() const { return endpoint_.busy() || !waiting_.empty() || !answers_.empty() || posting_; }

  // Calls without an answer, and the part of them that waits for memory.
  std::uint32_t num_under_way() const { return calls_under_way_; }
  std::size_t num_waiting() const { return waiting_.size(); }
  // Whether a service got a Call of this connection.
  bool has_called() const { return has_called_; }

  const ResponderCounters& counters() const { return counters_; }
  // observe: from now on the observer hears of each Call. It outlives the responder; null: none.
  void observe(CallObserver* observer) { observer_ = observer; }

 private:
  // responder_state.h
  struct ServedMemory;
  struct JoinedMemory;
  struct Call;
  struct Answer;
  struct Outgoing;

  Call& call_at(CallSlot slot);
  CallSlot take_call(std::optional<ReceiveSlot> receive);
  // Logs a line about the Call with this XID.
  void tell(verbs::LogLevel level, std::uint32_t xid, std::string_view what, std::string_view why) const;
  // The Reply in several messages that is leaving; null: none.
  const Outgoing* continued() const;
  void end_slow_reply();
  // Whether work is under way that the peer or a shortage of memory can hold up.
  bool may_stall() const;
  bool is_pulling() const { return reads_under_way_ != 0; }
  bool is_pushing() const;
  bool is_stalling() const;
  // Octets that the peer has moved, both ways together.
  std::uint64_t num_moved() const { return endpoint_.octets_pulled() + endpoint_.octets_pushed(); }
  void end_slow_peer();
  ServedCallId id_of(CallSlot slot) const;
  // The slot of a Call that a service has.
  std::optional<CallSlot> served(ServedCallId id);

  // Calls coming in (responder_receive.cc).
  void discard(ReceiveSlot receive, const char* why);
  void settle_credits(std::uint32_t requested);
  bool is_short() const;
  // Reads the RPC header at the start of the Payload stream. False: the Call was answered or dropped.
  bool parse_payload(CallSlot slot, ConstBytes payload);
  bool match_program(CallSlot slot);
  bool match_read_chunks(CallSlot slot);
  bool match_arguments(Call& call);

  // Chunks of Calls, and the memory that Calls need (responder_pull.cc).
  using Line = BudgetShare::Line;
  // The memory that a Call may take: within the guarantee alone; all; what is kept for Calls that have begun, too.
  enum class Start : std::uint8_t { kGuaranteed, kNew, kBegun };
  void start_waiting();
  BudgetShare::Verdict start_begun();
  BudgetShare::Verdict start_new();
  BudgetShare::Verdict start_slow();
  BudgetShare::Verdict start_call(std::size_t at, Start start);
  BudgetShare::Verdict take_for(Call& call, Start start);
  void settle_line();
  void give_up_waiting();
  std::size_t need_of(const Call& call) const;
  static bool take_items(Call& call, BufferPool& pool);
  void tell_memory_is_short(Call& call) const;
  void pull(CallSlot slot);
  void pump_reads();
  void pulled(CallSlot slot);
  void pull_items_or_deliver(CallSlot slot);
  void deliver(CallSlot slot);
  bool is_duplicate(CallSlot slot);
  bool is_idempotent(const Call& call);
  static bool may_place_results(const Call& call);
  std::size_t result_room(const Call& call) const;
  static ResultsOf results_of(const Call& call);
  bool is_slow(const Call& call) const;
  bool is_large_slow(const Call& call) const;
  bool waits_as_slow(const Call& call);

  // Answers going out (responder_reply.cc).
  // why: for the log.
  void answer_error(CallSlot slot, const TransportError& error, const char* why);
  void answer_error(CallSlot slot, TransportError::Code code, const char* why) {
    answer_error(slot, TransportError{.code = code}, why);
  }
  void answer_stat(CallSlot slot, AcceptStat stat, const char* why);
  void on_no_send();
  void refuse(CallSlot slot, ReplyHeader&& rpc);
  void answer(CallSlot slot, ReplyHeader&& rpc, ServedReply&& reply);
  bool hold_results(Call& call, std::size_t len);
  void pump();
  void build(Answer& answer, Outgoing& out, SendSlot send);
  std::optional<std::uint32_t> handle_of(const Call& call) const;
  // Returns null, or the reason for `error` if the Reply cannot be built.
  const char* build_rpc(Answer& answer, Outgoing& out, SendSlot send, TransportError& error);
  void build_error(const Call& call, const TransportError& error, Outgoing& out, SendSlot send);
  void write_items(const Call& call, Outgoing& out);
  void build_inline(const ReplyHeader& rpc, Outgoing& out, SendSlot send);
  void build_continued(const ReplyHeader& rpc, Outgoing& out, SendSlot send);
  bool may_post_last(Outgoing& out, SendSlot send);
  bool build_external(const ReplyHeader& rpc, Outgoing& out, SendSlot send);
  bool post(Outgoing& out, SendSlot send);
  void tell_answer(const Outgoing& out);
  bool release_call(CallSlot slot);
  void probe_end(ServedCallId id, const Call& call, int accept) const;
  std::uint64_t print_of(const Call& call) const;
  bool was_fatal(const Call& call) const;
  void on_fatal(const CallPrint& call, std::string_view refused);
  void remember_write(const Outgoing& out, std::uint32_t handle, std::uint64_t offset, std::uint64_t len);

  // The place that an answer was written to, kept as long as the peer may still refuse the Write.
  struct Written {
    std::uint64_t print = 0;  // of the Call, with its XID
    std::uint32_t xid = 0;
    std::uint32_t handle = 0;
    std::uint64_t offset = 0;
    std::uint64_t len = 0;
  };
  static constexpr std::size_t kMaxWritten = 256;

  verbs::Pd& pd_;
  Link& link_;
  Endpoint& endpoint_;  // the Link's
  BufferPool& pool_;
  std::span<const ServedProgram> programs_;
  Config config_;
  BudgetShare share_;
  std::shared_ptr<ServedMemory> served_memory_;

  std::vector<Call> calls_;  // as many as were under way at once since trim
  std::vector<CallSlot> free_calls_;
  std::uint32_t first_generation_ = 0;  // of slots to come: above all generations of past slots
  Queue<CallSlot> waiting_;             // for their share of the budget
  // Octets that wait until Calls of other connections end: the need of the first such Call, of the first one that came
  // in parts, and of the parts of a Call.
  std::size_t new_need_ = 0;
  std::size_t begun_need_ = 0;
  std::size_t slow_need_ = 0;
  std::size_t parts_need_ = 0;
  bool has_turn_ = false;  // for its parts
  BudgetShare::Verdict parts_verdict_ = BudgetShare::Verdict::kFits;
  std::size_t turn_cost_ = 0;  // octets that the turn has taken
  Queue<CallSlot> pulling_;    // RDMA Reads yet to be posted
  std::uint32_t reads_under_way_ = 0;
  Queue<Answer> answers_;                            // for a Send buffer
  std::vector<std::unique_ptr<Outgoing>> outgoing_;  // by Send buffer; null: it holds no answer
  std::optional<SendSlot> posting_;                  // Send buffer whose requests are not all posted
  std::vector<Written> written_;                     // the last kMaxWritten, as a ring once it is full
  std::size_t next_written_ = 0;
  std::optional<std::uint32_t> fatal_xid_;  // of the Call whose Read or Write the peer refused
  bool pumping_ = false;
  bool lacks_credits_ = false;  // an answer waits for credits of the peer
  bool lacks_sends_ = false;    // an answer waits for a Send buffer, and no Send under way will give one back
  std::uint32_t calls_under_way_ = 0;
  std::uint32_t sends_under_way_ = 0;

  // Scratch for one answer at a time:
  Message message_;
  ReplyForm form_;
  ReplyRules rules_;  // settled by start
  // Scratch for one Call:
  std::vector<std::size_t> positions_;
  std::vector<EligibleItem> found_arguments_;

  TimePoint now_{};
  std::optional<TimePoint> progress_at_;
  std::uint64_t progress_ = 0;
  // Octets that the peer has moved one way, and the time that they earned: while others wait for memory.
  struct Moving {
    EarnedTime time;
    std::uint64_t octets = 0;
  };
  std::optional<Moving> pull_, push_;
  std::uint64_t moved_at_turn_ = 0;  // num_moved() when its last turn in line ended
  ResponderCounters counters_;
  bool has_called_ = false;
  CallObserver* observer_ = nullptr;
};

}  // namespace weft::rpcrdma
