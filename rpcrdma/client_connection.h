#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "rpcrdma/client.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/endpoint.h"
#include "rpcrdma/link.h"
#include "rpcrdma/reverse.h"

// One connection of a Client. Private to client.cc and client_connection.cc.
namespace weft::rpcrdma {

// ClientConnection is one attempt to connect, and the connection that it leads to. Its Client takes events and
// completions from it. The connection is over once `ended` holds the reason.
struct ClientConnection {
  // Starts to connect. device and pd outlive it.
  static verbs::Result<std::unique_ptr<ClientConnection>> open(verbs::Device& device, verbs::Pd& pd,
                                                               const sockaddr_storage& dst, const ClientConfig& config,
                                                               std::uint32_t serial);
  ~ClientConnection();
  // Serves the reverse programs besides the Client's requester. The requester has joined the link before. `log`
  // outlives the connection.
  void serve_reverse(EventLog& log);

  // Whether the chunks of its Calls are windows, as R announces.
  bool takes_windows() const { return config.remote_invalidation && can_be_invalidated(device.caps()); }
  // True: the connection is there, and `thresholds` are settled.
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
  Thresholds thresholds;
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
  std::unique_ptr<verbs::CompChannel> events;
  std::unique_ptr<verbs::Cq> cq;
  std::unique_ptr<verbs::CmId> id;
  std::unique_ptr<Endpoint> endpoint;
  std::optional<Link> link;  // from open on
  std::unique_ptr<verbs::Qp> qp;
  std::unique_ptr<ReverseResponder> reverse;  // if this end serves Calls of its server

 private:
  ClientConnection(verbs::Device& device, verbs::Pd& pd, const sockaddr_storage& dst, const ClientConfig& config)
      : device(device), pd(pd), dst(dst), config(config) {}
  verbs::Status start(std::uint32_t serial);
  verbs::Status on_route_resolved();
  std::size_t inline_threshold() const;
  Properties own_properties() const;
  bool serves_reverse() const;
  std::uint32_t reverse_credits() const;
};

}  // namespace weft::rpcrdma
