#include "apps/dissect/rpc_decoder.h"

#include <algorithm>
#include <chrono>

#include "apps/dissect/duration.h"
#include "apps/dissect/effect.h"
#include "apps/dissect/gss.h"
#include "apps/dissect/layer_writer.h"
#include "apps/dissect/program_text.h"
#include "apps/dissect/protocol_guess.h"
#include "apps/dissect/reply_rules.h"
#include "apps/dissect/rpc_fields.h"
#include "apps/dissect/rpc_layer.h"
#include "apps/dissect/rpc_rules.h"
#include "apps/dissect/rule_ids.h"
#include "apps/dissect/transport_fields.h"
#include "mpa/wire/cursor.h"
#include "rpcrdma/rpc_message.h"

namespace weft::apps::dissect {

namespace {

using rpcrdma::Protocol;
using rpcrdma::xdr::XdrReader;

// Octets that Write chunks brought, for the walk over reduced results.
std::vector<std::uint32_t> brought_by(const rpcrdma::ChunkListsView& lists) {
  std::vector<std::uint32_t> brought;
  for (const rpcrdma::SegmentArray& chunk : lists.write_list) {
    const std::uint64_t len = rpcrdma::total_length(chunk);
    brought.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(len, UINT32_MAX)));
  }
  return brought;
}

std::vector<std::size_t> positions_of(const rpcrdma::ChunkListsView& lists) {
  std::vector<std::size_t> positions;
  for (const rpcrdma::ReadSegment& segment : lists.read_list) {
    if (positions.empty() || positions.back() != segment.position) positions.push_back(segment.position);
  }
  return positions;
}

std::optional<std::uint32_t> word_at(ConstBytes octets, std::size_t at) {
  if (octets.size() < at || octets.size() - at < 4) return std::nullopt;
  return load_be<std::uint32_t>(octets.data() + at);
}

// The fourth word of a header that can be read, in each version.
std::uint32_t type_word(ConstBytes message) {
  constexpr std::size_t kTypeAt = 12;
  return word_at(message, kTypeAt).value_or(0);
}

}  // namespace

// A client that asks for the version of its server sends its first messages in several versions. The server's first
// message that is no error settles the version.
bool RpcDecoder::read_header(ConstBytes message, Side from) {
  if (protocol_ && parse_transport_header(*protocol_, message, header_)) {
    if (from == Side::kServer && !header_.error) is_settled_ = true;
    return true;
  }
  if (is_settled_) return false;
  auto guessed = guess_protocol(message);
  if (!guessed && !protocol_) guessed = guess_faulty(message);
  if (!guessed) return false;
  if (protocol_ != guessed) flow_.on_protocol(*guessed);
  protocol_ = guessed;
  return parse_transport_header(*protocol_, message, header_);
}

// The capture may lack the Call that a message answers, or cannot read it.
bool RpcDecoder::may_answer_unknown(std::uint32_t xid, const Send& send) const {
  const CallTable& calls = halves_[static_cast<std::size_t>(other(send.from))].calls;
  return !is_judging(send.in_order, send.from) || calls.had(xid) == CallTable::Had::kUnknown;
}

// What a message says of its direction counts first: either side can send Calls (RFC 8167).
bool RpcDecoder::is_to_responder(const TransportHeader& header, const Send& send) {
  const bool is_v1_error = header.is(rpcrdma::v1::Proc::kError);
  if (header.reply && !is_v1_error) return !*header.reply;
  if (header.has_payload) {
    if (const auto type = word_at(send.octets, header.len + 4))
      return *type != static_cast<std::uint32_t>(rpcrdma::MsgType::kReply);
  }
  const Call* answered = half(other(send.from)).calls.find(header.xid);
  const bool answers = answered != nullptr;
  const bool is_requester = knows_sides_ && send.from == Side::kClient && !answers;
  if (is_v1_error) return is_requester && !may_answer_unknown(header.xid, send);
  if (header.external && !header.lists.call_chunk.empty()) {
    return !answers || !returns_reply_chunk(header.lists, answered->offered);
  }
  if (!knows_sides_) return !answers && !header.lists.reply_chunk;
  return is_requester && !(header.external && may_answer_unknown(header.xid, send));
}

