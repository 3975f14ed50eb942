#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "base/time.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/id_share.h"
#include "verbs-shim/soft/loop_services.h"
#include "verbs-shim/soft/mailbox.h"
#include "verbs-shim/soft/maybe_mutex.h"
#include "verbs-shim/soft/slot_map.h"
#include "verbs-shim/soft/work_queues.h"

namespace weft::verbs::soft {

// Loop owns connections and gives them their turns. It runs inside process and calls no user back; events and
// completions wait in Cqs and channels. One thread drives it: the device's caller, or a Worker. Only this thread
// touches its connections. Other threads reach it through run, post and attend.
class Loop final : public LoopServices {
 public:
  // Its bounds (Holdings) are its share of the device's limits.
  Loop(Core& core, std::size_t index);
  ~Loop();

  std::size_t process(TimePoint now);
  std::optional<TimePoint> next_timeout() const;

  // ---- for any thread
  // Runs f between two turns and returns afterwards. Callers hold no lock.
  void run(absl::FunctionRef<void()> f) { mailbox_.run(f); }
  // The same with a result.
  template <typename F>
  auto call(F f) -> decltype(f()) {
    std::optional<decltype(f())> result;
    run([&] { result.emplace(f()); });
    return std::move(*result);
  }
  // Runs f between two turns, before tasks of later calls of run and post.
  void post(absl::AnyInvocable<void()> f) { mailbox_.post(std::move(f)); }
  // The queues have work for their connection; the next turn takes it.
  void attend(WorkQueues& queues);
  bool has_work() const;
  Mailbox& mailbox() { return mailbox_; }

  // ---- in its thread
  // make(handle) returns a std::unique_ptr<Connection>.
  template <typename Make>
  Connection& add(Make make) {
    return connections_.add(std::move(make));
  }
  // Null if the connection has died.
  Connection* find(Handle who) const {
    Connection* connection = connections_.find(who);
    return connection != nullptr && !connection->dead() ? connection : nullptr;
  }
  // Closes connections that hold too much (Holdings).
  void keep_bounds() {
    while (holdings_.exceeds()) give_way();
  }
  // Closes the connection that has been silent longest; false if there is none.
  bool drop_oldest_silent(const char* why);
  void add_id(IdShare& id) { ids_.insert(&id); }
  void add_listener(Source& listener) { listeners_.push_back(&listener); }
  // The argument goes away; its connections hear of it.
  void remove(IdShare& id);
  void remove(WorkQueues& queues);
  void remove(Source& listener, Backlog& backlog);
  // Resets all connections and accepts no more.
  void unplug();
  // Called after unplug: tells the ids.
  void tell_removal();

 private:
  void give_way();
  template <typename Things, typename ConnectionOf>
  void begin_round(const Things& things, ConnectionOf connection_of);
  template <typename Turn>
  std::optional<std::size_t> run_share(const Connection& connection, Turn turn);
  std::size_t run_inbox();
  std::size_t run_ready(TimePoint now);
  std::size_t run_hot(TimePoint now);
  std::size_t run_epoll(TimePoint now);
  std::size_t run_timers(TimePoint now);
  void run_resting(TimePoint now);
  void reap(TimePoint now);
  std::optional<TimePoint> next_deadline() const;
  bool is_due() const { return turns_.any_ready() || has_work() || poller_.num_events() > 0; }

  SlotMap<Connection> connections_;
  std::vector<Source*> listeners_;
  absl::flat_hash_set<IdShare*> ids_;
  Mailbox mailbox_;

  mutable Mutex inbox_mutex_;  // guards inbox_ and the marks in its WorkQueues
  std::vector<WorkQueues*> inbox_;
  std::vector<WorkQueues*> attending_;  // the queues that run_inbox works through
};

}  // namespace weft::verbs::soft
