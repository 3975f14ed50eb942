#include "rpcrdma/responder.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "rpcrdma/responder_state.h"

namespace weft::rpcrdma {

namespace {

// CallId: serial of the connection, then how often the slot was used, then the slot.
constexpr std::uint32_t kSlotBits = 12;
constexpr std::uint32_t kSlotMask = (1u << kSlotBits) - 1;

CallId make_id(std::uint32_t serial, std::uint32_t generation, std::uint32_t slot) {
  return CallId{std::uint64_t{serial} << 32 | static_cast<std::uint32_t>(generation << kSlotBits) | slot};
}

// GSS integrity and privacy forbid reduction; what is not understood is not served (RFC 8166 section 8.2.2.3).
bool flavor_is_served(std::uint32_t flavor) {
  return flavor <= static_cast<std::uint32_t>(AuthFlavor::kShort);
}

}  // namespace

Responder::Responder(verbs::Pd& pd, Channel& channel, BufferPool& pool, Budget& budget,
                     std::span<const Program> programs, Config config)
    : pd_(pd),
      channel_(channel),
      pool_(pool),
      budget_(budget),
      programs_(programs),
      config_(std::move(config)),
      calls_(channel.config().num_receives),
      outgoing_(channel.config().num_sends) {
  assert(channel.config().num_receives <= kSlotMask && config_.credits <= channel.config().num_receives);
}

Responder::~Responder() {
  budget_.used -= held_;
}

void Responder::start(std::size_t reply_threshold, std::uint32_t ord) {
  config_.reply_threshold = reply_threshold;
  config_.ord = ord;
}

void Responder::discard(std::uint32_t slot) {
  ++counters_.discarded;
  release_call(slot);
  channel_.post_receive(slot);
}

void Responder::on_receive(std::uint32_t slot, std::size_t len) {
  v1::ReceivedCall received;
  const ChunkLimits limits{.max_message = std::uint64_t{config_.max_call} + config_.max_item,
                           .max_item = config_.max_item};
  const v1::CallVerdict verdict = v1::receive_call(channel_.received(slot, len), limits, received);
  if (verdict == v1::CallVerdict::kDiscard) {
    discard(slot);
    return;
  }
  CallSlot& call = calls_[slot];
  call.xid = received.xid;
  call.vers = received.vers;
  if (verdict == v1::CallVerdict::kErrVers) return answer_error(slot, v1::Err::kVers);
  if (verdict == v1::CallVerdict::kErrChunk) return answer_error(slot, v1::Err::kChunk);

  call.long_call = received.long_call;
  call.lists = std::move(received.lists);
  const bool must_read = call.lists.position_zero() != nullptr || !call.lists.read_chunks().empty();
  if (must_read && config_.ord == 0) return answer_error(slot, v1::Err::kChunk);  // the peer allows no RDMA Read
  if (!call.long_call && !parse_payload(slot, received.payload)) return;

  call.state = CallSlot::State::kWaiting;
  waiting_.push_back(slot);
  admit();
}

bool Responder::parse_payload(std::uint32_t slot, ConstBytes payload) {
  CallSlot& call = calls_[slot];
  xdr::XdrReader in(payload);
  call.rpc = CallHeader{};
  switch (parse_call(in, call.rpc)) {
    case CallParse::kOk: break;
    case CallParse::kNotACall:
      // Inline the type was looked at before, so only a message without one comes here.
      answer_error(slot, v1::Err::kChunk);
      return false;
    case CallParse::kRpcMismatch: {
      ReplyHeader rpc{.xid = call.xid, .denied = true, .verf = {}};
      rpc.low = rpc.high = kRpcVersion;
      answer(slot, std::move(rpc), {});
      return false;
    }
    case CallParse::kGarbage: answer_stat(slot, AcceptStat::kGarbageArgs); return false;
  }
  if (call.rpc.xid != call.xid) {  // R1-5.5.2-04
    answer_error(slot, v1::Err::kChunk);
    return false;
  }
  if (!flavor_is_served(call.rpc.cred.flavor)) {
    ReplyHeader rpc{.xid = call.xid, .denied = true, .verf = {}};
    rpc.reject = RejectStat::kAuthError;
    rpc.auth = AuthStat::kBadCred;
    answer(slot, std::move(rpc), {});
    return false;
  }
  if (!match_program(slot)) return false;
  call.args.assign(in.rest().begin(), in.rest().end());
  return match_read_chunk(slot, in.position());
}

bool Responder::match_program(std::uint32_t slot) {
  CallSlot& call = calls_[slot];
  ReplyHeader rpc{.xid = call.xid, .verf = {}, .accept = AcceptStat::kProgUnavail};
  rpc.low = std::numeric_limits<std::uint32_t>::max();
  for (const Program& program : programs_) {
    if (program.binding->program != call.rpc.program) continue;
    if (program.binding->version == call.rpc.version) {
      call.program = &program;
      return true;
    }
    rpc.accept = AcceptStat::kProgMismatch;
    rpc.low = std::min(rpc.low, program.binding->version);
    rpc.high = std::max(rpc.high, program.binding->version);
  }
  answer(slot, std::move(rpc), {});
  return false;
}

// Holds a normal Read chunk against the Payload stream and the binding, before anything is pulled (RFC 8166 sections
// 4.5.2 and 6.1). header_len: octets of the RPC header, so of the Payload stream before the arguments.
bool Responder::match_read_chunk(std::uint32_t slot, std::size_t header_len) {
  CallSlot& call = calls_[slot];
  call.item_place.reset();
  const auto chunks = call.lists.read_chunks();
  if (chunks.empty()) return true;
  const auto find = call.program->binding->find_argument;
  const auto place = find != nullptr && chunks.size() == 1 ? find(call.rpc.procedure, call.args) : std::nullopt;
  const bool matches = place && place->position <= call.args.size() &&
                       chunks[0].position == header_len + place->position &&
                       // R1-4.4.5.1-02, R1-4.4.5.1-03: with or without roundup.
                       (chunks[0].length == place->len || chunks[0].length == xdr::round_up(std::size_t{place->len}));
  if (!matches) {
    answer_stat(slot, AcceptStat::kGarbageArgs);  // R1-5.5.2-05, R1-8.1.1-01
    return false;
  }
  if (place->len != 0) call.item_place = place;
  return true;
}

std::size_t Responder::result_room(const CallSlot& call) const {
  std::uint64_t room = config_.reply_threshold;
  if (!call.lists.write_chunks().empty()) room = std::max(room, call.lists.write_chunks().front().length);
  if (call.lists.reply_chunk() != nullptr) room = std::max(room, call.lists.reply_chunk()->length);
  return static_cast<std::size_t>(std::min<std::uint64_t>(room, config_.max_item));
}

void Responder::admit() {
  while (!waiting_.empty() && !channel_.failure()) {
    // In order: a large Call is not passed by small ones for ever.
    const std::uint32_t slot = waiting_.front();
    if (!start_call(slot)) return;
  }
}

// Takes what a Call needs and starts it; false where it has to wait.
bool Responder::start_call(std::uint32_t slot) {
  CallSlot& call = calls_[slot];
  std::size_t need = result_room(call);
  const Chunk* position_zero = call.lists.position_zero();
  if (position_zero != nullptr) need += static_cast<std::size_t>(position_zero->length);
  for (const Chunk& chunk : call.lists.read_chunks()) need += static_cast<std::size_t>(chunk.length);

  const bool alone = held_ == 0;
  if (!alone && (held_ > config_.max_held || need > config_.max_held - held_)) return false;
  if (budget_.used > budget_.limit || need > budget_.limit - budget_.used) return false;
  if (position_zero != nullptr) {
    call.message = pool_.take(static_cast<std::size_t>(position_zero->length));
    if (!call.message) return false;
  } else if (call.item_place) {
    call.item = pool_.take(call.item_place->len);
    if (!call.item) return false;
  }
  waiting_.pop_front();
  call.held = need;
  held_ += need;
  budget_.used += need;
  if (position_zero != nullptr) {
    pull(slot, *position_zero, call.message);
  } else {
    pull_item_or_deliver(slot);
  }
  return true;
}

void Responder::pull_item_or_deliver(std::uint32_t slot) {
  CallSlot& call = calls_[slot];
  if (call.item) {
    pull(slot, call.lists.read_chunks().front(), call.item);
  } else {
    deliver(slot);
  }
}

void Responder::pull(std::uint32_t slot, const Chunk& chunk, const Buffer& target) {
  CallSlot& call = calls_[slot];
  call.state = CallSlot::State::kPulling;
  call.source = &chunk;
  call.target = target.octets();
  call.target_lkey = target.lkey();
  call.next_segment = 0;
  call.filled = 0;
  call.reads = 0;
  pulling_.push_back(slot);
  pump_reads();
}

// Posts RDMA Reads, never more at once than the peer's IRD (R1-4.3.1-13). Roundup in the chunk is left where it is.
void Responder::pump_reads() {
  while (!pulling_.empty() && reads_under_way_ < config_.ord && channel_.send_queue_room() != 0) {
    const std::uint32_t slot = pulling_.front();
    CallSlot& call = calls_[slot];
    const std::size_t left = call.target.size() - call.filled;
    if (left == 0) {
      pulling_.pop_front();
      continue;
    }
    const Segment& segment = call.source->segments[call.next_segment++];
    const std::size_t len = std::min<std::size_t>(segment.length, left);
    if (len == 0) continue;
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(call.target.data() + call.filled),
                         static_cast<std::uint32_t>(len), call.target_lkey};
    call.filled += len;
    if (!channel_.post_rdma(verbs::WrOpcode::kRdmaRead, std::span(&sge, 1), segment.offset, segment.handle, slot,
                            true)) {
      return;
    }
    ++call.reads;
    ++reads_under_way_;
  }
}

