#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/common/places.h"
#include "apps/common/progress.h"
#include "apps/perf/message.h"
#include "apps/perf/rdma_peer.h"
#include "apps/perf/region.h"
#include "base/time.h"
#include "rpcrdma/event_log.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/log.h"
#include "verbs-shim/api/verbs.h"

namespace weft::apps::perf {

struct PeersConfig {
  PlaceLimits places;
  std::chrono::milliseconds patience{30000};  // with an idle client
  // Octets of memory that one turn prepares, for all clients, and as many that it gives back.
  std::size_t memory_per_turn = std::size_t{4} << 20;
  verbs::Log log = {};
};

// Peers are the clients of the listener over RDMA. Peers admits them, prepares a bounded part of their memory per turn,
// so that the other clients are served meanwhile, and ends idle clients. The memory of clients that are gone goes back
// in bounded parts, too. A turn gives back before it prepares, so the memory is never more than the limit of all
// places. One thread.
class Peers {
 public:
  // Listens at addr. The device and progress outlive it; progress learns where the clients are.
  static absl::StatusOr<std::unique_ptr<Peers>> listen(verbs::Device& device, const sockaddr_storage& addr,
                                                       Progress& progress, const PeersConfig& config);

  // tell sets the Ready for every client, before the first turn; on_turn adds the client's own region.
  void tell(const Ready& ready) { ready_ = ready; }
  // on_turn takes the events since Device::process. Returns whether work is left to do at once.
  bool on_turn(TimePoint now);
  // Ends clients that have done nothing for too long. It looks only now and then, at next_look at the earliest.
  void end_silent(TimePoint now);
  TimePoint next_look() const { return look_at_; }

  bool empty() const { return peers_.empty(); }
  std::size_t num_accepted() const;
  // The octets of memory that are ready, or that must still be given back.
  std::size_t memory() const;
  sockaddr_storage local_addr() const { return listener_->local_addr(); }

 private:
  struct Client {
    std::unique_ptr<RdmaPeer> peer;
    std::string group;  // peer_group of its address
    std::uint64_t memory = 0;
  };
  using Clients = std::map<verbs::CmId*, Client>;

  Peers(verbs::Device& device, Progress& progress, const PeersConfig& config)
      : device_(device), progress_(progress), config_(config), log_(config.log, "perf: client") {}
  absl::Status open(const sockaddr_storage& addr);
  // Ends a client. Returns the next one.
  Clients::iterator end(Clients::iterator client);
  // Ends the clients for which `is_over` is true.
  template <typename IsOver>
  void end_if(IsOver is_over);
  void take_completions();
  void take_events(TimePoint now);
  void on_request(verbs::CmEvent event, TimePoint now);
  void refuse(verbs::CmId& id, std::string why);
  // Makes room for a client. Returns the reason if there is none, or an empty text.
  std::string make_room(const Occupant& newcomer, TimePoint now);
  // Goes on with the memory of clients that are not accepted yet, and accepts the clients whose memory is complete.
  void fill();
  bool fill(RdmaPeer& peer, std::size_t share);
  void give_back();

  verbs::Device& device_;
  Progress& progress_;
  const PeersConfig config_;
  rpcrdma::EventLog log_;
  Ready ready_;
  std::unique_ptr<verbs::CmChannel> channel_;
  std::unique_ptr<verbs::CmId> listener_;
  Clients peers_;
  std::deque<Region> given_up_;  // of clients that are gone
  TimePoint look_at_{};
};

}  // namespace weft::apps::perf
