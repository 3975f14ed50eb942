#include "verbs-shim/soft/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include "mpa/startup_fault.h"
#include "rdmap/diagnosis.h"
#include "verbs-shim/soft/cm.h"
#include "verbs-shim/soft/connect_words.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/port_map.h"
#include "verbs-shim/soft/qp.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {
namespace {

// Octets framed for the first sendmsg.
constexpr std::size_t kFirstBudget = std::size_t{256} << 10;

mpa::RtrSet offered_rtr(Rtr choice, const mpa::PeerProfile& peer) {
  if (choice == Rtr::kAuto) return peer.rtr_offered;
  return {.send = choice == Rtr::kSend, .write = choice == Rtr::kWrite, .read = choice == Rtr::kRead};
}

// A client that said nothing has no Stream yet to say so.
std::string silence_words() {
  const mpa::StartupHint& hint = mpa::startup_hint(mpa::StartupFault::kSilent);
  return rdmap::one_line({.what = "sent no whole MPA Request in time",
                          .requirements = hint.requirement,
                          .cause = std::string(hint.responder_cause),
                          .advice = std::string(hint.responder_advice)});
}

constexpr std::uint8_t clamp_u8(std::uint16_t value) {
  return static_cast<std::uint8_t>(std::min<std::uint16_t>(value, 0xff));
}

}  // namespace

Connection::Connection(Loop& loop, Listener& listener, UniqueFd fd, const sockaddr_storage& peer)
    : Source(Kind::kConnection),
      loop_(loop),
      listener_(&listener),
      fd_(std::move(fd)),
      peer_(peer),
      phase_(Phase::kSilent),
      initiator_(false),
      revision_(loop.config().mpa_revision),
      budget_(kFirstBudget) {
  deadline_ = loop.now() + loop.config().request_timeout;  // MPA-7.1.2-19, MPA-7.1.2-23
}

Connection::Connection(Loop& loop, SoftCmId& id, SoftQp& qp, UniqueFd fd, const sockaddr_storage& peer,
                       const ConnParam& param)
    : Source(Kind::kConnection),
      loop_(loop),
      id_(&id),
      qp_(&qp),
      fd_(std::move(fd)),
      peer_(peer),
      phase_(Phase::kTcp),
      initiator_(true),
      revision_(loop.config().mpa_revision),
      budget_(kFirstBudget),
      param_(param) {
  deadline_ = loop.now() + loop.config().connect_timeout;
  qp.attach(*this, false);
}

Connection::~Connection() {
  loop_.timers().set(*this, std::nullopt);
}

bool Connection::ask(std::unique_ptr<PortMapAsk> asking) {
  if (!loop_.poller().add(asking->fd(), EPOLLIN, *this)) return false;
  asking_ = std::move(asking);
  phase_ = Phase::kMapping;
  deadline_.reset();
  const TimePoint now = loop_.now();
  asking_->begin(now);
  mapping_turn(now);
  return true;
}

std::size_t Connection::mapping_turn(TimePoint now) {
  if (!asking_->ended()) {
    loop_.timers().set(*this, asking_->next_timeout());
    return 1;
  }
  peer_ = asking_->target();
  asking_.reset();
  if (id_ != nullptr) id_->set_peer(peer_);
  phase_ = Phase::kTcp;
  deadline_ = now + loop_.config().connect_timeout;
  connect_tcp();
  return 1;
}

void Connection::connect_tcp() {
  // The socket API's own generic address.
  const auto* to = reinterpret_cast<const sockaddr*>(&peer_);
  if ((::connect(fd_.get(), to, address_len(peer_)) != 0 && errno != EINPROGRESS) || !watch()) connect_failed(errno);
}

bool Connection::watch() {
  interest_ = initiator_ ? std::uint32_t{EPOLLOUT} : std::uint32_t{EPOLLIN};
  watched_ = loop_.poller().add(fd_.get(), interest_, *this);
  if (watched_) loop_.timers().set(*this, deadline_);
  return watched_;
}

rdmap::StreamConfig Connection::stream_config() const {
  const SoftConfig& device = loop_.config();
  rdmap::StreamConfig config;
  config.mpa_revision = std::max<std::uint8_t>(revision_, 1);
  config.permissive = revision_ == 0;
  config.crc = device.crc;
  config.markers = device.markers;
  config.peer = loop_.peer();
  config.rtr_offered = offered_rtr(device.rtr, config.peer);
  config.keep_llp_after_reject = adopted_;
  config.ird = initiator_ ? std::min(param_.responder_resources, device.ird) : device.ird;
  config.ord = initiator_ ? std::min(param_.initiator_depth, device.ord) : device.ord;
  config.max_send_wr = device.max_qp_wr;  // the queue pair has its own, lower bound
  config.fpdu_limit = device.fpdu_limit;
  config.placement = device.direct_placement ? rdmap::Placement::kDirect : rdmap::Placement::kVerify;
  config.rfc7306 = device.rfc7306;
  config.request_timeout = device.request_timeout;
  config.reply_timeout = device.reply_timeout;
  config.close_timeout = device.close_timeout;
  config.nudge = device.nudge.value_or(config.peer.nudge);
  config.scope = {qp_ != nullptr ? qp_->pd() : 0, loop_.next_number()};
  return config;
}