// Private data with the defaults looks like none, and sides without it may know each other's sizes from elsewhere.
void RpcDecoder::on_private_data(const rpcrdma::PrivateData& client, const rpcrdma::PrivateData& server) {
  may_invalidate_ = client.remote_invalidate && server.remote_invalidate;
  const auto max_send_to = [](const rpcrdma::PrivateData& data) {
    return data == rpcrdma::PrivateData() ? SIZE_MAX : data.receive_size;
  };
  half(Side::kClient).max_send = max_send_to(server);
  half(Side::kServer).max_send = max_send_to(client);
}

// Properties and private data tell sizes in either version.
std::size_t RpcDecoder::max_send_of_version2(Side from) const {
  const std::size_t told = halves_[static_cast<std::size_t>(from)].max_send;
  return std::max(properties_.max_receive(other(from)), told == SIZE_MAX ? 0 : told);
}

void RpcDecoder::judge_send(const Send& send, Frame& frame) {
  if (*protocol_ != Protocol::k1) {
    const std::size_t most = is_judging(send.in_order, send.from) ? max_send_of_version2(send.from) : SIZE_MAX;
    if (send.len <= most) return;
    return frame.find(requirement_of(RpcRule::kThreshold, *protocol_),
                      fmt::format("a Send of {} bytes, where the other side takes {}", send.len, most),
                      may_end("the receiver ends the connection: the Send is longer than its Receive"));
  }
  const std::size_t max_send = half(send.from).max_send;
  if (send.len > max_send) {
    frame.findings.push_back({"R1-5.2.4-05",
                              fmt::format("a Send of {} bytes, where the other side takes {}", send.len, max_send),
                              may_end("the receiver ends the connection: the Send is longer than its Receive")});
  }
  if (send.invalidated && !may_invalidate_) {
    frame.findings.push_back(
        {"R1-4.3.2-17", "a Send with Invalidate, though not both sides say in private data (R) that they take one",
         may_end("the receiver may lose memory that it still uses, or end the connection")});
  }
}

std::string_view RpcDecoder::why_unjudged() const {
  if (saw_cut_) return "the capture cut a packet";
  for (const Half& each : halves_) {
    if (each.calls.has_overflowed()) return "more Calls are open than are remembered";
  }
  return {};
}

std::string_view RpcDecoder::why_unjudged_memory() const {
  for (const Half& each : halves_) {
    if (each.calls.has_repeated_xid())
      return "two open Calls have the same XID; 1,024 Calls later they are judged again";
  }
  return {};
}

// A missing message may have been the next part, another Call with an XID that is open, or an RDMA Write.
void RpcDecoder::on_gap(Side from) {
  saw_gap_ = half(from).has_gap = true;
  half(from).parts.on_gap();
  half(from).calls.on_gap();
  half(other(from)).calls.on_gap_of_answers();
}

void RpcDecoder::on_resumed(Side from, std::optional<std::uint32_t> num_lost) {
  half(from).has_gap = false;
  half(from).calls.on_resumed(num_lost);
  if (num_lost == 0u) return;
  flow_.on_lost(from, num_lost);
  errors_.on_lost();
  properties_.on_lost();
  if (from == Side::kClient) callbacks_.on_lost();
}

void RpcDecoder::on_send(const Send& send, Frame& frame) {
  const bool is_whole = send.octets.size() == send.len;
  if (send.octets.empty() && !is_whole) on_cut(send, nullptr);
  if (send.octets.empty() || (!protocol_ && num_foreign_ >= kMaxForeign)) return;
  const bool has_header = read_header(send.octets, send.from);
  const TransportHeader& header = header_;
  if (!is_whole) on_cut(send, has_header ? &header : nullptr);
  if (!has_header) return on_unreadable(send, frame);
  const bool to_responder = is_to_responder(header, send);
  const bool is_reverse = knows_sides_ && to_responder == (send.from == Side::kServer);
  const bool is_judging_send = is_judging(send.in_order, send.from);
  flow_.on_message(send.from, &header, send.len, is_judging_send, frame);
  flow_.on_credit(send.from, header, to_responder, is_reverse, frame);
  tell_header(header, send, frame);
  judge_send(send, frame);
  if (is_judging_send && *protocol_ != Protocol::k1)
    properties_.on_message(send.from, *protocol_, header, send.octets, frame);
  if (is_whole && !half(send.from).parts.is_idle()) half(send.from).parts.judge(header, frame);
  MessageParts::Joined joined;
  const Payload payload = payload_of(header, send, joined);
  if (is_whole && payload.has_front) judge_header(*protocol_, header, payload.octets, to_responder, frame);
  const Call* answered = to_responder ? nullptr : half(other(send.from)).calls.find(header.xid);
  if (is_whole && !to_responder) judge_reply(header, answered, send, frame);
  if (*protocol_ == Protocol::k2Wg07 && is_judging_send) {
    errors_.judge_type(send.from, header, type_word(send.octets), flow_.num_messages(send.from), frame);
  }
  if (header.error) return on_error(header, send, to_responder, frame);
  if (!header.has_payload && !header.external) return errors_.on_other(send.from, send.octets, true);
  if (to_responder) return on_call(header, send, payload, frame);
  on_reply(header, answered, send, payload, frame);
}

