#include "verbs-shim/soft/terminate_counters.h"

#include <gtest/gtest.h>

#include "rdmap/terminate.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"

namespace weft::verbs::soft {
namespace {

rdmap::Closed closed(rdmap::CloseReason reason, std::optional<rdmap::Terminate> terminate) {
  return {.reason = reason, .terminate = terminate, .text = ""};
}

TEST(TerminateCounters, CountsBothDirectionsByError) {
  TerminateCounters counters;
  EXPECT_TRUE(counters.read().empty());
  counters.count(closed(rdmap::CloseReason::kTerminateSent, rdmap::kUnexpectedOpcode));
  counters.count(closed(rdmap::CloseReason::kTerminateSent, rdmap::kUnexpectedOpcode));
  counters.count(closed(rdmap::CloseReason::kTerminateReceived, rdmap::kUnexpectedOpcode));
  counters.count(closed(rdmap::CloseReason::kTerminateReceived, rdmap::kReadBaseBounds));
  // These tell only which error a Terminate would have named.
  counters.count(closed(rdmap::CloseReason::kLlp, rdmap::Terminate{rdmap::Layer::kLlp, 0, 1}));
  counters.count(closed(rdmap::CloseReason::kGraceful, {}));
  const auto read = counters.read();
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].code, 0x01);
  EXPECT_EQ(read[0].sent, 0u);
  EXPECT_EQ(read[0].received, 1u);
  EXPECT_EQ(read[1].layer, 0u);
  EXPECT_EQ(read[1].etype, 2u);
  EXPECT_EQ(read[1].code, 0x06);
  EXPECT_EQ(read[1].sent, 2u);
  EXPECT_EQ(read[1].received, 1u);
  EXPECT_EQ(read[1].meaning, "remote operation: unexpected opcode");
}

// A peer may send any of 65,536 errors.
TEST(TerminateCounters, UnregisteredErrorsShareOneCount) {
  TerminateCounters counters;
  for (int etype = 8; etype < 16; ++etype) {
    for (int code = 0; code < 256; ++code) {
      counters.count(closed(
          rdmap::CloseReason::kTerminateReceived,
          rdmap::Terminate{rdmap::Layer::kRdma, static_cast<std::uint8_t>(etype), static_cast<std::uint8_t>(code)}));
    }
  }
  const auto read = counters.read();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].layer, 255);
  EXPECT_EQ(read[0].received, 2048u);
}

}  // namespace
}  // namespace weft::verbs::soft

namespace weft::verbs::testing {
namespace {

class TerminatesTest : public VerbsTest {};

TEST_P(TerminatesTest, ADeviceKnowsTheTerminatesOfItsConnections) {
  establish();
  Mem here(*client_.pd, 64, Access::kLocalWrite);
  // The server has posted no Receive.
  ASSERT_TRUE(client_.send({here.sge(0, 5)}).ok());
  ASSERT_TRUE(
      drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
  const auto at_server = server_.device->query().terminates, at_client = client_.device->query().terminates;
  ASSERT_EQ(at_server.size(), 1u);
  EXPECT_EQ(at_server[0].meaning, "untagged buffer: invalid MSN, no buffer available");
  EXPECT_EQ(at_server[0].sent, 1u);
  EXPECT_EQ(at_server[0].received, 0u);
  ASSERT_EQ(at_client.size(), 1u);
  EXPECT_EQ(at_client[0].meaning, at_server[0].meaning);
  EXPECT_EQ(at_client[0].sent, 0u);
  EXPECT_EQ(at_client[0].received, 1u);
}

INSTANTIATE_TEST_SUITE_P(Soft, TerminatesTest,
                         ::testing::Values(Backend{"Spinning", [] { return open_soft_device({}); }, false}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::verbs::testing
