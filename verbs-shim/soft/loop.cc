#include "verbs-shim/soft/loop.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace weft::verbs::soft {
namespace {

Holdings::Limits share(const SoftConfig& config, std::size_t num_loops) {
  const auto part = [&](std::size_t whole) { return whole == 0 ? 0 : std::max<std::size_t>(whole / num_loops, 1); };
  return {.max_silent = part(config.max_silent),
          .max_lingering = part(config.max_lingering),
          .max_parked = part(config.max_parked)};
}

}  // namespace

Loop::Loop(Core& core, std::size_t index)
    : LoopServices(core, index, share(core.config(), core.num_loops())), inbox_mutex_(core.threaded()) {}

Loop::~Loop() {
  connections_.for_each([](Connection& connection) { connection.last_turn(); });
}

// ---- for any thread

void Loop::attend(WorkQueues& queues) {
  {
    const std::scoped_lock lock(inbox_mutex_);
    if (std::exchange(queues.in_inbox, true)) return;
    inbox_.push_back(&queues);
  }
  mailbox_.wake();
  core().want_caller();
}

bool Loop::has_work() const {
  const std::scoped_lock lock(inbox_mutex_);
  return !inbox_.empty();
}

std::optional<TimePoint> Loop::next_timeout() const {
  return is_due() ? last_now_ : next_deadline();
}

std::optional<TimePoint> Loop::next_deadline() const {
  return earliest(timers_.next(), resting_.due());
}

// ---- the loop

std::size_t Loop::process(TimePoint now) {
  last_now_ = std::max(last_now_, now);
  std::size_t moved = has_work() ? run_inbox() : 0;
  moved += run_ready(now);
  moved += run_hot(now);
  if (poller_.expects_room() || turns_.epoll_due(moved > 0, poller_.watched())) moved += run_epoll(now);
  moved += run_timers(now);
  if (resting_.is_due(now)) run_resting(now);
  keep_bounds();
  if (!dead_.empty()) reap(now);
  poller_.set_wanted(is_due());
  poller_.set_deadline(next_deadline());
  return moved;
}

std::size_t Loop::run_inbox() {
  {
    const std::scoped_lock lock(inbox_mutex_);
    attending_.swap(inbox_);
    for (WorkQueues* queues : attending_) queues->in_inbox = false;
  }
  const std::size_t num = attending_.size();
  for (WorkQueues* queues : attending_) {
    if (Connection* connection = find(queues->connection())) {
      connection->attend();
    } else {
      queues->hand_over([](const rdmap::SendWr&) { return rdmap::PostResult::kNotConnected; });
    }
    mailbox_.turn_over();
  }
  attending_.clear();
  return num;
}

// connection_of(thing): the connection that has its turn for this thing in the round; null for none.
template <typename Things, typename ConnectionOf>
void Loop::begin_round(const Things& things, ConnectionOf connection_of) {
  shares_.begin(things.size());
  if (!shares_.is_divided()) return;
  for (const auto& thing : things) {
    if (const Connection* one = connection_of(thing)) shares_.enter(holdings_.address_of(one->handle()));
  }
}

// Gives the connection a turn of its part of the round, and returns what it moved; nothing if it has to wait for the
// next round. A connection that is not established yet never waits: it moves little, and has a deadline.
template <typename Turn>
std::optional<std::size_t> Loop::run_share(const Connection& connection, Turn turn) {
  const RoundShares::Address address = holdings_.address_of(connection.handle());
  const std::size_t octets = shares_.octets_for(address, connection.goes_on());
  if (octets == 0 && connection.established()) return std::nullopt;
  turn_octets_ = std::max(octets, RoundShares::kLeast);
  turn_fpdus_ = 0;
  const std::size_t moved = turn();
  turn_octets_ = RoundShares::kMost;
  shares_.moved(address, moved, turn_fpdus_);
  mailbox_.turn_over();
  return moved;
}

std::size_t Loop::run_ready(TimePoint now) {
  if (!turns_.any_ready()) return 0;
  begin_round(turns_.all_ready(), [this](Handle who) { return connections_.find(who); });
  std::size_t moved = 0;
  turns_.run_ready([&](Handle who) {
    Connection* connection = connections_.find(who);
    if (connection == nullptr) return true;
    const auto n = run_share(*connection, [&] { return connection->turn_when_ready(now); });
    moved += n.value_or(0);
    return n.has_value();
  });
  return moved;
}

