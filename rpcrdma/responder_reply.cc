#include <algorithm>
#include <cassert>
#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/gather.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/responder_state.h"

// The part of the Responder that answers: forms of Replies, RDMA Writes, RDMA_ERROR.
namespace weft::rpcrdma {

namespace {

// An inline piece of the Payload stream of at least this length is sent from its own memory. For a shorter piece a copy
// costs less than another gather element.
constexpr std::size_t kGatherFrom = 1024;

// Octets of the longest roundup of an item.
constexpr std::size_t kMaxPadding = 3;

std::size_t rpc_header_len(const ReplyHeader& rpc, const ServedReply& reply) {
  return reply.header.empty() ? reply_header_len(rpc) : reply.header.size();
}

// Octets of the results that no Write chunk takes. chunks: the Write chunks that may be used.
std::size_t results_len(const ServedReply& reply, std::span<const Chunk> chunks) {
  std::size_t len = reply.results.size();
  for (const Slice& slice : reply.more_results) len += slice.octets.size();
  for (const ResultItem& item : reply.items) {
    const std::size_t item_len = item.data.octets.size();
    const bool has_chunk = item.operation < chunks.size() && item_len <= chunks[item.operation].length;
    if (!has_chunk) len += xdr::round_up(item_len);
  }
  return len;
}

CallOutcome outcome_of(const ReplyHeader& rpc) {
  if (rpc.denied) return rpc.reject == RejectStat::kRpcMismatch ? CallOutcome::kRpcMismatch : CallOutcome::kAuthError;
  switch (rpc.accept) {
    case AcceptStat::kSuccess: return CallOutcome::kSuccess;
    case AcceptStat::kProgUnavail: return CallOutcome::kProgUnavail;
    case AcceptStat::kProgMismatch: return CallOutcome::kProgMismatch;
    case AcceptStat::kProcUnavail: return CallOutcome::kProcUnavail;
    case AcceptStat::kGarbageArgs: return CallOutcome::kGarbageArgs;
    case AcceptStat::kSystemErr: break;
  }
  return CallOutcome::kSystemErr;
}

CallOutcome outcome_of(const TransportError& error) {
  return error.code == TransportError::Code::kVersion ? CallOutcome::kErrVers : CallOutcome::kErrChunk;
}

void emit_rpc_header(xdr::XdrWriter& out, const ReplyHeader& rpc, const ServedReply& reply) {
  if (reply.header.empty()) {
    emit_reply(out, rpc);
  } else {
    out.raw(reply.header);
  }
}

}  // namespace

void Responder::answer_error(CallSlot slot, const TransportError& error, const char* why) {
  const bool version = error.code == TransportError::Code::kVersion;
  tell(verbs::LogLevel::kWarn, call_at(slot).xid, link_.profile().error_name(error.code), why);
  ++(version ? counters_.err_vers : counters_.err_chunk);
  call_at(slot).state = Call::State::kAnswering;
  Answer& answer = answers_.emplace_back();
  answer.slot = slot;
  answer.error = error;
  pump();
}

void Responder::answer_stat(CallSlot slot, AcceptStat stat, const char* why) {
  tell(verbs::LogLevel::kWarn, call_at(slot).xid, accept_stat_str(stat), why);
  if (stat == AcceptStat::kGarbageArgs) ++counters_.garbage_args;
  ReplyHeader rpc{.xid = call_at(slot).xid, .verf = {}, .accept = stat};
  answer(slot, std::move(rpc), {});
}

// While Sends are under way, one of them will end and free its buffer.
void Responder::on_no_send() {
  lacks_credits_ = !link_.may_send(Sender::kResponder);
  if (lacks_credits_) return;
  if (sends_under_way_ != 0 || std::exchange(lacks_sends_, true)) return;
  tell(verbs::LogLevel::kWarn, call_at(answers_.front().slot).xid, "its answer waits",
       "there is no memory for Send buffers, or it cannot be registered");
}

// Answers a Call that no service gets with its RPC error.
void Responder::refuse(CallSlot slot, ReplyHeader&& rpc) {
  tell(verbs::LogLevel::kInfo, rpc.xid, "refused", describe(rpc));
  answer(slot, std::move(rpc), {});
}

// Without a chunk for them results are as long as the service makes them, and they stay until the peer has given
// credits for all parts of the Reply.
bool Responder::hold_results(Call& call, std::size_t len) {
  if (len <= call.need) return true;
  const std::size_t more = len - call.need;
  return share_.take(call.lease, more) == BudgetShare::Verdict::kFits;
}

void Responder::answer(CallSlot slot, ReplyHeader&& rpc, ServedReply&& reply) {
  const Call& call = call_at(slot);
  const auto chunks = may_place_results(call) ? call.lists.write_chunks() : std::span<const Chunk>();
  const std::size_t len = results_len(reply, chunks);
  if (!hold_results(call_at(slot), len)) {
    // The memory for a Reply chunk is taken before its Call runs.
    const std::size_t needed = rpc_header_len(rpc, reply) + len;
    return answer_error(slot,
                        {.code = TransportError::Code::kReplyResource, .needed = static_cast<std::uint32_t>(needed)},
                        "no memory for a Reply without a chunk");
  }
  call_at(slot).state = Call::State::kAnswering;
  Answer& answer = answers_.emplace_back();
  answer.slot = slot;
  answer.rpc = std::move(rpc);
  answer.reply = std::move(reply);
  pump();
}

void Responder::tell_answer(const Outgoing& out) {
  const Call& call = call_at(out.call);
  AnsweredCall answered{
      .connection = {endpoint_.config().serial}, .mark = call.mark, .outcome = out.outcome, .is_served = false};
  if (call.program != nullptr) {
    answered.is_served = true;
    answered.program = call.rpc.program;
    answered.version = call.rpc.version;
    answered.procedure = call.rpc.procedure;
  }
  // A service that passes Replies on has made the header.
  xdr::XdrReader header(out.reply.header);
  ReplyHeader passed;
  if (answered.outcome == CallOutcome::kSuccess && parse_reply(header, passed)) answered.outcome = outcome_of(passed);
  observer_->on_answer(answered);
}

// Frees the Call's slot and posts its Receive again. False: the post failed.
bool Responder::release_call(CallSlot slot) {
  Call& call = call_at(slot);
  --calls_under_way_;
  const auto receive = call.receive;
  call.reset();
  free_calls_.push_back(slot);
  return !receive || endpoint_.post_receive(*receive);
}

void Responder::pump() {
  if (pumping_) return;
  pumping_ = true;
  while (!endpoint_.failure()) {
    if (posting_) {
      if (!post(*outgoing_[index_of(*posting_)], *posting_)) break;
      posting_.reset();
      continue;
    }
    if (answers_.empty()) break;
    const auto send = link_.take_send(Sender::kResponder);
    if (!send) {
      on_no_send();
      break;
    }
    lacks_sends_ = lacks_credits_ = false;
    if (index_of(*send) >= outgoing_.size()) outgoing_.resize(index_of(*send) + 1);
    ++sends_under_way_;
    Answer& answer = answers_.front();
    Outgoing& out = *(outgoing_[index_of(*send)] = config_.answer_rooms->take());
    out.call = answer.slot;
    out.xid = call_at(answer.slot).xid;
    out.print = call_at(answer.slot).print;
    build(answer, out, *send);
    out.lease = std::move(call_at(answer.slot).lease);
    answers_.pop_front();
    posting_ = send;
  }
  pumping_ = false;
}

// Posts the Writes and then the Send of one answer. False: the send queue is full.
bool Responder::post(Outgoing& out, SendSlot send) {
  for (; out.next_write < out.writes.size(); ++out.next_write) {
    if (endpoint_.send_queue_room() == 0) return false;
    const Outgoing::Write& write = out.writes[out.next_write];
    const auto sges = std::span(out.sges).subspan(write.first_sge, write.num_sges);
    if (!endpoint_.post_write(sges, write.remote_addr, write.rkey, send, endpoint_.wants_signal())) return false;
    std::uint64_t len = 0;
    for (const verbs::Sge& sge : sges) len += sge.length;
    remember_write(out, write.rkey, write.remote_addr, len);
  }
  if (!may_post_last(out, send)) return false;
  if (observer_ != nullptr) tell_answer(out);
  // R1-4.3.1-09: the Receive for the peer's next Call is posted before the answer that lets the peer send that Call.
  if (!release_call(out.call)) return false;
  if (out.invalidate) ++counters_.invalidations;
  if (!out.send_sges.empty()) return link_.send(send, out.send_sges, out.invalidate);
  const verbs::Sge sge = sge_of(endpoint_.send_buffer(send).first(out.send_len), endpoint_.send_lkey(send));
  return link_.send(send, std::span(&sge, 1), out.invalidate);
}

// Sends all messages before the last one. False: credits, Send buffers or room in the send queue are lacking.
bool Responder::may_post_last(Outgoing& out, SendSlot send) {
  if (out.parts && !link_.flow()->send_parts(Sender::kResponder, *out.parts, out.threshold)) {
    lacks_credits_ = !link_.may_send(Sender::kResponder);
    return false;
  }
  lacks_credits_ = !link_.may_send(Sender::kResponder);
  if (lacks_credits_ || endpoint_.send_queue_room() == 0) return false;
  if (!out.parts) return true;
  xdr::XdrWriter rest(endpoint_.send_buffer(send).subspan(out.send_len));
  out.parts->write(rest, out.parts->remaining());
  out.send_len += rest.size();
  return true;
}

// On iWARP a Write and its Reply complete when TCP took them, a round trip before the peer can refuse the Write.
void Responder::remember_write(const Outgoing& out, std::uint32_t handle, std::uint64_t offset, std::uint64_t len) {
  const Written written{out.print, out.xid, handle, offset, len};
  if (written_.size() < kMaxWritten) {
    written_.push_back(written);
  } else {
    written_[next_written_] = written;
    next_written_ = (next_written_ + 1) % kMaxWritten;
  }
}

void Responder::on_write_refused(SendSlot send) {
  if (!is_sending(send)) return;
  const Outgoing& out = *outgoing_[index_of(send)];
  on_fatal({out.xid, out.print}, "an RDMA Write");
}

// A peer may use one handle for several Calls, and the same memory for one Call after another. The last Call counts.
void Responder::on_write_refused(std::uint32_t handle, std::uint64_t offset) {
  for (std::size_t i = 0; i < written_.size(); ++i) {
    const std::size_t back = next_written_ + written_.size() - 1 - i;
    const Written& written = written_[back % written_.size()];
    if (written.handle != handle || offset < written.offset || offset - written.offset >= written.len) continue;
    return on_fatal({written.xid, written.print}, refused_str("an RDMA Write", handle, offset));
  }
}

void Responder::on_send_done(SendSlot slot) {
  --sends_under_way_;
  config_.answer_rooms->give_back(std::move(outgoing_[index_of(slot)]));
  endpoint_.give_send(slot);
  admit();
  pump();
  pump_reads();
}

void Responder::on_write_done() {
  pump();
  pump_reads();
}

void Responder::build(Answer& answer, Outgoing& out, SendSlot send) {
  if (!answer.error) {
    TransportError error;
    out.outcome = outcome_of(answer.rpc);
    const char* why = build_rpc(answer, out, send, error);
    if (why == nullptr) return;
    // R1-5.5.3-02, U1-3.1-01: the Reply fits no offered form, and no part of it was sent (U1-3.1-08).
    ++counters_.err_chunk;
    // An Endpoint failure here ends the connection, and that end has its own log line.
    if (!endpoint_.failure()) tell(verbs::LogLevel::kInfo, out.xid, link_.profile().error_name(error.code), why);
    out.reset();
    answer.error = error;
  }
  out.outcome = outcome_of(*answer.error);
  build_error(call_at(answer.slot), *answer.error, out, send);
}

void Responder::build_error(const Call& call, const TransportError& error, Outgoing& out, SendSlot send) {
  const Message message{.type = Message::Type::kError,
                        .xid = call.xid,          // R1-5.5-04
                        .version = call.version,  // R1-5.5-05
                        .credit = link_.credits().grants.grant(),
                        .lists = {},
                        .error = error};
  xdr::XdrWriter writer(endpoint_.send_buffer(send));
  link_.profile().emit(writer, message);
  out.send_len = writer.size();
}

// A handle of the Call's own chunks (R1-4.3.2-16). The peer no longer needs it when it has the Reply.
std::optional<std::uint32_t> Responder::handle_of(const Call& call) const {
  if (link_.profile().names_invalidation) return config_.can_invalidate ? call.inv_handle : std::nullopt;
  if (!config_.invalidates) return {};
  const auto is_used = [](const Segment& segment) { return segment.length != 0; };
  const auto first = [&](std::span<const Chunk> chunks) -> std::optional<std::uint32_t> {
    for (const Chunk& chunk : chunks) {
      const auto at = std::ranges::find_if(chunk.segments, is_used);
      if (at != chunk.segments.end()) return at->handle;
    }
    return {};
  };
  if (const auto handle = first(call.lists.write_chunks())) return handle;
  if (call.lists.reply_chunk() != nullptr) {
    if (const auto handle = first(std::span(call.lists.reply_chunk(), 1))) return handle;
  }
  if (const auto handle = first(call.lists.read_chunks())) return handle;
  return call.lists.call_chunk() == nullptr ? std::nullopt : first(std::span(call.lists.call_chunk(), 1));
}

// R1-4.4.2-01: only results that the binding names go to Write chunks.
bool Responder::may_place_results(const Call& call) {
  if (call.lists.write_chunks().empty() || call.program == nullptr || !call.may_reduce) return false;
  const auto asked = call.program->binding->has_result_items;
  return asked != nullptr && asked(call.rpc.procedure);
}

const char* Responder::build_rpc(Answer& answer, Outgoing& out, SendSlot send, TransportError& error) {
  const Call& call = call_at(answer.slot);
  out.reply = std::move(answer.reply);
  ServedReply& reply = out.reply;
  if (answer.rpc.denied || answer.rpc.accept != AcceptStat::kSuccess) {
    reply.results.clear();
    reply.more_results.clear();
    reply.items.clear();
  }
  out.invalidate = handle_of(call);
  const Answered answered{call.lists, may_place_results(call)};
  const auto verdict = form_.choose(answered, reply, rpc_header_len(answer.rpc, reply), rules_, message_.lists);
  if (verdict == ReplyForm::Verdict::kNone) {
    error = form_.error();
    return form_.why_none();
  }
  message_.type = Message::Type::kReply;
  message_.xid = call.xid;
  message_.version = link_.profile().version;
  message_.credit = link_.credits().grants.grant();  // R1-4.3.1-05: never 0
  message_.external = verdict == ReplyForm::Verdict::kExternal;
  write_items(call, out);
  if (message_.external) {
    error.code = TransportError::Code::kSystem;
    return build_external(answer.rpc, out, send) ? nullptr : "no memory for its Reply";
  }
  if (verdict == ReplyForm::Verdict::kContinued) {
    build_continued(answer.rpc, out, send);
  } else {
    build_inline(answer.rpc, out, send);
  }
  return nullptr;
}

namespace {

// Spreads the octets of `sources` over the segments of a chunk. No source is empty. Each segment gets one RDMA Write,
// or more if one Write would need too many sources.
template <typename Write>
void spread(std::span<const verbs::Sge> sources, std::span<const Segment> targets, std::size_t max_sge,
            std::vector<verbs::Sge>& sges, std::vector<Write>& writes) {
  std::size_t source = 0;
  std::uint32_t taken = 0;  // octets of sources[source]
  for (const Segment& target : targets) {
    std::uint32_t filled = 0;
    while (filled < target.length && source < sources.size()) {
      Write write{sges.size(), 0, target.offset + filled, target.handle};
      while (filled < target.length && source < sources.size() && write.num_sges < max_sge) {
        const verbs::Sge& from = sources[source];
        const std::uint32_t len = std::min(from.length - taken, target.length - filled);
        sges.push_back({from.addr + taken, len, from.lkey});
        ++write.num_sges;
        filled += len;
        taken += len;
        if (taken == from.length) {
          ++source;
          taken = 0;
        }
      }
      writes.push_back(write);
    }
  }
}

}  // namespace

// Writes the items that have a Write chunk to it.
void Responder::write_items(const Call& call, Outgoing& out) {
  for (std::size_t i = 0; i < out.reply.items.size(); ++i) {
    const ResultItem& item = out.reply.items[i];
    if (!form_.is_reduced(i) || item.data.octets.empty()) continue;
    const verbs::Sge source = sge_of(item.data.octets, item.data.lkey);
    spread(std::span(&source, 1), call.lists.write_chunks()[item.operation].segments, config_.max_sge, out.sges,
           out.writes);
    ++counters_.write_chunks;
  }
}

// Puts header and payload into one Send, with long pieces from their own memory (R1-5.2.4-06).
void Responder::build_inline(const ReplyHeader& rpc, Outgoing& out, SendSlot send) {
  const MutBytes buffer = endpoint_.send_buffer(send);
  xdr::XdrWriter writer(buffer);
  link_.profile().emit(writer, message_);
  emit_rpc_header(writer, rpc, out.reply);
  std::size_t gathered = 0;  // octets of the buffer that have a gather element
  const auto gather_written = [&] {
    if (writer.size() == gathered) return;
    out.send_sges.push_back(sge_of(buffer.subspan(gathered, writer.size() - gathered), endpoint_.send_lkey(send)));
    gathered = writer.size();
  };
  for (const Slice& piece : form_.pieces()) {
    // Two elements now, and one for the octets that may follow.
    const bool gather = piece.lkey != 0 && piece.octets.size() >= kGatherFrom &&
                        out.send_sges.size() + 3 <= endpoint_.config().max_send_sge;
    if (!gather) {
      writer.raw(piece.octets);
      continue;
    }
    gather_written();
    out.send_sges.push_back(sge_of(piece.octets, piece.lkey));
  }
  out.send_len = writer.size();
  if (!out.send_sges.empty()) gather_written();
}

// Prepares the messages of a Reply that goes in several: the last one has the header, and post() adds the rest.
void Responder::build_continued(const ReplyHeader& rpc, Outgoing& out, SendSlot send) {
  xdr::XdrWriter writer(endpoint_.send_buffer(send));
  link_.profile().emit(writer, message_);
  out.send_len = writer.size();
  out.rpc_header.resize(rpc_header_len(rpc, out.reply));
  xdr::XdrWriter header{MutBytes(out.rpc_header)};
  emit_rpc_header(header, rpc, out.reply);
  out.pieces.assign({ConstBytes(out.rpc_header)});
  for (const Slice& piece : form_.pieces()) out.pieces.push_back(piece.octets);
  ++counters_.continued_replies;
  out.threshold = rules_.threshold;
  out.parts.emplace(Reassembly::Part::Direction::kReply, out.xid, out.pieces, rules_.threshold - out.send_len);
}

// Sends the payload through the Reply chunk. The message already has the lengths of the chunk.
bool Responder::build_external(const ReplyHeader& rpc, Outgoing& out, SendSlot send) {
  ServedReply& reply = out.reply;
  if (!reply.results.empty()) {
    auto mr = pd_.reg_mr(reply.results.data(), reply.results.size(), verbs::Access::kNone);
    if (!mr.ok()) {
      endpoint_.fail("cannot register a Reply: " + mr.error().message);
      return false;
    }
    out.results_mr = std::move(*mr);
  }
  // Behind the transport header the Send buffer holds the RPC header and zeros for roundup, as sources of Writes.
  const MutBytes buffer = endpoint_.send_buffer(send);
  xdr::XdrWriter writer(buffer);
  link_.profile().emit(writer, message_);
  out.send_len = writer.size();
  const std::size_t rpc_len = rpc_header_len(rpc, reply);
  MutBytes spare = buffer.subspan(out.send_len);
  std::uint32_t spare_lkey = endpoint_.send_lkey(send);
  if (spare.size() < rpc_len + kMaxPadding) {
    // A long verifier.
    Buffer taken = pool_.take(rpc_len + kMaxPadding);
    if (!taken) return false;
    spare = taken.octets();
    spare_lkey = taken.lkey();
    reply.buffers.push_back(std::move(taken));
  }
  xdr::XdrWriter rest(spare);
  emit_rpc_header(rest, rpc, reply);
  rest.zeros(kMaxPadding);
  std::vector<verbs::Sge> sources{sge_of(spare.first(rpc_len), spare_lkey)};
  for (const Slice& piece : form_.pieces()) {
    if (piece.lkey != 0) {
      sources.push_back(sge_of(piece.octets, piece.lkey));
    } else if (ReplyForm::is_padding(piece)) {
      sources.push_back(sge_of(spare.subspan(rpc_len, piece.octets.size()), spare_lkey));
    } else {
      sources.push_back(sge_of(piece.octets, out.results_mr->lkey()));
    }
  }
  spread(sources, *message_.lists.reply_chunk, config_.max_sge, out.sges, out.writes);
  ++counters_.reply_chunks;
  return true;
}

}  // namespace weft::rpcrdma
