// A server with a thread of its own. Calls are answered by two workers, each when it is done: Replies leave in any
// order.
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

#include "rpcrdma/threaded.h"
#include "store.h"
#include "verbs-shim/api/addr_info.h"
#include "verbs-shim/soft/device.h"

namespace rpcrdma = weft::rpcrdma;

class Blocks : public rpcrdma::Service {
 public:
  // The server's thread: takes the Buffer that the answer will need, and leaves the rest to a worker.
  void on_call(rpcrdma::ServedCall call) override {
    rpcrdma::Buffer room = server->server().buffers().take(store_.room_for(call));
    const std::scoped_lock lock(mutex_);
    work_.push_back({std::move(call), std::move(room)});
    more_.notify_one();
  }

  void run_worker() {
    while (std::optional<Work> work = next()) {
      rpcrdma::ServedReply reply = store_.answer(work->call, std::move(work->room));
      // The Call goes back, too: its Buffers belong to the server's thread.
      server->reply(std::move(work->call), std::move(reply));
    }
  }

  // Calls that have arrived are still answered.
  void stop() {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    more_.notify_all();
  }

  rpcrdma::ThreadedServer* server = nullptr;

 private:
  struct Work {
    rpcrdma::ServedCall call;
    rpcrdma::Buffer room;
  };

  std::optional<Work> next() {
    std::unique_lock lock(mutex_);
    more_.wait(lock, [this] { return stopping_ || !work_.empty(); });
    if (work_.empty()) return std::nullopt;
    Work work = std::move(work_.front());
    work_.pop_front();
    return work;
  }

  Store store_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Work> work_;
  bool stopping_ = false;
};

int main(int argc, char** argv) {
  auto addr = weft::verbs::getaddrinfo(argc > 1 ? argv[1] : "127.0.0.1", argc > 2 ? argv[2] : "20050", true);
  auto device = weft::verbs::open_soft_device({});
  if (!addr || !device) return std::fprintf(stderr, "no such address, or no device\n"), 1;
  Blocks blocks;
  const rpcrdma::ServedProgram programs[] = {{&kBlocksBinding, &blocks}};
  auto server = rpcrdma::ThreadedServer::listen(std::move(*device), addr->front(), programs);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message.c_str()), 1;
  blocks.server = server->get();
  std::thread workers[] = {std::thread([&] { blocks.run_worker(); }), std::thread([&] { blocks.run_worker(); })};
  const auto status = (*server)->start();
  if (status.ok()) {
    std::printf("ready\n");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
  }
  blocks.stop();
  for (std::thread& worker : workers) worker.join();
  server->reset();
  return status.ok() ? 0 : 1;
}
