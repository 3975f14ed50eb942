#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "rpcrdma/client.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/endpoint.h"
#include "rpcrdma/link.h"
#include "rpcrdma/negotiation.h"
#include "rpcrdma/reverse.h"

// One connection of a Client. Private to client.cc and client_connection.cc.
namespace weft::rpcrdma {

// ClientConnection is one attempt to connect, and the connection that it leads to. Its Client takes events and
// completions from it. The connection is over once `ended` holds the reason.
struct ClientConnection {
  // Starts to connect. profiles: what to speak on this connection; with several, `negotiate` follows. device, pd and
  // config outlive it.
  static verbs::Result<std::unique_ptr<ClientConnection>> open(verbs::Device& device, verbs::Pd& pd,
                                                               const sockaddr_storage& dst, const ClientConfig& config,
                                                               Profiles profiles, std::uint32_t serial);
  ~ClientConnection();
  // Serves the reverse programs besides the Client's requester, once the version is known. The requester has joined
  // the link before. `log` outlives the connection.
  void serve_reverse(EventLog& log);

  bool has_version() const { return link->is_decided(); }
  std::optional<Protocol> protocol() const {
    return has_version() ? parse_protocol(link->profile().name) : std::nullopt;
  }
  // The connection is there, and its version is not known: the first question. known, range: see Negotiation. The
  // answers come to on_early_completion. The Client calls send_probe for Step::kProbe, and begin for Step::kDecided.
  void negotiate(const Profile* known, const std::optional<VersionRange>& range, std::uint32_t first_xid);
  void send_probe();
  // Takes a completion while the version is not known. Messages for the engines are kept for `pass_early_messages`, as
  // many as the server's Calls have Receives.
  Negotiation::Step on_early_completion(const verbs::Wc& wc);
  void begin(std::uint32_t credit) {
    link->begin(credit);
    exchange_properties();
  }
  void pass_early_messages();
  // The version is known and the connection is there: settles `thresholds`.
  void start();

  // Whether the chunks of its Calls are windows, as R announces.
  bool takes_windows() const { return config.remote_invalidation && can_be_invalidated(device.caps()); }
  // True: the connection is there.
  bool on_cm_event(const verbs::CmEvent& event);
  void end(std::string why, bool by_violation = false) {
    if (ended) return;
    ended = std::move(why);
    violated = by_violation;
  }
  // As end, with a reason from the connection manager.
  void end_told(std::string why, bool by_violation = false) {
    told = told || !ended;
    end(std::move(why), by_violation);
  }

  verbs::Device& device;
  verbs::Pd& pd;
  sockaddr_storage dst{};
  const ClientConfig& config;
  const Profiles profiles;
  Thresholds thresholds;
  std::optional<Negotiation> negotiation;  // from `negotiate` on
  std::optional<std::string> ended;
  bool violated = false;     // ended because a rule of the protocol was broken
  bool told = false;         // ended: by end_told
  bool established = false;  // kEstablished came
  bool connected = false;    // kEstablished came, and kDisconnected did not
  bool is_last = false;      // the device is gone: no other connection can follow
  std::optional<TimePoint> deadline;
  // Set after a completion failed: until then the connection manager may still report the reason. It knows more than
  // any completion.
  std::optional<TimePoint> last_words;

  // In the order of construction; destroyed in the reverse order.
  std::unique_ptr<verbs::CmChannel> cm_events;
  std::unique_ptr<verbs::CompChannel> own_events;  // unless ClientConfig::events is there
  std::unique_ptr<verbs::Cq> cq;
  std::unique_ptr<verbs::CmId> id;
  std::unique_ptr<Endpoint> endpoint;
  std::optional<Link> link;  // from open on
  std::unique_ptr<verbs::Qp> qp;
  std::unique_ptr<ReverseResponder> reverse;  // if this end serves Calls of its server

 private:
  ClientConnection(verbs::Device& device, verbs::Pd& pd, const sockaddr_storage& dst, const ClientConfig& config,
                   Profiles profiles)
      : device(device), pd(pd), dst(dst), config(config), profiles(std::move(profiles)) {}
  verbs::Status connect(std::uint32_t serial);
  verbs::Status on_route_resolved();
  std::size_t inline_threshold() const;
  void exchange_properties();
  Properties own_properties() const;
  bool may_serve_reverse() const;
  bool serves_reverse() const { return !config.reverse_programs.empty() || link->profile().serves_reverse; }
  std::uint32_t reverse_credits() const;

  std::vector<Arrival> early_;  // while the version was not known
  verbs::ConnParam accepted_;   // what the server's accept said
};

}  // namespace weft::rpcrdma
