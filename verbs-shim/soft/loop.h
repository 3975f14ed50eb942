#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "mpa/peer_profile.h"
#include "mpa/staging.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/soft/maybe_mutex.h"
#include "verbs-shim/soft/memory_table.h"
#include "verbs-shim/soft/poller.h"
#include "verbs-shim/soft/timer_heap.h"

namespace weft::verbs::soft {

class Listener;
class SoftDevice;
class SoftQp;
class Worker;

// Loop gives its connections their turns. It runs inside process and calls nobody back; what happens is queued in Cqs
// and channels. One thread drives it, the only one that touches its connections: the device's caller, or a Worker.
// What others want goes through run, post and attend, the only members for any thread.
class Loop {
 public:
  // What peers can make this loop hold: its share of the device's limits.
  struct Limits {
    std::size_t max_silent = 0;
    std::size_t max_lingering = 0;
    std::size_t max_parked = 0;
  };

  Loop(SoftDevice& device, std::size_t index, const Limits& limits);
  ~Loop();
  Status open();
  void set_worker(Worker* worker) { worker_ = worker; }

  std::size_t process(TimePoint now);
  std::optional<TimePoint> next_timeout() const;
  int fd() { return poller_->fd(); }

  // ---- for any thread
  // Carries f out between two turns and returns then. Callers hold no lock.
  void run(absl::FunctionRef<void()> f);
  // The same with a result.
  template <typename F>
  auto call(F f) -> decltype(f()) {
    std::optional<decltype(f())> result;
    run([&] { result.emplace(f()); });
    return std::move(*result);
  }
  // Carries f out between two turns, before what is run or posted later.
  void post(absl::AnyInvocable<void()> f);
  // Something waits in the queue pair for SoftQp::attend, which the next turn calls.
  void attend(SoftQp& qp);
  bool has_work() const;

  // ---- for its own parts
  SoftDevice& device() { return device_; }
  std::size_t index() const { return index_; }
  const SoftConfig& config() const { return config_; }
  const mpa::PeerProfile& peer() const { return peer_; }
  RegionTable& regions() { return regions_; }
  Poller& poller() { return *poller_; }
  TimerHeap& timers() { return timers_; }
  const Log& log() const { return config_.log; }
  LogBudget& log_budget() { return log_budget_; }
  // The time for a command: no earlier than what process was last told.
  TimePoint now() const;
  std::uint32_t next_number();

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
  void add_lingering(Connection& connection);
  void tx_blocked(bool blocked) { blocked ? ++num_blocked_ : --num_blocked_; }
  void watch_listener(Listener& listener) { listeners_.push_back(&listener); }
  void forget_listener(Listener& listener);
  void forget_qp(SoftQp& qp);
  // Resets all connections and accepts no more.
  void unplug();
  // Gives back, within a second or so, what the connection took to be busy.
  void trim_later(Connection& connection);

 private:
  // Up to so many open connections are looked at directly; with more, epoll is cheaper.
  static constexpr std::size_t kMaxHot = 4;

  std::size_t run_inbox();
  void turn_over();
  std::size_t run_ready(TimePoint now);
  std::size_t run_hot(TimePoint now);
  std::size_t run_epoll(TimePoint now);
  std::size_t run_timers(TimePoint now);
  void keep_parked(Connection& connection);
  void unpark(Connection& connection);
  bool epoll_due(bool moved) const;
  void heat(Connection& connection);
  void reap();
  void trim();
  std::optional<TimePoint> next_deadline() const;
  void settle_poller();

  SoftDevice& device_;
  const std::size_t index_;
  const Limits limits_;
  const SoftConfig& config_;
  const mpa::PeerProfile& peer_;
  RegionTable& regions_;
  Worker* worker_ = nullptr;
  std::unique_ptr<Poller> poller_;
  TimerHeap timers_;
  mpa::Staging staging_;
  Connection* staging_owner_ = nullptr;
  std::array<iovec, 1024> iov_{};
  LogBudget log_budget_;
  TimePoint last_now_{};

  mutable Mutex inbox_mutex_;
  std::vector<SoftQp*> inbox_;
  std::vector<SoftQp*> attending_;  // what run_inbox works through

  absl::flat_hash_map<Connection*, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> ready_;
  std::vector<Connection*> running_;  // what run_ready works through
  std::vector<Connection*> hot_;
  std::vector<Connection*> dead_;
  std::vector<Connection*> to_trim_;
  std::optional<TimePoint> trim_at_;
  std::vector<Listener*> listeners_;
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