// The capture has the front of a Send. Where it lacks the chunk lists or the word on the direction, the Send may have
// been a Call with any chunks.
void RpcDecoder::on_cut(const Send& send, const TransportHeader* header) {
  constexpr std::size_t kDirectionLen = 8;
  const bool is_known =
      header != nullptr && (!header->has_payload || send.octets.size() >= header->len + kDirectionLen);
  if (is_known) {
    saw_short_ = true;
    properties_.on_lost();
    if (send.from == Side::kClient) callbacks_.on_lost();
    return;
  }
  saw_cut_ = true;
  on_gap(send.from);
  on_resumed(send.from, std::nullopt);
}

void RpcDecoder::on_unreadable(const Send& send, Frame& frame) {
  const bool is_whole = send.octets.size() == send.len;
  num_foreign_ += is_whole ? 1 : 0;
  errors_.on_other(send.from, send.octets, false);
  properties_.on_unreadable();
  XdrReader in(send.octets);
  if (std::uint32_t xid = 0; in.u32(xid)) half(send.from).calls.note_unread(xid);
  if (!protocol_) return;
  flow_.on_message(send.from, nullptr, send.len, is_judging(send.in_order, send.from), frame);
  LayerWriter(frame, LayerKind::kRpcRdma, options_).text("no RPC-over-RDMA header");
  if (!is_whole || !is_due_version(send)) return;
  const bool to_responder = knows_sides_ && send.from == Side::kClient;
  frame.findings.push_back(header_fault(*protocol_, send.octets, to_responder, is_settled_));
}

// The version may have been settled by messages that came later.
bool RpcDecoder::is_due_version(const Send& send) const {
  constexpr std::size_t kVersionAt = 4;
  const std::uint32_t due = *protocol_ == Protocol::k1 ? 1 : 2;
  return is_judging(send.in_order, send.from) || word_at(send.octets, kVersionAt).value_or(due) == due;
}

// An error goes to the side that called.
void RpcDecoder::on_error(const TransportHeader& header, const Send& send, bool to_responder, Frame& frame) {
  if (to_responder) return;
  const Side caller = other(send.from);
  if (is_judging(send.in_order, send.from)) {
    errors_.on_error(send.from, header, half(caller).calls,
                     {.protocol = *protocol_,
                      .is_settled = is_settled_,
                      .is_reverse = send.from == Side::kClient,
                      .has_read = half(send.from).has_read,
                      .num_uncaused = flow_.num_uncaused(caller)},
                     frame);
  }
  if (half(caller).calls.find(header.xid) == nullptr) half(caller).calls.on_unknown_answer(header.xid);
  half(caller).calls.refuse(header.xid);
}

RpcDecoder::Payload RpcDecoder::payload_of(const TransportHeader& header, const Send& send,
                                           MessageParts::Joined& joined) {
  MessageParts& parts = half(send.from).parts;
  const ConstBytes rest = send.octets.subspan(header.len);
  if (header.is_middle) {
    parts.take(header, rest);
    return {rest, header.len, false, rest.size()};
  }
  if (parts.is_idle()) return {rest, header.len, send.octets.size() == send.len, rest.size()};
  if (!parts.ends(header)) {
    const bool can_be_last = *protocol_ == Protocol::k2Wg07 && header.has_payload;
    const bool has_front = !can_be_last || !parts.lacks_front(header, rest);
    if (can_be_last) parts.on_end();
    return {rest, header.len, has_front && send.octets.size() == send.len, rest.size(), has_front};
  }
  joined = parts.join(rest);
  return {joined.octets, RpcLayer::kInChunk, false, joined.len, !joined.octets.empty()};
}

