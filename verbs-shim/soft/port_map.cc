// The sockets of the iWARP port mapper (iwpm/ has the protocol): both of its roles.
#include <netinet/in.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>
#include <variant>

#include "base/address.h"
#include "verbs-shim/api/log_line.h"
#include "verbs-shim/soft/port_map_answers.h"
#include "verbs-shim/soft/port_map_ask.h"

namespace weft::verbs::soft {
namespace {

using iwpm::Endpoint;
using iwpm::IpVersion;

constexpr int kDatagramsPerTurn = 64;
// One octet more than any message has: a longer datagram must not look like a message.
constexpr std::size_t kReadLen = iwpm::kMaxMessageLen + 1;

template <typename T>
T read_as(const sockaddr_storage& address) {
  T out{};
  std::memcpy(&out, &address, sizeof(out));
  return out;
}

Endpoint endpoint_of(const sockaddr_storage& address) {
  Endpoint out;
  if (address.ss_family == AF_INET) {
    const auto in = read_as<sockaddr_in>(address);
    std::memcpy(out.address.data(), &in.sin_addr, sizeof(in.sin_addr));
    out.port = ntohs(in.sin_port);
  } else {
    const auto in = read_as<sockaddr_in6>(address);
    std::memcpy(out.address.data(), &in.sin6_addr, sizeof(in.sin6_addr));
    out.port = ntohs(in.sin6_port);
  }
  return out;
}

// `address` with another IP address and port. The other fields (a link-local address's scope) stay.
sockaddr_storage with_endpoint(sockaddr_storage address, const Endpoint& endpoint) {
  if (address.ss_family == AF_INET) {
    auto in = read_as<sockaddr_in>(address);
    std::memcpy(&in.sin_addr, endpoint.address.data(), sizeof(in.sin_addr));
    std::memcpy(&address, &in, sizeof(in));
  } else {
    auto in = read_as<sockaddr_in6>(address);
    std::memcpy(&in.sin6_addr, endpoint.address.data(), sizeof(in.sin6_addr));
    std::memcpy(&address, &in, sizeof(in));
  }
  set_port(address, endpoint.port);
  return address;
}

sockaddr_storage with_port(sockaddr_storage address, std::uint16_t port) {
  set_port(address, port);
  return address;
}

IpVersion version_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET ? IpVersion::k4 : IpVersion::k6;
}

bool is_any(const sockaddr_storage& address) {
  return endpoint_of(address).address == iwpm::Address{};
}

Fd open_udp(int family) {
  return Fd(::socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// The port that a TCP connection of this socket will come from; 0 if it is not available.
std::uint16_t port_of(int tcp, int family) {
  if (const std::uint16_t port = endpoint_of(local_address(tcp)).port; port != 0) return port;
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(family);
  if (::bind(tcp, as_sockaddr(any), address_len(any)) != 0) return 0;
  return endpoint_of(local_address(tcp)).port;
}

bool is_transient(int err) {
  return err == EAGAIN || err == EWOULDBLOCK || err == EINTR || err == ENOBUFS || err == ENOMEM;
}

bool same_host(const sockaddr_storage& a, const sockaddr_storage& b) {
  return a.ss_family == b.ss_family && endpoint_of(a).address == endpoint_of(b).address;
}

}  // namespace

// ---- asking

std::unique_ptr<PortMapAsk> PortMapAsk::open(const SoftConfig& config, int tcp, const sockaddr_storage& peer) {
  const auto unasked = [&](const char* call) -> std::unique_ptr<PortMapAsk> {
    const int err = errno;
    log_line(config.log, LogLevel::kWarn, "port mapper: cannot ask for {} ({}: {}); connecting to it as it is",
             address_str(peer), call, std::strerror(err));
    return nullptr;
  };
  Fd fd = open_udp(peer.ss_family);
  if (!fd) return unasked("socket");
  // The Request goes out from the address that the connection will come from, if that is settled.
  const sockaddr_storage bound = with_port(local_address(tcp), 0);
  if (bound.ss_family == peer.ss_family && !is_any(bound) &&
      ::bind(fd.get(), as_sockaddr(bound), address_len(bound)) != 0) {
    return unasked("bind");
  }
  // The socket is connected, so that it hears no other host, and ICMP tells when no mapper receives.
  const sockaddr_storage mapper = with_port(peer, config.port_map.port);
  if (::connect(fd.get(), as_sockaddr(mapper), address_len(mapper)) != 0) return unasked("connect");
  std::uint64_t handle = 0;
  if (::getrandom(&handle, sizeof(handle), 0) != static_cast<ssize_t>(sizeof(handle))) return unasked("getrandom");
  std::unique_ptr<PortMapAsk> ask(new PortMapAsk(config, std::move(fd), peer));
  ask->question_.ip = version_of(peer);
  ask->question_.assochandle = handle;
  ask->question_.accepting = endpoint_of(peer);
  ask->question_.connecting = endpoint_of(local_address(ask->fd_.get()));
  ask->question_.connecting.port = port_of(tcp, peer.ss_family);
  return ask;
}

PortMapAsk::PortMapAsk(const SoftConfig& config, Fd fd, const sockaddr_storage& peer)
    : config_(config.port_map), log_(config.log), fd_(std::move(fd)), peer_(peer) {}

void PortMapAsk::begin(TimePoint now) {
  asker_.emplace(question_, iwpm::Asker::Settings{config_.interval, config_.tries}, now);
  send_all();
}

void PortMapAsk::send_all() {
  const ConstBytes octets = asker_->poll_tx();
  if (octets.empty()) return;
  if (::send(fd_.get(), octets.data(), octets.size(), MSG_NOSIGNAL) < 0 && !is_transient(errno)) asker_->on_refused();
}

void PortMapAsk::on_ready() {
  for (int i = 0; i < kDatagramsPerTurn && !ended(); ++i) {
    std::array<std::uint8_t, kReadLen> buffer;
    const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (n >= 0) {
      asker_->on_rx(ConstBytes(buffer).first(static_cast<std::size_t>(n)));
    } else if (is_transient(errno)) {
      break;
    } else {
      asker_->on_refused();
    }
  }
  send_all();
}

void PortMapAsk::on_timeout(TimePoint now) {
  asker_->on_timeout(now);
  send_all();
}

sockaddr_storage PortMapAsk::target() const {
  const iwpm::Answer& answer = *asker_->answer();
  const sockaddr_storage to = with_endpoint(peer_, answer.to);
  switch (answer.kind) {
    case iwpm::Answer::Kind::kMapped:
      log_line(log_, LogLevel::kInfo, "port mapper: {} is mapped to {}", address_str(peer_), address_str(to));
      break;
    case iwpm::Answer::Kind::kRejected:
      log_line(log_, LogLevel::kInfo,
               "port mapper: no program registered {} with the mapper there; connecting to it as it is",
               address_str(peer_));
      break;
    case iwpm::Answer::Kind::kNoMapper:
      log_line(log_, LogLevel::kInfo, "port mapper: there is none at {}; connecting to {} as it is",
               address_str(with_port(peer_, config_.port)), address_str(peer_));
      break;
    case iwpm::Answer::Kind::kSilent:
      log_line(log_, LogLevel::kWarn, "port mapper: no answer from {} (UDP); connecting to {} as it is",
               address_str(with_port(peer_, config_.port)), address_str(peer_));
      break;
  }
  return to;
}

// ---- answering

PortMapAnswers::PortMapSocket::PortMapSocket(PortMapAnswers& answers, Fd socket, const sockaddr_storage& bound,
                                             unsigned per_second)
    : Source(Kind::kPortMap),
      owner(answers),
      fd(std::move(socket)),
      local(bound),
      answerer({.per_second = per_second, .burst = per_second}) {}

void PortMapAnswers::add(const sockaddr_storage& listening) {
  listening_.push_back(listening);
  if (!covered(listening)) open_for(listening);
}

void PortMapAnswers::remove(const sockaddr_storage& listening) {
  const auto at = std::ranges::find_if(listening_, [&](const sockaddr_storage& other) {
    return same_host(other, listening) && endpoint_of(other).port == endpoint_of(listening).port;
  });
  if (at == listening_.end()) return;
  listening_.erase(at);
  std::vector<sockaddr_storage> answered;
  std::ranges::copy_if(listening_, std::back_inserter(answered),
                       [this](const sockaddr_storage& other) { return covered(other); });
  std::erase_if(sockets_, [this](const auto& socket) {
    return std::ranges::none_of(listening_,
                                [&](const sockaddr_storage& other) { return same_host(other, socket->local); });
  });
  // The socket of all addresses has answered for other addresses. Sockets of their own do so now.
  for (const sockaddr_storage& other : answered) {
    if (!covered(other)) open_for(other);
  }
}

void PortMapAnswers::clear() {
  listening_.clear();
  sockets_.clear();
}

bool PortMapAnswers::covered(const sockaddr_storage& listening) const {
  return std::ranges::any_of(sockets_, [&](const auto& socket) {
    if (same_host(socket->local, listening)) return true;
    return is_any(socket->local) &&
           (socket->local.ss_family == listening.ss_family || socket->local.ss_family == AF_INET6);
  });
}

void PortMapAnswers::open_for(const sockaddr_storage& listening) {
  const SoftConfig::PortMap& config = loop_.config().port_map;
  const sockaddr_storage local = with_port(listening, config.port);
  Fd fd = open_udp(local.ss_family);
  const int on = 1;
  const int level = local.ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
  const int option = local.ss_family == AF_INET ? IP_PKTINFO : IPV6_RECVPKTINFO;
  if (fd && ::setsockopt(fd.get(), level, option, &on, sizeof(on)) == 0 &&
      ::bind(fd.get(), as_sockaddr(local), address_len(local)) == 0) {
    auto socket = std::make_unique<PortMapSocket>(*this, std::move(fd), local, config.answers_per_second);
    if (loop_.poller().add(socket->fd.get(), EPOLLIN, *socket)) {
      sockets_.push_back(std::move(socket));
      return;
    }
  }
  const int err = errno;
  log_line(loop_.log(), LogLevel::kWarn,
           "port mapper: UDP {}: {}{}; a host that asks there for {} gets no answer of ours", address_str(local),
           std::strerror(err), err == EADDRINUSE ? " (by iwpmd, or by another program like this one)" : "",
           address_str(listening));
}

// PEER-M-03
std::optional<Endpoint> PortMapAnswers::lookup(IpVersion ip, const Endpoint& asked) const {
  const bool found = std::ranges::any_of(listening_, [&](const sockaddr_storage& listening) {
    // Our IPv6 sockets on every address take IPv4 connections, too.
    const bool both = listening.ss_family == AF_INET6 && is_any(listening);
    return endpoint_of(listening).port == asked.port && (version_of(listening) == ip || both);
  });
  return found ? std::optional(asked) : std::nullopt;
}

namespace {

// Datagram is a received datagram and the return path for its answer.
struct Datagram {
  std::array<std::uint8_t, kReadLen> octets;
  sockaddr_storage from{};
  alignas(cmsghdr) std::array<std::uint8_t, CMSG_SPACE(sizeof(in6_pktinfo))> control{};
  iovec iov{};
  msghdr header{};

  ssize_t receive(int fd) {
    iov = {octets.data(), octets.size()};
    header = {};
    header.msg_name = &from;
    header.msg_namelen = sizeof(from);
    header.msg_iov = &iov;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    return ::recvmsg(fd, &header, 0);
  }

  // Answers from the address that the Request was sent to. The interface counts only for link-local addresses; for
  // other addresses the routes decide.
  void answer(int fd, MutBytes reply) {
    iov = {reply.data(), reply.size()};
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
        in_pktinfo info{};
        std::memcpy(&info, CMSG_DATA(c), sizeof(info));
        info.ipi_ifindex = 0;
        std::memcpy(CMSG_DATA(c), &info, sizeof(info));
      } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
        in6_pktinfo info{};
        std::memcpy(&info, CMSG_DATA(c), sizeof(info));
        if (!IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) info.ipi6_ifindex = 0;
        std::memcpy(CMSG_DATA(c), &info, sizeof(info));
      }
    }
    // A peer that misses the answer asks again.
    ::sendmsg(fd, &header, MSG_NOSIGNAL);
  }
};

}  // namespace

