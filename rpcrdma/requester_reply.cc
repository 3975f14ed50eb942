#include <algorithm>
#include <string>
#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/reply_retries.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/requester_state.h"

// The part of the Requester that takes Replies.
namespace weft::rpcrdma {

namespace {

// What the error of a peer says of a Call, in words.
std::string what_was_refused(const TransportError& error) {
  const std::string limit = std::to_string(error.limit), needed = std::to_string(error.needed);
  switch (error.code) {
    case TransportError::Code::kOtherVersion: return "the peer takes another version on this connection";
    case TransportError::Code::kMessageType: return "the peer takes no message of this type";
    case TransportError::Code::kSequence: return "the peer could not join the parts of this Call";
    case TransportError::Code::kReadChunks: return "the peer takes at most " + limit + " Read chunks";
    case TransportError::Code::kWriteChunks: return "the peer takes at most " + limit + " Write chunks";
    case TransportError::Code::kSegments: return "the peer takes at most " + limit + " segments";
    case TransportError::Code::kWriteResource:
      return "Write chunk " + std::to_string(error.chunk) + " of this Call is too short: it needs " + needed + " bytes";
    case TransportError::Code::kReplyResource: return "the Reply needs " + needed + " bytes";
    case TransportError::Code::kSystem: return "the peer had an internal error";
    default: return "the peer could not use this Call's header or chunks";
  }
}

constexpr std::uint32_t kMaxStray = 16;          // Calls of the server and second Replies in a row
constexpr std::size_t kMaxRetryRoom = 64 << 20;  // octets of the Reply chunks of retries, for all Calls together

std::string versions(std::uint32_t low, std::uint32_t high) {
  return low == high ? "version " + std::to_string(low)
                     : "versions " + std::to_string(low) + " to " + std::to_string(high);
}

// own: the version that the peer refuses. has_answered: it answered in this version before.
std::string version_refusal(const VersionRange& range, std::uint32_t own, bool has_answered) {
  const bool is_empty = range.low > range.high;
  const std::string named = versions(range.low, range.high);
  if (!is_empty && !range.has(own) && !has_answered) {
    return "ERR_VERS: the peer speaks RPC-over-RDMA " + named +
           "; ClientConfig::protocols has the versions of this end";
  }
  std::string text = "ERR_VERS: the peer refuses RPC-over-RDMA version " + std::to_string(own);
  if (has_answered) text += ", in which it answered before";
  return text + (is_empty ? ", and names no version" : ", and says that it speaks " + named);
}

}  // namespace

Requester::Calls::iterator Requester::find(std::uint32_t xid) {
  return std::ranges::find_if(sent_, [xid](const auto& call) { return call->xid == xid; });
}

// A Call knows how long its Reply should be, if that can be predicted. Some Replies are longer: with continuation none
// is too long for its form (W2-6.6.4-1), and servers exceed the length that a READDIR asks for.
std::size_t Requester::max_reply(std::uint32_t xid, std::size_t len) {
  const auto at = find(xid);
  if (at == sent_.end()) return 0;
  Call& call = **at;
  const std::size_t room = std::max(kLeastReplyRoom, kReplyRoomFactor * call.offer.max_reply);
  const std::size_t bound = std::min(room, kMaxContinued);
  // Only a long Reply is worth a walk through the arguments.
  if (len <= bound) return bound;
  if (call.max_reply == 0) call.max_reply = is_unpredictable(call.spec) ? kMaxContinued : bound;
  return call.max_reply;
}

// R1-4.3.2-16: whether the handle belongs to the Call with the message's XID.
bool Requester::may_invalidate(const std::optional<std::uint32_t>& xid, Calls::iterator at, std::uint32_t handle) {
  ++counters_.remote_invalidations;
  if (at != sent_.end()) {
    const std::uint32_t named = (*at)->message.inv_handle;
    if (violates("R2-7.2.3-4", named != 0 && handle != named)) return false;
    return (*at)->registrations.on_invalidated(handle);
  }
  return xid && std::ranges::any_of(abandoned_, [&](const Abandoned& one) {
           return one.xid == *xid && std::ranges::find(one.handles, handle) != one.handles.end();
         });
}

// R1-4.3.2-19: invalidates the handles that the peer's Send did not invalidate. False: the invalidations are under way,
// and the Reply waits in its Receive. If they fail, the Endpoint fails, so the connection ends before the Call
// (R1-5.5.4-02).
bool Requester::fence(Call& call, Arrival& arrival) {
  const std::size_t num = call.registrations.num_live();
  // If no request can be posted, the destruction of the windows invalidates them (verbs.h: at once, whatever is
  // queued).
  const bool can_post = num <= endpoint_->send_queue_room() && endpoint_->qp()->state() != verbs::QpState::kErr;
  if (num == 0 || !can_post) return true;
  counters_.local_invalidations += num;
  const ReceiveSlot slot = arrival.slot;
  call.fence = std::move(arrival);
  (void)call.registrations.post_invalidations(*endpoint_, slot);
  return false;
}

void Requester::on_receive(Arrival&& arrival) {
  const ReceiveSlot slot = arrival.slot;
  const std::optional<std::uint32_t> invalidated = arrival.invalidated;
  const ConstBytes message = endpoint_->received(slot, arrival.len);
  ++num_received_;
  const auto xid = link_->profile().reply_xid(message);
  const auto at = xid ? find(*xid) : sent_.end();
  if (violates("R1-4.3.2-16", invalidated && !may_invalidate(xid, at, *invalidated))) {
    return endpoint_->fail_violation("the peer invalidated a handle that is not of the Call it answers");
  }
  dispatching_ = true;
  bool is_done = true;
  if (at != sent_.end() && !(*at)->fence) {
    is_done = on_reply(at, std::move(arrival));
  } else {
    // The late Reply gives back the credit of a Call that was given up. It breaks no rule.
    const bool is_late = xid && std::erase_if(abandoned_, [xid](const Abandoned& one) { return one.xid == *xid; }) != 0;
    const auto level = is_late ? verbs::LogLevel::kInfo : verbs::LogLevel::kWarn;
    on_discarded(level, xid,
                 !xid                ? "the message is too short for a header"
                 : at == sent_.end() ? "no Call that waits has its XID"
                                     : "its Call has a Reply already",
                 message);
    if (!is_late) on_needless(message, at != sent_.end() || (xid && answered_xids_.has(*xid)));
  }
  dispatching_ = false;
  if (is_done) endpoint_->post_receive(slot);
  pump();
}

void Requester::on_invalidated(ReceiveSlot slot) {
  dispatching_ = true;
  const auto at =
      std::ranges::find_if(sent_, [slot](const auto& call) { return call->fence && call->fence->slot == slot; });
  if (at != sent_.end()) {
    Arrival arrival = std::move(*(*at)->fence);
    (*at)->fence.reset();
    on_reply(at, std::move(arrival));
  } else {
    std::erase_if(unfenced_, [slot](const Unfenced& one) { return one.slot == slot; });
  }
  dispatching_ = false;
  endpoint_->post_receive(slot);
  pump();
}

void Requester::on_discarded(verbs::LogLevel level, std::optional<std::uint32_t> xid, const char* why,
                             ConstBytes message) {
  const bool is_call = link_->has_call(message);
  ++counters_.replies_discarded;
  counters_.last_discard = is_call ? "a Call reached a requester" : why;
  if (config_.log == nullptr) return;
  if (is_call) {
    config_.log->line(verbs::LogLevel::kWarn, config_.peer,
                      "XID {:#x}: a Call of the server was discarded: this client takes no Calls; one with "
                      "ClientConfig::reverse_programs does",
                      xid.value_or(0));
    return;
  }
  config_.log->line(level, config_.peer, "XID {:#x}: a Reply was discarded: {}", xid.value_or(0), why);
}

// A message was discarded. It may have been the Reply that a Call waits for, with a wrong XID, unless it is a Call of
// the server, which cannot know that this client takes none, or one more Reply.
void Requester::on_needless(ConstBytes message, bool is_stray) {
  link_->on_needless();
  const bool is_harmless = is_stray || link_->has_call(message);
  const bool ends =
      is_harmless ? ++num_stray_ > std::max(config_.max_discards, kMaxStray) : ++num_discards_ > config_.max_discards;
  if (!ends || !link_->is_client()) return;
  endpoint_->fail_violation(std::string("the peer answers no Call: its last message was discarded: ") +
                            counters_.last_discard);
}

// R2-8-1: until a Reply has come, no error grants anything. An answer that only names other versions counts credits by
// their rules (R2-8.2-6).
void Requester::take_grant(ReplyVerdict verdict) {
  if (link_->flow() != nullptr) return;  // every message gives credits
  const bool is_error = verdict == ReplyVerdict::kError;
  const bool is_other = is_error && received_.error.code == TransportError::Code::kVersion;
  if (violates("R2-8-1", is_error && is_opening_)) return;
  if (violates("R2-8.2-6", is_other && !link_->profile().version_errors_grant)) return;
  const bool is_none = violates("R1-4.3.1-05", received_.credit == 0);
  link_->credits().granted = is_none ? 1 : received_.credit;
  if (is_none && config_.log != nullptr) {  // R2-7.2.2-10
    config_.log->line(verbs::LogLevel::kWarn, config_.peer, "XID {:#x}: a Reply grants no credits, which counts as one",
                      received_.xid);
  }
}

void Requester::tell_property_fault(const char* fault) const {
  if (config_.log == nullptr) return;
  config_.log->line(verbs::LogLevel::kWarn, config_.peer, "a message about properties: {}", fault);
}

// The peer answered in this version, if only by an error: it speaks it.
void Requester::on_version_shown() {
  has_answered_ = true;
  others_.clear();
}

// R2-8.1-2
void Requester::on_opened() {
  on_version_shown();
  if (!std::exchange(is_opening_, false)) return;
  rules_.call_threshold = settled_threshold_;
  settle_continuation();
  link_->on_opened();
}

// The refusal by a server of the other draft may look like an error of this one, or like none.
std::string_view Requester::other_draft(std::uint32_t xid, ConstBytes message) const {
  const auto judge = link_->profile().other_draft;
  return is_opening_ && judge != nullptr ? judge(xid, message) : std::string_view();
}

// False: the Receive is needed until on_invalidated.
bool Requester::on_reply(Calls::iterator at, Arrival&& arrival) {
  Call& call = **at;
  const ConstBytes message = endpoint_->received(arrival.slot, arrival.len);
  if (const std::string_view draft = other_draft(call.xid, message); !draft.empty()) {
    answered_ = true;
    ++counters_.replies_accepted;
    call.was_refused = true;
    finish(sent_, at, CallStatus::kVersMismatch, "the peer speaks RPC-over-RDMA " + std::string(draft));
    return true;
  }
  const ChunkListsView& lists = call.message.lists;
  const Offered offered{lists.write_list, lists.reply_chunk ? &*lists.reply_chunk : nullptr};
  const ReplyVerdict verdict = link_->profile().receive_reply(message, offered, received_);
  if (verdict != ReplyVerdict::kDiscard) {
    take_grant(verdict);
    round_trip_.on_reply(call.id, link_->now());
    if (!fence(call, arrival)) return false;
    answered_ = true;
    answered_xids_.add(call.xid);
    num_discards_ = num_stray_ = 0;
    ++counters_.replies_accepted;
    if (verdict != ReplyVerdict::kError) on_opened();
    if (verdict == ReplyVerdict::kError && received_.error.code != TransportError::Code::kVersion) on_version_shown();
  }
  switch (verdict) {
    case ReplyVerdict::kDiscard:
      on_discarded(verbs::LogLevel::kWarn, call.xid, received_.why, message);
      on_needless(message, false);
      break;
    case ReplyVerdict::kError: on_error(at, received_.error); break;
    case ReplyVerdict::kReply:
    case ReplyVerdict::kExternalReply: {
      Calls done;
      done.splice(done.end(), sent_, at);
      keep_parts(call);
      // R1-10.1.3-01: the memory is fenced from the peer before anything reads it.
      call.registrations.clear();
      const ConstBytes payload = arrival.joined ? ConstBytes(arrival.joined->octets)
                                 : verdict == ReplyVerdict::kReply
                                     ? received_.payload
                                     : ConstBytes(call.reply_memory).first(received_.reply_chunk_len);
      on_rpc_reply(call, payload, received_);
      release(done, done.begin());
      break;
    }
  }
  return true;
}

void Requester::on_refused_parts(std::uint32_t xid, const char* why) {
  const auto at = find(xid);
  on_discarded(verbs::LogLevel::kWarn, xid, why);
  if (at == sent_.end()) return;
  finish(sent_, at, CallStatus::kBadReply, std::string("its Reply was refused: ") + why);
  on_room();
}

void Requester::on_error(Calls::iterator at, const TransportError& error) {
  using Code = TransportError::Code;
  end_parts((*at)->xid);
  (*at)->was_refused = precedes_call(error.code);
  if (!(*at)->was_refused) (*at)->may_have_run = true;
  switch (error.code) {
    case Code::kVersion:
      if (postpone(at, {error.low, error.high})) return;
      return finish(sent_, at, CallStatus::kVersMismatch,
                    version_refusal({error.low, error.high}, link_->profile().version, has_answered_));
    case Code::kReadChunks:
      if (retry_without_read_chunks(at)) return;
      break;
    case Code::kWriteChunks:
      if (retry_without_write_chunks(at)) return;
      break;
    case Code::kChunk:
    case Code::kReplyResource:
      if (retry_with_more_room(at, error)) return;
      break;
    case Code::kMessageType: forbid_form_of(**at); break;
    case Code::kOtherVersion: no_calls_ = true; break;
    default: break;
  }
  on_err_chunk(at, error);
}

// The refused Call did not run. It keeps its XID: it may have been sent over a connection before this one, and then a
// server that remembers Replies knows it by this XID.
bool Requester::postpone(Calls::iterator at, const VersionRange& range) {
  const auto is_spoken = [&range](const Profile* one) { return range.has(one->version); };
  if (range.has(link_->profile().version) || std::ranges::none_of(others_, is_spoken)) return false;
  other_versions_ = range;
  started_ = false;
  send_again(at, waiting_.begin(), true);
  return true;
}

void Requester::forbid_form_of(const Call& call) {
  if (call.form.continued) {
    no_parts_ = true;
    settle_continuation();
  } else {
    (call.form.external ? no_external_ : no_calls_) = true;
  }
}

// Makes a refused Call go out once more, in another form and before all others.
void Requester::retry(Calls::iterator at) {
  own_timeouts_ = true;  // it leaves the order of call()
  // U1-3.1-04: under a new XID, even if the caller chose the first one. R2-7.2.4-23: under the same XID.
  const bool same_xid = link_->profile().retries_keep_xid;
  if (!same_xid) (*at)->spec.xid.reset();
  send_again(at, waiting_.begin(), same_xid);
}

// A Call whose arguments the peer could not read did not run (R2-7.2.4-11). R2-7.2.4-12: a second refusal ends the
// Call.
bool Requester::retry_without_read_chunks(Calls::iterator at) {
  Call& call = **at;
  if (call.message.lists.read_list.empty() || std::exchange(call.no_read_chunks, true)) return false;
  retry(at);
  return true;
}

// R2-7.2.4-15: the same for results, which then come in the Reply chunk.
bool Requester::retry_without_write_chunks(Calls::iterator at) {
  Call& call = **at;
  if (call.message.lists.write_list.empty() || std::exchange(call.no_write_chunks, true)) return false;
  retry(at);
  return true;
}

// The Call ends at once (U1-6.4.2-10), and never goes out again unchanged (U1-6.4.2-09, U1-6.7.2-03).
void Requester::on_err_chunk(Calls::iterator at, const TransportError& error) {
  finish(sent_, at, CallStatus::kTransportError,
         std::string(link_->profile().error_name(error.code)) + ": " + what_was_refused(error));
}

// A Call whose Reply has no predictable length goes out again with a larger Reply chunk. The room that peers ask
// for is bounded for all Calls together.
bool Requester::retry_with_more_room(Calls::iterator at, const TransportError& error) {
  Call& call = **at;
  const std::size_t guess = std::max(2 * call.offer.reply_chunk_len, 2 * rules_.reply_threshold);
  const std::size_t room = error.needed > call.offer.reply_chunk_len ? xdr::round_up(error.needed) : guess;
  const std::size_t all = retry_room_ - call.min_reply_chunk + room;
  // U1-3.1-05: ERR_CHUNK has many causes.
  if (config_.short_only || all > kMaxRetryRoom || call.num_retries >= num_retries_allowed(call.spec)) return false;
  ++counters_.short_reply_retries;
  if (config_.log != nullptr) {
    config_.log->line(verbs::LogLevel::kInfo, config_.peer, "XID {:#x}: {}; asked again with a Reply chunk of {} bytes",
                      call.xid, link_->profile().error_name(error.code), room);
  }
  ++call.num_retries;
  call.min_reply_chunk = room;
  retry_room_ = all;
  retry(at);
  return true;
}

namespace {

CallStatus status_of(const ReplyHeader& rpc) {
  if (rpc.denied) return CallStatus::kDenied;
  switch (rpc.accept) {
    case AcceptStat::kSuccess: return CallStatus::kSuccess;
    case AcceptStat::kProgUnavail: return CallStatus::kProgUnavail;
    case AcceptStat::kProgMismatch: return CallStatus::kProgMismatch;
    case AcceptStat::kProcUnavail: return CallStatus::kProcUnavail;
    case AcceptStat::kGarbageArgs: return CallStatus::kGarbageArgs;
    case AcceptStat::kSystemErr: return CallStatus::kSystemErr;
  }
  return CallStatus::kBadReply;
}

}  // namespace

void Requester::on_rpc_reply(Call& call, ConstBytes payload, const ReceivedReply& received) {
  xdr::XdrReader in(payload);
  ReplyHeader rpc;
  Reply reply;
  const bool is_good = parse_reply(in, rpc);
  if (!is_good || violates("R1-5.2.1-01", rpc.xid != call.xid)) {
    reply.status = CallStatus::kBadReply;
    reply.text = is_good ? "the XID of the Reply's RPC header differs from that of its transport header"
                         : "the Reply's RPC header does not decode";
    return end(call, reply);
  }
  reply.status = status_of(rpc);
  reply.message = payload;
  if (reply.status != CallStatus::kSuccess) {
    reply.text = describe(rpc);
    return end(call, reply);
  }
  if (std::string why = take_results(call, in.rest(), received, reply); !why.empty()) {
    // A permanent error of this RPC; the connection goes on.
    Reply bad;
    bad.status = CallStatus::kBadReply;
    bad.text = std::move(why);
    return end(call, bad);
  }
  end(call, reply);
  if (results_.capacity() > kMaxSpareOctets) results_ = std::vector<std::uint8_t>();
}

void Requester::on_send_done(SendSlot slot) {
  endpoint_->give_send(slot);
  if (!dispatching_) pump();
}

}  // namespace weft::rpcrdma