void RpcDecoder::tell_header(const TransportHeader& header, const Send& send, Frame& frame) {
  frame.facts.xid = header.xid;
  frame.facts.header_len = static_cast<std::uint32_t>(header.len);
  frame.facts.lists_at = static_cast<std::uint32_t>(header.lists_at);
  frame.facts.is_rpcrdma_error = header.error.has_value();
  const bool counts_messages = *protocol_ == Protocol::k2Wg07 && header.version == 2;
  if (!counts_messages) frame.facts.credit = header.credit;
  if (counts_messages && is_judging(send.in_order, send.from) && flow_.knows_num_left(send.from))
    frame.facts.credit = flow_.num_left(send.from);
  LayerWriter layer(frame, LayerKind::kRpcRdma, options_, Source::kMessage);
  const std::string_view protocol = rpcrdma::protocol_str(*protocol_), type = type_str(header.type);
  if (counts_messages) {
    layer.line(FMT_COMPILE("{} {}, XID {}, up to message {}"), protocol, type, Hex32(header.xid), header.credit);
  } else {
    layer.line(FMT_COMPILE("{} {}, XID {}, {} credits"), protocol, type, Hex32(header.xid), header.credit);
  }
  if (!header.text.empty()) layer.text(header.text);
  if (!header.lists.empty()) tell_lists(header.lists, layer);
  if (send.len > send.octets.size())
    layer.line(FMT_COMPILE(" (the capture has {} of {} bytes)"), send.octets.size(), send.len);
  if (layer.wants_fields()) tell_header_fields(*protocol_, header, send.octets, layer);
}

void RpcDecoder::judge_reply(const TransportHeader& header, const Call* call, const Send& send, Frame& frame) {
  const CallTable& calls = half(other(send.from)).calls;
  const bool is_reply = header.has_payload || header.external;
  if (is_reply && !errors_.is_idle() && is_judging(send.in_order, send.from)) {
    errors_.on_reply(send.from, header, calls, *protocol_, frame);
  }
  if (call == nullptr) {
    if (is_judging(send.in_order, send.from) && is_reply) judge_unasked(calls.had(header.xid), header.xid, frame);
    return;
  }
  if (!is_reply || !calls.is_certain(*call)) return;
  if (call->transport_version != header.version) {
    frame.find("R2-8.3-1",
               fmt::format("a Reply of version {} to a Call of version {}", header.version, call->transport_version),
               "the requester drops the Reply");
  }
  if (!call->offered.empty() || !header.lists.empty()) {
    judge_returned(*protocol_, call->offered, header.lists, frame);
    if (call->gss != GssUse::kNone) judge_gss_reply(*protocol_, call->gss, header.lists, frame);
    if (send.in_order && calls.knows_writes(*call)) judge_written(*protocol_, calls, *call, header, frame);
  }
  if (send.invalidated) judge_invalidated(*protocol_, *call, *send.invalidated, frame);
}

