#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/endpoint.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/link.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/service.h"

// The reverse direction (RFC 8167): Calls from the server on the connection that its client made. The same engines with
// the roles exchanged share one Link with the engines of the forward direction. XIDs and credits of the two directions
// are independent.
namespace weft::rpcrdma {

inline constexpr std::uint32_t kMaxReverseCredits = 16;
// Without chunks a reverse Call is at most this long, and at most as long as either threshold. Linux clients take Calls
// of this length.
inline constexpr std::size_t kMaxReverseCall = 4096;

// ReverseResponder is a client's half of the reverse direction: it serves the Calls that its server sends.
class ReverseResponder {
 public:
  struct Config {
    std::span<const ServedProgram> programs;  // bindings and services outlive it
    std::uint32_t credits = kMaxReverseCredits;
    bool chunks = false;
    std::string peer;
    EventLog* log = nullptr;  // outlives it; null: none
  };

  // Adds to `shape` the resources that the reverse direction needs (RFC 8167 section 4.3.1).
  static void widen(Endpoint::Config& shape, std::uint32_t credits);

  // pd and link outlive it. The forward direction's requester has joined the link.
  ReverseResponder(verbs::Pd& pd, Link& link, Config config, bool read_sinks = false);
  ~ReverseResponder();

  // ord: RDMA Reads that the connection allows towards the server.
  void start(const Thresholds& thresholds, std::uint32_t ord);
  void reply(ServedCallId id, ServedReply&& reply);
  void on_time(TimePoint now);
  std::optional<TimePoint> next_timeout() const;
  // end: the connection is over, and the services get Service::on_end. From then on answers are dropped, and neither
  // engine gets messages that arrive on the link.
  void end(const std::string& why);

  const ResponderCounters& counters() const { return responder_.counters(); }

 private:
  Config config_;
  Link& link_;
  std::vector<ServedProgram> programs_;
  BufferPool pool_;
  Budget budget_;
  Responder responder_;
  bool ended_ = false;
};

// ReverseRequester is a server's half of the reverse direction on one connection: it calls the client. An unanswered
// Call ends with its connection, as kDisconnected: only a client can connect again (RFC 8167 section 5.4).
class ReverseRequester {
 public:
  struct Config {
    std::uint32_t credits = kMaxReverseCredits;  // requested: the most Calls under way at once
    bool chunks = false;
    std::chrono::milliseconds call_timeout{60000};
    std::string peer = {};
    EventLog* log = nullptr;  // outlives it; null: none
  };

  // Adds to `shape` the resources that the reverse direction needs (RFC 8167 section 4.3.2).
  static void widen(Endpoint::Config& shape, std::uint32_t credits);

  // pd and link outlive it. The forward direction's responder has joined the link.
  ReverseRequester(verbs::Pd& pd, Link& link, const Config& config);

  // thresholds: the thresholds of the connection, from the server's view. If clients of the profile take no Calls
  // before they say so, Calls wait for settle, and end as kLocalError once the first one has waited for kMaxWait. A
  // Call that only the client's properties could give a form waits as long for the answer to a NULL Call.
  static constexpr std::chrono::seconds kMaxWait{1};
  void start(const Thresholds& thresholds);
  // settle: the client told its properties. If it takes no Calls, all Calls end as kDisconnected.
  void settle(const Terms& terms);
  std::size_t on_time(TimePoint now);
  std::optional<TimePoint> next_timeout() const;
  Requester& calls() { return requester_; }

 private:
  std::size_t call_threshold(const Thresholds& thresholds) const;
  bool is_waiting() const { return !started_ && requester_.num_outstanding() != 0; }

  Config config_;
  const Link& link_;
  bool started_ = false;
  std::optional<TimePoint> waits_since_;  // when the first Call began to wait for settle
  Requester requester_;
};

}  // namespace weft::rpcrdma
