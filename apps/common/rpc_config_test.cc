#include "apps/common/rpc_config.h"

#include <gtest/gtest.h>

namespace weft::apps {
namespace {

TEST(RpcConfig, TheGlobalOptionsReachBothEnds) {
  GlobalOptions options;
  options.protocols = {rpcrdma::Protocol::k2Wg07, rpcrdma::Protocol::k1};
  options.literal_credits = true;
  options.inline_threshold = 8192;
  options.ird = 3;
  options.ord = 5;
  const rpcrdma::ClientConfig client = client_config(options, 17);
  const rpcrdma::ServerConfig server = server_config(options, 19);
  EXPECT_EQ(client.protocols, options.protocols);
  EXPECT_EQ(server.protocols, options.protocols);
  EXPECT_TRUE(client.literal_credits);
  EXPECT_TRUE(server.literal_credits);
  EXPECT_EQ(client.inline_threshold, 8192u);
  EXPECT_EQ(server.inline_threshold, 8192u);
  EXPECT_EQ(client.ird, 3u);
  EXPECT_EQ(server.ord, 5u);
  EXPECT_EQ(client.credits, 17u);
  EXPECT_EQ(server.credits, 19u);
  EXPECT_TRUE(client.log.sink);
  EXPECT_TRUE(server.log.sink);
}

TEST(RpcConfig, ServersInvalidateUnlessTheyAreTurnedOffAndClientsWhereTheyAreAsked) {
  GlobalOptions options;
  EXPECT_FALSE(client_config(options, 17).remote_invalidation);
  EXPECT_TRUE(server_config(options, 17).remote_invalidation);
  options.remote_invalidation = RemoteInvalidation::kOn;
  EXPECT_TRUE(client_config(options, 17).remote_invalidation);
  EXPECT_TRUE(server_config(options, 17).remote_invalidation);
  options.remote_invalidation = RemoteInvalidation::kOff;
  EXPECT_FALSE(client_config(options, 17).remote_invalidation);
  EXPECT_FALSE(server_config(options, 17).remote_invalidation);
}

TEST(RpcConfig, ClientsWeighTheRoundTripUnlessThereIsANumber) {
  GlobalOptions options;
  EXPECT_TRUE(client_config(options, 17).chunks.weighs_round_trip);
  EXPECT_EQ(client_config(options, 17).chunks.max_continued_call, std::nullopt);
  options.parts = 0;
  EXPECT_EQ(client_config(options, 17).chunks.max_continued_call, 0u);
}

TEST(RpcConfig, CreditsOfTheCommandLineGoFirst) {
  GlobalOptions options;
  options.credits = 7;
  EXPECT_EQ(client_config(options, 17).credits, 7u);
  EXPECT_EQ(server_config(options, 17).credits, 7u);
}

}  // namespace
}  // namespace weft::apps