void RpcDecoder::on_call(const TransportHeader& header, const Send& send, const Payload& payload, Frame& frame) {
  CallTable& calls = half(send.from).calls;
  Call& call = calls.add(header.xid, frame.arrival.time, header.lists);
  call.inv_handle = header.inv_handle;
  call.transport_version = header.version;
  call.transport_type = type_word(send.octets);
  if (!errors_.is_idle()) errors_.on_call(send.from, header.xid);
  flow_.on_call(send.from, calls.num_open(), is_judging(send.in_order, send.from), frame);
  if (header.inv_handle != 0 && !offers(header.lists, header.inv_handle)) {
    frame.findings.push_back(
        {requirement_of(RpcRule::kNamedHandle, *protocol_),
         fmt::format("STag {:#010x} may be invalidated, and the Call does not offer it", header.inv_handle),
         "the responder takes it for none"});
  }
  std::optional<BackChannel> channel;
  if (!payload.has_front) {
    RpcLayer(frame, options_, payload.at).text("the last part of a CALL whose first parts are not in the capture");
  } else if (header.has_payload) {
    channel = tell_call(call, payload.octets, header, payload.at, payload.is_whole, frame);
  }
  if (call.gss != GssUse::kNone) judge_gss(*protocol_, call.gss, call.offered, frame);
  if (is_judging(send.in_order, send.from) && send.from == Side::kClient) {
    callbacks_.on_call({call.program, call.version, call.procedure}, channel);
  } else if (is_judging(send.in_order, send.from)) {
    callbacks_.judge(*protocol_, header, properties_.may_take_reverse_calls(Side::kClient), frame);
  }
  call.is_sound = payload.is_whole && frame.findings.empty();
  call.has_fault = !frame.findings.empty();
  // Its answer went before it.
  if (calls.takes_early_answer(header.xid)) calls.refuse(header.xid);
}

void RpcDecoder::on_reply(const TransportHeader& header, const Call* call, const Send& send, const Payload& payload,
                          Frame& frame) {
  Half& caller = half(other(send.from));
  if (call == nullptr) {
    caller.calls.on_unknown_answer(header.xid);
    errors_.on_other(send.from, send.octets, true);  // the other side may take it for a faulty Call
  }
  const bool is_continued = header.has_payload && payload.at == RpcLayer::kInChunk;
  if (call != nullptr && is_continued && is_judging(send.in_order, send.from) && caller.calls.is_certain(*call)) {
    judge_continued(*call, header, payload.len, max_send_of_version2(send.from), frame);
  }
  if (header.has_payload) {
    const ConstBytes message = payload.has_front ? payload.octets : ConstBytes();
    const bool is_cut = payload.at != RpcLayer::kInChunk && send.octets.size() < send.len;
    const Rest rest = payload.is_whole ? Rest::kNone : is_cut ? Rest::kCutByCapture : Rest::kElsewhere;
    tell_reply(call, message, header, payload.at, rest, frame);
  } else {
    // The RPC message is in the Reply chunk, of which the Call keeps the beginning.
    tell_reply(call, call == nullptr ? ConstBytes{} : ConstBytes(call->reply_head), header, RpcLayer::kInChunk,
               Rest::kElsewhere, frame);
  }
  caller.calls.answer(header.xid);
}

std::optional<BackChannel> RpcDecoder::tell_call(Call& call, ConstBytes payload, const TransportHeader& header,
                                                 std::size_t at, bool is_whole, Frame& frame) {
  RpcLayer layer(frame, options_, at);
  XdrReader in(payload);
  rpcrdma::CallHeaderView rpc;
  if (rpcrdma::parse_call(in, rpc) != rpcrdma::CallParse::kOk) {
    layer.text("CALL with a broken RPC header");
    return std::nullopt;
  }
  call.program = rpc.program;
  call.version = rpc.version;
  call.procedure = rpc.procedure;
  call.is_known = true;
  const ProcedureKey key{rpc.program, rpc.version, rpc.procedure};
  call.facts = facts_of(key);
  // Positions count from the beginning of the Payload stream, and arguments from behind the RPC header.
  std::vector<std::size_t> reduced;
  if (!header.lists.read_list.empty()) {
    for (const std::size_t position : positions_of(header.lists)) {
      if (position >= in.position()) reduced.push_back(position - in.position());
    }
  }
  frame.facts.rpc = {.xid = rpc.xid, .procedure = procedure_name(key, call.facts)};
  layer.line(FMT_COMPILE("CALL {}"), frame.facts.rpc->procedure);
  if (layer.wants_fields()) tell_call_fields(rpc, in, layer);
  call.gss = gss_use(rpc.cred);
  if (call.gss != GssUse::kNone) {
    layer.line(FMT_COMPILE(", {}"), gss_words(call.gss));
    return std::nullopt;
  }
  const BackChannel channel = tell_arguments(key, call.facts, in.rest(), in.position(), reduced, layer);
  if (is_whole && !header.lists.write_list.empty()) {
    call.num_eligible = num_eligible_results(key, in.rest(), reduced);
  }
  if (is_whole && !header.lists.read_list.empty()) {
    judge_arguments(*protocol_, key, in.rest(), in.position(), header.lists, frame);
  }
  return channel;
}

