// A server inside a loop of one's own: poll() on its descriptor and on the program's, until standard input ends.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "rpcrdma/server.h"
#include "store.h"
#include "verbs-shim/api/addr_info.h"
#include "verbs-shim/soft/device.h"

namespace rpcrdma = weft::rpcrdma;

class Blocks : public rpcrdma::Service {
 public:
  void on_call(rpcrdma::ServedCall call) override {
    rpcrdma::Buffer room = server->buffers().take(store_.room_for(call));
    server->reply(call.id, store_.answer(call, std::move(room)));
  }
  rpcrdma::Server* server = nullptr;

 private:
  Store store_;
};

// Milliseconds until `at`; for ever where there is none.
static int wait_of(std::optional<weft::TimePoint> at) {
  if (!at) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*at - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60000));
}

int main(int argc, char** argv) {
  auto addr = weft::verbs::getaddrinfo(argc > 1 ? argv[1] : "127.0.0.1", argc > 2 ? argv[2] : "20050", true);
  auto device = weft::verbs::open_soft_device({});
  if (!addr || !device) return std::fprintf(stderr, "no such address, or no device\n"), 1;
  Blocks blocks;
  const rpcrdma::ServedProgram programs[] = {{&kBlocksBinding, &blocks}};
  auto server = rpcrdma::Server::listen(**device, addr->front(), programs, {});
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message.c_str()), 1;
  blocks.server = server->get();
  std::printf("ready\n");
  std::fflush(stdout);

  for (;;) {
    const std::size_t moved = (*server)->process(std::chrono::steady_clock::now());
    pollfd fds[] = {{(*server)->fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (::poll(fds, 2, moved != 0 ? 0 : wait_of((*server)->next_timeout())) < 0) return 1;
    char input[64];
    if (fds[1].revents != 0 && ::read(STDIN_FILENO, input, sizeof input) <= 0) return 0;
  }
}
