#include "rpcrdma/client_connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/address.h"
#include "rpcrdma/profiles.h"

namespace weft::rpcrdma {

namespace {

// Receives for the server's Calls to a client without programs, and for its messages about properties.
constexpr std::uint32_t kCreditsToRefuse = 2;

// Sends that carry parts of Calls, credits and properties.
constexpr std::uint32_t kExtraSends = 8;

void widen_for_own(Endpoint::Config& shape) {
  shape.num_sends += kExtraSends;
  shape.max_send_wr += kExtraSends;
}

}  // namespace

verbs::Result<std::unique_ptr<ClientConnection>> ClientConnection::open(verbs::Device& device, verbs::Pd& pd,
                                                                        const sockaddr_storage& dst,
                                                                        const ClientConfig& config, Profiles profiles,
                                                                        std::uint32_t serial) {
  std::unique_ptr<ClientConnection> connection(new ClientConnection(device, pd, dst, config, std::move(profiles)));
  if (auto status = connection->connect(serial); !status.ok()) {
    if (connection->link) connection->link->end(status.error().message);
    return verbs::Error{status.error().errno_value,
                        "cannot connect to " + address_str(dst) + ": " + status.error().message};
  }
  return connection;
}

ClientConnection::~ClientConnection() {
  // The queue pair goes first: then no request names memory that is given back.
  if (endpoint) endpoint->detach();
  qp.reset();
}

verbs::Status ClientConnection::connect(std::uint32_t serial) {
  if (config.events == nullptr) {
    auto made_events = device.create_comp_channel();
    if (!made_events.ok()) return made_events.error();
    own_events = std::move(*made_events);
  }
  auto made_cm = device.create_event_channel();
  if (!made_cm.ok()) return made_cm.error();
  cm_events = std::move(*made_cm);

  Endpoint::Config shape;
  shape.serial = serial;
  shape.num_receives = config.credits + kExtraReceives;
  // The Send of a probe may still be under way when the answer comes.
  const auto num_probes = static_cast<std::uint32_t>(profiles.size() - 1);
  shape.num_sends = config.credits + num_probes;
  shape.receive_len = shape.send_len = inline_threshold();
  shape.max_send_wr = config.credits + num_probes + 4;
  shape.max_send_sge = 1;
  if (std::ranges::any_of(profiles, [](const Profile* one) { return one->make_exchange != nullptr; })) {
    widen_for_own(shape);
  }
  if (may_serve_reverse()) ReverseResponder::widen(shape, reverse_credits());
  if (takes_windows()) Requester::widen_for_windows(shape, device.caps().max_qp_wr);
  auto made_endpoint = Endpoint::create(pd, shape);
  if (!made_endpoint.ok()) return made_endpoint.error();
  endpoint = std::move(*made_endpoint);
  link.emplace(*endpoint, profiles, Link::End::kClient, nullptr, config.literal_credits);
  if (config.observer != nullptr) {
    link->observe(*config.observer, {.id = serial, .is_client = true, .peer = address_str(dst)});
  }
  if (has_version()) exchange_properties();
  auto made_cq = device.create_cq(static_cast<int>(shape.num_receives + shape.max_send_wr + 8),
                                  own_events ? own_events.get() : config.events);
  if (!made_cq.ok()) return made_cq.error();
  cq = std::move(*made_cq);

  auto made_id = cm_events->create_id();
  if (!made_id.ok()) return made_id.error();
  id = std::move(*made_id);
  return id->resolve_addr(dst, config.connect_timeout);
}

void ClientConnection::serve_reverse(EventLog& log) {
  if (!has_version() || !serves_reverse()) return;
  const ReverseResponder::Config calls{config.reverse_programs, reverse_credits(), config.reverse_chunks,
                                       address_str(dst), &log};
  reverse = std::make_unique<ReverseResponder>(pd, *link, calls, device.caps().read_sink_needs_remote_write);
}

// A peer that hears nothing else sends messages of its profile's default length (R2-3.3-1).
std::size_t ClientConnection::inline_threshold() const {
  std::size_t most = config.inline_threshold;
  for (const Profile* profile : profiles) most = std::max(most, profile->default_threshold);
  return most;
}

void ClientConnection::exchange_properties() {
  if (config.properties) link->exchange_properties(own_properties(), {});
}

Properties ClientConnection::own_properties() const {
  const auto size = static_cast<std::uint32_t>(inline_threshold());
  Properties own{.send_size = size, .receive_size = size};
  if (serves_reverse()) own.reverse = config.reverse_chunks ? ReverseSupport::kGeneral : ReverseSupport::kContinued;
  return own;
}

// A client without programs answers Calls with PROG_UNAVAIL where the profile asks for this.
bool ClientConnection::may_serve_reverse() const {
  return !config.reverse_programs.empty() ||
         std::ranges::any_of(profiles, [](const Profile* one) { return one->serves_reverse; });
}

std::uint32_t ClientConnection::reverse_credits() const {
  return config.reverse_programs.empty() ? kCreditsToRefuse : config.reverse_credits;
}

verbs::Status ClientConnection::on_route_resolved() {
  auto made = id->create_qp(pd, endpoint->qp_attr(*cq));
  if (!made.ok()) return verbs::Error{made.error().errno_value, "cannot make a queue pair: " + made.error().message};
  qp = std::move(*made);
  // All Receives are there before anything can arrive (R1-7.2.2-02).
  if (auto status = endpoint->attach(*qp); !status.ok()) return status;
  verbs::ConnParam param;
  param.private_data = own_private_data(device.caps(), inline_threshold(), takes_windows());
  param.responder_resources =
      static_cast<std::uint8_t>(std::min<std::uint32_t>(config.ird, device.caps().max_qp_rd_atom));
  param.initiator_depth =
      static_cast<std::uint8_t>(std::min<std::uint32_t>(config.ord, device.caps().max_qp_init_rd_atom));
  return id->connect(param);
}

void ClientConnection::negotiate(const Profile* known, const std::optional<VersionRange>& range,
                                 std::uint32_t first_xid) {
  negotiation.emplace(Negotiation::Config{
      .profiles = profiles, .known = known, .credits = config.credits, .first_xid = first_xid, .range = range});
}

// A probe that cannot be sent fails the endpoint.
void ClientConnection::send_probe() {
  const auto slot = endpoint->take_send();
  if (!slot) return endpoint->fail("there is no Send buffer for a first message");
  const std::size_t len = negotiation->emit_probe(endpoint->send_buffer(*slot));
  link->ask(negotiation->asked());
  (void)link->send(*slot, len);
}

Negotiation::Step ClientConnection::on_early_completion(const verbs::Wc& wc) {
  using Kind = Negotiation::Step::Kind;
  const auto work = endpoint->on_completion(wc);
  if (!work) return {};
  if (work->kind() == WorkKind::kSend) {
    endpoint->give_send(work->send());
    return {};
  }
  const ConstBytes message = endpoint->received(work->receive(), wc.byte_len);
  Negotiation::Step step = negotiation ? negotiation->on_message(message) : Negotiation::Step{.kind = Kind::kKeep};
  // A GRANT is for no engine, and of two credit words the one that came last counts (W2-A-01).
  const bool is_grant = link->flow() != nullptr && link->flow()->frame(message).type == Frame::Type::kGrant;
  const bool has_room = may_serve_reverse() && early_.size() < reverse_credits();
  if (step.kind == Kind::kKeep && has_room && !is_grant) {
    early_.push_back({work->receive(), wc.byte_len, work->invalidated});
  } else {
    link->hear({work->receive(), wc.byte_len, work->invalidated});
    endpoint->post_receive(work->receive());
  }
  return step;
}

void ClientConnection::pass_early_messages() {
  for (Arrival& message : std::exchange(early_, {})) link->on_receive(std::move(message));
}

// For this connection alone (R1-4.3.2-13), by the version that was found (R2-8.2-5).
void ClientConnection::start() {
  thresholds = settle_thresholds(inline_threshold(), accepted_.private_data, link->profile());
  if (reverse) reverse->start(thresholds, accepted_.initiator_depth);
}

bool ClientConnection::on_cm_event(const verbs::CmEvent& event) {
  const std::string peer = address_str(dst);
  const std::string detail = event.text.empty() ? std::string() : ": " + event.text;
  verbs::Status status;
  switch (event.type) {
    case verbs::CmEventType::kAddrResolved: status = id->resolve_route(config.connect_timeout); break;
    case verbs::CmEventType::kRouteResolved: status = on_route_resolved(); break;
    case verbs::CmEventType::kEstablished:
      connected = true;
      if (ended || established) return false;
      established = true;
      accepted_ = event.param;
      return true;
    case verbs::CmEventType::kRejected: end_told(peer + " rejected the connection" + detail); break;
    case verbs::CmEventType::kDeviceRemoval: is_last = true; [[fallthrough]];
    case verbs::CmEventType::kDisconnected:
      connected = false;
      end_told("the connection to " + peer + " ended" + detail, event.status == EPROTO);
      break;
    case verbs::CmEventType::kAddrError:
    case verbs::CmEventType::kRouteError:
    case verbs::CmEventType::kConnectError:
    case verbs::CmEventType::kUnreachable:
    case verbs::CmEventType::kConnectRequest:
      end_told("cannot connect to " + peer + (detail.empty() ? std::string(": ") + cm_event_str(event.type) : detail));
      break;
  }
  if (!status.ok()) end("cannot connect to " + peer + ": " + status.error().message);
  return false;
}

}  // namespace weft::rpcrdma
