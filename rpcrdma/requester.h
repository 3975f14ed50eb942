#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "rpcrdma/call.h"
#include "rpcrdma/call_form.h"
#include "rpcrdma/endpoint.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/link.h"
#include "rpcrdma/message.h"
#include "rpcrdma/recent_xids.h"
#include "rpcrdma/round_trip.h"
#include "verbs-shim/api/verbs.h"

namespace weft::rpcrdma {

// RequesterCounters: for tests, logs and diagnosis.
struct RequesterCounters {
  std::uint64_t calls_sent = 0;
  std::uint64_t read_chunks = 0;        // for items
  std::uint64_t long_calls = 0;         // Calls through the Call chunk
  std::uint64_t continued_calls = 0;    // Calls in several messages
  std::uint64_t write_chunks = 0;       // Write chunks offered
  std::uint64_t reply_chunks = 0;       // Reply chunks offered
  std::uint64_t replies_accepted = 0;   // that ended a Call or led to a retry in another form
  std::uint64_t replies_discarded = 0;  // RFC 8166 section 4.5; also Calls of a peer, which this end does not take
  const char* last_discard = "";        // reason for the last discard, in a few words
  std::uint64_t retransmitted = 0;      // Calls that went out again, on another connection
  std::uint64_t short_reply_retries = 0;
  std::uint64_t remote_invalidations = 0;  // handles that the peer's Sends invalidated
  std::uint64_t local_invalidations = 0;   // requests posted for the other handles
};

// Requester is the calling half of RPC-over-RDMA (RFC 8166 sections 3.3 to 4.5): a state machine over the Link of one
// connection, without connection manager, clock or thread. The Link passes it the messages and completions that arrive.
// After a connection ended, the owner may give it the Link of another one; the Calls then go on there.
//
// inputs: start, on_receive, on_send_done, on_invalidated, suspend, resume, on_closed, on_time. outputs: callbacks,
// only from inputs and from the end of the requester, never from call or cancel; next_timeout; Endpoint::failure for
// faults that must end the connection.
class Requester {
 public:
  struct Config {
    std::uint32_t credits = 32;
    std::chrono::milliseconds call_timeout{60000};
    bool reserve_credit = false;
    // How long a Call that has no form yet waits for the answer to the NULL Call that asks for the peer's properties.
    // 0: as long as other Calls.
    std::chrono::milliseconds ask_timeout{0};
    ChunkUse chunks = {};
    bool short_only = false;                  // offers no chunks at all (RFC 8167 section 5.3)
    bool ends_unanswering = true;             // fails the Endpoint if the peer answers none of its granted Calls
    std::uint32_t max_discards = UINT32_MAX;  // ClientConfig::max_discards
    // All chunks are memory windows, and the peer may invalidate them (R of RFC 8797).
    bool windows = false;
    bool retransmits = false;  // the end of a connection leads to suspend, not to on_closed
    // With `retransmits`: a Call that has no Reply so long after it was sent ends the connection. 0: only its deadline
    // counts.
    std::chrono::milliseconds retransmit_after{0};
    std::string peer = {};    // its address, for the log
    EventLog* log = nullptr;  // outlives the requester; null: none
  };

  // pd outlives the requester. link outlives it too, or lives until suspend. first_xid: the first XID; best random.
  Requester(verbs::Pd& pd, Link& link, const Config& config, std::uint32_t first_xid);
  ~Requester();

  // As Client::call, Client::cancel.
  verbs::Result<CallId> call(const CallSpec& spec, ReplyCallback done);
  bool cancel(CallId id);
  // What ended Calls keep for the next ones.
  static constexpr std::size_t kMaxSpareOctets = 64 * 1024;
  std::size_t spare_octets() const { return spare_octets_; }
  std::size_t num_outstanding() const { return waiting_.size() + sent_.size() + ended_.size(); }

