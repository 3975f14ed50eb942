// The client of twenty lines: one READ, whose octets land in `room`. Its connection has a thread of its own.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "blocks.h"
#include "rpcrdma/threaded.h"
#include "verbs-shim/api/addr_info.h"
#include "verbs-shim/soft/device.h"

int main(int argc, char** argv) {
  using namespace weft;
  auto addr = verbs::getaddrinfo(argc > 1 ? argv[1] : "127.0.0.1", argc > 2 ? argv[2] : "20050", false);
  auto device = verbs::open_soft_device({});
  if (!addr || !device) return std::fprintf(stderr, "no such address, or no device\n"), 1;
  auto client = rpcrdma::ThreadedClient::connect(std::move(*device), addr->front());
  if (!client) return std::fprintf(stderr, "%s\n", client.error().message.c_str()), 1;

  const std::uint32_t count = argc > 3 ? static_cast<std::uint32_t>(std::atoi(argv[3])) : 65536;
  std::vector<std::uint8_t> args, room(count);
  rpcrdma::xdr::XdrWriter out(args);
  out.u64(0);  // offset
  out.u32(count);
  rpcrdma::CallSpec call = blocks_call(kRead, args);
  call.result_items = MutBytes(room);                          // where the result lands, and
  call.max_results = kBlocksBinding.max_results(kRead, args);  // the bytes besides
  const rpcrdma::CallResult reply = (*client)->call_and_wait(call);
  if (reply.status != rpcrdma::CallStatus::kSuccess) return std::fprintf(stderr, "%s\n", reply.text.c_str()), 1;
  const std::size_t len = reply.item_len.value_or(0);  // of these octets, the first ones are text
  std::printf("%zu bytes: %.*s\n", len, static_cast<int>(std::min<std::size_t>(len, 43)), room.data());
}
