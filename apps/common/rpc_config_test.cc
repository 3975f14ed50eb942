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

TEST(RpcConfig, CreditsOfTheCommandLineGoFirst) {
  GlobalOptions options;
  options.credits = 7;
  EXPECT_EQ(client_config(options, 17).credits, 7u);
  EXPECT_EQ(server_config(options, 17).credits, 7u);
}

}  // namespace
}  // namespace weft::apps