void Responder::on_read_done(std::uint32_t slot) {
  CallSlot& call = calls_[slot];
  --reads_under_way_;
  --call.reads;
  const bool complete = call.reads == 0 && call.filled == call.target.size();
  if (complete) std::erase(pulling_, slot);
  pump_reads();
  if (complete) pulled(slot);
  pump();
}

void Responder::pulled(std::uint32_t slot) {
  CallSlot& call = calls_[slot];
  if (!call.message) return deliver(slot);
  const Buffer message = std::move(call.message);
  if (!parse_payload(slot, message.octets())) return;
  if (call.item_place) {
    call.item = pool_.take(call.item_place->len);
    // Its octets are in the budget already; what is missing is memory.
    if (!call.item) return answer_stat(slot, AcceptStat::kSystemErr);
  }
  pull_item_or_deliver(slot);
}

void Responder::deliver(std::uint32_t slot) {
  CallSlot& call = calls_[slot];
  call.state = CallSlot::State::kServed;
  ServedCall served;
  served.id = make_id(channel_.config().serial, call.generation, slot);
  served.xid = call.xid;
  served.program = call.rpc.program;
  served.version = call.rpc.version;
  served.procedure = call.rpc.procedure;
  served.cred = std::move(call.rpc.cred);
  served.args = std::move(call.args);
  if (call.item_place) served.item_position = call.item_place->position;
  served.item = std::move(call.item);
  const auto eligible = call.program->binding->has_eligible_result;
  const auto writes = call.lists.write_chunks();
  // A chunk without segments asks for the result inline (R1-4.4.6.2-05).
  if (eligible != nullptr && eligible(call.rpc.procedure) && !writes.empty() && !writes.front().segments.empty()) {
    served.result_item_capacity =
        static_cast<std::size_t>(std::min<std::uint64_t>(writes.front().length, config_.max_item));
  }
  served.peer = config_.peer;
  served.result_room = result_room(call);
  ++counters_.calls_served;
  call.program->service->on_call(std::move(served));
}