  // start: the connection is established with these thresholds, in octets. Calls wait until then. Until the first
  // Reply, Calls keep to Profile::first_threshold (R2-8-3). A Link that has begun has had it.
  void start(std::size_t call_threshold, std::size_t reply_threshold);
  // doubt_version, before start: nothing has shown that the peer of this connection speaks the version. others: what
  // the owner may speak in its place. Until the first Reply, a refusal that leaves only these ends no Call: the Call
  // waits before all others, none leaves, and other_versions() has what the peer speaks. The owner then suspends.
  void doubt_version(Profiles others) { others_ = std::move(others); }
  const std::optional<VersionRange>& other_versions() const { return other_versions_; }
  // Whether an answer that is no refusal of the version came over this connection, or over the last one.
  bool has_answered() const { return has_answered_; }
  // settle: the peer told its properties. They hold for Calls that are sent from now on.
  void settle(const Thresholds& thresholds, const ChunkTerms& chunks);
  // The forms of Calls that the peer takes; without a word, all of them. kNone: all Calls end.
  void limit_forms(ReverseSupport support);
  // Adds the depth that the Endpoint needs for windows. max: depth that the device allows.
  static void widen_for_windows(Endpoint::Config& shape, std::uint32_t max);
  // on_receive: a Send filled a Receive buffer. The requester posts the buffer again.
  void on_receive(Arrival&& arrival);
  // Parts of the Reply to this Call were refused: the Call gets no other Reply.
  void on_refused_parts(std::uint32_t xid, const char* why);
  // How many octets the Reply to this Call may have in parts: four times as many as the Call expects, and at least 64
  // KiB; kMaxContinued for a Reply without a predictable length. len: octets of it that have arrived. The answer for a
  // shorter Reply may be smaller. 0: no Call with this XID waits for its Reply.
  static constexpr std::size_t kReplyRoomFactor = 4, kLeastReplyRoom = 64 << 10;
  std::size_t max_reply(std::uint32_t xid, std::size_t len);
  // Whether a message with this XID may invalidate the handle, although it is passed over.
  bool may_invalidate(std::uint32_t xid, std::uint32_t handle) { return may_invalidate(xid, find(xid), handle); }
  // Logs the fault of a message about properties.
  void tell_property_fault(const char* fault) const;
  // Messages may leave again.
  void on_room() {
    if (!dispatching_) pump();
  }
  void on_send_done(SendSlot slot);
  // on_invalidated: the local invalidations for the Reply in Receive buffer `slot` have ended.
  void on_invalidated(ReceiveSlot slot);
  // suspend: the connection ended, and another will come. Calls that were sent are fenced and wait before all others.
  // They are sent again under their XIDs (R1-5.5.5-01). Health checks end with the connection that they checked.
  void suspend(const std::string& why);
  // resume takes the Link of the next connection. start follows when that connection is established.
  void resume(Link& link);
  // end_waiting ends the Calls that were not sent, as kLocalError.
  void end_waiting(const std::string& why);
  // on_closed ends every Call as kDisconnected; further Calls are refused.
  void on_closed(const std::string& why);
  // on_time starts the clocks of new Calls, ends Calls whose time is over, and runs the callbacks that are due. Returns
  // how many Calls ended.
  std::size_t on_time(TimePoint now);
  // In the past if on_time has something to do at once.
  std::optional<TimePoint> next_timeout() const;

  // RPCs that may be under way at once (RFC 8166 section 3.3.1).
  std::uint32_t window() const;
  // Calls that were sent and have not ended.
  std::size_t num_sent() const { return sent_.size(); }
  // Messages of every kind that came, over all connections.
  std::uint64_t num_received() const { return num_received_; }
  // A NULL Call of the last called program, if there is a credit for it now (RFC 8267 section 6.7.2).
  std::optional<CallSpec> health_check() const;
  // Whether Replies were accepted since the last call.
  bool take_answered() { return std::exchange(answered_, false); }
  const RequesterCounters& counters() const { return counters_; }

