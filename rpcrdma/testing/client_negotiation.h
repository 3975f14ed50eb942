#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rpcrdma/known_servers.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/testing/client_life.h"
#include "rpcrdma/testing/first_answers.h"

namespace weft::rpcrdma::testing {

inline const Profiles kServes1 = {&profile_of(Protocol::k1)};
inline const Profiles kServesCel05 = {&profile_of(Protocol::k2Cel05)};
inline const Profiles kServesWg07 = {&profile_of(Protocol::k2Wg07)};
inline const Profiles kServesBoth = {&profile_of(Protocol::k2Cel05), &profile_of(Protocol::k1)};
inline const std::vector<Protocol> kBoth = {Protocol::k2Cel05, Protocol::k1};

// XID, version and credit are words 0 to 2 of each header.
inline std::uint32_t word_of(const Octets& octets, std::size_t i) {
  xdr::XdrReader in(octets);
  std::uint32_t word = 0;
  EXPECT_TRUE(in.skip(4 * i) && in.u32(word));
  return word;
}

// ClientNegotiationTest: a Client that finds out which version its server speaks. The test is the server.
struct ClientNegotiationTest : ClientLifeTest {
  // A client that is connected and has asked.
  void ask(ClientConfig config = {}) {
    if (config.protocols == ClientConfig{}.protocols) config.protocols = own;
    config.credits = 8;
    config.properties = has_properties;
    config.log = lines.log();
    config.known_servers = &servers;
    auto made = Client::connect(device, sockaddr_storage{}, config);
    ASSERT_TRUE(made.ok()) << made.error().message;
    client = std::move(*made);
    run(0);
  }
  const std::vector<Octets>& sends() { return device.qp().sent; }
  // As a server of these versions does.
  void answer_last(const Profiles& server, int ms, std::uint32_t credit = 8) {
    const auto answer = first_answer(server, sends().back(), credit);
    ASSERT_TRUE(answer);
    ASSERT_TRUE(device.qp().inject(*answer));
    run(ms);
  }
  // The versions of all Sends of this connection.
  std::vector<std::uint32_t> versions() {
    std::vector<std::uint32_t> all;
    for (const Octets& octets : sends()) all.push_back(word_of(octets, 1));
    return all;
  }
  void call_with(const Octets& args) {
    CallSpec spec = call_of(test_binding(), kNull, args);
    ASSERT_TRUE(client->call(spec, [this](const Reply& reply) { ended.emplace_back(0, reply.status); }).ok());
    run(0);
  }

  KnownServers servers;
  bool has_properties = false;
  std::vector<Protocol> own = kBoth;
};

}  // namespace weft::rpcrdma::testing
