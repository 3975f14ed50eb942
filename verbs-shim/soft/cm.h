#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "rdmap/stream.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/doorbell.h"
#include "verbs-shim/soft/maybe_mutex.h"
#include "verbs-shim/soft/poller.h"

namespace weft::verbs::soft {

class Connection;
class Loop;
class SoftCmId;
class SoftDevice;
class SoftQp;

// EventQueue is what a channel and its ids share; ids may outlive the channel, their events then go nowhere. Any
// thread.
class EventQueue {
 public:
  explicit EventQueue(SoftDevice& device);
  int fd();
  void push(CmEvent event);
  std::optional<CmEvent> pop();
  // Drops what is queued of one id, or everything and whatever may follow.
  void forget(const CmId& id);
  // Drops the connect request that brings this id, and the id with it; false where it was taken already.
  bool forget_request(const CmId& id);
  void close();

 private:
  Mutex mutex_;  // guards all below; no event is destroyed under it, as a connect request's id comes back here
  Doorbell bell_;
  bool open_ = true;
  std::deque<CmEvent> events_;
};

class SoftCmChannel final : public CmChannel {
 public:
  explicit SoftCmChannel(SoftDevice& device);
  ~SoftCmChannel() override { queue_->close(); }
  int fd() const override { return queue_->fd(); }
  std::optional<CmEvent> get_event() override { return queue_->pop(); }
  Result<std::unique_ptr<CmId>> create_id() override;

 private:
  SoftDevice& device_;
  std::shared_ptr<EventQueue> queue_;
};

// Listener makes connect requests of a listening id out of TCP connections, in one loop. An id has one in every loop;
// that in its own accepts, and they take turns. At most `backlog` requests wait for their answer in each; what comes
// beyond that waits unheard. Out of descriptors, the oldest silent connection gives way, or accepting pauses.
class Listener final : public Source {
 public:
  Listener(Loop& loop, SoftCmId& id, std::size_t backlog);
  ~Listener() override;
  // fd: the listening socket; all: the id's Listeners, this one among them and the first of them to go. False where
  // epoll has no room; then fd stays with the caller.
  bool accept_on(UniqueFd& fd, std::vector<Listener*> all);

  std::size_t on_ready(TimePoint now);
  // A connection for this loop.
  Connection& take(UniqueFd fd, const sockaddr_storage& peer);
  // Descriptors may be had again.
  void resume();
  // The device is gone: nobody is accepted any more.
  void unplug();

  // A whole, acceptable Request arrived on the connection.
  void on_request(Connection& connection);
  // It was accepted or rejected, or is gone.
  void answered(Connection& connection);

  SoftCmId& id() { return id_; }
  Loop& loop() { return loop_; }

 private:
  void hand_out(UniqueFd fd, const sockaddr_storage& peer);
  void ask_others();
  void deliver(Connection& connection);
  void pause(TimePoint now);

  Loop& loop_;
  SoftCmId& id_;
  UniqueFd fd_;
  const std::size_t backlog_;
  bool paused_ = false;
  std::vector<Listener*> all_;
  std::size_t next_ = 0;  // whose turn it is among all_
  absl::flat_hash_set<Connection*> delivered_;
  std::deque<Connection*> waiting_;
};

// SoftCmId belongs to one loop, as its connection does. What the loop's thread shares with the caller's is touched
// within Loop::run; the rest is the caller's alone.
class SoftCmId final : public CmId {
 public:
  SoftCmId(Loop& loop, std::shared_ptr<EventQueue> queue);
  ~SoftCmId() override;

  Status bind_addr(const sockaddr_storage& addr) override;
  Status listen(int backlog) override;
  Status resolve_addr(const sockaddr_storage& dst, std::chrono::milliseconds timeout) override;
  Status resolve_route(std::chrono::milliseconds timeout) override;
  Result<std::unique_ptr<Qp>> create_qp(Pd& pd, const QpInitAttr& attr) override;
  Status connect(const ConnParam& param) override;
  Status accept(const ConnParam& param) override;
  Status reject(std::span<const std::uint8_t> private_data) override;
  Status disconnect() override;
  sockaddr_storage local_addr() const override;
  sockaddr_storage peer_addr() const override;

  // ---- sockets that were there before MPA (adopt.cc)
  Status connect_socket(UniqueFd fd, const ConnParam& param, ConstBytes received);
  Status accept_socket(UniqueFd fd, ConstBytes received);
  void keep_socket(UniqueFd fd, std::vector<std::uint8_t> received);
  Result<ReleasedSocket> release_socket();

  const std::shared_ptr<EventQueue>& queue() const { return queue_; }
  Loop& loop() { return loop_; }

  // ---- in the loop's thread, from the connection
  void attach(Connection& connection);
  void qp_gone() { qp_ = nullptr; }
  void set_local(const sockaddr_storage& local) { local_ = local; }
  // The port mapper told another address or port.
  void set_peer(const sockaddr_storage& peer) { peer_ = peer; }
  void push(CmEventType type, int status, std::string text, ConnParam param,
            std::optional<CmEvent::RefusedWrite> refused_write = {});
  void detach() { connection_ = nullptr; }
  // Its connection, if it had one, is gone already.
  void device_gone();
  // The connection died; where nobody has taken its connect request yet, the request and this id go with it: a peer
  // must not leave one behind with every connection that it makes and breaks while nobody looks (SEC-2.2.7-01).
  bool forget_request() { return queue_->forget_request(*this); }
  bool muted = false;  // the EventQueue's own mark: nobody will ever know of this id

 private:
  enum class State : std::uint8_t { kIdle, kBound, kListening, kAddrResolved, kRouteResolved, kConnected, kRequested };

  Status check_device() const;
  Status check_qp() const;
  Status check_private_data(std::size_t len, std::uint8_t revision) const;
  Status check_answer(std::size_t private_data_len) const;
  void open_listeners(std::size_t backlog);
  void close_listeners();
  // Whether the port mapper's answers name this listening id.
  void set_answers(bool on);
  // Hands a socket, connected or connecting, to a connection of this id as initiator.
  Connection& start(UniqueFd fd, const ConnParam& param);

  Loop& loop_;
  std::shared_ptr<EventQueue> queue_;
  State state_ = State::kIdle;
  UniqueFd fd_;                                       // bound, before it listens or connects
  std::vector<std::unique_ptr<Listener>> listeners_;  // one in each loop, in their order
  bool answers_ = false;                              // PortMapAnswers knows of this listening id

  // Shared with the loop's thread.
  sockaddr_storage peer_{};
  Connection* connection_ = nullptr;
  SoftQp* qp_ = nullptr;
  sockaddr_storage local_{};
  UniqueFd kept_;  // MPA has left it
  std::vector<std::uint8_t> kept_received_;
};

}  // namespace weft::verbs::soft