 private:
  struct Call;  // requester_state.h
  using Calls = std::list<std::unique_ptr<Call>>;
  // Abandoned: a Call that was given up, but whose Reply would still free its credit. After `deadline` no Reply is
  // expected.
  struct Abandoned {
    std::uint32_t xid = 0;
    std::optional<TimePoint> deadline;
    std::vector<std::uint32_t> handles;  // windows that its late Reply may name as invalidated
  };
  // Unfenced: windows of a Call that ended while its local invalidations were under way. The invalidations name the
  // windows.
  struct Unfenced {
    ReceiveSlot slot{};  // of its Reply
    std::vector<std::unique_ptr<verbs::Mw>> windows;
  };

  // Checks and order of Calls (requester.cc).
  verbs::Status check(const CallSpec& spec) const;
  verbs::Status check_items(const CallSpec& spec) const;
  verbs::Status check_against_binding(const CallSpec& spec) const;
  void settle_continuation();
  void pump();
  bool is_asking() const;
  bool may_learn_more() const;
  void ask_with_null(const Call& before);
  bool may_send(bool is_health_check) const;
  bool is_starved() const;
  bool times_calls() const { return config_.chunks.weighs_round_trip && link_->flow() != nullptr; }
  std::size_t max_timely_messages() const;
  bool xid_is_used(std::uint32_t xid) const;
  std::chrono::milliseconds timeout_of(const Call& call) const;
  void abandon(const Call& call, std::optional<TimePoint> deadline);
  void finish(Calls& from, Calls::iterator at, CallStatus status, std::string text);
  void send_again(Calls::iterator at, Calls::iterator before, bool same_xid);
  static void end(Call& call, const Reply& reply);
  void release(Calls& from, Calls::iterator at);
  std::size_t run_ended();

  // Their time (requester_time.cc).
  void stamp();
  void stamp_sent();
  std::string discards_since(const Call& call) const;
  void expire(Calls& calls, bool sent);
  void end_asker();
  void fail_where_unanswered();

  // Calls going out (requester_call.cc).
  // kTooEarly: the Call has no form before more is known of the peer.
  // kDone: a Call without a Reply has left.
  enum class Transmitted : std::uint8_t { kSent, kDone, kNoRoom, kTooEarly, kFailed };
  Transmitted transmit(Call& call);
  void transmit_parts(Call& call);
  bool continue_call();
  void keep_parts(const Call& call);
  void end_parts(std::uint32_t xid);
  Transmitted bind_windows(Call& call);
  Transmitted not_posted(Call& call) const;
  bool register_memory(Call& call, const void* octets, std::size_t len, verbs::Access access, Segment& segment);
  template <typename Add>
  bool register_segments(Call& call, ConstBytes octets, verbs::Access access, Add add);
  bool register_reply(Call& call);
  bool register_call(Call& call);
  bool register_call_chunk(Call& call);
  bool register_item(Call& call, std::size_t i);
  std::size_t emit(const Call& call, MutBytes out) const;

  // Replies coming in (requester_reply.cc).
  Calls::iterator find(std::uint32_t xid);
  bool may_invalidate(const std::optional<std::uint32_t>& xid, Calls::iterator at, std::uint32_t handle);
  bool fence(Call& call, Arrival& arrival);
  void on_discarded(verbs::LogLevel level, std::optional<std::uint32_t> xid, const char* why, ConstBytes message = {});
  void take_grant(ReplyVerdict verdict);
  void on_version_shown();
  void on_opened();
  std::string_view other_draft(std::uint32_t xid, ConstBytes message) const;
  bool on_reply(Calls::iterator at, Arrival&& arrival);
  void on_error(Calls::iterator at, const TransportError& error);
  bool postpone(Calls::iterator at, const VersionRange& range);
  void on_err_chunk(Calls::iterator at, const TransportError& error);
  void forbid_form_of(const Call& call);
  bool retry_without_read_chunks(Calls::iterator at);
  bool retry_without_write_chunks(Calls::iterator at);
  bool retry_with_more_room(Calls::iterator at, const TransportError& error);
  // A message was discarded. is_stray: it is one more Reply to a Call that has one.
  void on_needless(ConstBytes message, bool is_stray);
  void retry(Calls::iterator at);
  void on_rpc_reply(Call& call, ConstBytes payload, const ReceivedReply& received);
  // The parts of requester_results.cc.
  std::string take_results(Call& call, ConstBytes results, const ReceivedReply& received, Reply& reply);
  const char* disagreement(Call& call);
  std::string fill_rooms(Call& call, ConstBytes results, Walked walked, Reply& reply);

