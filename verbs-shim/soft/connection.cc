#include "verbs-shim/soft/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <type_traits>
#include <utility>

#include "base/address.h"
#include "mpa/startup_fault.h"
#include "rdmap/diagnosis.h"
#include "verbs-shim/api/log_line.h"
#include "verbs-shim/soft/connect_words.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {
namespace {

mpa::RtrSet offered_rtr(Rtr choice, const mpa::PeerProfile& peer) {
  if (choice == Rtr::kAuto) return peer.rtr_offered;
  return {.send = choice == Rtr::kSend, .write = choice == Rtr::kWrite, .read = choice == Rtr::kRead};
}

// Where the initiator offers no Write, Linux's NFS/RDMA server over siw agrees to an indication that it cannot take,
// and whatever comes next stops its kernel (docs/linux-siw-rtr.md).
bool is_dangerous_offer(const mpa::RtrSet& offered) {
  return offered.any() && !offered.write;
}
std::string offer_words(const SoftConfig& config) {
  if (config.rtr == Rtr::kAuto) return "SoftConfig::peer " + config.peer;
  return std::string("SoftConfig::rtr ") + (config.rtr == Rtr::kSend ? "send" : "read");
}

// A silent client has no Stream yet, so this text comes from here.
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

Connection::Connection(LoopServices& loop, Handle self, Backlog& backlog, Fd fd, bool adopted,
                       const sockaddr_storage& peer)
    : Source(Kind::kConnection),
      loop_(loop),
      self_(self),
      backlog_(&backlog),
      peer_(peer),
      socket_(std::move(fd), adopted, loop.poller(), *this),
      state_(Silent{loop.now() + loop.config().request_timeout}) {}  // MPA-7.1.2-19, MPA-7.1.2-23

Connection::Connection(LoopServices& loop, Handle self, IdShare& id, WorkQueues& queues, Fd fd, bool adopted,
                       const ConnParam& param)
    : Source(Kind::kConnection),
      loop_(loop),
      self_(self),
      id_(&id),
      queues_(&queues),
      peer_(id.peer),
      initiator_(Initiator{param, loop.config().mpa_revision}),
      socket_(std::move(fd), adopted, loop.poller(), *this),
      state_(Connecting{loop.now() + loop.config().connect_timeout, {}}) {
  id.connection = self;
  queues.attach(self, false);
}

Connection::~Connection() {
  loop_.set_timer(*this, std::nullopt);
}

rdmap::ConnectionRequest* Connection::request() {
  auto* requested = std::get_if<Requested>(&state_);
  return requested != nullptr ? &requested->request : nullptr;
}

std::optional<TimePoint> Connection::deadline() const {
  if (const auto* connecting = std::get_if<Connecting>(&state_)) return connecting->deadline;
  if (const auto* silent = std::get_if<Silent>(&state_)) return silent->deadline;
  if (const auto* lingering = std::get_if<Lingering>(&state_)) return lingering->deadline;
  return std::nullopt;
}

// ---- before MPA

bool Connection::ask(std::unique_ptr<PortMapAsk> asking) {
  if (!loop_.poller().add(asking->fd(), EPOLLIN, *this)) return false;
  const TimePoint now = loop_.now();
  asking->begin(now);
  state_ = Mapping{std::move(asking)};
  mapping_turn(now);
  return true;
}

std::size_t Connection::mapping_turn(TimePoint now) {
  const PortMapAsk& asking = *std::get<Mapping>(state_).asking;
  if (!asking.ended()) {
    loop_.set_timer(*this, asking.next_timeout());
    return 1;
  }
  peer_ = asking.target();
  if (id_ != nullptr) id_->peer = peer_;
  state_ = Connecting{now + loop_.config().connect_timeout, {}};
  connect_tcp();
  return 1;
}

void Connection::connect_tcp() {
  if ((::connect(socket_.fd(), as_sockaddr(peer_), address_len(peer_)) != 0 && errno != EINPROGRESS) || !watch()) {
    connect_failed(errno);
  }
}

bool Connection::watch() {
  if (!socket_.watch(initiator_ ? EPOLLOUT : EPOLLIN)) return false;
  loop_.set_timer(*this, deadline());
  return true;
}

std::size_t Connection::on_tcp_connected(TimePoint now) {
  if (const int err = take_error(socket_.fd()); err != 0) {
    connect_failed(err);
    return 1;
  }
  if (id_ != nullptr) id_->local = local_address(socket_.fd());
  const std::vector<std::uint8_t> received = std::move(std::get<Connecting>(state_).received);
  state_ = Running{};
  start_stream(received, now);
  return 1 + settle(now);
}

void Connection::connect_failed(int errno_value) {
  if (id_ != nullptr) id_->push(CmEventType::kUnreachable, errno_value, connect_error(peer_, errno_value).message);
  drop("");
}

// ---- the Stream begins

rdmap::StreamConfig Connection::stream_config() const {
  const SoftConfig& device = loop_.config();
  const std::uint8_t revision = initiator_ ? initiator_->revision : device.mpa_revision;
  rdmap::StreamConfig config;
  config.mpa_revision = std::max<std::uint8_t>(revision, 1);
  config.permissive = revision == 0;
  config.crc = device.crc;
  config.markers = device.markers;
  config.peer = loop_.core().peer();
  config.rtr_offered = offered_rtr(device.rtr, config.peer);
  config.keep_llp_after_reject = socket_.adopted();
  config.ird = initiator_ ? std::min(initiator_->param.responder_resources, device.ird) : device.ird;
  config.ord = initiator_ ? std::min(initiator_->param.initiator_depth, device.ord) : device.ord;
  config.max_send_wr = device.max_qp_wr;  // the queue pair has its own, lower bound
  config.fpdu_limit = device.fpdu_limit;
  config.placement = device.direct_placement ? rdmap::Placement::kDirect : rdmap::Placement::kVerify;
  config.rfc7306 = device.rfc7306;
  config.request_timeout = device.request_timeout;
  config.reply_timeout = device.reply_timeout;
  config.close_timeout = device.close_timeout;
  config.nudge = device.nudge.value_or(config.peer.nudge);
  config.scope = {queues_ != nullptr ? queues_->pd() : 0, loop_.core().next_number()};
  return config;
}

void Connection::warn_of_offer() const {
  if (!loop_.log().wants(LogLevel::kWarn) || !loop_.log_budget().take(loop_.now())) return;
  log_line(
      loop_.log(), LogLevel::kWarn,
      "connection to {}: {} offers no RDMA Write as ready-to-receive message. If the peer is Linux's NFS/RDMA server "
      "over siw, its kernel stops with a BUG in iwcm.c. SoftConfig::rtr write is safe, and so is none",
      address_str(peer_), offer_words(loop_.config()));
}

void Connection::start_stream(ConstBytes received, TimePoint now) {
  rdmap::StreamConfig config = stream_config();
  config.peer_address = &peer_;
  if (loop_.core().trace() != nullptr) {
    trace_ =
        std::make_unique<StreamTrace>(loop_.core().trace(), local_address(socket_.fd()), peer_, initiator_.has_value());
    config.observer = trace_.get();
  }
  stream_ = std::make_unique<rdmap::Stream>(config, loop_.core().regions(), &loop_.tx_room());
  if (initiator_) {
    if (initiator_->revision >= mpa::kEnhancedRevision && is_dangerous_offer(config.rtr_offered)) warn_of_offer();
    stream_->start_initiator(initiator_->param.private_data, *this, now);
  } else {
    stream_->start_responder(now);
  }
  socket_.start();
  attention_ = true;
  feed(received, now);
}

void Connection::begin_with(ConstBytes received, TimePoint now) {
  if (received.empty()) return;
  if (auto* connecting = std::get_if<Connecting>(&state_)) {  // an initiator takes them when TCP is connected
    connecting->received.assign(received.begin(), received.end());
    return;
  }
  start_stream(received, now);
  settle(now);
}

void Connection::feed(ConstBytes octets, TimePoint now) {
  while (!octets.empty()) {
    mpa::Staging& staging = loop_.staging().lend(self_, *stream_);
    const auto buffers = stream_->rx_buffers(staging);
    if (buffers.empty()) return;
    const std::size_t n = std::min(octets.size(), buffers.front().size());
    std::copy_n(octets.begin(), n, buffers.front().begin());
    stream_->on_rx(staging, n, now);
    octets = octets.subspan(n);
  }
}

// MPA2-10-05. Once: afterwards the revision is 1. The private data fitted revision 2, so it fits revision 1.
bool Connection::may_fall_back(const rdmap::Closed& closed, bool timed_out) const {
  return closed.try_revision_1 && initiator_ && initiator_->revision > 1 && !socket_.adopted() && !timed_out &&
         id_ != nullptr && queues_ != nullptr && loop_.config().fall_back && loop_.core().peer().fall_back;
}

std::size_t Connection::fall_back(TimePoint now) {
  initiator_->revision = 1;
  loop_.staging().forget(self_);
  stream_.reset();
  sockaddr_storage local = local_address(socket_.fd());
  set_port(local, 0);
  state_ = Connecting{now + loop_.config().connect_timeout, {}};
  socket_.unwatch();
  auto fd = open_socket(peer_.ss_family, loop_.config());
  if (!fd) {
    connect_failed(fd.error().errno_value);
    return 1;
  }
  socket_.replace(std::move(*fd));
  if (::bind(socket_.fd(), as_sockaddr(local), address_len(local)) != 0) {
    connect_failed(errno);
  } else {
    connect_tcp();
  }
  return 1;
}

// ---- turns

std::size_t Connection::on_ready(std::uint32_t epoll_events, TimePoint now) {
  if (auto* mapping = std::get_if<Mapping>(&state_)) {
    mapping->asking->on_ready();
    return mapping_turn(now);
  }
  if (is<Connecting>()) return on_tcp_connected(now);
  if (!stream_) start_stream({}, now);
  if ((epoll_events & EPOLLOUT) != 0) {
    socket_.set_blocked(false);
    attention_ = true;
  }
  const bool wants_read = (epoll_events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
  const std::size_t moved = turn(wants_read, now);
  if (moved == 0 && !dead() && !socket_.more_to_read() && (epoll_events & (EPOLLHUP | EPOLLERR)) != 0) {
    hung_up(epoll_events, now);
  }
  return moved;
}

void Connection::put_off(std::uint32_t epoll_events) {
  if ((epoll_events & EPOLLOUT) != 0) {
    socket_.set_blocked(false);
    attention_ = true;
  }
  if (epoll_events != EPOLLOUT && socket_.readable()) socket_.put_off_reading();
  loop_.ready(self_);
}

void Connection::hung_up(std::uint32_t epoll_events, TimePoint now) {
  // epoll always reports EPOLLERR and EPOLLHUP. A socket that is no longer read must not keep waking the loop.
  socket_.unwatch();
  if (!socket_.readable() && (epoll_events & EPOLLERR) == 0) return;
  const int err = take_error(socket_.fd());
  socket_.end_reading();
  stream_->on_llp_error(err != 0 ? err : ECONNRESET, now);
  settle(now);
}

std::size_t Connection::on_timer(TimePoint now) {
  if (auto* mapping = std::get_if<Mapping>(&state_)) {
    mapping->asking->on_timeout(now);
    return mapping_turn(now);
  }
  if (deadline() && *deadline() <= now) {
    if (is<Connecting>()) {
      connect_failed(ETIMEDOUT);
    } else if (is<Silent>()) {
      drop(silence_words());
    } else {
      finish(true);
    }
    return 1;
  }
  if (!stream_) return 0;
  std::size_t moved = 0;
  if (const auto due = stream_->next_timeout(); due && *due <= now) {
    stream_->on_timeout(now);
    attention_ = true;
    moved += drain_events(true);
  }
  moved += turn(false, now);
  if (!dead()) rearm();
  return moved;
}

std::size_t Connection::turn(bool read_too, TimePoint now) {
  if (!stream_ || dead()) return 0;
  std::size_t moved = 0;
  if (read_too && socket_.readable() && !waits_for_receives()) {
    // A sender's turn writes half as much. So the reader mostly empties the socket, and no part of an FPDU stays
    // behind.
    const std::size_t most = RoundShares::octets_to_read(2 * loop_.turn_octets(), octets_of_fpdu_);
    const std::uint64_t before = stream_->counters().fpdus_rx;
    moved = socket_.read(*stream_, loop_.staging().lend(self_, *stream_), loop_.iov(), most, now);
    count_fpdus(moved, stream_->counters().fpdus_rx - before);
    if (socket_.more_to_read()) loop_.ready(self_);
  }
  if (moved == 0 && !attention_) return 0;
  return moved + settle(now);
}

// The next turn expects FPDUs of the length of these. After short ones the expectation grows slowly. Otherwise a peer
// could have a turn for long FPDUs every second time, and send short ones in it.
void Connection::count_fpdus(std::size_t octets, std::uint64_t num) {
  constexpr std::size_t kMostExpected = std::size_t{1} << 20;
  loop_.count_fpdus(num);
  if (octets == 0) return;
  const std::size_t each = std::max<std::size_t>(octets / std::max<std::uint64_t>(num, 1), 1);
  octets_of_fpdu_ = std::min({each, 2 * octets_of_fpdu_, kMostExpected});
}

// If it waits, the next process() asks again: the user can post receives until then.
bool Connection::waits_for_receives() {
  if (queues_ == nullptr || !queues_->lacks_receives()) return false;
  socket_.put_off_reading();
  loop_.ready(self_);
  return true;
}

std::size_t Connection::write(TimePoint now) {
  const StreamSocket::Written written = socket_.write(*stream_, loop_.iov(), loop_.turn_octets(), now);
  goes_on_ = written.cut_short || socket_.blocked() || socket_.more_to_read();
  if (written.cut_short) {
    attention_ = true;
    loop_.ready(self_);
  }
  return written.moved;
}

std::size_t Connection::settle(TimePoint now) {
  attention_ = false;
  loop_.moves(self_, rest_mark_);
  std::size_t moved = drain_events();
  if (!dead() && !is<FallingBack>()) moved += write(now);
  moved += drain_events();
  if (is<FallingBack>()) return moved + fall_back(now);
  if (!dead()) carry_out_llp_action(now);
  if (!dead()) rearm();
  if (trace_) trace_->end_turn();
  return moved;
}

std::size_t Connection::drain_events(bool timed_out) {
  std::size_t num = 0;
  while (!dead()) {
    auto event = stream_->poll_event();
    if (!event) break;
    std::visit(
        [&](auto& happened) {
          if constexpr (std::is_same_v<decltype(happened), rdmap::Closed&>) {
            on_closed(happened, timed_out);
          } else {
            on_event(happened);
          }
        },
        *event);
    ++num;
  }
  // After the Stream's own flushes. No request that is posted from here on is carried out, however long the peer takes
  // to close.
  if (!dead() && stream_->failed()) on_failure(*stream_->failure(), timed_out);
  return num;
}

void Connection::carry_out_llp_action(TimePoint now) {
  while (!dead()) {
    const rdmap::LlpAction action = stream_->llp_action();
    if (action == rdmap::LlpAction::kNone) return;
    if (action == rdmap::LlpAction::kReset) return finish(true);
    if (stream_->wants_tx()) return;
    if (action == rdmap::LlpAction::kClose) return finish(false);
    ::shutdown(socket_.fd(), SHUT_WR);
    stream_->on_llp_action_done(action);
    drain_events();
    if (!dead()) write(now);
  }
}

void Connection::rearm() {
  loop_.set_timer(
      *this, earliest(stream_ ? stream_->next_timeout() : std::nullopt, is<Running>() ? std::nullopt : deadline()));
  socket_.rearm();
}

void Connection::attend() {
  if (queues_ == nullptr) return;
  WorkQueues& queues = *queues_;
  if (queues.take_overflow()) abort();
  // After an overflow the posted sends are flushed.
  queues.hand_over([this](const rdmap::SendWr& request) { return post_send(request); });
}

// ---- events of the Stream

void Connection::on_event(const rdmap::Completion& completion) {
  if (completion.status != rdmap::WorkStatus::kSuccess) advance(End::kUnderWay);
  if (queues_ != nullptr) queues_->on_completion(completion);
}

void Connection::on_event(rdmap::ConnectionRequest& request) {
  if (backlog_ == nullptr) return abort();
  state_ = Requested{std::move(request)};
  backlog_->arrived(self_);
}

void Connection::on_event(rdmap::Established& established) {
  startup_ = Established{};
  loop_.opened(self_);
  if (queues_ != nullptr) queues_->established(clamp_u8(established.ird), clamp_u8(established.ord));
  if (id_ == nullptr) return;
  ConnParam param{std::move(established.private_data), clamp_u8(established.ird), clamp_u8(established.ord)};
  id_->push(CmEventType::kEstablished, 0, "", std::move(param));
}

void Connection::on_event(rdmap::Rejected& rejected) {
  startup_ = Rejected{std::move(rejected.surplus)};
  advance(End::kUnderWay);
  if (id_ == nullptr) return;
  id_->push(CmEventType::kRejected, ECONNREFUSED, std::move(rejected.text), {std::move(rejected.private_data), 0, 0});
}

void Connection::on_event(rdmap::Nudged& /*nudged*/) {
  log_step(
      "no word since it was accepted; an RDMA Write of zero bytes wakes it, because Linux siw can sleep through input "
      "that comes while it accepts (SoftConfig::nudge)");
}

void Connection::on_closed(const rdmap::Closed& closed, bool timed_out) {
  if (may_fall_back(closed, timed_out)) {
    state_ = FallingBack{};
    return log_step(closed.text + "; asking again with MPA revision 1");
  }
  const bool was_told = told();
  if (!was_told) tell_end(closed, heard_by_id());
  advance(End::kClosed);
  loop_.holdings().remove_silent(self_);
  const bool was_request = is<Requested>();
  if (!is<Lingering>()) state_ = Running{};
  if (was_request) answered();
  if (queues_ != nullptr) queues_->report(closed);
  detach_queues();
  if (id_ != nullptr) {
    IdShare& id = *std::exchange(id_, nullptr);
    id.connection = {};
    // If the program has not taken the connect request yet, the request and the id go with the connection. Otherwise a
    // peer could leave one behind with every connection that it makes and breaks (SEC-2.2.7-01).
    if (was_request && id.queue->forget_request(id.id)) return orphaned();
    if (auto* rejected = std::get_if<Rejected>(&startup_); rejected != nullptr && socket_.adopted()) {
      id.kept = socket_.release();
      id.kept_received = std::move(rejected->surplus);
    }
    if (!was_told) push_end(id, closed, timed_out);
  }
  if (!socket_.open()) return finish(false);  // MPA has left the socket to its owner
  orphaned();
}

// An error or a Terminate of either side has ended the connection. The users hear of it now: Closed waits for the
// peer's FIN, and a peer may hold back its FIN until close_timeout. The rest of the end goes on without the users.
void Connection::on_failure(const rdmap::Closed& why, bool timed_out) {
  if (queues_ != nullptr) queues_->stream_failed(why);
  if (told()) return;
  tell_end(why, heard_by_id());
  advance(End::kTold);
  if (id_ != nullptr) push_end(*id_, why, timed_out);
}

void Connection::push_end(IdShare& id, const rdmap::Closed& why, bool timed_out) const {
  const bool in_order = why.reason == rdmap::CloseReason::kGraceful || why.reason == rdmap::CloseReason::kLocal;
  // Octets that can begin no FPDU break the protocol, although it takes a time limit to see that no others follow.
  const bool is_late = timed_out && why.reason != rdmap::CloseReason::kTerminateSent;
  const int err = is_late ? ETIMEDOUT : (why.reason == rdmap::CloseReason::kLlp ? ECONNRESET : EPROTO);
  if (established()) {
    std::optional<CmEvent::RefusedWrite> refused;
    if (why.refused_write) refused = {why.refused_write->stag.value, why.refused_write->to};
    return id.push(CmEventType::kDisconnected, in_order ? 0 : err, why.text, {}, refused);
  }
  if (std::holds_alternative<Rejected>(startup_)) return;
  // Only the connection knows that revision 2 was tried before.
  const bool fell_back = initiator_ && initiator_->revision < loop_.config().mpa_revision;
  id.push(timed_out && initiator_ ? CmEventType::kUnreachable : CmEventType::kConnectError, err,
          (fell_back ? "asked with MPA revision 2, then with 1: " : "") + why.text);
}

void Connection::trim() {
  if (stream_) stream_->trim();
  if (queues_ != nullptr) queues_->trim();
}

std::optional<rdmap::PostedRecv> Connection::take() {
  return queues_ != nullptr ? queues_->take_recv() : std::nullopt;
}

}  // namespace weft::verbs::soft
