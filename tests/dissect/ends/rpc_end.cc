// An end of RPC-over-RDMA on the library's public interface, for captures. As a server it answers NULL of NFSv3 to one
// client, with 2 credits and 2 Receives more. As a client it calls NULL again and again, until it has discarded a
// Reply.
#include <cstdio>
#include <exception>
#include <string>

#include "base/address.h"
#include "nfsulb/nfs3.h"
#include "rpcrdma/client.h"
#include "rpcrdma/server.h"
#include "tests/dissect/ends/driving.h"
#include "verbs-shim/api/addr_info.h"
#include "verbs-shim/soft/device.h"

namespace weft::ends {
namespace {

constexpr std::uint32_t kNfs = 100003, kNfs3 = 3, kNull = 0;
constexpr std::uint8_t kDepth = 2;  // IRD or ORD
constexpr std::uint32_t kCredits = 2;

class NullService : public rpcrdma::Service {
 public:
  void on_call(rpcrdma::ServedCall call) override {
    rpcrdma::ServedReply reply;
    if (call.procedure != kNull) reply.accept = rpcrdma::ServedReply::Accept::kProcUnavail;
    server->reply(call.id, std::move(reply));
  }
  void on_end(const rpcrdma::ConnectionEnd&) override { is_over = true; }

  rpcrdma::Server* server = nullptr;
  bool is_over = false;
};

void serve(verbs::Device& device, const sockaddr_storage& addr) {
  NullService service;
  const rpcrdma::ServedProgram program{.binding = &nfsulb::nfs3_binding(), .service = &service};
  rpcrdma::ServerConfig config;
  config.credits = kCredits;
  config.max_shared_receives = 0;  // so that the connection has Receives of its own
  config.ord = kDepth;
  const auto server = value_of(rpcrdma::Server::listen(device, addr, {&program, 1}, config));
  service.server = server.get();
  std::printf("ready rdma=%s\n", address_str(server->local_addr()).c_str());
  std::fflush(stdout);
  run_until(*server, [&] { return service.is_over; });
}

void call(verbs::Device& device, const sockaddr_storage& addr) {
  rpcrdma::ClientConfig config;
  config.credits = kCredits;
  config.ird = kDepth;
  bool is_answered = true;  // outlives the client, whose end answers, too
  const auto client = value_of(rpcrdma::Client::connect(device, addr, config));
  const auto is_closed = [&] { return client->state() == rpcrdma::Client::State::kClosed; };
  const auto is_enough = [&] { return client->replies().discarded != 0 || is_closed(); };
  while (!is_enough()) {
    rpcrdma::CallSpec null;
    null.program = kNfs;
    null.version = kNfs3;
    null.procedure = kNull;
    null.binding = &nfsulb::nfs3_binding();
    is_answered = false;
    value_of(client->call(null, [&](const rpcrdma::Reply&) { is_answered = true; }));
    run_until(*client, [&] { return is_answered || is_enough(); });
  }
  client->disconnect();
  run_until(*client, is_closed);
}

void run(const std::string& role, const std::string& trace, const std::string& port) {
  verbs::SoftConfig config;
  config.trace = value_of(verbs::open_trace({.path = trace}));
  const auto device = value_of(verbs::open_soft_device(config));
  const auto addr = value_of(verbs::getaddrinfo("127.0.0.1", port, role == "serve")).front();
  role == "serve" ? serve(*device, addr) : call(*device, addr);
}

}  // namespace
}  // namespace weft::ends

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: rpc_end serve|call TRACE PORT\n"), 2;
  try {
    weft::ends::run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rpc_end: %s\n", e.what());
    return 1;
  }
}
