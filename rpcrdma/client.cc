#include "rpcrdma/client.h"

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "rpcrdma/channel.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/reverse.h"

namespace weft::rpcrdma {

namespace {
constexpr std::chrono::seconds kLastWords{1};
}  // namespace

struct Client::Impl {
  verbs::Device& device;
  ClientConfig config;
  sockaddr_storage dst{};
  State state = State::kConnecting;
  std::string error;
  bool connected = false;  // kEstablished came, kDisconnected did not
  bool in_process = false;
  std::optional<verbs::TimePoint> connect_deadline;
  // A completion failed: until then the connection may still say why, which it knows better than any completion.
  std::optional<verbs::TimePoint> last_words;
  verbs::TimePoint now{};

  // In the order of their making; taken down in the opposite one.
  std::unique_ptr<verbs::CmChannel> cm_events;
  std::unique_ptr<verbs::Pd> pd;
  std::unique_ptr<verbs::CompChannel> events;
  std::unique_ptr<verbs::Cq> cq;
  std::unique_ptr<verbs::CmId> id;
  std::unique_ptr<Channel> channel;
  std::unique_ptr<verbs::Qp> qp;
  std::unique_ptr<Requester> requester;
  std::unique_ptr<ReverseResponder> reverse;  // where there are reverse programs

  explicit Impl(verbs::Device& d, const ClientConfig& c) : device(d), config(c) {}
  ~Impl() {
    // The queue pair first: then no request names memory that the requester gives back.
    if (channel) channel->detach();
    qp.reset();
  }

