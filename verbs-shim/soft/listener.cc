#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "verbs-shim/api/log_line.h"
#include "verbs-shim/soft/cm.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/socket.h"
#include "verbs-shim/soft/soft_device.h"

namespace weft::verbs::soft {
namespace {

constexpr const char* kNoDescriptors = "no descriptors left, and it had said nothing yet";
constexpr int kAcceptsPerTurn = 128;
// Descriptors that others in this process free are not announced: look again after a while.
constexpr std::chrono::milliseconds kAcceptPause{100};

std::uint8_t or_most(const std::optional<std::uint16_t>& offered, std::uint8_t most) {
  return offered ? static_cast<std::uint8_t>(std::min<std::uint16_t>(*offered, 0xff)) : most;
}

}  // namespace

Listener::Listener(Loop& loop, SoftCmId& id, std::size_t backlog)
    : Source(Kind::kListener), loop_(loop), id_(id), backlog_(backlog) {
  loop_.watch_listener(*this);
}

Listener::~Listener() {
  loop_.forget_listener(*this);
  loop_.timers().set(*this, std::nullopt);
}

bool Listener::accept_on(UniqueFd& fd, std::vector<Listener*> all) {
  if (!loop_.poller().add(fd.get(), EPOLLIN, *this)) return false;
  fd_ = std::move(fd);
  all_ = std::move(all);
  return true;
}

std::size_t Listener::on_ready(TimePoint now) {
  std::size_t num = 0;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage peer{};
    socklen_t len = sizeof(peer);
    UniqueFd fd(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        if (loop_.drop_oldest_silent(kNoDescriptors)) continue;
        ask_others();
        pause(now);
      }
      break;
    }
    ++num;
    const auto& admits = loop_.config().admits;
    if (admits && !admits(peer)) continue;
    hand_out(std::move(fd), peer);
  }
  return num;
}

// Silent connections of other loops hold descriptors, too.
void Listener::ask_others() {
  for (Listener* other : all_) {
    if (other == this) continue;
    other->loop().post([other] { other->loop().drop_oldest_silent(kNoDescriptors); });
  }
}

void Listener::hand_out(UniqueFd fd, const sockaddr_storage& peer) {
  Listener& next = *all_[next_++ % all_.size()];
  if (&next == this) {
    take(std::move(fd), peer);
    return;
  }
  // It lives until after this: whoever closes the Listeners closes this one first, and tasks keep their order.
  next.loop().post([&next, peer, given = std::move(fd)]() mutable { next.take(std::move(given), peer); });
}

Connection& Listener::take(UniqueFd fd, const sockaddr_storage& peer) {
  Connection& connection = loop_.adopt(std::make_unique<Connection>(loop_, *this, std::move(fd), peer));
  loop_.add_silent(connection);
  if (loop_.device().gone()) {
    connection.drop("");
  } else if (!connection.watch()) {
    connection.drop("epoll has no room for it");
  }
  return connection;
}

void Listener::pause(TimePoint now) {
  if (!paused_ && loop_.log_budget().take(now)) {
    log_line(loop_.log(), LogLevel::kWarn,
             "{}: no descriptors left to accept connections; raise the limit of open files (ulimit -n)",
             address_str(id_.local_addr()));
  }
  if (!paused_) loop_.poller().modify(fd_.get(), 0, *this);
  paused_ = true;
  loop_.timers().set(*this, now + kAcceptPause);
}

void Listener::resume() {
  if (!paused_) return;
  paused_ = false;
  loop_.timers().set(*this, std::nullopt);
  loop_.poller().modify(fd_.get(), EPOLLIN, *this);
}

void Listener::unplug() {
  loop_.timers().set(*this, std::nullopt);
  paused_ = false;
  if (fd_) loop_.poller().remove(fd_.get());
  fd_.reset();
}

void Listener::on_request(Connection& connection) {
  if (delivered_.size() < backlog_) {
    deliver(connection);
  } else {
    waiting_.push_back(&connection);
  }
}

void Listener::deliver(Connection& connection) {
  delivered_.insert(&connection);
  loop_.remove_silent(connection);
  auto id = std::make_unique<SoftCmId>(loop_, id_.queue());
  id->attach(connection);
  connection.set_id(*id);
  CmEvent event;
  event.type = CmEventType::kConnectRequest;
  event.id = &id_;
  event.new_id = std::move(id);
  if (auto& request = connection.request()) {
    event.param.private_data = std::move(request->private_data);
    // The peer's ORD is what our IRD is asked to serve, and the other way round.
    event.param.responder_resources = or_most(request->peer_ord, loop_.config().ird);
    event.param.initiator_depth = or_most(request->peer_ird, loop_.config().ord);
  }
  id_.queue()->push(std::move(event));
}

void Listener::answered(Connection& connection) {
  std::erase(waiting_, &connection);
  if (delivered_.erase(&connection) == 0) return;
  if (!waiting_.empty() && delivered_.size() < backlog_) {
    Connection& next = *waiting_.front();
    waiting_.pop_front();
    deliver(next);
  }
}

}  // namespace weft::verbs::soft
