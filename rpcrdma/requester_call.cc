#include <algorithm>
#include <cassert>
#include <utility>

#include "rpcrdma/gather.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/requester_state.h"

// The part of the Requester that sends: forms of Calls, chunks, registrations.
namespace weft::rpcrdma {

namespace {

// Requests of the send queue for binds and invalidations: the usual number for one Call, and the number that a Call
// with many segments may need.
constexpr std::uint32_t kRequestsPerCall = 4;
constexpr std::uint32_t kRequestsForWindows = 64;

// The handle of the longest segment, whose invalidation by the Reply saves most; 0: there is none.
std::uint32_t longest_handle(const ChunkListsView& lists) {
  Segment longest;
  const auto consider = [&longest](const Segment& segment) {
    if (segment.length > longest.length) longest = segment;
  };
  for (const Segment& segment : lists.call_chunk) consider(segment);
  for (const ReadSegment& segment : lists.read_list) consider(segment.target);
  for (const SegmentArray& chunk : lists.write_list) std::ranges::for_each(chunk, consider);
  if (lists.reply_chunk) std::ranges::for_each(*lists.reply_chunk, consider);
  return longest.handle;
}

}  // namespace

void Requester::widen_for_windows(Endpoint::Config& shape, std::uint32_t max) {
  const std::uint32_t most = shape.max_send_wr + kRequestsPerCall * shape.num_sends + kRequestsForWindows;
  shape.max_send_wr = std::max(shape.max_send_wr, std::min(most, max));
}

Requester::Transmitted Requester::transmit(Call& call) {
  // Its credit would never come back where credits count Calls.
  if (call.spec.call_only && link_->flow() == nullptr) {
    call.text = "this version of the protocol has no Calls without a Reply";
    return Transmitted::kFailed;
  }
  if (endpoint_->send_queue_room() == 0) return Transmitted::kNoRoom;
  const auto send = link_->take_send(Sender::kRequester);
  if (!send) return Transmitted::kNoRoom;
  if (call.spec.xid) {
    call.xid = *call.spec.xid;
  } else if (!call.keeps_xid) {
    call.xid = 0;
    do {
      ++next_xid_;
    } while (xid_is_used(next_xid_));
    call.xid = next_xid_;
  }
  call.message.xid = call.xid;
  call.message.version = link_->profile().version;
  call.message.credit = config_.credits;

  CallRules rules = rules_;
  if (call.no_read_chunks) rules.chunks.max_read_chunks = 0;
  if (call.no_write_chunks) rules.chunks.max_write_chunks = 0;
  if (call.spec.call_only) rules.short_only = true;  // W2-4.7-1
  // Else the peer may still say that it takes more segments.
  rules.may_replace_chunks = !is_asking() && !may_learn_more();
  const bool may_be_long = !call.spec.items.empty() || call.spec.args.size() > rules.call_threshold / 2;
  if (may_be_long && times_calls()) rules.max_timely_messages = max_timely_messages();
  call.offer = choose_reply_offer(call.spec, call.min_reply_chunk, rules);
  call.form = choose_call_form(call.spec, call.rpc(), call.offer, rules, call.head);
  // No property of the peer allows what it refused (W2-7.1.3-2): such a Call does not wait for properties.
  const bool is_barred = no_calls_ || (no_external_ && call.form.external);
  if (is_barred) call.form.refusal = "the peer refused such a message before";
  const bool refused = !call.form.refusal.empty();
  if (refused && !is_barred && (is_asking() || may_learn_more())) {
    endpoint_->give_send(*send);
    call.unsend();
    return is_asking() ? Transmitted::kNoRoom : Transmitted::kTooEarly;
  }
  if (refused) call.text = call.form.refusal;
  if (refused || !register_reply(call) || !register_call(call)) {
    endpoint_->give_send(*send);
    return Transmitted::kFailed;
  }
  if (config_.windows && link_->profile().names_invalidation)
    call.message.inv_handle = longest_handle(call.message.lists);
  if (const auto bound = bind_windows(call); bound != Transmitted::kSent) {
    endpoint_->give_send(*send);
    return bound;
  }
  if (call.form.continued) {
    endpoint_->give_send(*send);
    transmit_parts(call);
  } else if (!link_->send(*send, emit(call, endpoint_->send_buffer(*send)))) {
    return not_posted(call);
  }
  if (times_calls() && !call.form.external) round_trip_.on_sent(call.id, call.form.reduced != 0 ? 2 : 1);
  if (call.keeps_xid) ++counters_.retransmitted;
  if (!call.spec.is_health_check) {
    last_program_ = call.spec.program;
    last_version_ = call.spec.version;
  }
  ++counters_.calls_sent;
  return call.spec.call_only ? Transmitted::kDone : Transmitted::kSent;
}

// Messages cost processor time at both ends, and a chunk costs a round trip. While all messages under way are done
// within a round trip, they cost no time. A Call that has to wait for credits would lose what it gains.
std::size_t Requester::max_timely_messages() const {
  constexpr std::chrono::microseconds kEach{10};
  const auto num = static_cast<std::size_t>(round_trip_.shortest() / kEach) / std::max<std::size_t>(sent_.size(), 1);
  return std::min<std::size_t>(num, link_->flow()->num_credits());
}

// Begins a Call that goes in several messages. pump() goes on with it.
void Requester::transmit_parts(Call& call) {
  ++counters_.continued_calls;
  Continued& on = continued_.emplace(Continued{});
  for (const CallForm::Piece& piece : call.form.pieces) {
    on.pieces.emplace_back(piece.octets != nullptr ? piece.octets : call.head.data() + piece.offset, piece.len);
  }
  on.last = call.message;
  on.threshold = rules_.call_threshold;
  on.parts = Continuation(Reassembly::Part::Direction::kCall, call.xid, on.pieces,
                          rules_.call_threshold - rules_.call_lengths.of(call.message.lists));
  (void)continue_call();
}

// False: the Call needs more credits or Send buffers.
bool Requester::continue_call() {
  Continued& on = *continued_;
  if (!link_->flow()->send_parts(Sender::kRequester, on.parts, on.threshold)) return false;
  if (endpoint_->send_queue_room() == 0) return false;
  const auto send = link_->take_send(Sender::kRequester);
  if (!send) return false;
  xdr::XdrWriter out(endpoint_->send_buffer(*send));
  link_->profile().emit(out, on.last);
  on.parts.write(out, on.parts.remaining());
  assert(out.size() <= on.threshold);  // R1-5.2.4-05
  const bool is_sent = link_->send(*send, out.size());
  continued_.reset();
  return is_sent;
}

// A Call that ended early goes on, since a sequence has no other end: without chunks, and from memory of its own.
void Requester::keep_parts(const Call& call) {
  if (!continued_ || continued_->last.xid != call.xid || !continued_->octets.empty()) return;
  Continued& on = *continued_;
  on.last.lists.clear();
  on.last.inv_handle = 0;
  on.octets.resize(on.parts.remaining());
  xdr::XdrWriter rest{MutBytes(on.octets)};
  on.parts.write(rest, on.octets.size());
  on.pieces = {on.octets};
  on.parts.go_on_with(on.pieces);
}

// The peer refused this Call, and discards the rest of it.
void Requester::end_parts(std::uint32_t xid) {
  if (!continued_ || continued_->last.xid != xid) return;
  continued_.reset();
  link_->flow()->end_sequence();
}

Requester::Transmitted Requester::not_posted(Call& call) const {
  call.text = *endpoint_->failure();
  if (!config_.retransmits) return Transmitted::kFailed;
  // The connection is over, but this is not yet reported. The Call itself is in order.
  call.unsend();
  return Transmitted::kNoRoom;
}

// Binds all windows whose handles the following Send carries, or none.
Requester::Transmitted Requester::bind_windows(Call& call) {
  const std::size_t need = call.registrations.num_to_bind() + 1;
  if (need > endpoint_->config().max_send_wr) {
    call.text = "the Call needs more memory windows than the send queue takes";
    return Transmitted::kFailed;
  }
  if (need > endpoint_->send_queue_room()) {
    call.unsend();
    return Transmitted::kNoRoom;
  }
  return call.registrations.bind(*endpoint_) ? Transmitted::kSent : not_posted(call);
}

bool Requester::register_memory(Call& call, const void* octets, std::size_t len, verbs::Access access,
                                Segment& segment) {
  // Memory that the peer only reads is never written through this pointer.
  const auto status = call.registrations.add(pd_, config_.windows, const_cast<void*>(octets), len, access, segment);
  if (!status.ok()) call.text = "cannot register memory: " + status.error().message;
  return status.ok();
}

// Registers the memory, and passes on its segments, none of them longer than the peer takes (W2-5.2-3).
template <typename Add>
bool Requester::register_segments(Call& call, ConstBytes octets, verbs::Access access, Add add) {
  if (octets.empty()) return true;
  Segment whole;
  if (!register_memory(call, octets.data(), octets.size(), access, whole)) return false;
  std::uint64_t rest = octets.size();
  while (rest != 0) {
    whole.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, rules_.chunk_terms.max_segment));
    add(whole);
    whole.offset += whole.length;
    rest -= whole.length;
  }
  return true;
}