void Connection::start_stream(TimePoint now) {
  stream_ = std::make_unique<rdmap::Stream>(stream_config(), loop_.regions());
  if (initiator_) {
    stream_->start_initiator(param_.private_data, *this, now);
  } else {
    stream_->start_responder(now);
  }
  emss_ = read_emss(fd_.get());
  attention_ = true;
  feed(std::exchange(received_, {}), now);
}

void Connection::begin_with(ConstBytes received, TimePoint now) {
  if (received.empty()) return;
  received_.assign(received.begin(), received.end());
  if (phase_ != Phase::kSilent) return;  // an initiator's turn comes with the socket's
  start_stream(now);
  settle(now);
}

void Connection::feed(ConstBytes octets, TimePoint now) {
  while (!octets.empty()) {
    mpa::Staging& staging = loop_.staging_for(*this);
    const auto buffers = stream_->rx_buffers(staging);
    if (buffers.empty()) return;
    const std::size_t n = std::min(octets.size(), buffers.front().size());
    std::copy_n(octets.begin(), n, buffers.front().begin());
    stream_->on_rx(staging, n, now);
    octets = octets.subspan(n);
  }
}

std::size_t Connection::on_tcp_connected(TimePoint now) {
  if (const int err = take_error(fd_.get()); err != 0) {
    connect_failed(err);
    return 1;
  }
  if (id_ != nullptr) id_->set_local(local_address(fd_.get()));
  phase_ = Phase::kStartup;
  deadline_.reset();
  start_stream(now);
  return 1 + settle(now);
}

void Connection::connect_failed(int errno_value) {
  if (id_ != nullptr) {
    id_->push(CmEventType::kUnreachable, errno_value, connect_error(peer_, errno_value).message, {});
  }
  drop("");
}

