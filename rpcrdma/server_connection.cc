#include "rpcrdma/server_connection.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/address.h"
#include "base/peer_group.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/server_limits.h"

namespace weft::rpcrdma {

namespace {

constexpr std::chrono::seconds kCloseTimeout{5};

// Whether the server's own R is set. The handles of its own chunks must stay valid.
bool may_invalidate(const ServerConfig& config, const verbs::Caps& caps) {
  const bool has_own_chunks = config.reverse_credits != 0 && config.reverse_chunks;
  return config.remote_invalidation && can_invalidate(caps) && !has_own_chunks;
}

EndReason reason_of(const verbs::CmEvent& event) {
  switch (event.status) {
    case 0: return EndReason::kClient;
    case EPROTO: return EndReason::kProtocol;
    case ETIMEDOUT: return EndReason::kTimeout;
    default: return EndReason::kLost;
  }
}

}  // namespace

verbs::Result<std::unique_ptr<ServerConnection>> ServerConnection::accept(const Shared& shared,
                                                                          CompletionQueues::Share completions,
                                                                          std::unique_ptr<verbs::CmId> id,
                                                                          const verbs::ConnParam& peer,
                                                                          std::uint32_t serial, TimePoint now) {
  std::unique_ptr<ServerConnection> connection(
      new ServerConnection(shared, std::move(completions), std::move(id), now));
  if (auto status = connection->start(peer, serial); !status.ok()) {
    if (connection->link_) connection->link_->end(status.error().message);
    return status.error();
  }
  return connection;
}

ServerConnection::ServerConnection(const Shared& shared, CompletionQueues::Share completions,
                                   std::unique_ptr<verbs::CmId> id, TimePoint now)
    : shared_(shared),
      peer_(address_str(id->peer_addr())),
      group_(peer_group(id->peer_addr())),
      used_at_(now),
      completions_(std::move(completions)),
      receives_(shared.messages.receives),
      id_(std::move(id)) {}

ServerConnection::~ServerConnection() {
  // The queue pair goes first: then no request names memory that the responder gives back.
  if (endpoint_) endpoint_->detach();
  qp_.reset();
  reverse_.reset();
  responder_.reset();
}

verbs::Status ServerConnection::start(const verbs::ConnParam& peer, std::uint32_t serial) {
  const ServerConfig& config = shared_.config;
  const verbs::Caps& caps = shared_.device.caps();
  auto endpoint = Endpoint::create(shared_.pd, shared_.messages.next(serial, group_));
  if (!endpoint.ok()) return endpoint.error();
  id_->context = serial;
  endpoint_ = std::move(*endpoint);
  link_.emplace(
      *endpoint_, profiles_of(config.protocols), Link::End::kServer, [this] { start_engines(); },
      config.literal_credits);
  if (config.observer != nullptr) link_->observe(*config.observer, {.id = serial, .peer = peer_});
  auto qp =
      id_->create_qp(shared_.pd, endpoint_->qp_attr(completions_.cq(), receives_ ? receives_->cq.get() : nullptr));
  if (!qp.ok()) return qp.error();
  qp_ = std::move(*qp);
  if (auto status = endpoint_->attach(*qp_); !status.ok()) return status;

  verbs::ConnParam param;
  param.private_data = own_private_data(caps, config.inline_threshold, may_invalidate(config, caps));
  param.responder_resources = std::min(config.ird, peer.responder_resources);
  param.initiator_depth = static_cast<std::uint8_t>(
      std::min<std::uint32_t>(std::min(config.ord, peer.initiator_depth), caps.max_qp_init_rd_atom));
  make_engines(peer, param.initiator_depth);
  return id_->accept(param);
}

void ServerConnection::make_engines(const verbs::ConnParam& peer, std::uint32_t ord) {
  const ServerConfig& config = shared_.config;
  responder_ = std::make_unique<Responder>(shared_.pd, *link_, shared_.pool, shared_.budget, shared_.programs,
                                           responder_config(peer.private_data));
  responder_->observe(shared_.observer);
  peer_private_data_ = peer.private_data;
  ord_ = ord;
  if (config.reverse_credits != 0) make_reverse();
  start_engines();
}

void ServerConnection::make_reverse() {
  const ServerConfig& config = shared_.config;
  const ReverseRequester::Config calls{config.reverse_credits, config.reverse_chunks, config.reverse_timeout, peer_,
                                       &shared_.log};
  reverse_ = std::make_unique<ReverseRequester>(shared_.pd, *link_, calls);
}

// Again when the first message decides the profile. Until then the responder answers faulty messages alone.
void ServerConnection::start_engines() {
  const Thresholds thresholds =
      settle_thresholds(shared_.config.inline_threshold, peer_private_data_, link_->profile());
  responder_->start(thresholds.send, ord_);
  if (!link_->is_decided()) return;
  if (reverse_) reverse_->start(thresholds);
  if (!shared_.config.properties) return;
  link_->exchange_properties(own_properties(), [this] {
    if (reverse_) reverse_->settle(link_->terms());
  });
}

Properties ServerConnection::own_properties() const {
  const ServerConfig& config = shared_.config;
  const auto size = static_cast<std::uint32_t>(config.inline_threshold);
  Properties own{.send_size = size, .receive_size = size};
  own.segment_size = static_cast<std::uint32_t>(
      std::clamp<std::size_t>(config.max_item, own.segment_size, std::numeric_limits<std::uint32_t>::max()));
  own.segment_count = static_cast<std::uint32_t>(config.max_segments);
  if (config.reverse_credits != 0) {
    own.reverse = config.reverse_chunks ? ReverseSupport::kGeneral : ReverseSupport::kContinued;
  }
  return own;
}

Responder::Config ServerConnection::responder_config(ConstBytes peer_private_data) const {
  const ServerConfig& config = shared_.config;
  Responder::Config calls;
  const std::uint32_t receives = endpoint_->config().num_receives - config.reverse_credits;
  const std::uint32_t least = std::min(shared_.messages.idle_credits, receives);
  calls.credits = {.min = least, .initial = least, .max = config.credits};
  calls.reverse_credits = config.reverse_credits;
  calls.max_segments = config.max_segments;
  calls.max_read_chunks = config.max_read_chunks;
  calls.max_write_chunks = config.max_write_chunks;
  calls.max_items = config.max_items;
  calls.max_call = config.max_call;
  calls.max_item = config.max_item;
  calls.max_sge = shared_.messages.shape.max_send_sge;
  // R1-4.3.2-17
  calls.invalidates =
      may_invalidate(config, shared_.device.caps()) && parse_private_data(peer_private_data).remote_invalidate;
  calls.can_invalidate = config.remote_invalidation && can_invalidate(shared_.device.caps());
  calls.stall_timeout = config.stall_timeout;
  calls.while_others_wait = config.while_others_wait;
  calls.peer = peer_;
  calls.peer_group = group_;
  calls.duplicate_requests = &shared_.duplicate_requests;
  calls.client = host_str(id_->peer_addr());
  calls.log = &shared_.log;
  calls.answer_rooms = shared_.answer_rooms;
  return calls;
}

ConnectionStatistics ServerConnection::statistics() const {
  return {.connection = {serial()},
          .client = group_,
          .messages = qp_->counters(),
          .calls = responder_->counters(),
          .credits = link_->credits().grants.promised(),
          .under_way = responder_->num_under_way(),
          .waiting = static_cast<std::uint32_t>(responder_->num_waiting())};
}

void ServerConnection::on_completion(const verbs::Wc& wc, TimePoint now) {
  used_at_ = now;
  link_->set_now(now);
  link_->on_completion(wc);
}

void ServerConnection::on_time(TimePoint now) {
  link_->on_time(now);
  responder_->on_time(now);
  if (reverse_) reverse_->on_time(now);
  note_failure();
  if (endpoint_->failure() && !close_deadline_) close(now);
}

bool ServerConnection::has_work() {
  return close_deadline_ || responder_->has_work() || link_->has_unsent() || link_->next_timeout() ||
         (reverse_ && reverse_->calls().num_outstanding() != 0);
}

std::optional<TimePoint> ServerConnection::next_timeout() {
  const std::optional<TimePoint> next =
      close_deadline_ ? close_deadline_ : earliest(responder_->next_timeout(), link_->next_timeout());
  return reverse_ ? earliest(next, reverse_->next_timeout()) : next;
}

void ServerConnection::note_end(EndReason reason, verbs::LogLevel level, std::string why) {
  if (ended_) return;
  end_reason_ = reason;
  shared_.log.line(level, peer_, "the connection ends: {}", why);
  ended_ = std::move(why);
}

// An end that the connection manager reports gets at most kInfo: the device logs faults itself, and a peer that is done
// is normal.
void ServerConnection::note_end(const verbs::CmEvent& event) {
  note_failure();
  const auto level = event.status != 0 ? verbs::LogLevel::kInfo : verbs::LogLevel::kDebug;
  const auto& failure = endpoint_->failure();
  note_end(reason_of(event), level, !event.text.empty() ? event.text : failure ? *failure : cm_event_str(event.type));
}

void ServerConnection::note_failure() {
  if (endpoint_->failure() && !endpoint_->failed_by_completion()) {
    note_end(EndReason::kFailed, verbs::LogLevel::kWarn, *endpoint_->failure());
  }
}

void ServerConnection::close(TimePoint now) {
  if (reverse_) reverse_->calls().on_closed("the connection is closed");
  (void)id_->disconnect();
  close_deadline_ = now + kCloseTimeout;
}

void ServerConnection::trim() {
  responder_->trim();
  link_->trim();
}

void ServerConnection::end_calls(const std::string& why, TimePoint now) {
  if (!reverse_) return;
  reverse_->calls().on_closed(why);
  reverse_->calls().on_time(now);
}

}  // namespace weft::rpcrdma
