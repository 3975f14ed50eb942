// The part of Connection that brings it to its end: by its owners, by others who need what it holds, by itself.
#include <cerrno>
#include <utility>

#include "verbs-shim/soft/cm.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/port_map.h"
#include "verbs-shim/soft/qp.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {

void Connection::disconnect() {
  if (qp_ != nullptr) qp_->attend();  // what was posted goes first
  if (dead() || !stream_ || closed_) return;
  ending_ = true;
  phase_ = Phase::kEnding;
  const TimePoint now = loop_.now();
  stream_->disconnect(now);
  // At once, as far as the socket takes it: the caller may deregister the memory next, or go altogether.
  settle(now);
  if (dead()) return;
  attention_ = true;
  loop_.make_ready(*this);
}

void Connection::abort() {
  if (dead()) return;
  if (!stream_) return drop("");
  ending_ = true;
  stream_->abort(loop_.now());
  drain_events();
  if (!dead()) finish(true);
}

void Connection::cut(const std::string& why) {
  if (dead()) return;
  if (!stream_ && id_ != nullptr && !unplugged_) id_->push(CmEventType::kConnectError, ECONNABORTED, why, {});
  abort();
}

void Connection::unplug() {
  unplugged_ = true;
  cut("");
}

void Connection::drop(const std::string& why) {
  if (dead()) return;
  if (!why.empty()) log_end({rdmap::CloseReason::kStartup, std::nullopt, why});
  closed_ = true;
  finish(phase_ == Phase::kSilent || phase_ == Phase::kRequest);
}

void Connection::give_way(const std::string& why) {
  if (dead()) return;
  log_end({rdmap::CloseReason::kLlp, std::nullopt, why});
  abort();
}

void Connection::last_turn() {
  if (dead()) return;
  const TimePoint now = loop_.now();
  if (stream_ && ending_) {
    if (tx_blocked_) set_tx_blocked(false);
    settle(now);
  }
  if (!dead()) drop("");
}

void Connection::id_gone() {
  id_ = nullptr;
  // A request that nobody wants is rejected, so that the initiator knows: a connection that just ends looks like a peer
  // that does not know its revision of MPA.
  if (phase_ == Phase::kRequest && !closed_) reject({});
  orphaned();
}

void Connection::qp_gone() {
  qp_ = nullptr;
  orphaned();
}

void Connection::listener_gone(const Listener& listener) {
  if (listener_ != &listener) return;
  listener_ = nullptr;
  if (id_ == nullptr) drop("");
}

void Connection::orphaned() {
  if (dead() || linger_place) return;
  if (!ending_) return abort();
  if (id_ != nullptr || qp_ != nullptr) return;
  phase_ = Phase::kEnding;
  deadline_ = loop_.now() + 2 * loop_.config().close_timeout;
  loop_.add_lingering(*this);
  if (!dead()) rearm();
}

void Connection::finish(bool reset) {
  if (dead()) return;
  if (reset) set_reset_on_close(fd_.get());
  if (stream_ && !closed_) {
    stream_->on_llp_action_done(reset ? rdmap::LlpAction::kReset : rdmap::LlpAction::kClose);
    drain_events();
    if (!closed_) {
      stream_->abort(loop_.now());
      drain_events();
    }
  }
  loop_.remove_silent(*this);
  if (listener_ != nullptr) listener_->answered(*this);
  listener_ = nullptr;
  set_tx_blocked(false);
  phase_ = Phase::kDead;
  asking_.reset();
  if (qp_ != nullptr) {
    std::exchange(qp_, nullptr)->detach(stream_ ? stream_->counters() : rdmap::StreamCounters{});
  }
  if (id_ != nullptr) std::exchange(id_, nullptr)->detach();
  loop_.timers().set(*this, std::nullopt);
  // Somebody else may hold a descriptor of this socket: closing ours would not take it out of epoll.
  if (adopted_ && watched_) loop_.poller().remove(fd_.get());
  fd_.reset();
  loop_.retire(*this);
}

}  // namespace weft::verbs::soft
