// A client inside a loop of one's own: writes, then reads it back with several Calls at once, one of them cancelled.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "blocks.h"
#include "rpcrdma/client.h"
#include "verbs-shim/api/addr_info.h"
#include "verbs-shim/soft/device.h"

namespace rpcrdma = weft::rpcrdma;

namespace {

constexpr std::size_t kPiece = 50000;
constexpr std::size_t kNumPieces = 4;

// One turn after the other until `done`. The program's own descriptors would stand beside the client's.
void run_until(rpcrdma::Client& client, const std::function<bool()>& done) {
  while (!done()) {
    if (client.process(std::chrono::steady_clock::now()) != 0) continue;
    int wait = -1;
    if (const auto until = client.next_timeout()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now()).count();
      wait = static_cast<int>(std::clamp<decltype(left)>(left, 0, 60000));
    }
    pollfd fds[] = {{client.fd(), POLLIN, 0}};
    (void)::poll(fds, 1, wait);
  }
}

std::vector<std::uint8_t> args_of(std::uint64_t offset, std::size_t count) {
  std::vector<std::uint8_t> args;
  rpcrdma::xdr::XdrWriter out(args);
  out.u64(offset);
  out.u32(static_cast<std::uint32_t>(count));
  return args;
}

}  // namespace

int main(int argc, char** argv) {
  auto addr = weft::verbs::getaddrinfo(argc > 1 ? argv[1] : "127.0.0.1", argc > 2 ? argv[2] : "20050", false);
  auto device = weft::verbs::open_soft_device({});
  if (!addr || !device) return std::fprintf(stderr, "no such address, or no device\n"), 1;
  auto made = rpcrdma::Client::connect(**device, addr->front(), {});
  if (!made) return std::fprintf(stderr, "%s\n", made.error().message.c_str()), 1;
  rpcrdma::Client& client = **made;

  std::size_t num_done = 0;
  bool all_well = true;
  const auto note = [&](rpcrdma::CallStatus expected) {
    return [&, expected](const rpcrdma::Reply& reply) {
      ++num_done;
      if (reply.status == expected) return;
      all_well = false;
      std::fprintf(stderr, "%s: %s\n", rpcrdma::call_status_str(reply.status), reply.text.c_str());
    };
  };

  // The data is not part of the arguments: the server reads it from where it is.
  std::vector<std::uint8_t> data(kNumPieces * kPiece);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(i * 7 >> 3);
  const auto write_args = args_of(1000, data.size());
  rpcrdma::CallSpec write = blocks_call(kWrite, write_args);
  write.items = rpcrdma::ArgumentItem{write_args.size(), weft::ConstBytes(data)};
  if (!client.call(write, note(rpcrdma::CallStatus::kSuccess))) return 1;
  run_until(client, [&] { return num_done == 1; });

  std::vector<std::uint8_t> back(data.size());
  std::vector<std::vector<std::uint8_t>> args(kNumPieces);
  for (std::size_t i = 0; i < kNumPieces; ++i) {
    args[i] = args_of(1000 + i * kPiece, kPiece);
    rpcrdma::CallSpec read = blocks_call(kRead, args[i]);
    read.result_items = weft::MutBytes(back).subspan(i * kPiece, kPiece);
    read.max_results = kBlocksBinding.max_results(kRead, args[i]);
    if (!client.call(read, note(rpcrdma::CallStatus::kSuccess))) return 1;
  }
  run_until(client, [&] { return num_done == 1 + kNumPieces; });

  auto null = client.call(blocks_call(0, {}), note(rpcrdma::CallStatus::kCancelled));
  if (!null || !client.cancel(*null)) return 1;
  run_until(client, [&] { return num_done == 2 + kNumPieces; });
  client.disconnect();

  if (!all_well || back != data) return std::fprintf(stderr, "that went wrong\n"), 1;
  std::printf("%zu bytes there and back\n", data.size());
}
