// The commands of a Connection's users and of the loop, above all its end, and its log lines.
#include <cerrno>
#include <utility>

#include "base/address.h"
#include "verbs-shim/api/log_line.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {

rdmap::PostResult Connection::post_send(const rdmap::SendWr& request) {
  const rdmap::PostResult result = stream_->post_send(request);
  if (result == rdmap::PostResult::kOk) {
    attention_ = true;
    if (!socket_.blocked()) loop_.ready(self_);
  }
  return result;
}

void Connection::deliver_to(IdShare& id) {
  loop_.holdings().remove_silent(self_);
  id_ = &id;
  id.connection = self_;
  id.local = local_address(socket_.fd());
  id.peer = peer_;
}

void Connection::accept(WorkQueues& queues, const ConnParam& param) {
  queues_ = &queues;
  queues.attach(self_, true);
  answered();
  state_ = Running{};
  const SoftConfig& config = loop_.config();
  stream_->accept(param.private_data, *this, std::min(param.responder_resources, config.ird),
                  std::min(param.initiator_depth, config.ord), queues.pd(), loop_.now());
  attention_ = true;
  loop_.ready(self_);
}

void Connection::reject(ConstBytes private_data) {
  answered();
  state_ = Running{};
  startup_ = Rejected{};
  advance(End::kUnderWay);
  stream_->reject(private_data, loop_.now());
  attention_ = true;
  loop_.ready(self_);
}

void Connection::disconnect() {
  attend();  // the posted requests go first
  if (dead() || !stream_ || closed()) return;
  advance(End::kUnderWay);
  const TimePoint now = loop_.now();
  stream_->disconnect(now);
  // The octets go out at once, as far as the socket takes them: the caller may deregister the memory next, or destroy
  // the device.
  settle(now);
  if (dead()) return;
  attention_ = true;
  loop_.ready(self_);
}

void Connection::cut(const std::string& why) {
  if (dead()) return;
  if (!stream_ && id_ != nullptr) id_->push(CmEventType::kConnectError, ECONNABORTED, why);
  abort();
}

void Connection::unplug() {
  advance(End::kTold);
  abort();
}

void Connection::abort() {
  if (dead()) return;
  if (!stream_) return drop("");
  advance(End::kUnderWay);
  stream_->abort(loop_.now());
  drain_events();
  finish(true);
}

void Connection::drop(const std::string& why) {
  if (dead()) return;
  if (!why.empty()) log_end({rdmap::CloseReason::kStartup, std::nullopt, why}, false);
  advance(End::kClosed);
  finish(is<Silent>() || is<Requested>());
}

void Connection::give_way(Holdings::What what) {
  switch (what) {
    case Holdings::What::kSilent: return drop("too many connections that have said nothing");
    case Holdings::What::kLingering: return drop("too many connections are still ending");
    case Holdings::What::kParked:
      if (dead()) return;
      log_end({rdmap::CloseReason::kLlp, std::nullopt,
               "its FPDU has been incomplete for longest, and memory for parts of FPDUs is short"},
              false);
      return abort();
  }
}

void Connection::last_turn() {
  if (dead()) return;
  const TimePoint now = loop_.now();
  if (stream_ && end_ != End::kNone) {
    socket_.set_blocked(false);
    settle(now);
  }
  drop("");
}

void Connection::leave(const IdShare& id) {
  if (id_ != &id) return;
  id_ = nullptr;
  // An unwanted request is rejected, so that the initiator knows. If the connection just ended, this end would look
  // like a peer that does not know the initiator's revision of MPA.
  if (is<Requested>() && !closed()) reject({});
  orphaned();
}

void Connection::leave(const WorkQueues& queues) {
  if (queues_ != &queues) return;
  queues_ = nullptr;
  orphaned();
}

// A connection that the listener has not handed out goes with the listener.
void Connection::leave(const Backlog& backlog) {
  if (backlog_ != &backlog) return;
  backlog_ = nullptr;
  if (id_ == nullptr) drop("");
}

void Connection::orphaned() {
  if (dead() || is<Lingering>()) return;
  if (end_ == End::kNone) return abort();
  if (id_ != nullptr || queues_ != nullptr) return;
  state_ = Lingering{loop_.now() + 2 * loop_.config().close_timeout};
  loop_.holdings().add_lingering(self_);
  rearm();
}

void Connection::finish(bool reset) {
  if (dead()) return;
  if (reset) set_reset_on_close(socket_.fd());
  if (stream_ && !closed()) {
    stream_->on_llp_action_done(reset ? rdmap::LlpAction::kReset : rdmap::LlpAction::kClose);
    drain_events();
    if (!closed()) {
      stream_->abort(loop_.now());
      drain_events();
    }
  }
  if (dead()) return;
  answered();
  state_ = Dead{};
  detach_queues();
  if (id_ != nullptr) std::exchange(id_, nullptr)->connection = {};
  loop_.set_timer(*this, std::nullopt);
  socket_.close();
  loop_.died(self_, established());
}

void Connection::answered() {
  if (backlog_ != nullptr) std::exchange(backlog_, nullptr)->answered(self_);
}

void Connection::detach_queues() {
  if (queues_ == nullptr) return;
  std::exchange(queues_, nullptr)->detach(stream_ ? stream_->counters() : rdmap::StreamCounters{});
}

void Connection::tell_end(const rdmap::Closed& closed, bool told) const {
  loop_.core().terminates().count(closed);
  log_end(closed, told);
}

void Connection::log_end(const rdmap::Closed& closed, bool told) const {
  const bool quiet = closed.reason == rdmap::CloseReason::kGraceful || closed.reason == rdmap::CloseReason::kLocal;
  const auto level = quiet ? LogLevel::kDebug : told ? LogLevel::kInfo : LogLevel::kWarn;
  if (!loop_.log().wants(level)) return;
  if (!quiet && !loop_.log_budget().take(loop_.now())) return;
  if (const std::uint64_t n = loop_.log_budget().take_suppressed(); n > 0) {
    log_line(loop_.log(), level, "{} more connection ends were not logged", n);
  }
  log_line(loop_.log(), level, "connection {} {}: {}", initiator_ ? "to" : "from", address_str(peer_), closed.text);
}

void Connection::log_step(const std::string& words) const {
  if (!loop_.log_budget().take(loop_.now())) return;
  log_line(loop_.log(), LogLevel::kInfo, "connection to {}: {}", address_str(peer_), words);
}

}  // namespace weft::verbs::soft