std::size_t Connection::on_ready(std::uint32_t epoll_events, TimePoint now) {
  if (phase_ == Phase::kMapping) {
    asking_->on_ready();
    return mapping_turn(now);
  }
  if (phase_ == Phase::kTcp) return on_tcp_connected(now);
  if (!stream_) start_stream(now);
  if ((epoll_events & EPOLLOUT) != 0) {
    set_tx_blocked(false);
    attention_ = true;
  }
  const bool wants_read = readable() && (epoll_events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
  const std::size_t moved = turn(wants_read, now);
  if (moved == 0 && !dead() && !read_more && (epoll_events & (EPOLLHUP | EPOLLERR)) != 0) hung_up(epoll_events, now);
  return moved;
}

void Connection::hung_up(std::uint32_t epoll_events, TimePoint now) {
  // epoll reports these two whether asked or not: a socket that is not read from any more must not keep waking us.
  if (watched_) loop_.poller().remove(fd_.get());
  watched_ = false;
  interest_ = 0;
  if (rx_done_ && (epoll_events & EPOLLERR) == 0) return;
  const int err = take_error(fd_.get());
  rx_done_ = true;
  stream_->on_llp_error(err != 0 ? err : ECONNRESET, now);
  settle(now);
}

std::size_t Connection::on_timer(TimePoint now) {
  if (phase_ == Phase::kMapping) {
    asking_->on_timeout(now);
    return mapping_turn(now);
  }
  const bool own = deadline_ && *deadline_ <= now;
  if (own) {
    deadline_.reset();
    switch (phase_) {
      case Phase::kTcp: connect_failed(ETIMEDOUT); return 1;
      case Phase::kSilent: drop(silence_words()); return 1;
      case Phase::kEnding: finish(true); return 1;
      default: break;
    }
  }
  if (stream_) {
    const auto due = stream_->next_timeout();
    if (due && *due <= now) {
      timing_out_ = true;
      stream_->on_timeout(now);
      attention_ = true;
    }
  }
  const std::uint64_t nudges = stream_ ? stream_->counters().nudges_tx : 0;
  const std::size_t moved = turn(false, now);
  if (stream_ && stream_->counters().nudges_tx != nudges) log_nudge();
  timing_out_ = false;
  if (!dead()) rearm();
  return moved;
}

std::size_t Connection::turn(bool read, TimePoint now) {
  if (!stream_ || dead()) return 0;
  const std::size_t moved = read && readable() && !waits_for_receives() ? read_turn(now) : 0;
  if (moved == 0 && !attention_) return 0;
  return moved + settle(now);
}

// Then the next process() asks again: until then their user can post some.
bool Connection::waits_for_receives() {
  if (qp_ == nullptr || !qp_->lacks_receives()) return false;
  read_more = true;
  loop_.make_ready(*this);
  return true;
}

std::size_t Connection::settle(TimePoint now) {
  attention_ = false;
  std::size_t moved = drain_events();
  if (!dead() && !falling_back_) moved += write_turn(now);
  moved += drain_events();
  if (falling_back_) return moved + fall_back(now);
  if (!dead()) carry_out_llp_action(now);
  if (!dead()) rearm();
  return moved;
}

std::size_t Connection::drain_events() {
  std::size_t num = 0;
  while (!dead()) {
    auto event = stream_->poll_event();
    if (!event) break;
    std::visit([this](auto& what) { on_event(what); }, *event);
    ++num;
  }
  // Behind what the Stream flushes: nothing posted from here on is carried out, however long the peer takes to close.
  if (!dead() && stream_->failed()) on_failure(*stream_->failure());
  return num;
}

void Connection::carry_out_llp_action(TimePoint now) {
  while (!dead()) {
    const rdmap::LlpAction action = stream_->llp_action();
    if (action == rdmap::LlpAction::kNone) return;
    if (action == rdmap::LlpAction::kReset) return finish(true);
    if (stream_->wants_tx()) return;
    if (action == rdmap::LlpAction::kClose) return finish(false);
    ::shutdown(fd_.get(), SHUT_WR);
    stream_->on_llp_action_done(action);
    drain_events();
    if (!dead()) write_turn(now);
  }
}

void Connection::rearm() {
  if (rx_paused_ && !rx_done_) rx_paused_ = stream_->rx_buffers(loop_.staging_for(*this)).empty();
  const auto due = stream_ ? stream_->next_timeout() : std::nullopt;
  loop_.timers().set(*this, due && deadline_ ? std::min(*due, *deadline_) : (due ? due : deadline_));
  if (!watched_ && !tx_blocked_) return;
  std::uint32_t wanted = 0;
  if (!rx_done_ && !rx_paused_) wanted |= EPOLLIN;
  if (tx_blocked_) wanted |= EPOLLOUT;
  if (wanted == interest_ && watched_) return;
  interest_ = wanted;
  watched_ = watched_ ? loop_.poller().modify(fd_.get(), wanted, *this) : loop_.poller().add(fd_.get(), wanted, *this);
}

void Connection::set_tx_blocked(bool blocked) {
  if (blocked == tx_blocked_) return;
  tx_blocked_ = blocked;
  loop_.tx_blocked(blocked);
}

// ---- events of the Stream

void Connection::on_event(const rdmap::Completion& completion) {
  if (completion.status != rdmap::WorkStatus::kSuccess) ending_ = true;
  if (qp_ != nullptr) qp_->on_completion(completion);
}

void Connection::on_event(rdmap::ConnectionRequest& request) {
  if (listener_ == nullptr) return abort();
  request_ = std::move(request);
  phase_ = Phase::kRequest;
  deadline_.reset();
  listener_->on_request(*this);
}

void Connection::on_event(rdmap::Established& established) {
  established_ = true;
  if (phase_ == Phase::kStartup) phase_ = Phase::kOpen;
  loop_.opened(*this);
  if (qp_ != nullptr) qp_->established(clamp_u8(established.ird), clamp_u8(established.ord));
  if (id_ == nullptr) return;
  ConnParam param{std::move(established.private_data), clamp_u8(established.ird), clamp_u8(established.ord)};
  id_->push(CmEventType::kEstablished, 0, "", std::move(param));
}

void Connection::on_event(rdmap::Rejected& rejected) {
  rejected_ = true;
  ending_ = true;
  received_ = std::move(rejected.surplus);
  if (id_ == nullptr) return;
  id_->push(CmEventType::kRejected, ECONNREFUSED, std::move(rejected.text), {std::move(rejected.private_data), 0, 0});
}

// MPA2-10-05. Once: afterwards revision_ is 1. The private data fitted revision 2, so it fits revision 1.
bool Connection::may_fall_back(const rdmap::Closed& closed) const {
  return closed.try_revision_1 && revision_ > 1 && initiator_ && !adopted_ && !timing_out_ && id_ != nullptr &&
         qp_ != nullptr && loop_.config().fall_back && loop_.peer().fall_back;
}

std::size_t Connection::fall_back(TimePoint now) {
  falling_back_ = false;
  revision_ = 1;
  stream_.reset();
  sockaddr_storage local = local_address(fd_.get());
  set_port(local, 0);
  if (watched_) loop_.poller().remove(fd_.get());
  watched_ = false;
  set_tx_blocked(false);
  rx_done_ = rx_paused_ = read_more = false;
  phase_ = Phase::kTcp;
  deadline_ = now + loop_.config().connect_timeout;

  auto fd = open_socket(peer_.ss_family, loop_.config());
  if (!fd) {
    connect_failed(fd.error().errno_value);
    return 1;
  }
  fd_ = std::move(*fd);
  // The socket API's own generic address.
  if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&local), address_len(local)) != 0) {
    connect_failed(errno);
  } else {
    connect_tcp();
  }
  return 1;
}

