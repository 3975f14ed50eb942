#include "apps/perf/rpc_program.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <chrono>
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

TEST(PerfProgram, WhatItDoesNotHaveIsUnavailable) {
  sockaddr_storage loopback{};
  loopback.ss_family = AF_INET;
  reinterpret_cast<sockaddr_in&>(loopback).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto server_device = std::move(verbs::open_soft_device({}).value());
  const auto client_device = std::move(verbs::open_soft_device({}).value());
  RpcService service;
  const rpcrdma::Program program{&perf_binding(), &service};
  const auto server = std::move(rpcrdma::Server::listen(*server_device, loopback, {&program, 1}, {}).value());
  service.set_server(*server);
  const auto client = std::move(rpcrdma::Client::connect(*client_device, server->local_addr(), {}).value());
  for (const std::uint32_t procedure : {kProcNull, kProcWrite + 1}) {
    rpcrdma::CallSpec call;
    call.program = kPerfProgram;
    call.version = kPerfVersion;
    call.procedure = procedure;
    std::optional<rpcrdma::CallStatus> status;
    ASSERT_TRUE(client->call(call, [&](const rpcrdma::Reply& reply) { status = reply.status; }).ok());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (auto now = deadline; !status && (now = std::chrono::steady_clock::now()) < deadline;) {
      client->process(now);
      server->process(now);
    }
    EXPECT_EQ(status, procedure == kProcNull ? rpcrdma::CallStatus::kSuccess : rpcrdma::CallStatus::kProcUnavail);
  }
}

}  // namespace
}  // namespace weft::apps::perf
