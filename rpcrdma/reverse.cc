#include "rpcrdma/reverse.h"

#include <algorithm>
#include <random>
#include <utility>

#include "requirements/violates.h"

namespace weft::rpcrdma {

namespace {

// Octets of one reverse Call if chunks are accepted.
constexpr std::size_t kMaxLongCall = 64 * 1024;
constexpr std::size_t kMaxItem = 64 * 1024;

Responder::Config responder_config(const ReverseResponder::Config& config, const Endpoint& endpoint) {
  Responder::Config calls;
  calls.credits = {.min = config.credits, .initial = config.credits, .max = config.credits};
  calls.max_call = calls.max_continued_call = kMaxLongCall;
  calls.max_item = std::max(kMaxItem, endpoint.config().send_len);
  calls.max_sge = endpoint.config().max_send_sge;
  calls.peer = config.peer;
  calls.log = config.log;
  // R1-7.3.4-04: a header with chunks is beyond these limits, and is answered with ERR_CHUNK.
  if (!config.chunks) calls.max_segments = calls.max_read_chunks = calls.max_write_chunks = 0;
  return calls;
}

// Octets that Calls of one connection can hold. Each Call holds at most the largest Call, two items and a result.
std::size_t budget_of(const ReverseResponder::Config& config, const Endpoint& endpoint) {
  return config.credits * (kMaxLongCall + 3 * std::max(kMaxItem, endpoint.config().send_len));
}

Requester::Config requester_config(const ReverseRequester::Config& config) {
  Requester::Config calls;
  calls.credits = config.credits;
  calls.call_timeout = config.call_timeout;
  calls.short_only = !config.chunks;
  calls.ends_unanswering = false;
  calls.ask_timeout = ReverseRequester::kMaxWait;
  calls.peer = config.peer;
  calls.log = config.log;
  return calls;
}

}  // namespace

void ReverseResponder::widen(Endpoint::Config& shape, std::uint32_t credits) {
  shape.num_receives += credits;  // R1-7.2.2.1-01
  shape.num_sends += credits;
  shape.max_send_wr += 2 * credits;  // an RDMA Read or Write for each
}

ReverseResponder::ReverseResponder(verbs::Pd& pd, Link& link, Config config, bool read_sinks)
    : config_(std::move(config)),
      link_(link),
      programs_(config_.programs.begin(), config_.programs.end()),
      pool_(pd, kMaxLongCall + std::max(kMaxItem, link.endpoint().config().send_len),
            budget_of(config_, link.endpoint()), read_sinks),
      budget_({.all = budget_of(config_, link.endpoint())}),
      responder_(pd, link, pool_, budget_, programs_, responder_config(config_, link.endpoint())) {}

ReverseResponder::~ReverseResponder() {
  end("the connection is gone");
}

// R1-7.3.3-01: the threshold for Calls in one direction is the threshold for Replies in the other.
void ReverseResponder::start(const Thresholds& thresholds, std::uint32_t ord) {
  responder_.start(thresholds.send, ord);
}

void ReverseResponder::reply(ServedCallId id, ServedReply&& reply) {
  if (!ended_) responder_.reply(id, std::move(reply));
}

void ReverseResponder::on_time(TimePoint now) {
  if (!ended_) responder_.on_time(now);
}

std::optional<TimePoint> ReverseResponder::next_timeout() const {
  return ended_ ? std::nullopt : responder_.next_timeout();
}

void ReverseResponder::end(const std::string& why) {
  if (std::exchange(ended_, true)) return;
  link_.close();
  std::set<Service*> services;
  for (const ServedProgram& program : programs_) services.insert(program.service);
  for (Service* service : services) service->on_end({{link_.endpoint().config().serial}, why});
}

void ReverseRequester::widen(Endpoint::Config& shape, std::uint32_t credits) {
  shape.num_receives += credits;  // R1-7.2.2.2-01
  shape.num_sends += credits;
  shape.max_send_wr += credits;
}

ReverseRequester::ReverseRequester(verbs::Pd& pd, Link& link, const Config& config)
    : config_(config), link_(link), requester_(pd, link, requester_config(config), std::random_device{}()) {}

// R1-7.3.3-02, and the size that clients without chunks are known to accept.
std::size_t ReverseRequester::call_threshold(const Thresholds& thresholds) const {
  return config_.chunks ? thresholds.send : std::min({thresholds.send, thresholds.receive, kMaxReverseCall});
}

void ReverseRequester::start(const Thresholds& thresholds) {
  const ReverseSupport support = link_.profile().default_reverse;
  if (violates("W2-5.2-5", support == ReverseSupport::kNone)) return;
  started_ = true;
  requester_.limit_forms(support);
  requester_.start(call_threshold(thresholds), thresholds.receive);
}

// W2-4.6.3-2: a client that says nothing takes no Calls.
std::size_t ReverseRequester::on_time(TimePoint now) {
  if (is_waiting()) {
    if (!waits_since_) waits_since_ = now;
    if (now - *waits_since_ >= kMaxWait) requester_.end_waiting("the client has not said that it takes Calls");
  }
  return requester_.on_time(now);
}

std::optional<TimePoint> ReverseRequester::next_timeout() const {
  const auto next = requester_.next_timeout();
  return is_waiting() && waits_since_ ? earliest(next, std::optional(*waits_since_ + kMaxWait)) : next;
}

void ReverseRequester::settle(const Terms& terms) {
  if (terms.reverse == ReverseSupport::kNone) {  // R2-6.2.2-2, W2-5.2.5-2
    return requester_.on_closed("the client takes no Calls of its server");
  }
  requester_.limit_forms(terms.reverse);
  if (!std::exchange(started_, true)) requester_.start(call_threshold(terms.thresholds), terms.thresholds.receive);
  requester_.settle({call_threshold(terms.thresholds), terms.thresholds.receive}, terms.chunks);
}

}  // namespace weft::rpcrdma
