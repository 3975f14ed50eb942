// The part of Connection that moves octets between the socket and the Stream, and its log lines.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "verbs-shim/api/log_line.h"
#include "verbs-shim/soft/connection.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs::soft {
namespace {

// Octets framed for one sendmsg: what the socket does not take was hashed for nothing, so the bound follows it.
constexpr std::size_t kMinBudget = std::size_t{64} << 10;
constexpr std::size_t kMaxBudget = std::size_t{1} << 20;
// Fairness: what one connection may move before the others get their turn.
constexpr std::size_t kTurnOctets = std::size_t{2} << 20;
constexpr int kMaxReads = 8;
// A turn that sent so much has taken memory that a connection at rest need not keep.
constexpr std::size_t kTrimOctets = std::size_t{16} << 10;

bool would_block(int err) {
  return err == EAGAIN || err == EWOULDBLOCK || err == ENOBUFS || err == ENOMEM;
}

// Fills iov from a list of views; returns how many elements, and the octets they name in total.
template <typename Views>
std::size_t gather(const Views& views, std::array<iovec, 1024>& iov, std::size_t& total) {
  const std::size_t num = std::min(views.size(), iov.size());
  total = 0;
  for (std::size_t i = 0; i < num; ++i) {
    // iovec has no const form; sendmsg does not write through it.
    iov[i].iov_base = const_cast<std::uint8_t*>(views[i].data());
    iov[i].iov_len = views[i].size();
    total += views[i].size();
  }
  return num;
}

}  // namespace

std::size_t Connection::read_turn(TimePoint now) {
  std::size_t moved = 0;
  read_more = false;
  for (int i = 0; i < kMaxReads; ++i) {
    mpa::Staging& staging = loop_.staging_for(*this);
    const auto buffers = stream_->rx_buffers(staging);
    if (buffers.empty()) {
      rx_paused_ = true;
      attention_ = true;
      return moved;
    }
    std::size_t room = buffers.front().size();
    ssize_t n = 0;
    if (buffers.size() == 1) {
      n = ::recv(fd_.get(), buffers.front().data(), room, 0);
    } else {
      msghdr message{};
      message.msg_iovlen = gather(buffers, loop_.iov(), room);
      message.msg_iov = loop_.iov().data();
      n = ::recvmsg(fd_.get(), &message, 0);
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && would_block(errno)) return moved;
    if (n <= 0) {
      rx_done_ = true;
      attention_ = true;
      if (n == 0) {
        stream_->on_rx_eof(now);
      } else {
        stream_->on_llp_error(errno, now);
      }
      return moved + 1;
    }
    const auto got = static_cast<std::size_t>(n);
    stream_->on_rx(staging, got, now);
    moved += got;
    if (got < room) return moved;  // that was all the socket had
  }
  read_more = true;
  loop_.make_ready(*this);
  return moved;
}

std::size_t Connection::write_turn(TimePoint now) {
  std::size_t moved = 0;
  while (!tx_blocked_ && stream_->wants_tx()) {
    if (moved >= kTurnOctets) {
      attention_ = true;
      loop_.make_ready(*this);
      break;
    }
    if (bulk_) emss_ = read_emss(fd_.get());  // MPA-4.5-07
    const auto buffers = stream_->tx_buffers(emss_, budget_, now);
    if (buffers.empty()) break;
    std::size_t total = 0;
    msghdr message{};
    message.msg_iovlen = gather(buffers, loop_.iov(), total);
    message.msg_iov = loop_.iov().data();
    // One buffer is most often one small message, which feels what the kernel does to take over a msghdr.
    const ssize_t n = buffers.size() == 1
                          ? ::send(fd_.get(), buffers.front().data(), buffers.front().size(), MSG_NOSIGNAL)
                          : ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    const int err = n < 0 ? errno : 0;
    const std::size_t taken = n > 0 ? static_cast<std::size_t>(n) : 0;
    stream_->on_tx(taken, now);
    moved += taken;
    bulk_ = total >= emss_;
    if (n < 0 && err != EINTR && !would_block(err)) {
      stream_->on_llp_error(err, now);
      rx_done_ = true;
      return moved + 1;
    }
    if (taken == total) {
      // All was taken and there is more: it was the budget that ended the batch.
      if (stream_->wants_tx()) budget_ = std::min(2 * budget_, kMaxBudget);
    } else if (err != EINTR) {
      budget_ = std::clamp(taken, kMinBudget, kMaxBudget);
      set_tx_blocked(true);
    }
  }
  if (moved >= kTrimOctets) loop_.trim_later(*this);
  return moved;
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

void Connection::log_fall_back(const rdmap::Closed& closed) const {
  if (!loop_.log_budget().take(loop_.now())) return;
  log_line(loop_.log(), LogLevel::kInfo, "connection to {}: {}; asking again with MPA revision 1", address_str(peer_),
           closed.text);
}

void Connection::log_nudge() const {
  if (!loop_.log_budget().take(loop_.now())) return;
  log_line(loop_.log(), LogLevel::kInfo,
           "connection to {}: no word since it was accepted; an RDMA Write of zero bytes wakes it, because Linux siw can "
           "sleep through input that comes while it accepts (SoftConfig::nudge)",
           address_str(peer_));
}

}  // namespace weft::verbs::soft