// Logs the answer, or the Ack of it.
void PortMapAnswers::log(ConstBytes received, ConstBytes reply, const sockaddr_storage& from, TimePoint now) const {
  const auto parsed = iwpm::parse_message(reply.empty() ? received : reply);
  const auto* message = std::get_if<iwpm::Message>(&parsed);
  if (message == nullptr || (reply.empty() && message->type != iwpm::MessageType::kAck)) return;
  if (!loop_.log_budget().take(now)) return;
  const std::uint16_t port = message->accepting.port;
  switch (message->type) {
    case iwpm::MessageType::kAck:
      return log_line(loop_.log(), LogLevel::kInfo, "port mapper: {} acknowledged port {}", address_str(from), port);
    case iwpm::MessageType::kAccept:
      return log_line(loop_.log(), LogLevel::kInfo, "port mapper: {} asked for port {}: accepted", address_str(from),
                      port);
    default:
      return log_line(loop_.log(), LogLevel::kInfo, "port mapper: {} asked for port {}: rejected", address_str(from),
                      port);
  }
}

std::size_t PortMapAnswers::on_ready(PortMapSocket& socket, TimePoint now) {
  std::size_t num = 0;
  for (int i = 0; i < kDatagramsPerTurn; ++i) {
    Datagram datagram;
    const ssize_t n = datagram.receive(socket.fd.get());
    if (n < 0) break;
    ++num;
    std::array<std::uint8_t, iwpm::kMessageLen> reply;
    const ConstBytes received = ConstBytes(datagram.octets).first(static_cast<std::size_t>(n));
    const std::size_t len = socket.answerer.on_rx(
        received, [this](IpVersion ip, const Endpoint& asked) { return lookup(ip, asked); }, now, reply);
    if (len > 0) datagram.answer(socket.fd.get(), MutBytes(reply).first(len));
    if (loop_.log().wants(LogLevel::kInfo)) log(received, ConstBytes(reply).first(len), datagram.from, now);
  }
  if (socket.answerer.limited() && !std::exchange(socket.warned, true)) {
    log_line(loop_.log(), LogLevel::kWarn,
             "port mapper: more than {} Requests a second at UDP {}; not all of them are answered",
             loop_.config().port_map.answers_per_second, address_str(socket.local));
  }
  return num;
}

}  // namespace weft::verbs::soft