std::size_t Loop::run_hot(TimePoint now) {
  std::size_t moved = 0;
  turns_.run_hot([&](Handle who) {
    Connection* connection = connections_.find(who);
    if (connection == nullptr || !connection->readable()) return Turns::Look::kOver;
    // A look that mostly finds nothing is not worth parking another connection's partial FPDU: epoll will tell.
    if (staging_.holds_octets_of_other(who)) return Turns::Look::kSkipped;
    const std::size_t n = connection->turn(true, now);
    mailbox_.turn_over();
    moved += n;
    return n > 0 ? Turns::Look::kMoved : Turns::Look::kNothing;
  });
  return moved;
}

std::size_t Loop::run_epoll(TimePoint now) {
  turns_.epoll_asked();
  std::size_t moved = 0;
  bool accepting = false;
  const auto events = poller_.poll();
  begin_round(events, [](const epoll_event& event) {
    auto* source = static_cast<Source*>(event.data.ptr);
    return source->kind == Source::Kind::kConnection ? static_cast<Connection*>(source) : nullptr;
  });
  for (const epoll_event& event : events) {
    auto* source = static_cast<Source*>(event.data.ptr);
    if (source->kind == Source::Kind::kListener) {
      accepting = true;
    } else if (source->kind != Source::Kind::kConnection) {
      moved += source->on_ready(event.events, now);
    } else if (auto& connection = static_cast<Connection&>(*source); !connection.dead()) {
      const auto n = run_share(connection, [&] { return connection.on_ready(event.events, now); });
      // epoll would report the event again, but in the same place, behind the connections that had their turns now.
      if (!n) connection.put_off(event.events);
      if (n.value_or(0) > 0 && !connection.dead() && connection.established()) turns_.heat(connection.handle());
      moved += n.value_or(0);
    }
  }
  if (!accepting) return moved;
  // Accepting comes last, so that a connection that has just sent its Request is not dropped as silent for a new one.
  keep_bounds();
  for (const epoll_event& event : events) {
    auto* source = static_cast<Source*>(event.data.ptr);
    if (source->kind == Source::Kind::kListener) moved += source->on_ready(event.events, now);
  }
  return moved;
}

std::size_t Loop::run_timers(TimePoint now) {
  std::size_t moved = 0;
  while (TimerHeap::Timer* timer = timers_.pop_due(now)) moved += static_cast<Source*>(timer)->on_timer(now);
  return moved;
}

void Loop::run_resting(TimePoint now) {
  resting_.run(
      now, [this](Handle who) { return find(who); },
      [](Connection& connection) -> RestWatch::Mark& { return connection.rest_mark(); },
      [](Connection& connection) { connection.trim(); });
  if (!resting_.due()) tx_room_.release();
}

void Loop::reap(TimePoint now) {
  for (const Handle who : std::exchange(dead_, {})) connections_.remove(who);
  for (Source* source : std::exchange(starving_, {})) source->on_timer(now);
}

// ---- in its thread

void Loop::give_way() {
  const Holdings::Excess excess = *holdings_.excess();
  find(excess.who)->give_way(excess.what);
}

bool Loop::drop_oldest_silent(const char* why) {
  const auto oldest = holdings_.oldest_silent();
  if (oldest) find(*oldest)->drop(why);
  return oldest.has_value();
}

void Loop::remove(IdShare& id) {
  ids_.erase(&id);
  if (Connection* connection = find(id.connection)) connection->leave(id);
  keep_bounds();
}

void Loop::remove(WorkQueues& queues) {
  if (Connection* connection = find(queues.connection())) connection->leave(queues);
  queues.close();
  keep_bounds();
  const std::scoped_lock lock(inbox_mutex_);
  std::erase(inbox_, &queues);
}

void Loop::remove(Source& listener, Backlog& backlog) {
  std::erase(listeners_, &listener);
  std::erase(starving_, &listener);
  connections_.for_each([&](Connection& connection) { connection.leave(backlog); });
}

void Loop::unplug() {
  for (Source* listener : listeners_) listener->unplug();
  connections_.for_each([](Connection& connection) { connection.unplug(); });
}

void Loop::tell_removal() {
  for (IdShare* id : ids_) id->on_removal();
}

}  // namespace weft::verbs::soft
