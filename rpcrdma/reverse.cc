#include "rpcrdma/reverse.h"

#include <algorithm>
#include <random>
#include <utility>

#include "requirements/violates.h"
#include "rpcrdma/v1/message_kind.h"

namespace weft::rpcrdma {

namespace {

// Of one reverse Call where chunks are taken.
constexpr std::size_t kMaxLongCall = 64 * 1024;
constexpr std::size_t kMaxItem = 64 * 1024;

Responder::Config responder_config(const ReverseResponder::Config& config, const Channel& channel) {
  Responder::Config calls;
  calls.credits = {.min = config.credits, .initial = config.credits, .max = config.credits};
  calls.max_call = kMaxLongCall;
  calls.max_item = std::max(kMaxItem, channel.config().send_len);
  calls.max_sge = channel.config().max_send_sge;
  calls.peer = config.peer;
  calls.log = config.log;
  // R1-7.3.4-04: a header with chunks is beyond what is taken, and answered with ERR_CHUNK.
  if (!config.chunks) calls.max_segments = calls.max_read_chunks = calls.max_write_chunks = 0;
  return calls;
}

// What Calls of one connection can hold: each no more than the largest Call, two items and a result.
std::size_t budget_of(const ReverseResponder::Config& config, const Channel& channel) {
  return config.credits * (kMaxLongCall + 3 * std::max(kMaxItem, channel.config().send_len));
}

Requester::Config requester_config(const ReverseRequester::Config& config) {
  Requester::Config calls;
  calls.credits = config.credits;
  calls.call_timeout = config.call_timeout;
  calls.short_only = !config.chunks;
  calls.ends_unanswering = false;
  calls.peer = config.peer;
  calls.log = config.log;
  return calls;
}

}  // namespace

void Dispatcher::on_work(const Work& work, std::size_t len) {
  switch (work.kind) {
    case WorkKind::kReceive: return on_receive(work, len);
    case WorkKind::kSend:
      return responder_.is_sending(work.slot) ? responder_.on_send_done(work.slot) : requester_.on_send_done(work.slot);
    case WorkKind::kInvalidate: return requester_.on_invalidated(work.slot);
    // A requester posts none.
    case WorkKind::kRead: return responder_.on_read_done(work.slot);
    case WorkKind::kWrite: return responder_.on_write_done();
  }
}

// R1-7.1.4-02: what the XID names follows from whether the message is a Call or a Reply.
void Dispatcher::on_receive(const Work& work, std::size_t len) {
  v1::MessageKind kind = v1::message_kind(channel_.received(work.slot, len));
  if (kind == v1::MessageKind::kUnclear) {
    kind = forward_ == Forward::kRequester ? v1::MessageKind::kReply : v1::MessageKind::kCall;
  }
  if (kind == v1::MessageKind::kReply) return requester_.on_receive(work.slot, len, work.invalidated);
  if (violates("R1-4.3.2-16", work.invalidated.has_value())) {
    return channel_.fail_violation("the peer invalidated a handle by a message that is no Reply");
  }
  // The Receives are there for Replies too: Calls beyond the grant may not use them up.
  if (violates("R1-4.3.1-04", responder_.is_at_limit())) {
    return channel_.fail_violation("the peer sends more Calls than it was granted");
  }
  responder_.on_receive(work.slot, len);
}

void ReverseResponder::widen(Channel::Config& shape, std::uint32_t credits) {
  shape.num_receives += credits;  // R1-7.2.2.1-01
  shape.num_sends += credits;
  shape.max_send_wr += 2 * credits;  // an RDMA Read or Write for each
}

ReverseResponder::ReverseResponder(verbs::Pd& pd, Channel& channel, Requester& requester, Config config,
                                   bool read_sinks)
    : config_(std::move(config)),
      channel_(channel),
      programs_(config_.programs.begin(), config_.programs.end()),
      pool_(pd, kMaxLongCall + std::max(kMaxItem, channel.config().send_len), budget_of(config_, channel), read_sinks),
      budget_{budget_of(config_, channel), 0},
      responder_(pd, channel, pool_, budget_, programs_, responder_config(config_, channel)),
      dispatcher_(channel, requester, responder_, Dispatcher::Forward::kRequester) {}

ReverseResponder::~ReverseResponder() {
  end("the connection is gone");
}

// R1-7.3.3-01: what is a Call's threshold in one direction is a Reply's in the other.
void ReverseResponder::start(const Thresholds& thresholds, std::uint32_t ord) {
  responder_.start(thresholds.send, ord);
}

void ReverseResponder::reply(CallId id, ServedReply&& reply) {
  if (!ended_) responder_.reply(id, std::move(reply));
}

void ReverseResponder::on_time(verbs::TimePoint now) {
  if (!ended_) responder_.on_time(now);
}

std::optional<verbs::TimePoint> ReverseResponder::next_timeout() const {
  return ended_ ? std::nullopt : responder_.next_timeout();
}

void ReverseResponder::end(const std::string& why) {
  if (std::exchange(ended_, true)) return;
  std::set<Service*> services;
  for (const Program& program : programs_) services.insert(program.service);
  for (Service* service : services) service->on_end({{channel_.config().serial}, why});
}

void ReverseRequester::widen(Channel::Config& shape, std::uint32_t credits) {
  shape.num_receives += credits;  // R1-7.2.2.2-01
  shape.num_sends += credits;
  shape.max_send_wr += credits;
}

ReverseRequester::ReverseRequester(verbs::Pd& pd, Channel& channel, Responder& responder, const Config& config)
    : config_(config),
      requester_(pd, channel, requester_config(config), std::random_device{}()),
      dispatcher_(channel, requester_, responder, Dispatcher::Forward::kResponder) {}

void ReverseRequester::start(const Thresholds& thresholds) {
  std::size_t call = thresholds.send;
  // R1-7.3.3-02, and what clients that take no chunks are known to take.
  if (!config_.chunks) call = std::min({call, thresholds.receive, kMaxReverseCall});
  requester_.start(call, thresholds.receive);
}

}  // namespace weft::rpcrdma