bool Requester::register_reply(Call& call) {
  const auto writable = verbs::Access::kRemoteWrite;
  for (std::size_t i = 0; i < call.offer.num_writes; ++i) {
    SegmentArray& chunk = call.message.lists.write_list.emplace_back();
    for (const MutBytes room : call.spec.result_items[i]) {
      if (!register_segments(call, room, writable, [&](const Segment& one) { chunk.push_back(one); })) return false;
    }
    ++counters_.write_chunks;
  }
  if (call.offer.reply_chunk_len != 0) {
    call.reply_memory.resize(call.offer.reply_chunk_len);
    SegmentArray& chunk = call.message.lists.reply_chunk.emplace();
    const ConstBytes room(call.reply_memory.data(), call.offer.reply_chunk_len);
    if (!register_segments(call, room, writable, [&](const Segment& one) { chunk.push_back(one); })) return false;
    ++counters_.reply_chunks;
  }
  return true;
}

// Adds the Read chunk of item i. Its Position counts the octets before the item in the unreduced Payload stream,
// including items with their roundup (R1-4.4.5-02, R1-4.4.5-03).
bool Requester::register_item(Call& call, std::size_t i) {
  const CallSpec& spec = call.spec;
  std::size_t position = call.rpc_len() + spec.items[i].position;
  for (std::size_t before = 0; before < i; ++before) position += xdr::round_up(len_of(spec.items[before].data));
  const auto add = [&](ConstBytes octets) {
    return register_segments(call, octets, verbs::Access::kRemoteRead, [&](const Segment& one) {
      call.message.lists.read_list.push_back({static_cast<std::uint32_t>(position), one});
    });
  };
  const GatheredBytes& data = spec.items[i].data;
  for (const ConstBytes octets : data) {
    if (!add(octets)) return false;
  }
  ++counters_.read_chunks;
  // R1-4.4.5.1-01: without roundup, unless requested.
  if (rules_.num_read_segments(data) == rules_.num_segments(data)) return true;
  return add(ConstBytes(kZeros).first(xdr::padding(len_of(data))));
}

