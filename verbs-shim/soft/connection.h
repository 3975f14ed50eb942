#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rdmap/stream.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/soft/poller.h"

namespace weft::verbs::soft {

class Listener;
class SoftCmId;
class Loop;
class PortMapAsk;
class SoftQp;

// Connection drives one socket and its Stream. Its Loop owns it; a CmId and a Qp are its owners in the sense that
// without them it only delivers its end ("lingers").
//
//   kMapping --port mapper answered, or did not--> kTcp
//   kTcp --connected--> kStartup ----------------------established--> kOpen
//   kSilent --whole MPA Request--> kRequest --accept--> kStartup        |
//   any --disconnect, reject, Terminate, error--> kEnding --socket closed--> kDead
class Connection final : public Source, public rdmap::RecvSource {
 public:
  enum class Phase : std::uint8_t { kMapping, kTcp, kSilent, kRequest, kStartup, kOpen, kEnding, kDead };
  using List = std::list<Connection*>;

  // An incoming connection that has said nothing yet.
  Connection(Loop& loop, Listener& listener, UniqueFd fd, const sockaddr_storage& peer);
  // An outgoing one, its TCP connect under way.
  Connection(Loop& loop, SoftCmId& id, SoftQp& qp, UniqueFd fd, const sockaddr_storage& peer, const ConnParam& param);
  ~Connection() override;

  // The socket was there before MPA: no second one in its stead, and after a reject it goes back to its owner.
  void set_adopted() { adopted_ = true; }
  // MPA begins with octets that somebody read from the socket.
  void begin_with(ConstBytes received, TimePoint now);
  // An outgoing one whose socket is not connecting yet: first the port mapper. False where epoll has no room.
  bool ask(std::unique_ptr<PortMapAsk> asking);
  bool watch();  // enters the socket in the Loop's Poller; false where that fails

  // ---- inputs. Each returns how many octets and events it moved.
  std::size_t on_ready(std::uint32_t epoll_events, TimePoint now);
  std::size_t on_timer(TimePoint now);
  // A turn without news from epoll: what was posted goes out; read: look at the socket too.
  std::size_t turn(bool read, TimePoint now);

  // ---- commands
  [[nodiscard]] rdmap::PostResult post_send(const rdmap::SendWr& request);
  void accept(SoftQp& qp, const ConnParam& param);
  void reject(ConstBytes private_data);
  void disconnect();
  void abort();
  // The same, where the id is to hear of it even before there is a Stream.
  void cut(const std::string& why);
  // The device is gone, as the id will be told.
  void unplug();
  // Closes the socket at once, without events.
  void drop(const std::string& why);
  // The Loop goes: what the socket takes of an end under way is still sent.
  void last_turn();

  // ---- owners
  void set_id(SoftCmId& id) { id_ = &id; }
  void id_gone();
  void qp_gone();
  // The listener goes: what it has not handed out goes with it.
  void listener_gone(const Listener& listener);

  std::optional<rdmap::PostedRecv> take() override;

  Phase phase() const { return phase_; }
  bool dead() const { return phase_ == Phase::kDead; }
  bool readable() const { return fd_ && stream_ && !rx_done_ && !rx_paused_; }
  bool established() const { return established_; }
  const sockaddr_storage& peer() const { return peer_; }
  int fd() const { return fd_.get(); }
  const rdmap::StreamCounters* counters() const { return stream_ ? &stream_->counters() : nullptr; }
  void trim() {
    if (stream_) stream_->trim();
  }
  void park(mpa::Staging& staging) {
    if (stream_) stream_->park(staging);
  }
  // Others need what it holds: it is reset.
  void give_way(const std::string& why);
  std::optional<rdmap::ConnectionRequest>& request() { return request_; }

  // ---- the Loop's bookkeeping
  bool in_ready = false;
  bool to_trim = false;
  bool read_more = false;        // the last turn ended, or did not begin, with the socket not yet empty
  std::uint32_t idle_looks = 0;  // looks at the socket in a row that found nothing
  bool hot = false;
  std::optional<List::iterator> silent_place;
  std::optional<List::iterator> linger_place;
  struct Parked {
    std::uint64_t since = 0;      // rises from one to the next
    std::uint64_t num_fpdus = 0;  // that had arrived by then: another part began since where there are more
    std::size_t num_octets = 0;   // held now
  };
  Parked parked;

 private:
  rdmap::StreamConfig stream_config() const;
  void start_stream(TimePoint now);
  void feed(ConstBytes octets, TimePoint now);
  bool may_fall_back(const rdmap::Closed& closed) const;
  std::size_t fall_back(TimePoint now);
  std::size_t mapping_turn(TimePoint now);
  void connect_tcp();
  std::size_t on_tcp_connected(TimePoint now);
  void connect_failed(int errno_value);
  bool waits_for_receives();
  std::size_t read_turn(TimePoint now);
  std::size_t write_turn(TimePoint now);
  std::size_t settle(TimePoint now);
  std::size_t drain_events();
  void carry_out_llp_action(TimePoint now);
  void rearm();
  void set_tx_blocked(bool blocked);
  void hung_up(std::uint32_t epoll_events, TimePoint now);

  void on_event(const rdmap::Completion& completion);
  void on_event(rdmap::ConnectionRequest& request);
  void on_event(rdmap::Established& established);
  void on_event(rdmap::Rejected& rejected);
  void on_event(const rdmap::Closed& closed);
  void on_failure(const rdmap::Closed& why);
  // Tells the id that its connection is over, or did not come about.
  void push_end(SoftCmId& id, const rdmap::Closed& why) const;

  void orphaned();
  void finish(bool reset);
  // told: an event tells the program the same, and the program has it to say.
  void log_end(const rdmap::Closed& closed, bool told = false) const;
  void log_nudge() const;
  void log_fall_back(const rdmap::Closed& closed) const;

  Loop& loop_;
  Listener* listener_ = nullptr;
  SoftCmId* id_ = nullptr;
  SoftQp* qp_ = nullptr;
  UniqueFd fd_;
  sockaddr_storage peer_{};
  Phase phase_;
  bool initiator_;
  bool attention_ = false;  // something besides the socket's input wants a turn
  bool ending_ = false;     // an orderly end is under way: let it finish even without owners
  bool established_ = false;
  bool rejected_ = false;
  bool adopted_ = false;
  bool unplugged_ = false;
  bool falling_back_ = false;
  std::uint8_t revision_;  // of MPA, what an initiator asks with
  bool closed_ = false;    // the Stream's last event was seen
  bool told_ = false;      // the id and the log were told of the end
  bool timing_out_ = false;
  bool rx_done_ = false;    // EOF or error
  bool rx_paused_ = false;  // the Stream wants nothing for now
  bool tx_blocked_ = false;
  bool watched_ = false;
  bool bulk_ = false;  // the last turn filled segments: EMSS matters
  std::uint32_t interest_ = 0;
  std::size_t emss_ = 0;
  std::size_t budget_;
  std::optional<TimePoint> deadline_;   // the driver's own, beside the Stream's
  ConnParam param_;                     // initiator: what connect was asked for
  std::vector<std::uint8_t> received_;  // read from an adopted socket before it came here
  std::optional<rdmap::ConnectionRequest> request_;
  std::unique_ptr<PortMapAsk> asking_;
  std::unique_ptr<rdmap::Stream> stream_;  // made when the first octets come: silent clients cost little
};

}  // namespace weft::verbs::soft
