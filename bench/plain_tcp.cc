// plain_tcp: the plainest TCP throughput program, to hold `weft perf --op tcp` against. It shares no code with Weft.
//   plain_tcp listen ADDR PORT CC block|spin        prints "ready PORT"; takes one connection after the other, for ever
//   plain_tcp send ADDR PORT CC block|spin SECONDS  prints "OCTETS_PER_S MSS"
// IPv4 addresses only. CC is the congestion control of both ends. spin never sleeps in a system call.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kBlock = 1 << 20;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

int make_socket(const char* cc) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) die("socket");
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, socklen_t(std::strlen(cc))) != 0) die("TCP_CONGESTION");
  return fd;
}

sockaddr_in make_address(const char* addr, const char* port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(std::uint16_t(std::atoi(port)));
  if (inet_pton(AF_INET, addr, &result.sin_addr) != 1) {
    std::fprintf(stderr, "not an IPv4 address: %s\n", addr);
    std::exit(2);
  }
  return result;
}

// Receives until the other end is done, then says how many octets there were.
void serve(int fd, int flags) {
  std::vector<char> buffer(kBlock);
  std::uint64_t total = 0;
  // Taking each segment as it comes would have the receiver fight with the sender over the socket's lock.
  const int low_water = 256 << 10;
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof(low_water));
  while (true) {
    pollfd readable{fd, POLLIN, 0};
    if (flags != 0 && poll(&readable, 1, 0) == 0) continue;
    ssize_t n = recv(fd, buffer.data(), buffer.size(), flags);
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) break;
    total += std::uint64_t(n);
  }
  if (send(fd, &total, sizeof(total), MSG_NOSIGNAL) != ssize_t(sizeof(total))) std::perror("send");
  close(fd);
}

int run_listen(const char* addr, const char* port, const char* cc, int flags) {
  int listener = make_socket(cc);
  sockaddr_in local = make_address(addr, port);
  if (bind(listener, reinterpret_cast<sockaddr*>(&local), sizeof(local)) != 0 || listen(listener, 4) != 0) die("bind");
  socklen_t len = sizeof(local);
  getsockname(listener, reinterpret_cast<sockaddr*>(&local), &len);
  std::printf("ready %u\n", unsigned{ntohs(local.sin_port)});
  std::fflush(stdout);
  while (true) {
    int fd = accept(listener, nullptr, nullptr);
    if (fd < 0) die("accept");
    serve(fd, flags);
  }
}

int run_send(const char* addr, const char* port, const char* cc, int flags, double seconds) {
  int fd = make_socket(cc);
  sockaddr_in peer = make_address(addr, port);
  if (connect(fd, reinterpret_cast<sockaddr*>(&peer), sizeof(peer)) != 0) die("connect");
  std::vector<char> buffer(2 * kBlock, 'Z');
  auto start = std::chrono::steady_clock::now();
  auto end = start + std::chrono::duration<double>(seconds);
  int mss = 0;
  while (std::chrono::steady_clock::now() < end) {
    socklen_t len = sizeof(mss);
    getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len);
    std::size_t block = mss > 0 && std::size_t(mss) <= kBlock ? kBlock / std::size_t(mss) * std::size_t(mss) : kBlock;
    for (std::size_t sent = 0; sent < block;) {
      ssize_t n = send(fd, buffer.data() + sent, block - sent, MSG_NOSIGNAL | flags);
      if (n < 0 && errno != EAGAIN) die("send");
      pollfd writable{fd, POLLOUT, 0};
      while (n < 0 && poll(&writable, 1, 0) == 0) {
      }
      if (n > 0) sent += std::size_t(n);
    }
  }
  shutdown(fd, SHUT_WR);
  std::uint64_t total = 0;
  if (recv(fd, &total, sizeof(total), MSG_WAITALL) != ssize_t(sizeof(total))) die("recv");
  double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%.0f %d\n", double(total) / took, mss);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int flags = argc > 5 && std::strcmp(argv[5], "spin") == 0 ? MSG_DONTWAIT : 0;
  if (argc == 6 && std::strcmp(argv[1], "listen") == 0) return run_listen(argv[2], argv[3], argv[4], flags);
  if (argc == 7 && std::strcmp(argv[1], "send") == 0) {
    return run_send(argv[2], argv[3], argv[4], flags, std::atof(argv[6]));
  }
  std::fprintf(stderr,
               "usage: plain_tcp listen ADDR PORT CC block|spin | plain_tcp send ADDR PORT CC block|spin SECONDS\n");
  return 2;
}
