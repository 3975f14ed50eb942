#include "apps/perf/rpc_program.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rpcrdma/client.h"
#include "rpcrdma/xdr/xdr.h"
#include "verbs-shim/soft/device.h"

namespace weft::apps::perf {
namespace {

std::vector<std::uint8_t> word(std::uint32_t value) {
  std::vector<std::uint8_t> octets;
  rpcrdma::xdr::XdrWriter(octets).u32(value);
  return octets;
}

using rpcrdma::Walked;

TEST(PerfBinding, OnlyWriteHasAnEligibleArgument) {
  const rpcrdma::Binding& binding = perf_binding();
  std::vector<rpcrdma::EligibleItem> items;
  const std::size_t behind_count = 4;
  EXPECT_EQ(binding.walk_arguments(kProcWrite, word(1 << 20), std::span(&behind_count, 1), items), Walked::kWhole);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].offset, 4u);
  EXPECT_EQ(items[0].len, 1u << 20);
  EXPECT_EQ(binding.walk_arguments(kProcWrite, {}, {}, items), Walked::kGarbage);
  EXPECT_EQ(binding.walk_arguments(kProcRead, word(7), {}, items), Walked::kWhole);
  EXPECT_TRUE(items.empty());
}

TEST(PerfBinding, OnlyReadHasAnEligibleResult) {
  const rpcrdma::Binding& binding = perf_binding();
  std::vector<std::optional<rpcrdma::EligibleItem>> items;
  const std::uint32_t brought = 9;
  EXPECT_EQ(binding.walk_results(kProcRead, word(9), std::span(&brought, 1), items), Walked::kWhole);
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0]->offset, 4u);
  EXPECT_EQ(binding.walk_results(kProcWrite, word(9), {}, items), Walked::kWhole);
  EXPECT_TRUE(items.empty());
}

TEST(PerfBinding, BoundsEveryReply) {
  const std::size_t behind_count = 4;
  EXPECT_EQ(perf_binding().max_results(kProcNull, {}), 0u);
  EXPECT_EQ(perf_binding().max_results(kProcRead, word(1)), 4u);
  EXPECT_EQ(perf_binding().max_results(kProcWrite, word(1), std::span(&behind_count, 1)), 4u);
}

struct PerfProgram : ::testing::Test {
  void listen(const rpcrdma::ServerConfig& config, const rpcrdma::ClientConfig& its_client = {}) {
    sockaddr_storage loopback{};
    loopback.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(loopback).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server = std::move(rpcrdma::Server::listen(*server_device, loopback, {&program, 1}, config).value());
    service.set_server(*server);
    client = std::move(rpcrdma::Client::connect(*client_device, server->local_addr(), its_client).value());
  }
  std::optional<rpcrdma::CallStatus> call(std::uint32_t procedure, const std::vector<std::uint8_t>& args = {},
                                          std::size_t max_results = 0) {
    rpcrdma::CallSpec spec;
    spec.program = kPerfProgram;
    spec.version = kPerfVersion;
    spec.procedure = procedure;
    spec.args = args;
    spec.max_results = max_results;
    std::optional<rpcrdma::CallStatus> status;
    EXPECT_TRUE(client
                    ->call(spec,
                           [&](const rpcrdma::Reply& reply) {
                             status = reply.status;
                             results_len = reply.results.size();
                           })
                    .ok());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (auto now = deadline; !status && (now = std::chrono::steady_clock::now()) < deadline;) {
      client->process(now);
      server->process(now);
    }
    return status;
  }

  std::unique_ptr<verbs::Device> server_device = std::move(verbs::open_soft_device({}).value());
  std::unique_ptr<verbs::Device> client_device = std::move(verbs::open_soft_device({}).value());
  RpcService service;
  rpcrdma::ServedProgram program{&perf_binding(), &service};
  std::unique_ptr<rpcrdma::Server> server;
  std::unique_ptr<rpcrdma::Client> client;
  std::size_t results_len = 0;  // of the last Call
};

TEST_F(PerfProgram, WhatItDoesNotHaveIsUnavailable) {
  listen({});
  EXPECT_EQ(call(kProcNull), rpcrdma::CallStatus::kSuccess);
  EXPECT_EQ(call(kProcWrite + 1), rpcrdma::CallStatus::kProcUnavail);
}

// A client that offers no chunk costs no more memory than its Call has room for.
TEST_F(PerfProgram, AReadWithoutAChunkIsAsLongAsTheCallHasRoom) {
  listen({.protocols = {rpcrdma::Protocol::k2Wg07}},
         {.protocols = {rpcrdma::Protocol::k2Wg07}, .chunks = {.max_continued_reply = 1 << 20}});
  EXPECT_EQ(call(kProcNull), rpcrdma::CallStatus::kSuccess);
  EXPECT_EQ(call(kProcRead, word(1000), 1 << 19), rpcrdma::CallStatus::kSuccess);
  EXPECT_EQ(results_len, 4u + 1000);
  EXPECT_EQ(call(kProcRead, word(kMaxItem), 1 << 19), rpcrdma::CallStatus::kSuccess);
  EXPECT_EQ(results_len, 4u + (16 << 10));
}

TEST_F(PerfProgram, AReadThatFindsNoMemoryIsASystemError) {
  listen({.max_call = 64 << 10, .max_item = 64 << 10, .max_buffered = 256 << 10, .max_connections = 1});
  EXPECT_EQ(call(kProcNull), rpcrdma::CallStatus::kSuccess);
  std::vector<rpcrdma::Buffer> held;
  for (std::size_t len = 64 << 10; len > 0; len /= 2) {
    while (rpcrdma::Buffer buffer = server->buffers().take(len)) held.push_back(std::move(buffer));
  }
  EXPECT_EQ(call(kProcRead, word(1)), rpcrdma::CallStatus::kSystemErr);
  held.clear();
  EXPECT_EQ(call(kProcRead, word(1)), rpcrdma::CallStatus::kSuccess);
}

}  // namespace
}  // namespace weft::apps::perf
