#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/rest_watch.h"
#include "base/time.h"
#include "rpcrdma/completion_queues.h"
#include "rpcrdma/duplicate_request_cache.h"
#include "rpcrdma/endpoint.h"
#include "rpcrdma/event_log.h"
#include "rpcrdma/link.h"
#include "rpcrdma/message_resources.h"
#include "rpcrdma/responder.h"
#include "rpcrdma/reverse.h"
#include "rpcrdma/server.h"

// One connection of a Server. Private to server.cc, server_connection.cc and connection_table.cc.
namespace weft::rpcrdma {

// ServerConnection is a connection that a Server accepted: its queue pair and the engines on it. The Server passes it
// events and completions, and removes it.
class ServerConnection {
 public:
  // Shared: objects that the connections of a Server have in common. They outlive the connections.
  struct Shared {
    verbs::Device& device;
    verbs::Pd& pd;
    const ServerConfig& config;
    std::span<const ServedProgram> programs;
    const MessageResources& messages;
    BufferPool& pool;
    Budget& budget;
    DuplicateRequestCache& duplicate_requests;
    std::shared_ptr<Responder::AnswerRooms> answer_rooms;
    EventLog& log;
    CallObserver* observer = nullptr;
  };

  // Accepts the request of `id`. `peer`: the parameters of its CONNECT_REQUEST.
  static verbs::Result<std::unique_ptr<ServerConnection>> accept(const Shared& shared,
                                                                 CompletionQueues::Share completions,
                                                                 std::unique_ptr<verbs::CmId> id,
                                                                 const verbs::ConnParam& peer, std::uint32_t serial,
                                                                 TimePoint now);
  ~ServerConnection();

  std::uint32_t serial() const { return endpoint_->config().serial; }
  const std::string& group() const { return group_; }  // of addresses (peer_group)
  verbs::Qp& qp() { return *qp_; }
  Endpoint& endpoint() { return *endpoint_; }
  Responder& responder() { return *responder_; }
  const Responder& responder() const { return *responder_; }
  Link& link() { return *link_; }
  Requester* reverse() { return reverse_ ? &reverse_->calls() : nullptr; }  // null: no reverse credits
  bool lost_completions() const { return completions_.overrun() || (receives_ && receives_->overrun); }
  // The last time that part of a Call came or went.
  TimePoint used_at() const { return used_at_; }

  void on_completion(const verbs::Wc& wc, TimePoint now);
  void on_time(TimePoint now);
  // Whether on_time must be called again although nothing arrives.
  bool has_work();
  std::optional<TimePoint> next_timeout();

  ConnectionStatistics statistics() const;

  // note_end: the connection ends. The first known reason counts and gets a line in the log.
  void note_end(EndReason reason, verbs::LogLevel level, std::string why);
  void note_end(const verbs::CmEvent& event);
  // The same for a failure at this end, unless it follows from an end that the connection manager reports.
  void note_failure();
  const std::optional<std::string>& ended() const { return ended_; }
  EndReason end_reason() const { return end_reason_; }  // with ended()

  // close lets the device send its last messages to the peer. The Server removes the connection after that, or at
  // close_deadline.
  void close(TimePoint now);
  const std::optional<TimePoint>& close_deadline() const { return close_deadline_; }
  // Whether the Server has to remove it: at close_deadline, or sooner if it failed and others wait for memory that its
  // Calls hold. The device delivers its end without it.
  bool is_over(TimePoint now) const {
    return close_deadline_ && (now >= *close_deadline_ || (endpoint_->failure() && responder_->is_memory_wanted()));
  }
  // It has come to rest: gives back the memory that it does not need now.
  void trim();
  // end_calls ends the Server's own Calls and runs their callbacks.
  void end_calls(const std::string& why, TimePoint now);

  bool active = false;  // the Server runs this connection at each turn
  RestWatch<std::uint32_t>::Mark rest;
  bool changes = false;  // ConnectionTable::on_active

 private:
  ServerConnection(const Shared& shared, CompletionQueues::Share completions, std::unique_ptr<verbs::CmId> id,
                   TimePoint now);
  verbs::Status start(const verbs::ConnParam& peer, std::uint32_t serial);
  Responder::Config responder_config(ConstBytes peer_private_data) const;
  void make_engines(const verbs::ConnParam& peer, std::uint32_t ord);
  void make_reverse();
  void start_engines();
  Properties own_properties() const;

  const Shared& shared_;
  std::string peer_;  // its address and port
  std::string group_;
  TimePoint used_at_;
  std::vector<std::uint8_t> peer_private_data_;
  std::uint32_t ord_ = 0;  // RDMA Reads that may be under way at once
  std::optional<TimePoint> close_deadline_;
  std::optional<std::string> ended_;
  EndReason end_reason_ = EndReason::kLost;

  // In the order of their making.
  CompletionQueues::Share completions_;
  std::shared_ptr<SharedReceives> receives_;  // null: its Receives are its own
  std::unique_ptr<verbs::CmId> id_;
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<Link> link_;
  std::unique_ptr<verbs::Qp> qp_;
  std::unique_ptr<Responder> responder_;
  std::unique_ptr<ReverseRequester> reverse_;
};

}  // namespace weft::rpcrdma
