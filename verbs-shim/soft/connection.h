#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "rdmap/stream.h"
#include "verbs-shim/soft/backlog.h"
#include "verbs-shim/soft/id_share.h"
#include "verbs-shim/soft/loop_services.h"
#include "verbs-shim/soft/port_map_ask.h"
#include "verbs-shim/soft/stream_socket.h"
#include "verbs-shim/soft/stream_trace.h"
#include "verbs-shim/soft/work_queues.h"

namespace weft::verbs::soft {

// Connection drives one socket and its Stream. Its Loop owns it; other objects name it by Handle. It reports to three
// users, as long as they exist: the Backlog of the listener until the connection is handed out, the IdShare of its id,
// and the WorkQueues of its queue pair. Without id and queue pair it only delivers its end ("lingers").
//
//   Mapping --port mapper answered, or did not--> Connecting --TCP is there--> Running
//   Silent --whole MPA Request--> Requested --accept, reject--> Running
//   Running --peer does not know the revision--> FallingBack --new socket--> Connecting
//   any with a Stream --its users are gone, its end is not yet--> Lingering
//   any --socket closed--> Dead
class Connection final : public Source, public rdmap::RecvSource {
 public:
  // An incoming connection that has sent nothing yet. adopted: its socket existed before MPA, and outlives MPA if MPA
  // rejects.
  Connection(LoopServices& loop, Handle self, Backlog& backlog, Fd fd, bool adopted, const sockaddr_storage& peer);
  // An outgoing connection. Its TCP connect is under way, done (adopted; never replaced), or yet to come (ask).
  Connection(LoopServices& loop, Handle self, IdShare& id, WorkQueues& queues, Fd fd, bool adopted,
             const ConnParam& param);
  ~Connection() override;

  // MPA begins with octets that the caller has read from an adopted socket.
  void begin_with(ConstBytes received, TimePoint now);
  // For an outgoing connection whose socket is not connecting yet: asks the port mapper first. False if epoll has no
  // room.
  bool ask(std::unique_ptr<PortMapAsk> asking);
  bool watch();  // enters the socket in the Poller; false if that fails

  // ---- inputs. Each returns the number of octets and events that it moved.
  std::size_t on_ready(std::uint32_t epoll_events, TimePoint now) override;
  std::size_t on_timer(TimePoint now) override;
  // A turn without news from epoll: sends the posted requests. read: also looks at the socket.
  std::size_t turn(bool read, TimePoint now);
  std::size_t turn_when_ready(TimePoint now) { return turn(socket_.more_to_read(), now); }
  // The turn for these events waits for the next round of ready connections.
  void put_off(std::uint32_t epoll_events);
  // Takes the posted requests of its queue pair.
  void attend();

  // ---- commands of its users
  [[nodiscard]] rdmap::PostResult post_send(const rdmap::SendWr& request);
  void accept(WorkQueues& queues, const ConnParam& param);
  void reject(ConstBytes private_data);
  void disconnect();
  void abort();
  // Like abort. The id learns the reason even before there is a Stream.
  void cut(const std::string& why);
  // A user goes away: the connection reports to it no more.
  void leave(const IdShare& id);
  void leave(const WorkQueues& queues);
  void leave(const Backlog& backlog);

  // ---- commands of the loop
  // The listener has delivered the connect request with this id.
  void deliver_to(IdShare& id);
  // The device is gone. The id is told so later (Loop::tell_removal).
  void unplug() override;
  // Closes the socket at once, without events.
  void drop(const std::string& why);
  // It holds too much of the resource `what` and has to go.
  void give_way(Holdings::What what);
  // The loop goes away: sends an end that is under way, as far as the socket takes it.
  void last_turn();
  // It has come to rest: gives back the memory that it does not need now.
  void trim();

  std::optional<rdmap::PostedRecv> take() override;

  Handle handle() const { return self_; }
  LoopServices::RestWatch::Mark& rest_mark() { return rest_mark_; }
  bool dead() const { return is<Dead>(); }
  bool readable() const { return stream_ && socket_.readable(); }
  // Whether its last turn left octets, in either direction.
  bool goes_on() const { return goes_on_; }
  bool established() const { return std::holds_alternative<Established>(startup_); }
  const sockaddr_storage& peer() const { return peer_; }
  int fd() const { return socket_.fd(); }
  const rdmap::StreamCounters* counters() const { return stream_ ? &stream_->counters() : nullptr; }
  // The peer's Request while it waits for accept or reject; else null.
  rdmap::ConnectionRequest* request();

