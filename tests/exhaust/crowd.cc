#include "tests/exhaust/crowd.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "mpa/crc32c.h"
#include "mpa/fpdu.h"

namespace weft::exhaust {
namespace {

constexpr std::size_t kMpaFrame = 20;        // without private data
constexpr std::size_t kUntaggedHeader = 18;  // of DDP and RDMAP (RFC 5041 section 4.3)

void put(Octets& to, std::uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<std::uint8_t>(word >> shift));
}
std::uint32_t word_at(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | std::uint32_t{at[3]};
}

// An MPA Request of revision 1 with CRCs and without Markers (RFC 5044 section 7.1).
Octets mpa_request() {
  Octets frame;
  for (const char c : std::string_view("MPA ID Req Frame")) frame.push_back(static_cast<std::uint8_t>(c));
  put(frame, 0x40010000);
  return frame;
}

// An RDMAP Send, whole in one FPDU.
Octets send_of(const Octets& message, std::uint32_t msn) {
  Octets fpdu;
  const std::size_t len = kUntaggedHeader + message.size();
  put(fpdu, static_cast<std::uint32_t>(len) << 16 | 0x4143);  // DDP: untagged, last, version 1; RDMAP: version 1, Send
  for (const std::uint32_t word : {0u, 0u, msn, 0u}) put(fpdu, word);
  fpdu.insert(fpdu.end(), message.begin(), message.end());
  fpdu.resize(fpdu.size() + mpa::pad_len(len));
  std::array<std::uint8_t, mpa::kCrcLen> crc{};
  mpa::emit_crc(crc, mpa::crc32c(fpdu));
  fpdu.insert(fpdu.end(), crc.begin(), crc.end());
  return fpdu;
}

Octets record_of(const Octets& message) {
  Octets record;
  put(record, 0x80000000u | static_cast<std::uint32_t>(message.size()));
  record.insert(record.end(), message.begin(), message.end());
  return record;
}

}  // namespace

