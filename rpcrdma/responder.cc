#include "rpcrdma/responder.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "rpcrdma/responder_state.h"

namespace weft::rpcrdma {

namespace {

// CallId: serial of the connection, then how often the slot was used, then the slot.
constexpr std::uint32_t kSlotBits = 12;
constexpr std::uint32_t kSlotMask = (1u << kSlotBits) - 1;

}  // namespace

CallId Responder::make_id(std::uint32_t generation, std::uint32_t slot) const {
  return CallId{std::uint64_t{channel_.config().serial} << 32 | static_cast<std::uint32_t>(generation << kSlotBits) |
                slot};
}

Responder::Responder(verbs::Pd& pd, Channel& channel, BufferPool& pool, Budget& budget,
                     std::span<const Program> programs, Config config)
    : pd_(pd),
      channel_(channel),
      pool_(pool),
      programs_(programs),
      config_(std::move(config)),
      share_(budget, *this, config_.peer_group, {config_.guaranteed, config_.max_held}),
      served_memory_(std::make_shared<ServedMemory>()),
      credits_(config_.credits) {
  served_memory_->receives = channel.memory();
  assert(channel.config().num_receives <= kSlotMask && config_.credits.initial <= channel.config().num_receives);
}

Responder::~Responder() {
  if (served_memory_.use_count() == 1) return;
  std::size_t served = 0;
  for (const CallSlot& call : calls_) served += call.state == CallSlot::State::kServed ? call.held : 0;
  if (served != 0) served_memory_->rest = share_.leave_behind(served);
}

bool Responder::has_served_calls() const {
  return std::ranges::any_of(calls_, [](const CallSlot& call) { return call.state == CallSlot::State::kServed; });
}

void Responder::start(std::size_t reply_threshold, std::uint32_t ord) {
  config_.reply_threshold = reply_threshold;
  config_.ord = ord;
}

bool Responder::is_sending(std::uint32_t send) const {
  return send < outgoing_.size() && outgoing_[send].in_use;
}

bool Responder::reply(CallId id, ServedReply&& reply) {
  const std::uint32_t slot = static_cast<std::uint32_t>(id.value) & kSlotMask;
  if (slot >= calls_.size() || calls_[slot].state != CallSlot::State::kServed ||
      make_id(calls_[slot].generation, slot) != id) {
    return false;
  }
  ReplyHeader rpc{.xid = calls_[slot].xid, .verf = {}};
  rpc.accept = static_cast<AcceptStat>(reply.accept);
  rpc.verf = std::move(reply.verf);
  if (rpc.accept == AcceptStat::kGarbageArgs) {
    tell(verbs::LogLevel::kInfo, rpc.xid, "GARBAGE_ARGS", "its service cannot decode the arguments");
  }
  if (reply.accept == ServedReply::Accept::kProgMismatch) rpc.low = rpc.high = calls_[slot].rpc.version;
  answer(slot, std::move(rpc), std::move(reply));
  return true;
}

void Responder::on_time(verbs::TimePoint now) {
  now_ = now;
  discarded_in_turn_ = 0;
  admit();
  pump();
  if (!channel_.busy()) {
    progress_at_.reset();
  } else if (!progress_at_ || progress_ != channel_.progress()) {
    progress_ = channel_.progress();
    progress_at_ = now;
  } else if (now - *progress_at_ >= stall_timeout()) {
    channel_.fail("the peer takes or gives no data: stalled for " + std::to_string(stall_timeout().count()) + " ms");
  }
}

void Responder::tell(verbs::LogLevel level, std::uint32_t xid, std::string_view what, std::string_view why) const {
  if (config_.log != nullptr) config_.log->line(level, config_.peer, "XID {:#x}: {}: {}", xid, what, why);
}

void Responder::take_slot(std::uint32_t slot) {
  while (calls_.size() <= slot) calls_.emplace_back().generation = first_generation_;
}

void Responder::trim() {
  if (calls_under_way_ != 0 || sends_under_way_ != 0 || !answers_.empty()) return;
  // An id of a Call that was answered must not become that of another.
  for (const CallSlot& call : calls_) first_generation_ = std::max(first_generation_, call.generation);
  // Not by assignment, which keeps the room.
  const auto release = [](auto&... of) { (std::remove_reference_t<decltype(of)>().swap(of), ...); };
  release(calls_, outgoing_, is_reduced_, pieces_, walked_, item_lens_, found_results_, positions_, found_arguments_);
}

std::optional<verbs::TimePoint> Responder::next_timeout() const {
  if (!channel_.busy()) return {};
  return progress_at_ ? *progress_at_ + stall_timeout() : now_;
}

std::chrono::milliseconds Responder::stall_timeout() const {
  return share_.is_wanted() ? config_.short_stall_timeout : config_.stall_timeout;
}

}  // namespace weft::rpcrdma
