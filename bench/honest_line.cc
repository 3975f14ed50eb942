#include "bench/honest_line.h"

#include <poll.h>

#include <cstring>
#include <utility>

#include "apps/onc_tcp/client.h"
#include "bench/idle.h"
#include "nfsulb/nfs3.h"
#include "rpcrdma/client.h"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nfs3::Proc;

class RdmaLine : public HonestLine {
 public:
  RdmaLine(verbs::Device& device, const sockaddr_in& server) : device_(device), server_(storage_of(server)) {}

  Answer call(Proc proc, const std::vector<std::uint8_t>& args, MutBytes room) override {
    const auto start = Clock::now();
    if (!client_ || client_->state() == rpcrdma::Client::State::kClosed) connect();
    while (client_->state() != rpcrdma::Client::State::kReady) {
      if (client_->state() == rpcrdma::Client::State::kClosed || Clock::now() - start > kPatience)
        return {{}, "no connection: " + client_->error()};
      turn();
    }
    rpcrdma::CallSpec spec;
    spec.program = nfs3::kProgram;
    spec.version = nfs3::kVersion;
    spec.procedure = static_cast<std::uint32_t>(proc);
    spec.binding = &nfsulb::nfs3_binding();
    spec.args = args;
    const rpcrdma::OpaqueAuth cred = rpcrdma::auth_sys_of_this_process();
    spec.cred = &cred;
    if (!room.empty()) spec.result_items = rpcrdma::ScatteredBytes(room);
    spec.max_results = spec.binding->max_results(spec.procedure, args, {});
    std::optional<Answer> answer;
    must(client_->call(spec, [&](const rpcrdma::Reply& reply) {
      answer.emplace();
      answer->why = reply.text;
      if (reply.status == rpcrdma::CallStatus::kSuccess)
        answer->results.emplace(reply.results.begin(), reply.results.end());
    }));
    while (!answer) turn();
    return std::move(*answer);
  }

 private:
  void connect() {
    rpcrdma::ClientConfig config;
    config.call_timeout = kPatience;
    config.connect_timeout = kPatience;
    config.reconnect.max_time = std::chrono::seconds(60);
    config.reserve_credit = true;
    client_ = must(rpcrdma::Client::connect(device_, server_, config));
  }
  void turn() {
    if (client_->process(Clock::now()) != 0) return;
    pollfd fd{client_->fd(), POLLIN, 0};
    poll(&fd, 1, 1);
  }

  verbs::Device& device_;
  const sockaddr_storage server_;
  std::unique_ptr<rpcrdma::Client> client_;
};

class TcpLine : public HonestLine {
 public:
  explicit TcpLine(const sockaddr_in& server) : server_(storage_of(server)) {}

  Answer call(Proc proc, const std::vector<std::uint8_t>& args, MutBytes) override {
    rpcrdma::CallHeader header;
    header.program = nfs3::kProgram;
    header.version = nfs3::kVersion;
    header.procedure = static_cast<std::uint32_t>(proc);
    header.cred = rpcrdma::auth_sys_of_this_process();
    const auto end = Clock::now() + kPatience;
    for (std::string why = "no time is left";;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) return {{}, why};
      if (!client_) {
        auto connected = onc_tcp::Client::connect(server_, sizeof(sockaddr_in), left);
        if (!connected.ok()) return {{}, std::string(connected.status().message())};
        client_ = std::move(*connected);
      }
      auto results = client_->call(header, args, left);
      if (results.ok()) return {std::move(*results), {}};
      why = std::string(results.status().message());
      client_.reset();
      if (results.status().code() != absl::StatusCode::kUnavailable) return {{}, why};
    }
  }

 private:
  const sockaddr_storage server_;
  std::unique_ptr<onc_tcp::Client> client_;
};

}  // namespace

Dial dial_rdma(verbs::Device& device, const sockaddr_in& server) {
  return [&device, server] { return std::make_unique<RdmaLine>(device, server); };
}
Dial dial_tcp(const sockaddr_in& server) {
  return [server] { return std::make_unique<TcpLine>(server); };
}

sockaddr_storage storage_of(const sockaddr_in& addr) {
  sockaddr_storage storage{};
  std::memcpy(&storage, &addr, sizeof addr);
  return storage;
}

}  // namespace weft::bench
