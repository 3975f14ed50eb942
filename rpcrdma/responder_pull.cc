#include <algorithm>
#include <utility>

#include "rpcrdma/framing.h"
#include "rpcrdma/probes.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/responder_state.h"

// The part of the Responder that gives Calls their share of memory, pulls their Read chunks, and hands them over.
namespace weft::rpcrdma {

// Octets that Server::buffers() must have for the results: the Call's room for results. A client with continuation does
// not tell how much it expects without chunks: as much as ours.
std::size_t Responder::result_room(const Call& call) const {
  std::uint64_t items = 0;
  for (const Chunk& chunk : call.lists.write_chunks()) items += chunk.length;
  const std::size_t least = rules_.max_continued != 0 ? kContinuedResults : 0;
  std::uint64_t room = std::max<std::uint64_t>({rules_.threshold, least, items});
  if (call.lists.reply_chunk() != nullptr) room = std::max(room, call.lists.reply_chunk()->length);
  return static_cast<std::size_t>(std::min<std::uint64_t>(room, config_.max_item));
}

// Takes Buffers for all items, or for none if memory is short.
bool Responder::take_items(Call& call, BufferPool& pool) {
  for (Call::Item& item : call.items) {
    item.data = pool.take(item.len);
    if (item.data) continue;
    for (Call::Item& taken : call.items) taken.data = Buffer{};
    return false;
  }
  return true;
}

// The Call waits until memory comes back, and tries again at every turn.
void Responder::tell_memory_is_short(Call& call) const {
  if (std::exchange(call.told_short, true)) return;
  tell(verbs::LogLevel::kWarn, call.xid, "waits", "there is no memory for its chunks, or it cannot be registered");
}

// The first segments of each chunk fill its target, as far as they have octets.
const Segment* Responder::Call::next_read() const {
  std::uint32_t before = reads_done;
  for (const Pull& one : pulls) {
    std::size_t left = one.target.size();
    for (const Segment& segment : one.source->segments) {
      const std::size_t len = std::min<std::size_t>(segment.length, left);
      if (len == 0) continue;
      if (before-- == 0) return &segment;
      left -= len;
    }
  }
  return nullptr;
}

std::size_t Responder::need_of(const Call& call) const {
  std::size_t need = result_room(call);
  if (const Chunk* position_zero = call.lists.call_chunk()) need += static_cast<std::size_t>(position_zero->length);
  for (const Chunk& chunk : call.lists.read_chunks()) need += static_cast<std::size_t>(chunk.length);
  return need;
}

// Starts Calls in order, so that small Calls do not pass a large one for ever. Only while the large Call waits for
// bytes of other connections, Calls within this connection's guarantee pass it.
void Responder::start_waiting(bool in_turn) {
  bool only_guaranteed = !in_turn && !waiting_.empty() && share_.others_wait();
  bool is_line_moved = false;
  for (std::size_t at = 0; at < waiting_.size() && !endpoint_.failure();) {
    const BudgetShare::Verdict verdict = start_call(at, only_guaranteed);
    if (verdict == BudgetShare::Verdict::kOwnLimit) break;
    if (verdict == BudgetShare::Verdict::kShort) {
      only_guaranteed = true;
      ++at;
    } else if (in_turn) {
      only_guaranteed = is_line_moved = true;
    }
  }
  calls_wait_ = only_guaranteed && !waiting_.empty();
  settle_line();
  if (is_line_moved) share_.go_to_end();
  link_.credits().grants.set_short(is_short());
}

void Responder::settle_line() {
  if ((calls_wait_ || parts_wait_) && !endpoint_.failure()) {
    share_.wait_in_line();
  } else {
    share_.wait_no_more();
  }
}

void Responder::take_turn() {
  has_turn_ = true;
  start_waiting(true);
  if (parts_wait_) link_.on_turn();
  has_turn_ = false;
}

std::size_t Responder::take_memory(std::size_t least, std::size_t most) {
  const std::size_t octets = share_.is_guaranteed(least) ? least : most;
  const bool must_wait = !has_turn_ && !share_.is_guaranteed(octets) && share_.others_wait();
  const auto verdict = must_wait ? BudgetShare::Verdict::kShort : share_.take(octets);
  parts_wait_ = verdict == BudgetShare::Verdict::kShort;
  settle_line();
  return verdict == BudgetShare::Verdict::kTaken ? octets : 0;
}

void Responder::on_parts_passed(bool wait) {
  if (wait || !parts_wait_) return;
  parts_wait_ = false;
  settle_line();
}

// A Call that came in parts holds memory while it waits for more. Calls of several connections could wait for each
// other for ever.
void Responder::give_up_waiting() {
  for (std::size_t at = 0; at < waiting_.size() && !endpoint_.failure();) {
    const CallSlot slot = waiting_[at];
    Call& call = call_at(slot);
    if (call.held != 0 && !call.waits_since) call.waits_since = now_;
    if (!call.waits_since || now_ - *call.waits_since < stall_timeout()) {
      ++at;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    call.joined.reset();  // an error needs nothing of it
    share_.give_back(std::exchange(call.held, 0));
    answer_error(slot, TransportError::Code::kSystem, "it came in parts, and there was no memory for its chunks");
  }
}

// Takes the bytes that a waiting Call needs and starts it, unless it has to keep waiting.
BudgetShare::Verdict Responder::start_call(std::size_t at, bool only_guaranteed) {
  const CallSlot slot = waiting_[at];
  Call& call = call_at(slot);
  if (only_guaranteed && !share_.is_guaranteed(call.need)) return BudgetShare::Verdict::kShort;
  const BudgetShare::Verdict verdict = share_.take(call.need, call.held);
  if (verdict != BudgetShare::Verdict::kTaken) return verdict;
  const Chunk* position_zero = call.lists.call_chunk();
  if (position_zero != nullptr) call.message = pool_.take(static_cast<std::size_t>(position_zero->length));
  if (position_zero != nullptr ? !call.message : !take_items(call, pool_)) {
    share_.cancel(call.need);
    tell_memory_is_short(call);
    return BudgetShare::Verdict::kShort;
  }
  if (at == 0) {
    waiting_.pop_front();  // nearly always, and at a tenth of the cost of erase
  } else {
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  call.held += call.need;
  if (position_zero != nullptr) {
    call.pulls.push_back({position_zero, call.message.octets(), call.message.lkey()});
    pull(slot);
  } else {
    pull_items_or_deliver(slot);
  }
  return verdict;
}

void Responder::pull_items_or_deliver(CallSlot slot) {
  Call& call = call_at(slot);
  if (call.items.empty()) return deliver(slot);
  for (const Call::Item& item : call.items) {
    call.pulls.push_back({item.source, item.data.octets(), item.data.lkey()});
  }
  pull(slot);
}

void Responder::pull(CallSlot slot) {
  Call& call = call_at(slot);
  call.state = Call::State::kPulling;
  call.next_pull = call.next_segment = call.filled = 0;
  call.reads = call.reads_done = 0;
  pulling_.push_back(slot);
  pump_reads();
}

// Posts RDMA Reads, never more at once than the peer's IRD (R1-4.3.1-13). Roundup in the chunk is not read.
void Responder::pump_reads() {
  while (!pulling_.empty() && reads_under_way_ < config_.ord && endpoint_.send_queue_room() != 0) {
    const CallSlot slot = pulling_.front();
    Call& call = call_at(slot);
    if (call.next_pull == call.pulls.size()) {
      pulling_.pop_front();
      continue;
    }
    const Call::Pull& pull = call.pulls[call.next_pull];
    const std::size_t left = pull.target.size() - call.filled;
    if (left == 0) {
      ++call.next_pull;
      call.next_segment = call.filled = 0;
      continue;
    }
    const Segment& segment = pull.source->segments[call.next_segment++];
    const std::size_t len = std::min<std::size_t>(segment.length, left);
    if (len == 0) continue;
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(pull.target.data() + call.filled),
                         static_cast<std::uint32_t>(len), pull.lkey};
    call.filled += len;
    if (!endpoint_.post_read(std::span(&sge, 1), segment.offset, segment.handle, slot)) return;
    ++call.reads;
    ++reads_under_way_;
  }
}

void Responder::on_read_done(CallSlot slot) {
  Call& call = call_at(slot);
  --reads_under_way_;
  --call.reads;
  ++call.reads_done;
  pump_reads();
  const bool posted = call.next_pull == call.pulls.size() ||
                      (call.next_pull + 1 == call.pulls.size() && call.filled == call.pulls.back().target.size());
  if (call.reads == 0 && posted) {
    std::erase(pulling_, slot);
    pulled(slot);
  }
  pump();
}

void Responder::on_read_refused(CallSlot slot) {
  const Segment* segment = call_at(slot).next_read();
  on_fatal(call_at(slot).xid,
           segment == nullptr ? "an RDMA Read" : refused_str("an RDMA Read", segment->handle, segment->offset));
}

// If the peer sends this Call again, it gets an error instead of an answer (R1-5.5.3-03).
void Responder::on_fatal(std::uint32_t xid, std::string_view refused) {
  if (fatal_xid_ == xid) return;
  fatal_xid_ = xid;
  tell(verbs::LogLevel::kWarn, xid, "the peer refused", refused);
  if (config_.duplicate_requests != nullptr) {
    config_.duplicate_requests->on_fatal(config_.client, config_.peer_group, xid);
  }
}

// All chunks of the Call have been pulled (R1-4.4.5.2-02).
void Responder::pulled(CallSlot slot) {
  Call& call = call_at(slot);
  const bool was_message = call.external && call.header.empty();
  call.pulls.clear();
  if (!was_message) return deliver(slot);
  if (!parse_payload(slot, call.message.octets())) return;
  // The octets of the items are in the budget already. Only memory is missing.
  if (!take_items(call, pool_)) return answer_stat(slot, AcceptStat::kSystemErr, "no memory for its items");
  pull_items_or_deliver(slot);
}

void Responder::deliver(CallSlot slot) {
  Call& call = call_at(slot);
  call.state = Call::State::kServed;
  if (is_duplicate(slot)) return;
  ServedCall served;
  served.id = id_of(slot);
  served.connection = {endpoint_.config().serial};
  served.xid = call.xid;
  served.program = call.rpc.program;
  served.version = call.rpc.version;
  served.procedure = call.rpc.procedure;
  served.cred = call.rpc.cred;
  served.verf = call.rpc.verf;
  served.header = call.header;
  served.args = call.args;
  served.message = std::move(call.message);
  served.receives = served_memory_;
  if (call.joined) served.receives = std::make_shared<const JoinedMemory>(JoinedMemory{call.joined, served_memory_});
  for (Call::Item& item : call.items) served.items.push_back({item.position, std::move(item.data)});
  if (may_place_results(call)) {
    for (const Chunk& chunk : call.lists.write_chunks()) {
      // A chunk without segments asks for its result inline (R1-4.4.6.2-05).
      auto& capacity = served.result_capacities.emplace_back();
      if (!chunk.segments.empty()) {
        capacity = static_cast<std::size_t>(std::min<std::uint64_t>(chunk.length, config_.max_item));
      }
    }
  }
  served.peer = config_.peer;
  served.peer_group = config_.peer_group;
  served.result_room = result_room(call);
  const std::size_t longest = longest_reply(call.lists, rules_);
  served.max_results = longest - std::min(longest, reply_header_len({}));
  has_called_ = true;
  ++counters_.calls_served;
  WEFT_PROBE(server_call_begin, served.id.value, call.xid, call.rpc.program, call.rpc.version, call.rpc.procedure,
             config_.peer.c_str());
  call.program->service->on_call(std::move(served));
}

bool Responder::is_idempotent(const Call& call) {
  const auto asked = call.program->binding->is_idempotent;
  if (asked == nullptr) return false;
  positions_.clear();
  for (const Call::Item& item : call.items) positions_.push_back(item.source->position - call.header.size());
  return asked(call.rpc.procedure, call.args, positions_);
}

// Whether the service has already received this Call. If so, the Call is answered, will be answered, or needs no
// answer.
bool Responder::is_duplicate(CallSlot slot) {
  const Call& call = call_at(slot);
  if (config_.duplicate_requests == nullptr || !call.program->keeps_replies || is_idempotent(call)) return false;
  std::vector<KeptItem> items;
  items.reserve(call.items.size());
  for (const Call::Item& item : call.items) items.push_back({item.position, item.data.octets()});
  const RequestKey key = config_.duplicate_requests->key_of(config_.client, call.xid, call.rpc, call.args, items);
  const ServedCallId id = id_of(slot);
  switch (config_.duplicate_requests->on_call(key, config_.peer_group, id)) {
    case DuplicateRequestCache::Verdict::kRun: return false;
    case DuplicateRequestCache::Verdict::kWait: break;
    case DuplicateRequestCache::Verdict::kDrop:  // without an answer
      link_.on_needless();
      (void)release_call(slot);
      break;
    case DuplicateRequestCache::Verdict::kAnswer: {
      auto kept = config_.duplicate_requests->find(key)->revive(pool_);
      if (kept) {
        reply(id, std::move(*kept));
      } else {
        (void)release_call(slot);
      }
      break;
    }
  }
  ++counters_.duplicate_requests;
  return true;
}

}  // namespace weft::rpcrdma
