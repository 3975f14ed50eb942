#include "rpcrdma/responder.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "rpcrdma/probes.h"
#include "rpcrdma/responder_state.h"

namespace weft::rpcrdma {

namespace {

// ServedCallId: serial of the connection, then the number of uses of the slot, then the slot.
constexpr std::uint32_t kSlotBits = 12;
constexpr std::uint32_t kSlotMask = (1u << kSlotBits) - 1;

}  // namespace

ServedCallId Responder::id_of(CallSlot slot) const {
  const std::uint32_t generation = calls_[index_of(slot)].generation << kSlotBits;
  return ServedCallId{std::uint64_t{endpoint_.config().serial} << 32 | generation | index_of(slot)};
}

Responder::Responder(verbs::Pd& pd, Link& link, BufferPool& pool, Budget& budget,
                     std::span<const ServedProgram> programs, Config config)
    : pd_(pd),
      link_(link),
      endpoint_(link.endpoint()),
      pool_(pool),
      programs_(programs),
      config_(std::move(config)),
      share_(budget, *this, config_.peer_group),
      served_memory_(std::make_shared<ServedMemory>()) {
  if (config_.answer_rooms == nullptr) config_.answer_rooms = make_answer_rooms();
  link_.join(*this);
  link_.credits().grants = CreditPolicy(config_.credits);
  served_memory_->receives = endpoint_.memory();
  assert(endpoint_.config().num_receives <= kSlotMask && config_.credits.initial <= endpoint_.config().num_receives);
}

Responder::~Responder() {
  link_.leave(*this);
  if (served_memory_.use_count() == 1) return;
  for (Call& call : calls_) {
    if (call.state == Call::State::kServed) served_memory_->rest.push_back(std::move(call.lease));
  }
}

std::shared_ptr<Responder::AnswerRooms> Responder::make_answer_rooms() {
  return std::make_shared<AnswerRooms>();
}

bool Responder::trim(AnswerRooms& rooms) {
  return rooms.trim();
}

void Responder::start(std::size_t reply_threshold, std::uint32_t ord) {
  const Profile& profile = link_.profile();
  rules_ = {.lengths = profile.reply_lengths,
            .threshold = reply_threshold,
            .returns_reply_chunk = profile.returns_reply_chunk,
            .max_continued = profile.framing != nullptr ? kMaxContinued : 0};
  config_.ord = ord;
}

bool Responder::is_sending(SendSlot send) const {
  return index_of(send) < outgoing_.size() && outgoing_[index_of(send)] != nullptr;
}

std::optional<CallSlot> Responder::served(ServedCallId id) {
  const CallSlot slot{static_cast<std::uint32_t>(id.value) & kSlotMask};
  const bool is_there = index_of(slot) < calls_.size() && call_at(slot).state == Call::State::kServed;
  return is_there && id_of(slot) == id ? std::optional(slot) : std::nullopt;
}

// accept: the accept_stat of its Reply; -1: the Call gets none.
void Responder::probe_end(ServedCallId id, const Call& call, int accept) const {
  WEFT_PROBE(server_call_end, id.value, call.xid, call.rpc.program, call.rpc.version, call.rpc.procedure, accept);
}

bool Responder::finish(ServedCallId id) {
  const auto slot = served(id);
  if (!slot) return false;
  probe_end(id, call_at(*slot), -1);
  return release_call(*slot);
}

bool Responder::reply(ServedCallId id, ServedReply&& reply) {
  const auto at = served(id);
  if (!at) return false;
  const CallSlot slot = *at;
  probe_end(id, call_at(slot), static_cast<int>(reply.accept));
  ReplyHeader rpc{.xid = call_at(slot).xid, .verf = {}};
  rpc.accept = static_cast<AcceptStat>(reply.accept);
  rpc.verf = std::move(reply.verf);
  if (rpc.accept == AcceptStat::kGarbageArgs) {
    tell(verbs::LogLevel::kInfo, rpc.xid, "GARBAGE_ARGS", "its service cannot decode the arguments");
  }
  if (reply.accept == ServedReply::Accept::kProgMismatch) rpc.low = rpc.high = call_at(slot).rpc.version;
  answer(slot, std::move(rpc), std::move(reply));
  return true;
}

void Responder::on_time(TimePoint now) {
  now_ = now;
  admit();
  give_up_waiting();
  pump();
  end_slow_reply();
  end_slow_peer();
  if (!may_stall()) {
    progress_at_.reset();
  } else if (!progress_at_ || progress_ != endpoint_.progress()) {
    progress_ = endpoint_.progress();
    progress_at_ = now;
  } else if (now - *progress_at_ >= config_.stall_timeout) {
    const char* why = lacks_sends_     ? "there was no memory for an answer for "
                      : lacks_credits_ ? "the peer gives no credits for an answer: stalled for "
                                       : "the peer takes or gives no data: stalled for ";
    endpoint_.fail(why + std::to_string(config_.stall_timeout.count()) + " ms");
  }
}

void Responder::tell(verbs::LogLevel level, std::uint32_t xid, std::string_view what, std::string_view why) const {
  if (config_.log != nullptr) config_.log->line(level, config_.peer, "XID {:#x}: {}: {}", xid, what, why);
}

void Responder::tell_property_fault(const char* fault) const {
  if (config_.log == nullptr) return;
  config_.log->line(verbs::LogLevel::kWarn, config_.peer, "a message about properties: {}", fault);
}

CallSlot Responder::take_call(std::optional<ReceiveSlot> receive) {
  if (free_calls_.empty()) {
    free_calls_.push_back(CallSlot{static_cast<std::uint32_t>(calls_.size())});
    calls_.emplace_back().generation = first_generation_;
  }
  const CallSlot slot = free_calls_.back();
  free_calls_.pop_back();
  call_at(slot).receive = receive;
  if (observer_ != nullptr) call_at(slot).mark = observer_->on_arrival();
  ++calls_under_way_;
  return slot;
}

void Responder::trim() {
  if (calls_under_way_ != 0 || sends_under_way_ != 0 || !answers_.empty()) return;
  // The id of an answered Call must not become the id of another Call.
  for (const Call& call : calls_) first_generation_ = std::max(first_generation_, call.generation);
  // swap, because assignment would keep the capacity.
  const auto release = [](auto&... of) { (std::remove_reference_t<decltype(of)>().swap(of), ...); };
  release(calls_, free_calls_, outgoing_, positions_, found_arguments_);
  waiting_.trim();
  pulling_.trim();
  answers_.trim();
  form_ = {};
  message_.lists = {};
}

std::optional<TimePoint> Responder::next_timeout() const {
  std::optional<TimePoint> next;
  if (may_stall()) next = progress_at_ ? *progress_at_ + config_.stall_timeout : now_;
  if (const Outgoing* reply = continued()) {
    const TimePoint end = reply->parts_since ? *reply->parts_since + config_.max_reply_time : now_;
    if (!next || end < *next) next = end;
  }
  for (const CallSlot slot : waiting_.items()) {
    const auto& since = calls_[index_of(slot)].waits_since;
    if (since) next = earliest(next, *since + config_.stall_timeout);
  }
  if (share_.is_wanted()) {
    const auto consider = [&](bool is_under_way, const std::optional<Moving>& moving) {
      if (is_under_way) next = earliest(next, moving ? moving->time.end() : now_);
    };
    consider(is_pulling(), pull_);
    consider(is_pushing(), push_);
  }
  return next;
}

const Responder::Outgoing* Responder::continued() const {
  if (!posting_) return nullptr;
  const Outgoing& out = *outgoing_[index_of(*posting_)];
  return out.parts ? &out : nullptr;
}

void Responder::end_slow_reply() {
  if (continued() == nullptr) return;
  auto& since = outgoing_[index_of(*posting_)]->parts_since;
  if (!since) since = now_;
  if (now_ - *since < config_.max_reply_time) return;
  const std::string time = std::to_string(config_.max_reply_time.count());
  endpoint_.fail("the peer takes longer than " + time + " ms for one Reply");
}

bool Responder::may_stall() const {
  return endpoint_.busy() || lacks_sends_ || lacks_credits_;
}

bool Responder::is_pushing() const {
  return sends_under_way_ != 0 || lacks_sends_ || lacks_credits_;
}

// While others wait for memory of this connection, its peer has to move octets, each way that octets are to go.
void Responder::end_slow_peer() {
  if (!share_.is_wanted()) {
    pull_.reset();
    push_.reset();
    return;
  }
  const bool pulls = is_pulling(), pushes = is_pushing();
  const std::uint64_t pulled = pulls || pushes ? endpoint_.octets_pulled() : 0;
  const std::uint64_t pushed = pulls || pushes ? endpoint_.octets_pushed() : 0;
  const bool is_proven = pulled + pushed >= share_.held();
  const auto is_over = [&](std::optional<Moving>& moving, bool is_under_way, std::uint64_t octets) {
    if (!is_under_way) {
      moving.reset();
      return false;
    }
    const EarnedTime::Terms& terms = config_.while_others_wait;
    if (!moving) moving.emplace(Moving{EarnedTime(terms, share_.given_time(terms, is_proven), now_), octets});
    if (octets > moving->octets) {
      moving->time.earn(octets - moving->octets, share_.held(), now_);
      moving->octets = octets;
    }
    return moving->time.is_over(now_);
  };
  const bool is_pull_over = is_over(pull_, pulls, pulled);
  if (!is_over(push_, pushes, pushed) && !is_pull_over) return;
  endpoint_.fail("the peer takes or gives its data too slowly while others wait for the memory that it holds");
}

}  // namespace weft::rpcrdma
