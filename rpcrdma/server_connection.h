#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "rpcrdma/channel.h"
#include "rpcrdma/completion_queues.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/link.h"
#include "rpcrdma/message_resources.h"
#include "rpcrdma/replay_cache.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/reverse.h"
#include "rpcrdma/server.h"

// One connection of a Server; included by nobody else.
namespace weft::rpcrdma {

// ServerConnection is a connection that a Server accepted: its queue pair and the engines on it. The Server takes
// events and completions for it, and removes it.
class ServerConnection {
 public:
  // Shared: what the connections of a Server have in common. All of it outlives them.
  struct Shared {
    verbs::Device& device;
    verbs::Pd& pd;
    const ServerConfig& config;
    std::span<const Program> programs;
    const MessageResources& messages;
    BufferPool& pool;
    Budget& budget;
    ReplayCache& replays;
    EventLog& log;
  };

  // Accepts what `id` asks for; `peer` is what its CONNECT_REQUEST says.
  static verbs::Result<std::unique_ptr<ServerConnection>> accept(const Shared& shared,
                                                                 CompletionQueues::Share completions,
                                                                 std::unique_ptr<verbs::CmId> id,
                                                                 const verbs::ConnParam& peer, std::uint32_t serial,
                                                                 verbs::TimePoint now);
  ~ServerConnection();

  std::uint32_t serial() const { return channel_->config().serial; }
  const std::string& group() const { return group_; }  // of addresses (peer_group)
  verbs::Qp& qp() { return *qp_; }
  Channel& channel() { return *channel_; }
  Responder& responder() { return *responder_; }
  Requester* reverse() { return reverse_ ? &reverse_->calls() : nullptr; }  // null: no reverse credits
  bool lost_completions() const { return completions_.overrun(); }
  // When something of a Call last came or went.
  verbs::TimePoint used_at() const { return used_at_; }

  void on_completion(const verbs::Wc& wc, verbs::TimePoint now);
  void on_time(verbs::TimePoint now);
  // Whether on_time is to be called again although nothing arrives.
  bool has_work();
  std::optional<verbs::TimePoint> next_timeout();

  // note_end: the connection ends. The first reason that is known counts, and has its line in the log.
  void note_end(verbs::LogLevel level, std::string why);
  void note_end(const verbs::CmEvent& event);
  // The same for what failed here, unless it follows from an end that the connection manager tells of.
  void note_failure();
  const std::optional<std::string>& ended() const { return ended_; }

  // close lets the device say to the peer what there is to say. The Server removes the connection when that is done, or
  // at close_deadline.
  void close(verbs::TimePoint now);
  const std::optional<verbs::TimePoint>& close_deadline() const { return close_deadline_; }
  // end_calls ends the Server's own Calls; their callbacks run.
  void end_calls(const std::string& why, verbs::TimePoint now);

  bool active = false;   // among those that the Server looks after at each turn
  bool to_trim = false;  // among those that give memory back soon

 private:
  ServerConnection(const Shared& shared, CompletionQueues::Share completions, std::unique_ptr<verbs::CmId> id,
                   verbs::TimePoint now);
  verbs::Status start(const verbs::ConnParam& peer, std::uint32_t serial);
  Responder::Config responder_config(ConstBytes peer_private_data) const;
  void start_engines(const verbs::ConnParam& peer, std::uint32_t ord);

  const Shared& shared_;
  std::string peer_;  // its address and port
  std::string group_;
  verbs::TimePoint used_at_;
  std::optional<verbs::TimePoint> close_deadline_;
  std::optional<std::string> ended_;

  // In the order of their making.
  CompletionQueues::Share completions_;
  std::unique_ptr<verbs::CmId> id_;
  std::unique_ptr<Channel> channel_;
  std::optional<Link> link_;
  std::unique_ptr<verbs::Qp> qp_;
  std::unique_ptr<Responder> responder_;
  std::unique_ptr<ReverseRequester> reverse_;
};

}  // namespace weft::rpcrdma
