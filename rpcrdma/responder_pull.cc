#include <algorithm>
#include <utility>

#include "rpcrdma/framing.h"
#include "rpcrdma/probes.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/responder_state.h"

// The part of the Responder that gives Calls their share of memory, pulls their Read chunks, and hands them over.
namespace weft::rpcrdma {

ResultsOf Responder::results_of(const Call& call) {
  const bool is_known = call.program != nullptr && call.program->results_of != nullptr;
  return is_known ? call.program->results_of(call.rpc.procedure) : ResultsOf{};
}

// Octets that Server::buffers() must have for the results: the Call's room for results. A client with continuation does
// not tell how much it expects without chunks: as much as ours.
std::size_t Responder::result_room(const Call& call) const {
  std::uint64_t items = 0;
  for (const Chunk& chunk : call.lists.write_chunks()) items += chunk.length;
  std::uint64_t offered = items;
  if (call.lists.reply_chunk() != nullptr) offered = std::max(offered, call.lists.reply_chunk()->length);
  offered = std::min<std::uint64_t>(offered, results_of(call).longest);
  const std::size_t least = rules_.max_continued != 0 ? kContinuedResults : 0;
  const std::uint64_t room = std::max<std::uint64_t>({rules_.threshold, least, offered});
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
// bytes of other connections, Calls within this connection's guarantee pass it. Calls that came in parts stand in a
// line of their own.
void Responder::start_waiting() {
  using Verdict = BudgetShare::Verdict;
  bool must_wait = share_.must_wait(Line::kNew), must_begun_wait = share_.must_wait(Line::kBegun);
  bool is_at_limit = false;  // of this connection
  new_need_ = begun_need_ = slow_need_ = 0;
  for (std::size_t at = 0; at < waiting_.size() && !endpoint_.failure();) {
    const Call& call = call_at(waiting_[at]);
    const bool is_begun = call.lease.octets() != 0;
    if (is_large_slow(call)) {
      if (slow_need_ == 0) slow_need_ = call.need;
      ++at;
      continue;
    }
    if ((is_at_limit && !is_begun) || waits_as_slow(call)) {
      ++at;
      continue;
    }
    const std::size_t need = call.need;
    const Start start = is_begun ? Start::kBegun : Start::kNew;
    const Verdict verdict = start_call(at, (is_begun ? must_begun_wait : must_wait) ? Start::kGuaranteed : start);
    if (verdict == Verdict::kFits) continue;
    ++at;
    is_at_limit = is_at_limit || verdict == Verdict::kClient;
    if (verdict == Verdict::kClient) continue;
    must_wait = true;
    must_begun_wait = must_begun_wait || is_begun;
    std::size_t& first = is_begun ? begun_need_ : new_need_;
    if (first == 0) first = need;
  }
  settle_line();
  link_.credits().grants.set_short(is_short());
}

// Calls in parts have begun, and hold memory already.
bool Responder::is_slow(const Call& call) const {
  return call.lease.octets() == 0 && results_of(call).is_slow && call.need <= share_.guaranteed();
}

// A slow Call that is never within the guarantee. It stands in the line of slow Calls until it has its part of what
// they may hold. With that part it waits for memory as other Calls do.
bool Responder::is_large_slow(const Call& call) const {
  return call.lease.octets() == 0 && !call.lease.slow && results_of(call).is_slow && call.need > share_.guaranteed() &&
         share_.may_be_slow(call.need);
}

// Whether it waits for the part of slow Calls. It is looked at again when a Call of this connection ends; one is under
// way, or else the Call would be within the guarantee. Other Calls of the connection pass it.
bool Responder::waits_as_slow(const Call& call) {
  return is_slow(call) && !share_.is_guaranteed(call.need) && !share_.has_slow(call.need);
}

void Responder::settle_line() {
  const auto settle = [this](Line line, std::size_t need) {
    if (need != 0 && !endpoint_.failure()) {
      share_.wait(line, need);
    } else {
      share_.wait_no_more(line);
    }
  };
  settle(Line::kBegun, begun_need_);
  settle(Line::kSlow, slow_need_);
  settle(Line::kNew, new_need_ != 0 ? new_need_ : parts_need_);
}

FairLine<BudgetShare*>::Offer Responder::take_turn(Line line) {
  using Offer = FairLine<BudgetShare*>::Offer;
  using Verdict = BudgetShare::Verdict;
  turn_cost_ = 0;
  if (line != Line::kBegun && is_stalling()) return Offer::waits(Verdict::kClient);
  const Verdict verdict = line == Line::kBegun ? start_begun() : line == Line::kSlow ? start_slow() : start_new();
  start_waiting();
  if (turn_cost_ != 0) {
    moved_at_turn_ = num_moved();
    return Offer::begun(turn_cost_);
  }
  return Offer::waits(verdict == Verdict::kFits ? Verdict::kClient : verdict);
}

// While others wait, a connection whose peer has moved nothing since its last turn gets no more. Its Call that is under
// way ends before long, one way or the other.
bool Responder::is_stalling() const {
  return (is_pulling() || is_pushing()) && share_.is_wanted() && num_moved() <= moved_at_turn_;
}

BudgetShare::Verdict Responder::start_begun() {
  const auto waiting = waiting_.items();
  const auto at = std::ranges::find_if(waiting, [this](CallSlot slot) { return call_at(slot).lease.octets() != 0; });
  if (at == waiting.end() || endpoint_.failure()) return BudgetShare::Verdict::kClient;
  return start_call(static_cast<std::size_t>(at - waiting.begin()), Start::kBegun);
}

// The next slow Call that is beyond the guarantee.
BudgetShare::Verdict Responder::start_slow() {
  const auto waiting = waiting_.items();
  const auto at = std::ranges::find_if(waiting, [this](CallSlot slot) { return is_large_slow(call_at(slot)); });
  if (at == waiting.end() || endpoint_.failure()) return BudgetShare::Verdict::kClient;
  const Call& call = call_at(*at);
  const BudgetShare::Verdict verdict = start_call(static_cast<std::size_t>(at - waiting.begin()), Start::kNew);
  // With its part of what slow Calls may hold, it stands in line with the others now.
  return verdict != BudgetShare::Verdict::kFits && call.lease.slow ? BudgetShare::Verdict::kClient : verdict;
}

// The next Call that is beyond the guarantee, or the parts of the one that is coming.
BudgetShare::Verdict Responder::start_new() {
  using Verdict = BudgetShare::Verdict;
  for (std::size_t at = 0; at < waiting_.size() && !endpoint_.failure();) {
    if (is_large_slow(call_at(waiting_[at])) || waits_as_slow(call_at(waiting_[at]))) {
      ++at;
      continue;
    }
    const Verdict verdict = start_call(at, Start::kNew);
    if (verdict == Verdict::kClient) break;
    if (verdict != Verdict::kFits || turn_cost_ != 0) return verdict;
  }
  if (parts_need_ == 0 || endpoint_.failure()) return Verdict::kClient;
  has_turn_ = true;
  parts_verdict_ = Verdict::kClient;
  link_.on_turn();
  has_turn_ = false;
  return parts_verdict_;
}

bool Responder::take_memory(Lease& lease, std::size_t least, std::size_t most) {
  using Verdict = BudgetShare::Verdict;
  const bool is_guaranteed = share_.is_guaranteed(least);
  const std::size_t octets = is_guaranteed ? least : most;
  const bool must_wait = !is_guaranteed && !has_turn_ && share_.must_wait(Line::kNew);
  parts_verdict_ = must_wait ? Verdict::kAddress : share_.take(lease, octets);
  const bool is_taken = parts_verdict_ == Verdict::kFits;
  if (is_taken && !is_guaranteed) turn_cost_ += octets;
  parts_need_ = is_taken || parts_verdict_ == Verdict::kClient ? 0 : octets;
  settle_line();
  return is_taken;
}

void Responder::on_parts_passed(bool wait) {
  if (wait || parts_need_ == 0) return;
  parts_need_ = 0;
  settle_line();
}

// A Call that came in parts and waits for the rest of its memory is first in line, but the memory that it waits for may
// be in use for very long.
void Responder::give_up_waiting() {
  for (std::size_t at = 0; at < waiting_.size() && !endpoint_.failure();) {
    const CallSlot slot = waiting_[at];
    Call& call = call_at(slot);
    if (call.lease.octets() != 0 && !call.waits_since) call.waits_since = now_;
    if (!call.waits_since || now_ - *call.waits_since < config_.stall_timeout) {
      ++at;
      continue;
    }
    waiting_.erase(at);
    call.joined.reset();  // an error needs nothing of it
    call.lease.end();
    answer_error(slot, TransportError::Code::kSystem, "it came in parts, and there was no memory for its chunks");
  }
}

BudgetShare::Verdict Responder::take_for(Call& call, Start start) {
  const bool is_guaranteed = share_.is_guaranteed(call.need);
  if (start == Start::kGuaranteed && !is_guaranteed) return BudgetShare::Verdict::kAddress;
  if (!is_guaranteed && (is_slow(call) || is_large_slow(call))) {
    const auto verdict = share_.take_slow(call.lease, call.need);
    if (verdict != BudgetShare::Verdict::kFits) return is_slow(call) ? BudgetShare::Verdict::kClient : verdict;
  }
  const auto verdict =
      start == Start::kBegun ? share_.finish(call.lease, call.need) : share_.take(call.lease, call.need);
  if (verdict == BudgetShare::Verdict::kFits && !is_guaranteed) turn_cost_ += call.need;
  if (verdict != BudgetShare::Verdict::kFits && is_slow(call)) call.lease.slow.end();
  return verdict;
}

// Takes the bytes that a waiting Call needs and starts it, unless it has to keep waiting.
BudgetShare::Verdict Responder::start_call(std::size_t at, Start start) {
  const CallSlot slot = waiting_[at];
  Call& call = call_at(slot);
  const CallLease::Amounts before = call.lease.amounts();
  const std::size_t cost_before = turn_cost_;
  const BudgetShare::Verdict verdict = take_for(call, start);
  if (verdict != BudgetShare::Verdict::kFits) return verdict;
  const Chunk* position_zero = call.lists.call_chunk();
  if (position_zero != nullptr) call.message = pool_.take(static_cast<std::size_t>(position_zero->length));
  if (position_zero != nullptr ? !call.message : !take_items(call, pool_)) {
    call.lease.shrink(before);
    turn_cost_ = cost_before;  // otherwise the line would offer turns without end
    tell_memory_is_short(call);
    return BudgetShare::Verdict::kAddress;
  }
  waiting_.erase(at);
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
    const auto pulling = pulling_.items();
    const auto at = std::ranges::find(pulling, slot);
    if (at != pulling.end()) pulling_.erase(static_cast<std::size_t>(at - pulling.begin()));
    pulled(slot);
  }
  pump();
}

void Responder::on_read_refused(CallSlot slot) {
  const Call& call = call_at(slot);
  const Segment* segment = call.next_read();
  on_fatal({call.xid, call.print},
           segment == nullptr ? "an RDMA Read" : refused_str("an RDMA Read", segment->handle, segment->offset));
}

// If the peer sends this Call again, it gets an error instead of an answer (R1-5.5.3-03).
void Responder::on_fatal(const CallPrint& call, std::string_view refused) {
  if (fatal_xid_ == call.xid) return;
  fatal_xid_ = call.xid;
  tell(verbs::LogLevel::kWarn, call.xid, "the peer refused", refused);
  if (config_.duplicate_requests != nullptr) {
    config_.duplicate_requests->on_fatal(config_.client, config_.peer_group, call);
  }
}

// All chunks of the Call have been pulled (R1-4.4.5.2-02).
void Responder::pulled(CallSlot slot) {
  Call& call = call_at(slot);
  const bool was_message = call.external && call.header.empty();
  call.pulls.clear();
  if (!was_message) return deliver(slot);
  if (!parse_payload(slot, call.message.octets())) return;
  // Now its procedure is known, whose results may need less.
  const std::size_t need = std::min(need_of(call), call.need);
  call.lease.give_back(call.need - need);
  call.need = need;
  const bool is_beyond = share_.held() > share_.guaranteed();
  if (is_beyond && results_of(call).is_slow && share_.take_slow(call.lease, call.need) != BudgetShare::Verdict::kFits) {
    return answer_stat(slot, AcceptStat::kSystemErr, "no memory for its results");
  }
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
