#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "mpa/peer_profile.h"
#include "mpa/staging.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/cq.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/log_budget.h"
#include "verbs-shim/soft/memory_table.h"
#include "verbs-shim/soft/poller.h"
#include "verbs-shim/soft/timer_heap.h"

namespace weft::verbs::soft {

class Listener;

// SoftDevice is the soft RNIC: the tables, and the loop that gives its connections their turns. The loop runs inside
// process and calls nobody back; what happens is queued in Cqs and channels.
class SoftDevice final : public Device {
 public:
  explicit SoftDevice(const SoftConfig& config);
  ~SoftDevice() override;
  Status open();

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Pd>> alloc_pd() override;
  Result<std::unique_ptr<CompChannel>> create_comp_channel() override;
  Result<std::unique_ptr<Cq>> create_cq(int cqe, CompChannel* channel) override;
  Result<std::unique_ptr<CmChannel>> create_event_channel() override;
  std::size_t process(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  int fd() const override { return poller_->fd(); }

  // ---- for its own parts
  const SoftConfig& config() const { return config_; }
  const mpa::PeerProfile& peer() const { return peer_; }
  RegionTable& regions() { return regions_; }
  Poller& poller() { return *poller_; }
  TimerHeap& timers() { return timers_; }
  LogBudget& log_budget() { return log_budget_; }
  // The time for a command: no earlier than what process was last told.
  TimePoint now() const;
  std::uint32_t next_number() { return ++last_number_; }
  Result<std::unique_ptr<Qp>> create_qp(class SoftCmId& id, Pd& pd, const QpInitAttr& attr);

  // The shared receive buffer, for this connection; whoever had it before keeps its octets elsewhere.
  mpa::Staging& staging_for(Connection& connection);
  bool staging_holds_octets_of_other(const Connection& connection) const;
  std::array<iovec, 1024>& iov() { return iov_; }

  Connection& adopt(std::unique_ptr<Connection> connection);
  // Gives the connection a turn in the next process.
  void make_ready(Connection& connection);
  // The connection died; it is freed when no list of the loop can name it any more.
  void retire(Connection& connection);
  void opened(Connection& connection);
  void add_silent(Connection& connection);
  void remove_silent(Connection& connection);
  // Drops the connection that has been silent longest; false where there is none.
  bool drop_oldest_silent(const char* why);
  const Connection::List& silent() const { return silent_; }
  void add_lingering(Connection& connection);
  std::size_t num_parked_octets() const { return num_parked_octets_; }
  void tx_blocked(bool blocked) { blocked ? ++num_blocked_ : --num_blocked_; }
  void watch_listener(Listener& listener) { listeners_.push_back(&listener); }
  void forget_listener(Listener& listener);
  // Gives back, within a second or so, what the connection took to be busy.
  void trim_later(Connection& connection);
  // A descriptor was closed: listeners that ran out of them may go on.
  void fd_freed() { fds_freed_ = true; }

 private:
  // Up to so many open connections are looked at directly; with more, epoll is cheaper.
  static constexpr std::size_t kMaxHot = 4;

  std::size_t run_ready(TimePoint now);
  std::size_t run_hot(TimePoint now);
  std::size_t run_epoll(TimePoint now);
  std::size_t run_timers(TimePoint now);
  std::size_t run_overflows();
  Status check_cqs(const SoftCq& send_cq, const SoftCq& recv_cq, const QpCap& cap) const;
  void keep_parked(Connection& connection);
  void unpark(Connection& connection);
  bool epoll_due(bool moved) const;
  void heat(Connection& connection);
  void reap();
  void trim();
  std::optional<TimePoint> next_deadline() const;
  void settle_poller();

  const SoftConfig config_;
  const mpa::PeerProfile& peer_;
  Caps caps_;
  std::unique_ptr<Poller> poller_;
  RegionTable regions_;
  TimerHeap timers_;
  mpa::Staging staging_;
  Connection* staging_owner_ = nullptr;
  std::array<iovec, 1024> iov_{};
  LogBudget log_budget_;
  TimePoint last_now_{};
  std::uint32_t last_number_ = 0;

  absl::flat_hash_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> ready_;
  std::vector<Connection*> running_;  // what run_ready works through
  std::vector<Connection*> hot_;
  std::vector<Connection*> dead_;
  std::vector<Connection*> to_trim_;
  std::optional<TimePoint> trim_at_;
  std::vector<Listener*> listeners_;
  std::vector<SoftCq*> overflowed_;
  Connection::List silent_;
  Connection::List lingering_;
  std::map<std::uint64_t, Connection*> parked_;  // who holds a part of an FPDU, by when that began
  std::uint64_t last_parked_ = 0;
  std::size_t num_parked_octets_ = 0;
  std::size_t num_open_ = 0;
  std::size_t num_blocked_ = 0;
  std::size_t looks_since_epoll_ = 0;
  bool fds_freed_ = false;
};

}  // namespace weft::verbs::soft
