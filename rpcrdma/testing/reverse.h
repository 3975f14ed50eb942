#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "rpcrdma/reverse.h"
#include "rpcrdma/testing/engines.h"

// Both directions on one fake connection.
namespace weft::rpcrdma::testing {

inline constexpr std::uint32_t kCallback = 0x40000000;  // the program of V21

const Binding& callback_binding();

struct ReverseOptions {
  std::uint32_t credits = 32;
  std::uint32_t min_credits = 0;
  std::uint32_t reverse_credits = 16;
  Thresholds thresholds{4096, 4096};  // as this end sees them
  bool chunks = false;
  std::uint32_t ord = 4;
  Protocol protocol = Protocol::k1;
};

// ClientEnd: it calls, and serves two programs in the reverse direction.
struct ClientEnd : FakeEnd {
  ClientEnd(FakeMemory& memory, const ReverseOptions& options);
  ~ClientEnd() { service.calls.clear(); }

  TestService service;
  std::vector<ServedProgram> programs;
  std::unique_ptr<Requester> requester;
  std::unique_ptr<ReverseResponder> reverse;
};

// ServerEnd: it serves, and calls its client.
struct ServerEnd : FakeEnd {
  ServerEnd(FakeMemory& memory, const ReverseOptions& options);
  ~ServerEnd() { service.calls.clear(); }

  TestService service;
  std::vector<ServedProgram> programs;
  BufferPool pool;
  Budget budget;
  std::unique_ptr<Responder> responder;
  std::unique_ptr<ReverseRequester> reverse;
};

struct ReverseTest : ::testing::Test {
  void open(ReverseOptions server_options = {}, ReverseOptions client_options = {}) {
    server = std::make_unique<ServerEnd>(memory, server_options);
    client = std::make_unique<ClientEnd>(memory, client_options);
    FakeQp::connect(client->qp, server->qp);
    server->qp.keep_sent = client->qp.keep_sent = true;
  }
  // One end alone: its Sends are kept.
  void open_client(ReverseOptions options = {}) { client = std::make_unique<ClientEnd>(memory, options); }
  void open_server(ReverseOptions options = {}) { server = std::make_unique<ServerEnd>(memory, options); }
  void run(int ms = 0) {
    while ((client ? client->pump() : 0) + (server ? server->pump() : 0) != 0) {
    }
    if (client) {
      client->requester->on_time(at(ms));
      client->reverse->on_time(at(ms));
    }
    if (server) {
      server->responder->on_time(at(ms));
      server->reverse->on_time(at(ms));
    }
  }
  ReplyCallback keep(std::vector<CallStatus>& ended) {
    return [&ended](const Reply& reply) { ended.push_back(reply.status); };
  }
  CallId call_client(const CallSpec& spec) {
    auto called = server->reverse->calls().call(spec, keep(reverse_ended));
    EXPECT_TRUE(called.ok()) << called.error().message;
    return *called;
  }
  void call_server(const CallSpec& spec) {
    auto called = client->requester->call(spec, keep(forward_ended));
    EXPECT_TRUE(called.ok()) << called.error().message;
  }
  static std::vector<CallStatus> successes(std::size_t num) {
    return std::vector<CallStatus>(num, CallStatus::kSuccess);
  }

  std::vector<CallStatus> forward_ended, reverse_ended;
  FakeMemory memory;
  std::unique_ptr<ServerEnd> server;
  std::unique_ptr<ClientEnd> client;
};

}  // namespace weft::rpcrdma::testing