bool Responder::reply(CallId id, ServedReply reply) {
  const std::uint32_t slot = static_cast<std::uint32_t>(id.value) & kSlotMask;
  if (slot >= calls_.size() || calls_[slot].state != CallSlot::State::kServed ||
      make_id(channel_.config().serial, calls_[slot].generation, slot) != id) {
    return false;
  }
  ReplyHeader rpc{.xid = calls_[slot].xid, .verf = {}};
  rpc.accept = static_cast<AcceptStat>(reply.accept);
  if (reply.accept == ServedReply::Accept::kProgMismatch) rpc.low = rpc.high = calls_[slot].rpc.version;
  answer(slot, std::move(rpc), std::move(reply));
  return true;
}

void Responder::on_time(verbs::TimePoint now) {
  now_ = now;
  admit();
  pump();
  if (!channel_.busy()) {
    progress_at_.reset();
  } else if (!progress_at_ || progress_ != channel_.progress()) {
    progress_ = channel_.progress();
    progress_at_ = now;
  } else if (now - *progress_at_ >= config_.stall_timeout) {
    channel_.fail("the peer takes or gives no data: stalled for " + std::to_string(config_.stall_timeout.count()) +
                  " ms");
  }
}

std::optional<verbs::TimePoint> Responder::next_timeout() const {
  if (!channel_.busy()) return {};
  return progress_at_ ? *progress_at_ + config_.stall_timeout : now_;
}

}  // namespace weft::rpcrdma