bool Requester::register_call(Call& call) {
  call.message.external = call.form.external;
  if (call.form.external && !register_call_chunk(call)) return false;
  for (std::size_t i = 0; i < call.spec.items.size(); ++i) {
    if (call.form.is_reduced(i) && !register_item(call, i)) return false;
  }
  return true;
}

// The segments of the Call chunk gather the Payload stream from its own memory, without a copy.
bool Requester::register_call_chunk(Call& call) {
  ++counters_.long_calls;
  Segment head;
  if (!register_memory(call, call.head.data(), call.head.size(), verbs::Access::kRemoteRead, head)) return false;
  for (const CallForm::Piece& piece : call.form.pieces) {
    Segment segment{head.handle, static_cast<std::uint32_t>(piece.len), head.offset + piece.offset};
    if (piece.octets != nullptr &&
        !register_memory(call, piece.octets, piece.len, verbs::Access::kRemoteRead, segment)) {
      return false;
    }
    call.message.lists.call_chunk.push_back(segment);
  }
  return true;
}

std::size_t Requester::emit(const Call& call, MutBytes out) const {
  xdr::XdrWriter writer(out);
  link_->profile().emit(writer, call.message);
  if (!call.form.external) {
    const CallSpec& spec = call.spec;
    emit_call_view(writer, call.rpc());
    std::size_t done = 0;
    for (std::size_t i = 0; i < spec.items.size(); ++i) {
      const ArgumentItem& item = spec.items[i];
      if (call.form.is_reduced(i)) continue;
      writer.raw(spec.args.subspan(done, item.position - done));
      done = item.position;
      for (const ConstBytes octets : item.data) writer.raw(octets);
      writer.zeros(xdr::padding(len_of(item.data)));
    }
    writer.raw(spec.args.subspan(done));
  }
  assert(writer.size() <= rules_.call_threshold);  // R1-5.2.4-05
  return writer.size();
}

}  // namespace weft::rpcrdma
