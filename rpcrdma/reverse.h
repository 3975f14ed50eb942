#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rpcrdma/buffer_pool.h"
#include "rpcrdma/call.h"
#include "rpcrdma/channel.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/requester.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/service.h"

// The reverse direction (RFC 8167): Calls from the server on the connection that its client made. The same engines with
// the roles exchanged, beside those of the forward direction on one Channel; XIDs and credits of the two directions
// have nothing to do with each other.
namespace weft::rpcrdma {

inline constexpr std::uint32_t kMaxReverseCredits = 16;
// Without chunks a reverse Call is no longer than this, nor than either threshold: what Linux clients take.
inline constexpr std::size_t kMaxReverseCall = 4096;

// Dispatcher passes what happens on a Channel to the engine that it concerns: messages by what they say they are, ends
// of Sends by who posted them. All three outlive it.
class Dispatcher {
 public:
  // Forward: which of the two engines is the forward direction's; messages that do not say what they are go to it,
  // which answers or discards them as it would without the other.
  enum class Forward : std::uint8_t { kRequester, kResponder };

  Dispatcher(Channel& channel, Requester& requester, Responder& responder, Forward forward)
      : channel_(channel), requester_(requester), responder_(responder), forward_(forward) {}

  // len: octets received, for Receives.
  void on_work(const Work& work, std::size_t len);

 private:
  void on_receive(const Work& work, std::size_t len);

  Channel& channel_;
  Requester& requester_;
  Responder& responder_;
  Forward forward_;
};

// ReverseResponder is a client's half of the reverse direction: it serves the Calls that its server sends.
class ReverseResponder {
 public:
  struct Config {
    std::span<const Program> programs;  // bindings and services outlive it
    std::uint32_t credits = kMaxReverseCredits;
    bool chunks = false;
    std::string peer;
    EventLog* log = nullptr;  // outlives it; null: none
  };

  // What its Channel needs on top of the forward direction's (RFC 8167 section 4.3.1).
  static void widen(Channel::Config& shape, std::uint32_t credits);

  // pd, channel and the forward direction's requester outlive it.
  ReverseResponder(verbs::Pd& pd, Channel& channel, Requester& requester, Config config, bool read_sinks = false);
  ~ReverseResponder();

  // ord: RDMA Reads that the connection allows towards the server.
  void start(const Thresholds& thresholds, std::uint32_t ord);
  void on_work(const Work& work, std::size_t len) {
    if (!ended_) dispatcher_.on_work(work, len);
  }
  void reply(CallId id, ServedReply&& reply);
  void on_time(verbs::TimePoint now);
  std::optional<verbs::TimePoint> next_timeout() const;
  // end: the connection is over, and the services hear of it (Service::on_end). Answers go nowhere from then on.
  void end(const std::string& why);

  const ResponderCounters& counters() const { return responder_.counters(); }

 private:
  Config config_;
  Channel& channel_;
  std::vector<Program> programs_;
  BufferPool pool_;
  Budget budget_;
  Responder responder_;
  Dispatcher dispatcher_;
  bool ended_ = false;
};

// ReverseRequester is a server's half of the reverse direction on one connection: it calls the client. A Call that is
// not answered ends with its connection, as kDisconnected: only a client can connect again (RFC 8167 section 5.4).
class ReverseRequester {
 public:
  struct Config {
    std::uint32_t credits = kMaxReverseCredits;  // asked for: so many Calls are under way at most
    bool chunks = false;
    std::chrono::milliseconds call_timeout{60000};
    std::string peer = {};
    EventLog* log = nullptr;  // outlives it; null: none
  };

  // What its Channel needs on top of the forward direction's (RFC 8167 section 4.3.2).
  static void widen(Channel::Config& shape, std::uint32_t credits);

  // pd, channel and the forward direction's responder outlive it.
  ReverseRequester(verbs::Pd& pd, Channel& channel, Responder& responder, const Config& config);

  // thresholds: of the connection, as its server settled them.
  void start(const Thresholds& thresholds);
  void on_work(const Work& work, std::size_t len) { dispatcher_.on_work(work, len); }
  Requester& calls() { return requester_; }

 private:
  Config config_;
  Requester requester_;
  Dispatcher dispatcher_;
};

}  // namespace weft::rpcrdma
