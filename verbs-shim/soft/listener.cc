#include "verbs-shim/soft/listener.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/address.h"
#include "base/peer_group.h"
#include "verbs-shim/api/log_line.h"
#include "verbs-shim/soft/worker_descriptors.h"

namespace weft::verbs::soft {
namespace {

constexpr const char* kNoDescriptors = "no descriptors left, and it had said nothing yet";
constexpr int kAcceptsPerTurn = 128;
// No event tells of descriptors that other code in this process frees: look again after a while.
constexpr std::chrono::milliseconds kAcceptPause{100};

static_assert(Listener::kMaxComing + 5 == kDescriptorsOfWorker);

}  // namespace

Listener::Listener(Loop& loop, std::size_t backlog, absl::AnyInvocable<void(Handle)> deliver)
    : Source(Kind::kListener), loop_(loop), backlog_(backlog, std::move(deliver)) {
  loop_.add_listener(*this);
}

Listener::~Listener() {
  loop_.remove(*this, backlog_);
  loop_.set_timer(*this, std::nullopt);
}

bool Listener::accept_on(Fd& fd, std::vector<Listener*> all) {
  if (!loop_.poller().add(fd.get(), EPOLLIN, *this)) return false;
  fd_ = std::move(fd);
  all_ = std::move(all);
  return true;
}

std::size_t Listener::on_ready(std::uint32_t /*epoll_events*/, TimePoint now) {
  std::size_t num = 0;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage peer{};
    socklen_t len = sizeof(peer);
    Fd fd(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &len, SOCK_NONBLOCK | SOCK_CLOEXEC));
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

void Listener::hand_out(Fd fd, const sockaddr_storage& peer) {
  Listener* next = nullptr;
  do {
    next = all_[next_++ % all_.size()];
  } while (next != this && next->coming_ >= kMaxComing);
  if (next == this) {
    take(std::move(fd), peer, false);
    return;
  }
  ++next->coming_;
  // `next` lives until the task has run: this Listener is closed before the others, and tasks keep their order.
  next->loop().post([next, peer, given = std::move(fd)]() mutable {
    --next->coming_;
    next->take(std::move(given), peer, false);
  });
}

Connection& Listener::take(Fd fd, const sockaddr_storage& peer, bool adopted) {
  Connection& connection = loop_.add(
      [&](Handle self) { return std::make_unique<Connection>(loop_, self, backlog_, std::move(fd), adopted, peer); });
  loop_.holdings().enter(connection.handle(), peer_group(peer));
  loop_.holdings().add_silent(connection.handle());
  loop_.keep_bounds();
  if (loop_.core().gone()) {
    connection.drop("");
  } else if (!connection.watch()) {
    connection.drop("epoll has no room for it");
  }
  return connection;
}

void Listener::pause(TimePoint now) {
  if (!paused_) {
    if (loop_.log_budget().take(now)) {
      log_line(loop_.log(), LogLevel::kWarn,
               "{}: no descriptors left to accept connections; raise the limit of open files (ulimit -n)",
               address_str(local_address(fd_.get())));
    }
    loop_.poller().modify(fd_.get(), 0, *this);
    loop_.await_descriptors(*this);
  }
  paused_ = true;
  loop_.set_timer(*this, now + kAcceptPause);
}

std::size_t Listener::on_timer(TimePoint /*now*/) {
  if (!std::exchange(paused_, false)) return 0;
  loop_.forget_descriptors(*this);
  loop_.set_timer(*this, std::nullopt);
  loop_.poller().modify(fd_.get(), EPOLLIN, *this);
  return 0;
}

void Listener::unplug() {
  loop_.set_timer(*this, std::nullopt);
  loop_.forget_descriptors(*this);
  paused_ = false;
  if (fd_) loop_.poller().remove(fd_.get());
  fd_.reset();
}

}  // namespace weft::verbs::soft
