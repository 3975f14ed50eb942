#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rpcrdma/channel.h"
#include "rpcrdma/client.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/reverse.h"

// One connection of a Client; included by nobody else.
namespace weft::rpcrdma {

// ClientConnection is one attempt to connect, and the connection that it leads to. Its Client takes events and
// completions from it; both are over once `ended` says why.
struct ClientConnection {
  // Starts to connect. device and pd outlive it.
  static verbs::Result<std::unique_ptr<ClientConnection>> open(verbs::Device& device, verbs::Pd& pd,
                                                               const sockaddr_storage& dst, const ClientConfig& config,
                                                               std::uint32_t serial);
  ~ClientConnection();
  // Serves the reverse programs beside the Client's requester, which outlives the connection's use.
  void serve_reverse(Requester& requester, EventLog& log);

  // Whether its Calls' chunks are windows, and R says so.
  bool takes_windows() const { return config.remote_invalidation && can_be_invalidated(device.caps()); }
  // True: the connection is there, and `thresholds` are settled.
  bool on_cm_event(const verbs::CmEvent& event);
  void end(std::string why, bool by_violation = false) {
    if (ended) return;
    ended = std::move(why);
    violated = by_violation;
  }
  // As end, by what the connection manager said.
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
  bool violated = false;     // ended: because a rule of the protocol was broken
  bool told = false;         // ended: by end_told
  bool established = false;  // kEstablished came
  bool connected = false;    // and kDisconnected did not
  bool is_last = false;      // the device is gone: no other can follow
  std::optional<verbs::TimePoint> deadline;
  // A completion failed: until then the connection may still say why, which it knows better than any completion.
  std::optional<verbs::TimePoint> last_words;

  // In the order of their making; taken down in the opposite one.
  std::unique_ptr<verbs::CmChannel> cm_events;
  std::unique_ptr<verbs::CompChannel> events;
  std::unique_ptr<verbs::Cq> cq;
  std::unique_ptr<verbs::CmId> id;
  std::unique_ptr<Channel> channel;
  std::unique_ptr<verbs::Qp> qp;
  std::unique_ptr<ReverseResponder> reverse;  // where there are reverse programs

 private:
  ClientConnection(verbs::Device& device, verbs::Pd& pd, const sockaddr_storage& dst, const ClientConfig& config)
      : device(device), pd(pd), dst(dst), config(config) {}
  verbs::Status start(std::uint32_t serial);
  verbs::Status on_route_resolved();
};

}  // namespace weft::rpcrdma