// An error or a Terminate of either side has ended it. The owners hear of it now: Closed waits for the peer's FIN,
// which a peer may keep back until close_timeout. The rest of the end goes on without them (id_gone, qp_gone).
void Connection::on_failure(const rdmap::Closed& why) {
  if (qp_ != nullptr) qp_->stream_failed(why);
  if (std::exchange(told_, true)) return;
  ending_ = true;
  log_end(why, initiator_ && id_ != nullptr);
  if (id_ != nullptr) push_end(*id_, why);
}

void Connection::push_end(SoftCmId& id, const rdmap::Closed& why) const {
  if (unplugged_) return;  // it is told by the device itself
  const bool in_order = why.reason == rdmap::CloseReason::kGraceful || why.reason == rdmap::CloseReason::kLocal;
  const int err = timing_out_ ? ETIMEDOUT : (why.reason == rdmap::CloseReason::kLlp ? ECONNRESET : EPROTO);
  if (established_) {
    std::optional<CmEvent::RefusedWrite> refused;
    if (why.refused_write) refused = {why.refused_write->stag.value, why.refused_write->to};
    return id.push(CmEventType::kDisconnected, in_order ? 0 : err, why.text, {}, refused);
  }
  if (rejected_) return;
  // That revision 2 had been tried before is known here alone.
  const bool fell_back = initiator_ && revision_ < loop_.config().mpa_revision;
  id.push(timing_out_ && initiator_ ? CmEventType::kUnreachable : CmEventType::kConnectError, err,
          (fell_back ? "asked with MPA revision 2, then with 1: " : "") + why.text, {});
}

void Connection::on_event(const rdmap::Closed& closed) {
  if (may_fall_back(closed)) {
    falling_back_ = true;
    return log_fall_back(closed);
  }
  closed_ = true;
  ending_ = true;
  const bool told = std::exchange(told_, true);
  if (!told) log_end(closed, initiator_ && id_ != nullptr);
  loop_.remove_silent(*this);
  const bool was_request = phase_ == Phase::kRequest;
  phase_ = Phase::kEnding;
  if (was_request && listener_ != nullptr) listener_->answered(*this);
  if (qp_ != nullptr) {
    qp_->closed(closed);
    std::exchange(qp_, nullptr)->detach(stream_->counters());
  }
  if (id_ != nullptr) {
    SoftCmId& id = *std::exchange(id_, nullptr);
    id.detach();
    if (was_request && id.forget_request()) return orphaned();
    if (rejected_ && adopted_) {
      if (watched_) loop_.poller().remove(fd_.get());
      watched_ = false;
      id.keep_socket(std::move(fd_), std::exchange(received_, {}));
    }
    if (!told) push_end(id, closed);
  }
  if (!fd_) return finish(false);  // MPA left it; it is its owner's
  orphaned();
}

// ---- commands

rdmap::PostResult Connection::post_send(const rdmap::SendWr& request) {
  const rdmap::PostResult result = stream_->post_send(request);
  if (result == rdmap::PostResult::kOk) {
    attention_ = true;
    if (!tx_blocked_) loop_.make_ready(*this);
  }
  return result;
}

void Connection::accept(SoftQp& qp, const ConnParam& param) {
  qp_ = &qp;
  phase_ = Phase::kStartup;
  qp.attach(*this, true);
  if (listener_ != nullptr) listener_->answered(*this);
  listener_ = nullptr;
  request_.reset();
  const SoftConfig& config = loop_.config();
  stream_->accept(param.private_data, *this, std::min(param.responder_resources, config.ird),
                  std::min(param.initiator_depth, config.ord), qp.pd(), loop_.now());
  attention_ = true;
  loop_.make_ready(*this);
}

void Connection::reject(ConstBytes private_data) {
  if (listener_ != nullptr) listener_->answered(*this);
  listener_ = nullptr;
  phase_ = Phase::kEnding;
  ending_ = true;
  rejected_ = true;
  stream_->reject(private_data, loop_.now());
  attention_ = true;
  loop_.make_ready(*this);
}

std::optional<rdmap::PostedRecv> Connection::take() {
  return qp_ != nullptr ? qp_->take_recv() : std::nullopt;
}

}  // namespace weft::verbs::soft