  verbs::Status open();
  void on_cm_event(verbs::CmEvent& event);
  void on_established(const verbs::CmEvent& event);
  void on_completion(const verbs::Wc& wc);
  void close(std::string why);
};

namespace {

verbs::Status check(const ClientConfig& config, const verbs::Caps& caps) {
  if (config.inline_threshold < v1::kDefaultInline || config.inline_threshold > v1::kMaxInline ||
      config.inline_threshold % 1024 != 0) {
    return verbs::Error{EINVAL, "the inline threshold must be a multiple of 1024 from 1024 to 262144"};
  }
  const std::uint32_t reverse = config.reverse_programs.empty() ? 0 : config.reverse_credits;
  if (config.credits == 0 || config.credits > kMaxCredits ||
      config.credits + kExtraReceives + reverse > caps.max_qp_wr) {
    return verbs::Error{EINVAL, "credits must be from 1 to 1024 and within the device's queue depth"};
  }
  if (!config.reverse_programs.empty() && (reverse == 0 || reverse > kMaxReverseCredits)) {
    return verbs::Error{EINVAL, "reverse credits must be from 1 to 16"};
  }
  return {};
}

}  // namespace

verbs::Status Client::Impl::open() {
  auto made_pd = device.alloc_pd();
  if (!made_pd.ok()) return made_pd.error();
  pd = std::move(*made_pd);
  auto made_events = device.create_comp_channel();
  if (!made_events.ok()) return made_events.error();
  events = std::move(*made_events);
  auto made_cm = device.create_event_channel();
  if (!made_cm.ok()) return made_cm.error();
  cm_events = std::move(*made_cm);

  Channel::Config shape;
  shape.serial = 1;
  shape.num_receives = config.credits + kExtraReceives;
  shape.num_sends = config.credits;
  shape.receive_len = shape.send_len = config.inline_threshold;
  shape.max_send_wr = config.credits + 4;
  shape.max_send_sge = 1;
  if (!config.reverse_programs.empty()) ReverseResponder::widen(shape, config.reverse_credits);
  auto made_channel = Channel::create(*pd, shape);
  if (!made_channel.ok()) return made_channel.error();
  channel = std::move(*made_channel);
  auto made_cq = device.create_cq(static_cast<int>(shape.num_receives + shape.max_send_wr + 8), events.get());
  if (!made_cq.ok()) return made_cq.error();
  cq = std::move(*made_cq);

  Requester::Config calls;
  calls.credits = config.credits;
  calls.call_timeout = config.call_timeout;
  calls.reserve_credit = config.reserve_credit;
  calls.chunks = config.chunks;
  requester = std::make_unique<Requester>(*pd, *channel, calls, std::random_device{}());
  if (!config.reverse_programs.empty()) {
    reverse =
        std::make_unique<ReverseResponder>(*pd, *channel, *requester,
                                           ReverseResponder::Config{config.reverse_programs, config.reverse_credits,
                                                                    config.reverse_chunks, address_str(dst)},
                                           device.caps().read_sink_needs_remote_write);
  }

  auto made_id = cm_events->create_id();
  if (!made_id.ok()) return made_id.error();
  id = std::move(*made_id);
  return id->resolve_addr(dst, config.connect_timeout);
}

void Client::Impl::on_cm_event(verbs::CmEvent& event) {
  const std::string peer = address_str(dst);
  const std::string detail = event.text.empty() ? std::string() : ": " + event.text;
  verbs::Status status;
  switch (event.type) {
    case verbs::CmEventType::kAddrResolved: status = id->resolve_route(config.connect_timeout); break;
    case verbs::CmEventType::kRouteResolved: {
      auto made = id->create_qp(*pd, channel->qp_attr(*cq));
      if (!made.ok()) return close("cannot make a queue pair: " + made.error().message);
      qp = std::move(*made);
      status = channel->attach(*qp);
      if (!status.ok()) break;
      verbs::ConnParam param;
      param.private_data = own_private_data(device.caps(), config.inline_threshold);
      param.responder_resources =
          static_cast<std::uint8_t>(std::min<std::uint32_t>(config.ird, device.caps().max_qp_rd_atom));
      param.initiator_depth =
          static_cast<std::uint8_t>(std::min<std::uint32_t>(config.ord, device.caps().max_qp_init_rd_atom));
      status = id->connect(param);
      break;
    }
    case verbs::CmEventType::kEstablished: return on_established(event);
    case verbs::CmEventType::kRejected: return close(peer + " rejected the connection" + detail);
    case verbs::CmEventType::kDeviceRemoval:
    case verbs::CmEventType::kDisconnected:
      connected = false;
      return close("the connection to " + peer + " ended" + detail);
    case verbs::CmEventType::kAddrError:
    case verbs::CmEventType::kRouteError:
    case verbs::CmEventType::kConnectError:
    case verbs::CmEventType::kUnreachable:
    case verbs::CmEventType::kConnectRequest:
      return close("cannot connect to " + peer +
                   (detail.empty() ? std::string(": ") + cm_event_str(event.type) : detail));
  }
  if (!status.ok()) close("cannot connect to " + peer + ": " + status.error().message);
}

void Client::Impl::on_established(const verbs::CmEvent& event) {
  connected = true;
  if (state != State::kConnecting) return;
  state = State::kReady;
  const Thresholds thresholds = settle_thresholds(config.inline_threshold, event.param.private_data);
  if (reverse) reverse->start(thresholds, event.param.initiator_depth);
  requester->start(thresholds.send, thresholds.receive);
}

void Client::Impl::on_completion(const verbs::Wc& wc) {
  if (wc.status != verbs::WcStatus::kSuccess && connected && !last_words) last_words = now + kLastWords;
  const auto work = channel->on_completion(wc);
  if (!work) return;
  if (reverse) return reverse->on_work(*work, wc.byte_len);
  switch (work->kind) {
    case WorkKind::kReceive: requester->on_receive(work->slot, wc.byte_len); break;
    case WorkKind::kSend: requester->on_send_done(work->slot); break;
    case WorkKind::kRead:
    case WorkKind::kWrite: break;
  }
}

void Client::Impl::close(std::string why) {
  if (state == State::kClosed) return;
  state = State::kClosed;
  error = std::move(why);
  requester->on_closed(error);
  if (reverse) reverse->end();
  // An error on the way out has nobody to be told to: the connection is over either way.
  if (connected) (void)id->disconnect();
}

verbs::Result<std::unique_ptr<Client>> Client::connect(verbs::Device& device, const sockaddr_storage& dst,
                                                       const ClientConfig& config) {
  if (auto status = check(config, device.caps()); !status.ok()) return status.error();
  auto impl = std::make_unique<Impl>(device, config);
  impl->dst = dst;
  if (auto status = impl->open(); !status.ok()) {
    return verbs::Error{status.error().errno_value,
                        "cannot connect to " + address_str(dst) + ": " + status.error().message};
  }
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Client::~Client() {
  // Callbacks find a client that is closed but whole.
  impl_->close("the client is gone");
  impl_->requester->on_time(impl_->now);
}

Client::State Client::state() const {
  return impl_->state;
}
const std::string& Client::error() const {
  return impl_->error;
}

verbs::Result<CallHandle> Client::call(const CallSpec& spec, ReplyCallback done) {
  if (impl_->state == State::kClosed) return verbs::Error{ENOTCONN, impl_->error};
  return impl_->requester->call(spec, std::move(done));
}

bool Client::cancel(CallHandle handle) {
  return impl_->requester->cancel(handle);
}

void Client::reply(CallId id, ServedReply reply) {
  if (impl_->reverse) impl_->reverse->reply(id, std::move(reply));
}

std::size_t Client::num_outstanding() const {
  return impl_->requester->num_outstanding();
}

std::size_t Client::process(verbs::TimePoint now) {
  Impl& impl = *impl_;
  if (impl.in_process) return 0;
  impl.in_process = true;
  impl.now = now;
  if (!impl.connect_deadline) impl.connect_deadline = now + impl.config.connect_timeout;
  std::size_t moved = impl.device.process(now);
  // Each event behind the completions that came before it: Replies that arrived before the connection ended still
  // count. A device with threads of its own may add to both meanwhile.
  int completions = 0;
  std::optional<verbs::CmEvent> event;
  do {
    event = impl.cm_events->get_event();
    take_events(*impl.events);
    const int num = drain_completions(*impl.cq, [&impl](const verbs::Wc& wc) { impl.on_completion(wc); });
    if (num < 0) impl.close("the completion queue overflowed");
    completions += std::max(num, 0);
    if (!event) break;
    ++moved;
    impl.on_cm_event(*event);
  } while (true);
  if (impl.state == State::kConnecting && now >= *impl.connect_deadline) {
    impl.close("cannot connect to " + address_str(impl.dst) + ": no answer within " +
               std::to_string(impl.config.connect_timeout.count()) + " ms");
  }
  moved += impl.requester->on_time(now);
  if (impl.reverse) impl.reverse->on_time(now);
  const bool may_hear_more = impl.connected && impl.last_words && now < *impl.last_words;
  if (impl.state != State::kClosed && impl.channel->failure() && !may_hear_more) {
    impl.close("the connection to " + address_str(impl.dst) + " failed: " + *impl.channel->failure());
    moved += impl.requester->on_time(now);
  }
  // What the completions led to goes out now, not after one more turn of the caller's loop.
  if (completions > 0) moved += static_cast<std::size_t>(completions) + impl.device.process(now);
  impl.in_process = false;
  return moved;
}

std::optional<verbs::TimePoint> Client::next_timeout() const {
  std::optional<verbs::TimePoint> next = impl_->device.next_timeout();
  const auto consider = [&next](std::optional<verbs::TimePoint> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(impl_->requester->next_timeout());
  if (impl_->reverse) consider(impl_->reverse->next_timeout());
  if (impl_->state == State::kConnecting) consider(impl_->connect_deadline.value_or(impl_->now));
  if (impl_->state != State::kClosed) consider(impl_->last_words);
  return next;
}

int Client::fd() const {
  return impl_->device.fd();
}

void Client::disconnect() {
  Impl& impl = *impl_;
  if (impl.state == State::kClosed) return;
  impl.close("disconnected");
}

verbs::QpCounters Client::counters() const {
  return impl_->qp ? impl_->qp->counters() : verbs::QpCounters{};
}

}  // namespace weft::rpcrdma