 private:
  struct Mapping {
    std::unique_ptr<PortMapAsk> asking;
  };
  struct Connecting {
    TimePoint deadline;
    std::vector<std::uint8_t> received;  // read from an adopted socket before it came here
  };
  struct Silent {
    TimePoint deadline;
  };
  struct Requested {
    rdmap::ConnectionRequest request;
  };
  struct Running {};
  struct FallingBack {};
  struct Lingering {
    TimePoint deadline;
  };
  struct Dead {};
  using State = std::variant<Mapping, Connecting, Silent, Requested, Running, FallingBack, Lingering, Dead>;

  // The result of MPA startup.
  struct Starting {};
  struct Established {};
  struct Rejected {
    std::vector<std::uint8_t> surplus;  // octets behind the Reply, which are not MPA's
  };
  using Startup = std::variant<Starting, Established, Rejected>;

  // The progress of the connection's end, which never goes back. kUnderWay: the end goes on without users; kTold: the
  // id and the log know of it; kClosed: the Stream has ended, too.
  enum class End : std::uint8_t { kNone, kUnderWay, kTold, kClosed };

  // An initiator asks with a revision of MPA.
  struct Initiator {
    ConnParam param;
    std::uint8_t revision;
  };

  template <typename S>
  bool is() const {
    return std::holds_alternative<S>(state_);
  }
  bool told() const { return end_ >= End::kTold; }
  bool closed() const { return end_ == End::kClosed; }
  bool heard_by_id() const { return initiator_ && id_ != nullptr; }
  void advance(End end) { end_ = std::max(end_, end); }
  std::optional<TimePoint> deadline() const;

  rdmap::StreamConfig stream_config() const;
  void start_stream(ConstBytes received, TimePoint now);
  void feed(ConstBytes octets, TimePoint now);
  bool may_fall_back(const rdmap::Closed& closed, bool timed_out) const;
  std::size_t fall_back(TimePoint now);
  std::size_t mapping_turn(TimePoint now);
  void connect_tcp();
  std::size_t on_tcp_connected(TimePoint now);
  void connect_failed(int errno_value);
  bool waits_for_receives();
  std::size_t write(TimePoint now);
  void count_fpdus(std::size_t octets, std::uint64_t num);
  std::size_t settle(TimePoint now);
  // timed_out: a time limit has caused the events.
  std::size_t drain_events(bool timed_out = false);
  void carry_out_llp_action(TimePoint now);
  void rearm();
  void hung_up(std::uint32_t epoll_events, TimePoint now);

  void on_event(const rdmap::Completion& completion);
  void on_event(rdmap::ConnectionRequest& request);
  void on_event(rdmap::Established& established);
  void on_event(rdmap::Rejected& rejected);
  void on_event(rdmap::Nudged& nudged);
  void on_closed(const rdmap::Closed& closed, bool timed_out);
  void on_failure(const rdmap::Closed& why, bool timed_out);
  // Tells the id that its connection ended, or was never established.
  void push_end(IdShare& id, const rdmap::Closed& why, bool timed_out) const;

  void orphaned();
  void finish(bool reset);
  void answered();
  void detach_queues();
  // told: an event tells the program the same, so the line matters less.
  // The end of the stream, for the counters and the log.
  void tell_end(const rdmap::Closed& closed, bool told) const;
  void log_end(const rdmap::Closed& closed, bool told) const;
  // Logs a step that the connection takes towards the peer by itself: "connection to 10.0.0.1:20049: WORDS".
  void log_step(const std::string& words) const;
  void warn_of_offer() const;

  LoopServices& loop_;
  const Handle self_;
  Backlog* backlog_ = nullptr;
  IdShare* id_ = nullptr;
  WorkQueues* queues_ = nullptr;
  sockaddr_storage peer_{};
  std::optional<Initiator> initiator_;
  StreamSocket socket_;
  State state_;
  Startup startup_;
  End end_ = End::kNone;
  LoopServices::RestWatch::Mark rest_mark_;
  bool goes_on_ = false;
  std::size_t octets_of_fpdu_ = RoundShares::kFpdu;  // expected of the next ones
  bool attention_ = false;                           // something besides the socket's input wants a turn
  std::unique_ptr<StreamTrace> trace_;               // of the Stream; null: no trace is written
  std::unique_ptr<rdmap::Stream> stream_;            // made when the first octets come: silent clients cost little
};

}  // namespace weft::verbs::soft