void RpcDecoder::tell_reply(const Call* call, ConstBytes payload, const TransportHeader& header, std::size_t at,
                            Rest rest, Frame& frame) {
  RpcLayer layer(frame, options_, at);
  XdrReader in(payload);
  rpcrdma::ReplyHeader rpc;
  const bool is_there = rpcrdma::parse_reply(in, rpc);
  if (!is_there && !payload.empty()) return layer.text("REPLY with a broken RPC header");
  if (is_there && layer.wants_fields()) tell_reply_fields(rpc, in, layer);
  if (call == nullptr) {
    const bool is_second = half(other(frame.from)).calls.had(header.xid) == CallTable::Had::kAnswered;
    return layer.text(is_second ? "another REPLY to a Call" : "REPLY to a Call that is not in the capture");
  }
  RpcFact& fact = frame.facts.rpc.emplace(RpcFact{.is_reply = true, .xid = header.xid});
  fact.latency = frame.arrival.time - call->time;
  fact.failed = is_there && (rpc.denied || rpc.accept != rpcrdma::AcceptStat::kSuccess);
  layer.text("REPLY");
  if (call->is_known) {
    fact.procedure = procedure_name({call->program, call->version, call->procedure}, call->facts);
    layer.line(FMT_COMPILE(" {}"), fact.procedure);
  }
  if (fact.failed) {
    layer.line(FMT_COMPILE(": {}"), rpcrdma::describe(rpc));
    if (rest == Rest::kNone && call->gss == GssUse::kNone)
      judge_no_results(*protocol_, brought_by(header.lists), frame);
  } else if (call->is_known && is_there && call->gss == GssUse::kNone) {
    tell_outcome(*call, in.rest(), in.position(), header, rest, layer, frame);
  }
  layer.line(FMT_COMPILE(", {}"), DurationText(*fact.latency).str());
}

// A status says what the server did, and not that all of its results are there.
void RpcDecoder::tell_outcome(const Call& call, ConstBytes results, std::size_t at, const TransportHeader& header,
                              Rest rest, RpcLayer& layer, Frame& frame) {
  RpcFact& fact = *frame.facts.rpc;
  const ProcedureKey key{call.program, call.version, call.procedure};
  const auto brought = brought_by(header.lists);
  fact.failed = !tell_results(key, call.facts, results, at, brought, layer);
  if (fact.failed && call.offered.write_list.empty()) return;
  static std::vector<std::optional<rpcrdma::EligibleItem>> items;  // for its memory
  const rpcrdma::Walked walked = walk_results(key, call.facts, results, brought, items);
  fact.truncated = !fact.failed && rest != Rest::kElsewhere && walked == rpcrdma::Walked::kGarbage;
  if (fact.truncated) {
    layer.text(rest == Rest::kCutByCapture ? " (truncated by the capture)" : " (truncated or malformed)");
  }
  if (rest == Rest::kNone && !call.is_repeated) judge_results(*protocol_, call, results, brought, walked, items, frame);
}

void RpcDecoder::on_transfer(const Transfer& transfer, Frame& frame, LayerWriter& layer) {
  using Kind = Transfer::Kind;
  const Side owner = transfer.kind == Kind::kReadResponse ? transfer.from : other(transfer.from);
  Transfer at = transfer;  // at the memory of the owner
  if (transfer.kind == Kind::kReadResponse) {
    const auto read = half(other(transfer.from)).reads.take({transfer.stag, transfer.to});
    if (!read) return;
    at.stag = read->stag;
    at.to = read->to;
    at.began = read->time;
  }
  const CallTable::Memory memory = half(owner).calls.find_memory(at.stag, at.to, at.len);
  if (transfer.kind != Kind::kReadResponse) judge_place(transfer, memory, frame);
  const Segment* segment = memory.segment;
  if (segment == nullptr) return;
  if (transfer.kind == Kind::kWrite) half(owner).calls.note_write(at.stag, at.to, at.len);
  frame.facts.xid = segment->xid;
  if (transfer.kind == Kind::kReadRequest) {
    half(transfer.from)
        .reads.add({transfer.sink_stag, transfer.sink_to}, {transfer.stag, transfer.to, frame.arrival.time},
                   !transfer.in_order || saw_gap_);
    half(transfer.from).has_read = true;
  }
  tell_use(*segment, owner, layer);
  ServedCall& served = frame.facts.served.emplace(ServedCall{segment->xid, segment->use, segment->index});
  if (transfer.kind != Kind::kReadRequest) served.took = frame.arrival.time - at.began;
  if (transfer.kind == Kind::kReadResponse) {
    layer.line(FMT_COMPILE(", {} behind its Request"), DurationText(frame.arrival.time - at.began).str());
  } else if (at.began != frame.arrival.time && transfer.kind == Kind::kWrite) {
    layer.line(FMT_COMPILE(", in {}"), DurationText(frame.arrival.time - at.began).str());
  }
  take_chunk(at, owner, *segment, frame);
}

