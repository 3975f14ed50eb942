// Measures the cost of RPC without RDMA: NULL calls of plain ONC RPC over TCP with libtirpc, one at a time, both ends
// blocking. No rpcbind: the sockets are given.
//
//   tirpc_null listen ADDRESS CC                 prints "ready PORT"; serves until it is killed
//   tirpc_null call ADDRESS PORT CC SECONDS      prints "CALLS/S MEDIAN_NS" and ends
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rpc/rpc.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr rpcprog_t kProgram = 0x20000077;
constexpr rpcvers_t kVersion = 1;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// The listener's connections inherit these options.
int open_socket(const std::string& cc) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("socket");
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc.data(), socklen_t(cc.size())) != 0) fail("congestion control");
  return fd;
}

sockaddr_in address_of(const char* address, int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(std::uint16_t(port));
  if (inet_pton(AF_INET, address, &at.sin_addr) != 1) fail("address");
  return at;
}

// xdr_void as the type that the calls take.
bool_t nothing(XDR*, ...) {
  return TRUE;
}

void dispatch(svc_req* request, SVCXPRT* transport) {
  if (request->rq_proc == NULLPROC) {
    svc_sendreply(transport, nothing, nullptr);
  } else {
    svcerr_noproc(transport);
  }
}

int listen_at(const char* address, const std::string& cc) {
  const int fd = open_socket(cc);
  sockaddr_in at = address_of(address, 0);
  socklen_t len = sizeof at;
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(fd, 8) != 0) fail("listen");
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&at), &len) != 0) fail("getsockname");
  SVCXPRT* const transport = svc_vc_create(fd, 0, 0);
  if (transport == nullptr || !svc_reg(transport, kProgram, kVersion, dispatch, nullptr)) fail("svc_vc_create");
  std::printf("ready %d\n", ntohs(at.sin_port));
  std::fflush(stdout);
  svc_run();
  return 1;
}

int call(const char* address, int port, const std::string& cc, double seconds) {
  using Clock = std::chrono::steady_clock;
  const int fd = open_socket(cc);
  sockaddr_in at = address_of(address, port);
  if (connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) fail("connect");
  const netbuf to{sizeof at, sizeof at, &at};
  CLIENT* const client = clnt_vc_create(fd, &to, kProgram, kVersion, 0, 0);
  if (client == nullptr) fail("clnt_vc_create");
  const timeval timeout{5, 0};
  std::vector<std::int64_t> ns;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  Clock::time_point now = start;
  while (now < end) {
    const auto called = now;
    const clnt_stat status = clnt_call(client, NULLPROC, nothing, nullptr, nothing, nullptr, timeout);
    if (status != RPC_SUCCESS) {
      std::fprintf(stderr, "tirpc_null: %s\n", clnt_sperrno(status));
      return 1;
    }
    now = Clock::now();
    ns.push_back(std::chrono::nanoseconds(now - called).count());
  }
  std::nth_element(ns.begin(), ns.begin() + std::ptrdiff_t(ns.size() / 2), ns.end());
  std::printf("%.0f %lld\n", double(ns.size()) / std::chrono::duration<double>(now - start).count(),
              static_cast<long long>(ns[ns.size() / 2]));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "listen") == 0) return listen_at(argv[2], argv[3]);
  if (argc == 6 && std::strcmp(argv[1], "call") == 0)
    return call(argv[2], std::atoi(argv[3]), argv[4], std::atof(argv[5]));
  std::fprintf(stderr, "usage: tirpc_null listen ADDRESS CC | call ADDRESS PORT CC SECONDS\n");
  return 2;
}
