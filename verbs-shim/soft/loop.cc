#include "verbs-shim/soft/loop.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "verbs-shim/soft/cm.h"
#include "verbs-shim/soft/port_map.h"
#include "verbs-shim/soft/qp.h"
#include "verbs-shim/soft/soft_device.h"
#include "verbs-shim/soft/worker.h"

namespace weft::verbs::soft {
namespace {

// So many looks at the busy sockets in a row may pass before epoll is asked about the others; with a caller who sleeps
// on the descriptor only while the busy sockets have something.
constexpr std::size_t kLooksSpinning = 16;
constexpr std::size_t kLooksBusy = 8;
// A busy socket that was empty so often in a row counts as busy no more.
constexpr std::uint32_t kCoolAfter = 20000;
constexpr std::chrono::seconds kTrimInterval{1};

}  // namespace

Loop::Loop(SoftDevice& device, std::size_t index, const Limits& limits)
    : device_(device),
      index_(index),
      limits_(limits),
      config_(device.config()),
      peer_(device.peer()),
      regions_(device.regions()),
      poller_(std::make_unique<Poller>()),
      inbox_mutex_(device.threaded()) {
  hot_.reserve(kMaxHot);
}

Loop::~Loop() {
  for (auto& [connection, owned] : connections_) connection->last_turn();
}

Status Loop::open() {
  return poller_->open();
}

TimePoint Loop::now() const {
  return std::max(last_now_, std::chrono::steady_clock::now());
}

std::uint32_t Loop::next_number() {
  return device_.next_number();
}

// ---- for any thread

void Loop::run(absl::FunctionRef<void()> f) {
  if (worker_ != nullptr) return worker_->run(f);
  f();
}

void Loop::post(absl::AnyInvocable<void()> f) {
  if (worker_ != nullptr) return worker_->post(std::move(f));
  f();
}

void Loop::attend(SoftQp& qp) {
  {
    const std::scoped_lock lock(inbox_mutex_);
    if (std::exchange(qp.in_inbox, true)) return;
    inbox_.push_back(&qp);
  }
  if (worker_ != nullptr) return worker_->wake();
  poller_->set_wanted(true);
}

bool Loop::has_work() const {
  const std::scoped_lock lock(inbox_mutex_);
  return !inbox_.empty();
}

void Loop::forget_qp(SoftQp& qp) {
  const std::scoped_lock lock(inbox_mutex_);
  std::erase(inbox_, &qp);
}

std::optional<TimePoint> Loop::next_timeout() const {
  if (!ready_.empty() || has_work() || poller_->num_events() > 0) return last_now_;
  return next_deadline();
}

std::optional<TimePoint> Loop::next_deadline() const {
  const auto timer = timers_.next();
  return timer && trim_at_ ? std::min(*timer, *trim_at_) : (timer ? timer : trim_at_);
}

// ---- the loop

std::size_t Loop::process(TimePoint now) {
  last_now_ = std::max(last_now_, now);
  std::size_t moved = run_inbox();
  moved += run_ready(now);
  moved += run_hot(now);
  ++looks_since_epoll_;
  if (epoll_due(moved > 0)) moved += run_epoll(now);
  moved += run_timers(now);
  if (trim_at_ && *trim_at_ <= now) trim();
  if (!dead_.empty()) reap();
  settle_poller();
  return moved;
}

std::size_t Loop::run_inbox() {
  {
    const std::scoped_lock lock(inbox_mutex_);
    if (inbox_.empty()) return 0;
    attending_.swap(inbox_);
    for (SoftQp* qp : attending_) qp->in_inbox = false;
  }
  const std::size_t num = attending_.size();
  for (SoftQp* qp : attending_) {
    qp->attend();
    turn_over();
  }
  attending_.clear();
  return num;
}

// No view of memory outlives a connection's turn.
void Loop::turn_over() {
  if (worker_ != nullptr) worker_->turn_over();
}

std::size_t Loop::run_ready(TimePoint now) {
  if (ready_.empty()) return 0;
  std::size_t moved = 0;
  running_.swap(ready_);
  for (Connection* connection : running_) {
    connection->in_ready = false;
    if (!connection->dead()) moved += connection->turn(connection->read_more, now);
    turn_over();
  }
  running_.clear();
  return moved;
}

std::size_t Loop::run_hot(TimePoint now) {
  std::size_t moved = 0;
  bool cooled = false;
  for (Connection* connection : hot_) {
    if (connection->dead()) continue;
    if (!connection->readable()) {
      connection->idle_looks = kCoolAfter;
      cooled = true;
      continue;
    }
    // Parking another's half FPDU for a look that mostly finds nothing is not worth it: epoll will tell.
    if (staging_holds_octets_of_other(*connection)) continue;
    const std::size_t n = connection->turn(true, now);
    turn_over();
    connection->idle_looks = n > 0 ? 0 : connection->idle_looks + 1;
    cooled = cooled || connection->idle_looks >= kCoolAfter;
    moved += n;
  }
  if (num_open_ > kMaxHot) {
    for (Connection* connection : hot_) connection->hot = false;
    hot_.clear();
  } else if (cooled) {
    std::erase_if(hot_, [](Connection* connection) {
      const bool cold = connection->idle_looks >= kCoolAfter;
      if (cold) connection->hot = false;
      return cold;
    });
  }
  return moved;
}

bool Loop::epoll_due(bool moved) const {
  if (hot_.empty() || num_blocked_ > 0) return true;
  const std::size_t limit = poller_->watched() ? (moved ? kLooksBusy : 0) : kLooksSpinning;
  return looks_since_epoll_ > limit;
}

std::size_t Loop::run_epoll(TimePoint now) {
  looks_since_epoll_ = 0;
  std::size_t moved = 0;
  const auto events = poller_->poll();
  bool accepting = false;
  for (const epoll_event& event : events) {
    auto* source = static_cast<Source*>(event.data.ptr);
    if (source->kind == Source::Kind::kListener) {
      accepting = true;
      continue;
    }
    if (source->kind == Source::Kind::kPortMap) {
      moved += static_cast<PortMapAnswers::PortMapSocket*>(source)->on_ready(now);
      continue;
    }
    auto& connection = static_cast<Connection&>(*source);
    if (connection.dead()) continue;
    const std::size_t n = connection.on_ready(event.events, now);
    turn_over();
    if (n > 0 && !connection.hot && !connection.dead() && connection.established()) heat(connection);
    moved += n;
  }
  if (!accepting) return moved;
  // Last, so that those who just spoke are not dropped as silent for the sake of those who come.
  for (const epoll_event& event : events) {
    auto* source = static_cast<Source*>(event.data.ptr);
    if (source->kind == Source::Kind::kListener) moved += static_cast<Listener*>(source)->on_ready(now);
  }
  return moved;
}

std::size_t Loop::run_timers(TimePoint now) {
  std::size_t moved = 0;
  while (Timer* timer = timers_.pop_due(now)) {
    auto* source = static_cast<Source*>(timer);
    if (source->kind == Source::Kind::kListener) {
      static_cast<Listener*>(source)->resume();
    } else {
      moved += static_cast<Connection*>(source)->on_timer(now);
    }
  }
  return moved;
}

void Loop::heat(Connection& connection) {
  if (num_open_ > kMaxHot || hot_.size() >= kMaxHot) return;
  connection.hot = true;
  connection.idle_looks = 0;
  hot_.push_back(&connection);
}

void Loop::reap() {
  const auto is_dead = [](const Connection* connection) { return connection->dead(); };
  std::erase_if(ready_, is_dead);
  std::erase_if(hot_, is_dead);
  std::erase_if(to_trim_, is_dead);
  for (Connection* connection : std::exchange(dead_, {})) connections_.erase(connection);
  if (std::exchange(fds_freed_, false)) {
    for (Listener* listener : listeners_) listener->resume();
  }
}

void Loop::trim_later(Connection& connection) {
  if (connection.to_trim) return;
  connection.to_trim = true;
  to_trim_.push_back(&connection);
  if (!trim_at_) trim_at_ = last_now_ + kTrimInterval;
}

void Loop::trim() {
  for (Connection* connection : std::exchange(to_trim_, {})) {
    connection->to_trim = false;
    connection->trim();
  }
  trim_at_.reset();
}

void Loop::settle_poller() {
  poller_->set_wanted(!ready_.empty() || has_work() || poller_->num_events() > 0);
  poller_->set_deadline(next_deadline());
}

// ---- for its parts

mpa::Staging& Loop::staging_for(Connection& connection) {
  if (staging_owner_ == &connection) return staging_;
  if (Connection* owner = std::exchange(staging_owner_, &connection); owner != nullptr) {
    owner->parked.num_octets = staging_.pending().size();
    owner->park(staging_);
    keep_parked(*owner);
  }
  // Its octets come back into the staging area with the next rx_buffers.
  unpark(connection);
  return staging_;
}

void Loop::keep_parked(Connection& connection) {
  Connection::Parked& parked = connection.parked;
  if (parked.num_octets == 0) return;
  const std::uint64_t num_fpdus = connection.counters()->fpdus_rx;
  if (parked.since == 0 || parked.num_fpdus != num_fpdus) {
    parked.since = ++last_parked_;
    parked.num_fpdus = num_fpdus;
  }
  parked_.emplace(parked.since, &connection);
  num_parked_octets_ += parked.num_octets;
  while (num_parked_octets_ > limits_.max_parked) {
    auto oldest = parked_.begin();
    if (oldest->second == staging_owner_) ++oldest;  // it is about to take its octets back
    if (oldest == parked_.end()) return;
    oldest->second->give_way("its FPDU has been incomplete for longest, and memory for such parts is short");
  }
}

void Loop::unpark(Connection& connection) {
  if (connection.parked.num_octets == 0) return;
  parked_.erase(connection.parked.since);
  num_parked_octets_ -= std::exchange(connection.parked.num_octets, 0);
}

bool Loop::staging_holds_octets_of_other(const Connection& connection) const {
  return staging_owner_ != &connection && !staging_.pending().empty();
}

Connection& Loop::adopt(std::unique_ptr<Connection> connection) {
  Connection* raw = connection.get();
  connections_.emplace(raw, std::move(connection));
  return *raw;
}

void Loop::make_ready(Connection& connection) {
  if (connection.in_ready || connection.dead()) return;
  connection.in_ready = true;
  ready_.push_back(&connection);
  if (worker_ == nullptr) poller_->set_wanted(true);  // a worker looks before it sleeps
}

void Loop::opened(Connection& connection) {
  ++num_open_;
  if (!connection.hot) heat(connection);
}

void Loop::retire(Connection& connection) {
  if (staging_owner_ == &connection) {
    staging_.consume(staging_.pending().size());
    staging_owner_ = nullptr;
  }
  unpark(connection);
  if (connection.linger_place) lingering_.erase(*connection.linger_place);
  connection.linger_place.reset();
  if (connection.established()) --num_open_;
  fds_freed_ = true;
  dead_.push_back(&connection);
}

void Loop::add_silent(Connection& connection) {
  connection.silent_place = silent_.insert(silent_.end(), &connection);
  if (silent_.size() > limits_.max_silent) drop_oldest_silent("too many connections that have said nothing");
}

void Loop::remove_silent(Connection& connection) {
  if (!connection.silent_place) return;
  silent_.erase(*connection.silent_place);
  connection.silent_place.reset();
}

bool Loop::drop_oldest_silent(const char* why) {
  if (silent_.empty()) return false;
  silent_.front()->drop(why);
  return true;
}

void Loop::add_lingering(Connection& connection) {
  connection.linger_place = lingering_.insert(lingering_.end(), &connection);
  if (lingering_.size() > limits_.max_lingering) lingering_.front()->drop("too many connections are still ending");
}

void Loop::unplug() {
  for (Listener* listener : listeners_) listener->unplug();
  std::vector<Connection*> all;
  for (const auto& [connection, owned] : connections_) all.push_back(connection);
  for (Connection* connection : all) connection->unplug();
}

void Loop::forget_listener(Listener& listener) {
  std::erase(listeners_, &listener);
  for (auto& [connection, owned] : connections_) connection->listener_gone(listener);
}

}  // namespace weft::verbs::soft