  verbs::Pd& pd_;
  Link* link_;          // null while there is no connection
  Endpoint* endpoint_;  // the Link's
  Config config_;
  std::uint32_t next_xid_;
  std::uint64_t last_id_ = 0;
  bool started_ = false;
  bool closed_ = false;
  bool dispatching_ = false;                         // callbacks run; Calls that they queue are sent afterwards
  CallRules rules_;                                  // thresholds and lengths: from start on
  RoundTrip round_trip_;                             // of this connection, where times_calls()
  ReverseSupport forms_ = ReverseSupport::kGeneral;  // that the peer takes
  // Messages that the peer refused on this connection: it gets none of their kind again (W2-7.1.2-2, W2-7.1.3-2).
  bool no_parts_ = false, no_external_ = false, no_calls_ = false;
  std::size_t settled_threshold_ = 0;                  // for Calls from the first Reply on, in octets
  bool is_opening_ = false;                            // no Reply has come yet, and Profile::first_threshold holds
  bool has_answered_ = false;                          // since start
  Profiles others_;                                    // see doubt_version; empty: no doubt
  std::optional<VersionRange> other_versions_;         // of a refusal, until suspend
  bool sent_opening_ = false;                          // a NULL Call went out because the first Call was too long
  bool asked_terms_ = false;                           // the same because a Call needs more than the default terms
  CallId asking_;                                      // the last one of these NULL Calls
  CallId asker_;                                       // the Call for which it asks
  std::size_t retry_room_ = 0;                         // octets of all Calls' min_reply_chunk together
  bool unstamped_ = false;                             // some Call or Abandoned has no deadline yet
  bool own_timeouts_ = false;                          // deadlines may not follow the order of the lists
  bool given_xids_ = false;                            // some waiting Call may have its XID already
  std::uint32_t last_program_ = 0, last_version_ = 0;  // of the last Call sent; 0 before the first
  std::uint64_t num_received_ = 0;
  TimePoint now_{};
  RecentXids answered_xids_;

  // A Call that goes in several messages, until the last one was posted.
  struct Continued {
    std::vector<ConstBytes> pieces;    // of the caller's memory and the Call's
    std::vector<std::uint8_t> octets;  // what was not sent when the Call ended
    Continuation parts;
    Message last;
    std::size_t threshold = 0;
  };
  std::optional<Continued> continued_;

  Calls waiting_;  // in order of call(), health checks before all others
  Calls sent_;     // in order of sending
  Calls ended_;    // their callbacks are due
  Calls spare_;
  std::size_t spare_octets_ = 0;  // that spare_ keeps
  std::vector<Abandoned> abandoned_;
  std::vector<Unfenced> unfenced_;
  ReceivedReply received_;
  std::vector<std::uint32_t> item_lens_;  // octets that each Write chunk brought
  std::vector<std::optional<EligibleItem>> found_results_;
  std::vector<std::uint8_t> results_;  // without the items that were put into their rooms
  RequesterCounters counters_;
  bool answered_ = false;
  // Since the last good message of this connection: messages that may have answered a Call, and others.
  std::uint32_t num_discards_ = 0, num_stray_ = 0;
};

}  // namespace weft::rpcrdma