class Crowd::Connection {
 public:
  Connection(const Attack& attack, Done& done, const sockaddr_in& from, const sockaddr_in& server, int epoll)
      : attack_(attack), done_(done), fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    // No TIME_WAIT: the attack would run out of ports.
    const linger reset{1, 0};
    const int one = 1;
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    setsockopt(fd_, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) std::perror("bind");
    (void)!connect(fd_, reinterpret_cast<const sockaddr*>(&server), sizeof server);
    epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.ptr = this}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd_, &event);
    ++done_.open;
  }
  ~Connection() {
    close(fd_);
    --done_.open;
    if (is_ready_) --done_.ready;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // False: the connection is over.
  bool on_event(std::uint32_t events) {
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) return false;
    if ((events & EPOLLOUT) != 0 && !std::exchange(is_connected_, true)) begin();
    if ((events & EPOLLIN) != 0 && !receive()) return false;
    if ((events & EPOLLRDHUP) != 0 && attack_.raw.empty()) return false;
    return flush();
  }

 private:
  void begin() {
    if (attack_.over == Attack::Over::kTcp) out_ = attack_.raw;
    if (attack_.over == Attack::Over::kTcp) be_ready();
    if (attack_.over == Attack::Over::kRdma) out_ = mpa_request();
    if (attack_.over != Attack::Over::kRecords) return;
    be_ready();
    if (attack_.pace != Attack::Pace::kCredits) say_more();
  }
  void be_ready() {
    is_ready_ = true;
    ++done_.ready;
  }

  bool receive() {
    if (attack_.is_deaf && is_ready_) return true;
    std::array<std::uint8_t, 65536> chunk;
    ssize_t num = 0;
    while ((num = recv(fd_, chunk.data(), chunk.size(), 0)) > 0) {
      in_.insert(in_.end(), chunk.begin(), chunk.begin() + num);
      if (attack_.over == Attack::Over::kRdma)
        take_fpdus();
      else
        take_records();
    }
    if (num == 0) return !attack_.raw.empty();
    return num < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  void take_fpdus() {
    std::size_t at = 0;
    if (!is_started_) {
      if (in_.size() < kMpaFrame || in_.size() < kMpaFrame + in_[18] * 256u + in_[19]) return;
      at = kMpaFrame + in_[18] * 256u + in_[19];
      is_started_ = true;
      out_.insert(out_.end(), attack_.raw.begin(), attack_.raw.end());
      if (!attack_.raw.empty()) be_ready();
      if (attack_.first) say(attack_.first(next_xid_++));
    }
    while (in_.size() - at >= 4) {
      const std::size_t ulpdu = in_[at] * 256u + in_[at + 1], len = mpa::fpdu_len(ulpdu);
      if (in_.size() - at < len) break;
      const std::uint8_t ddp = in_[at + 2], rdmap = in_[at + 3] & 0xf;
      const bool is_send = (ddp & 0xc0) == 0x40 && rdmap >= 3 && rdmap <= 6;
      // XID, version, credits.
      if (is_send && ulpdu >= kUntaggedHeader + 12) on_reply(word_at(in_.data() + at + 2 + kUntaggedHeader + 8));
      at += len;
    }
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void take_records() {
    std::size_t at = 0;
    while (in_.size() - at >= 4) {
      const std::size_t len = 4 + (word_at(in_.data() + at) & 0x7fffffff);
      if (in_.size() - at < len) break;
      on_reply(attack_.depth);
      at += len;
    }
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void on_reply(std::uint32_t credits) {
    if (attack_.over == Attack::Over::kRdma && !is_ready_)
      be_ready();
    else
      ++done_.replies;
    credits_ = credits;
    if (attack_.pace == Attack::Pace::kAgain && num_open_ > 0) --num_open_;
    say_more();
  }
  void say_more() {
    if (!attack_.message) return;
    // Version 1 grants Calls under way; 2-wg07 grants messages of the whole connection.
    const auto may = [&] {
      if (attack_.pace == Attack::Pace::kCredits) return num_said_ <= attack_.depth && num_said_ < credits_;
      return num_open_ < std::min(attack_.depth, credits_);
    };
    for (; may(); ++num_open_) say(attack_.message(next_xid_++));
  }
  void say(const Octets& message) {
    ++num_said_;
    ++done_.messages;
    const Octets octets = attack_.over == Attack::Over::kRdma ? send_of(message, num_said_) : record_of(message);
    out_.insert(out_.end(), octets.begin(), octets.end());
  }
  bool flush() {
    while (!out_.empty()) {
      const ssize_t num = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
      if (num <= 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      out_.erase(out_.begin(), out_.begin() + num);
    }
    return true;
  }

  const Attack& attack_;
  Done& done_;
  int fd_;
  bool is_connected_ = false, is_started_ = false, is_ready_ = false;
  Octets in_, out_;
  std::uint32_t next_xid_ = static_cast<std::uint32_t>(std::rand());
  std::uint32_t num_said_ = 0, num_open_ = 0;
  std::uint32_t credits_ = attack_.over == Attack::Over::kRecords ? attack_.depth : 1;
};

Crowd::Crowd(const Attack& what, const sockaddr_in& server, std::vector<std::string> addresses, Done& done)
    : attack_(what),
      server_(server),
      addresses_(std::move(addresses)),
      done_(done),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {}
Crowd::~Crowd() = default;

bool Crowd::connect_one() {
  if (open_.size() >= attack_.connections) {
    if (attack_.per_second == 0) return false;
    open_.pop_front();
  }
  sockaddr_in from{};
  from.sin_family = AF_INET;
  inet_pton(AF_INET, addresses_[next_++ % addresses_.size()].c_str(), &from.sin_addr);
  open_.push_back(std::make_unique<Connection>(attack_, done_, from, server_, epoll_.get()));
  return true;
}

std::size_t Crowd::turn(int wait_ms) {
  std::array<epoll_event, 256> events;
  const int num = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
  for (int i = 0; i < num; ++i) {
    auto* const one = static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (!one->on_event(events[static_cast<std::size_t>(i)].events))
      std::erase_if(open_, [&](const auto& c) { return c.get() == one; });
  }
  return static_cast<std::size_t>(std::max(num, 0));
}

}  // namespace weft::exhaust
