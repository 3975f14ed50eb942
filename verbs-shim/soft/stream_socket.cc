#include "verbs-shim/soft/stream_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {
namespace {

// Bounds of the octets framed for one sendmsg. Octets that the socket does not take were hashed for nothing, so the
// bound follows the socket.
constexpr std::size_t kFirstBudget = std::size_t{256} << 10;
constexpr std::size_t kMinBudget = std::size_t{64} << 10;
constexpr std::size_t kMaxBudget = std::size_t{1} << 20;
constexpr int kMaxReads = 8;

bool would_block(int err) {
  return err == EAGAIN || err == EWOULDBLOCK || err == ENOBUFS || err == ENOMEM;
}

// Moves at most `most` octets of a list of views by call(message), which is sendmsg or recvmsg. A single view is most
// often one small message, and the kernel's work on a msghdr costs it noticeably: it goes through small(data, len).
template <typename Views, typename Small, typename Call>
ssize_t transfer(const Views& views, StreamSocket::IoVectors& iov, std::size_t most, std::size_t& total, Small small,
                 Call call) {
  total = std::min(views.front().size(), most);
  if (views.size() == 1) return small(views.front().data(), total);
  std::size_t num = 0;
  total = 0;
  while (num < views.size() && num < iov.size() && total < most) {
    // iovec has no const form; sendmsg does not write through it.
    iov[num].iov_base = const_cast<std::uint8_t*>(views[num].data());
    iov[num].iov_len = std::min(views[num].size(), most - total);
    total += iov[num++].iov_len;
  }
  msghdr message{};
  message.msg_iovlen = num;
  message.msg_iov = iov.data();
  return call(&message);
}

}  // namespace

StreamSocket::StreamSocket(Fd fd, bool adopted, Poller& poller, Source& source)
    : poller_(poller), source_(source), fd_(std::move(fd)), budget_(kFirstBudget), adopted_(adopted) {}

bool StreamSocket::watch(std::uint32_t epoll_events) {
  const bool done =
      interest_ ? poller_.modify(fd_.get(), epoll_events, source_) : poller_.add(fd_.get(), epoll_events, source_);
  interest_ = done ? std::optional(epoll_events) : std::nullopt;
  return done;
}

void StreamSocket::unwatch() {
  if (interest_) poller_.remove(fd_.get());
  interest_.reset();
}

void StreamSocket::rearm() {
  if (!interest_ && !blocked_) return;
  const std::uint32_t wanted =
      (rx_ != Rx::kEnded ? std::uint32_t{EPOLLIN} : 0) | (blocked_ ? std::uint32_t{EPOLLOUT} : 0);
  if (interest_ != wanted) watch(wanted);
}

void StreamSocket::start() {
  emss_ = read_emss(fd_.get());
}

std::size_t StreamSocket::read(rdmap::Stream& stream, mpa::Staging& staging, IoVectors& iov, std::size_t most,
                               TimePoint now) {
  const int fd = fd_.get();
  std::size_t moved = 0;
  rx_ = Rx::kOpen;
  for (int i = 0; i < kMaxReads && moved < most; ++i) {
    const auto buffers = stream.rx_buffers(staging);
    if (buffers.empty()) {  // the Stream is closed
      rx_ = Rx::kEnded;
      return moved + 1;
    }
    std::size_t room = 0;
    const ssize_t n = transfer(
        buffers, iov, most - moved, room, [fd](std::uint8_t* to, std::size_t len) { return ::recv(fd, to, len, 0); },
        [fd](msghdr* message) { return ::recvmsg(fd, message, 0); });
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && would_block(errno)) return moved;
    if (n <= 0) {
      rx_ = Rx::kEnded;
      if (n == 0) {
        stream.on_rx_eof(now);
      } else {
        stream.on_llp_error(errno, now);
      }
      return moved + 1;
    }
    const auto got = static_cast<std::size_t>(n);
    stream.on_rx(staging, got, now);
    moved += got;
    if (got < room) return moved;  // the socket is empty
  }
  rx_ = Rx::kMore;
  return moved;
}

StreamSocket::Written StreamSocket::write(rdmap::Stream& stream, IoVectors& iov, std::size_t most, TimePoint now) {
  const int fd = fd_.get();
  std::size_t moved = 0;
  while (!blocked_ && stream.wants_tx()) {
    // What is left of `most` is worth no sendmsg if it is a small part of one.
    const std::size_t wanted = std::min(budget_, most);
    if (moved + wanted / 2 > most) return {moved, true};
    if (bulk_) emss_ = read_emss(fd_.get());  // MPA-4.5-07
    const auto buffers = stream.tx_buffers(emss_, wanted, now);
    if (buffers.empty()) break;
    std::size_t total = 0;
    const ssize_t n = transfer(
        buffers, iov, SIZE_MAX, total,
        [fd](const std::uint8_t* from, std::size_t len) { return ::send(fd, from, len, MSG_NOSIGNAL); },
        [fd](const msghdr* message) { return ::sendmsg(fd, message, MSG_NOSIGNAL); });
    const int err = n < 0 ? errno : 0;
    const std::size_t taken = n > 0 ? static_cast<std::size_t>(n) : 0;
    stream.on_tx(taken, now);
    moved += taken;
    bulk_ = total >= emss_;
    if (n < 0 && err != EINTR && !would_block(err)) {
      stream.on_llp_error(err, now);
      rx_ = Rx::kEnded;
      return {moved + 1, false};
    }
    if (taken == total) {
      // The socket took all octets and the Stream has more: the budget ended the batch.
      if (stream.wants_tx() && wanted == budget_) budget_ = std::min(2 * budget_, kMaxBudget);
    } else if (err != EINTR) {
      budget_ = std::clamp(taken, kMinBudget, kMaxBudget);
      set_blocked(true);
    }
  }
  return {moved, false};
}

void StreamSocket::set_blocked(bool blocked) {
  if (std::exchange(blocked_, blocked) != blocked) poller_.expect_room(blocked);
}

void StreamSocket::replace(Fd fd) {
  unwatch();
  set_blocked(false);
  rx_ = Rx::kOpen;
  fd_ = std::move(fd);
}

Fd StreamSocket::release() {
  unwatch();
  return std::move(fd_);
}

void StreamSocket::close() {
  set_blocked(false);
  // While another descriptor of the socket is open, closing ours would leave it in epoll.
  if (adopted_) unwatch();
  interest_.reset();
  fd_.reset();
}

}  // namespace weft::verbs::soft