void RpcDecoder::tell_use(const Segment& segment, Side owner, LayerWriter& layer) {
  switch (segment.use) {
    case Segment::Use::kCall: layer.line(FMT_COMPILE(" (Call {}"), Hex32(segment.xid)); break;
    case Segment::Use::kArgument:
      layer.line(FMT_COMPILE(" (argument at {} of Call {}"), segment.index, Hex32(segment.xid));
      break;
    case Segment::Use::kResult:
      layer.line(FMT_COMPILE(" (result {} of Call {}"), segment.index, Hex32(segment.xid));
      break;
    case Segment::Use::kReply: layer.line(FMT_COMPILE(" (Reply of Call {}"), Hex32(segment.xid)); break;
  }
  const Call* call = half(owner).calls.find(segment.xid);
  if (call != nullptr && call->is_known) {
    layer.line(FMT_COMPILE(", {}"), procedure_name({call->program, call->version, call->procedure}, call->facts));
  }
  layer.text(")");
}

// What a Call offers may be read and written until its Reply, and no octet around it.
void RpcDecoder::judge_place(const Transfer& transfer, const CallTable::Memory& memory, Frame& frame) {
  if (memory.is_offered || !memory.is_certain || transfer.len == 0) return;
  if (!is_judging(transfer.in_order, transfer.from) || !protocol_ || half(other(transfer.from)).calls.has_forgotten())
    return;
  const bool is_write = transfer.kind == Transfer::Kind::kWrite;
  const std::string_view name = is_write ? "an RDMA Write" : "an RDMA Read";
  const Effect effect = may_end("the owner ends the connection if the memory is not registered, and else loses bytes");
  const Segment* segment = memory.segment;
  if (segment == nullptr) {
    frame.findings.push_back({is_write ? "DDP-7.1-11" : "RDMAP-7.2-06",
                              fmt::format("{} at STag {:#010x}, which no open Call offers", name, transfer.stag),
                              effect});
  } else {
    frame.findings.push_back({is_write ? "DDP-7.1-14" : "RDMAP-7.2-08",
                              fmt::format("{} of {} bytes at TO {:#x}, where Call {:#010x} offers {} at {:#x}", name,
                                          transfer.len, transfer.to, segment->xid, segment->len, segment->offset),
                              effect});
  }
}

// The RPC message of a header without Payload stream is in a chunk: its beginning names the procedure.
void RpcDecoder::take_chunk(const Transfer& transfer, Side owner, const Segment& segment, Frame& frame) {
  if (!segment.is_first || transfer.head.empty() || transfer.to != segment.offset) return;
  Call* call = half(owner).calls.find(segment.xid);
  if (call == nullptr) return;
  if (segment.use != Segment::Use::kArgument && segment.use != Segment::Use::kResult &&
      half(owner).calls.is_certain(*call)) {
    judge_xid(*protocol_, segment.xid, transfer.head, frame);
  }
  TransportHeader header;
  header.xid = segment.xid;
  if (segment.use == Segment::Use::kCall) {
    (void)tell_call(*call, transfer.head, header, RpcLayer::kInChunk, false, frame);
    if (half(owner).calls.is_certain(*call)) judge_gss(*protocol_, call->gss, call->offered, frame);
  }
  if (segment.use == Segment::Use::kReply) half(owner).calls.keep_reply_head(*call, transfer.head);
}

}  // namespace weft::apps::dissect
