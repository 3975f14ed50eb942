// Both readings of the credit word of 2-wg07 (ClientConfig::literal_credits), at either end, over soft RNICs.
#include <gmock/gmock.h>

#include "tests/rpc/world.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::Eq;

struct Readings {
  const char* name;
  bool client_is_literal;
  bool server_is_literal;
};

struct CreditFormula : World, ::testing::WithParamInterface<Readings> {
  void SetUp() override {
    listen({.protocols = {Protocol::k2Wg07}, .literal_credits = GetParam().server_is_literal});
    begin();
  }

  // Another connection.
  void begin() {
    ClientConfig config;
    config.protocols = {Protocol::k2Wg07};
    config.literal_credits = GetParam().client_is_literal;
    config.chunks.max_continued_call = config.chunks.max_continued_reply = 16 << 10;
    client = connect(config);
    clients = {client.get()};
    expect_null_works(*client);
  }

  // So many Calls at once, until all have ended.
  std::vector<CallStatus> call(const CallSpec& spec, int num) {
    std::vector<CallStatus> ended;
    for (int i = 0; i < num; ++i) {
      EXPECT_TRUE(client->call(spec, [&](const Reply& reply) { ended.push_back(reply.status); }).ok());
    }
    run_until([&] { return client->num_outstanding() == 0; });
    return ended;
  }

  // Its Reply comes in three messages.
  CallSpec long_listing() const {
    CallSpec spec = call_of(test_binding(), kReaddir);
    spec.max_results = file.listing;
    return spec;
  }

  static constexpr int kMany = 200;
  const std::vector<CallStatus> all_served = std::vector(kMany, CallStatus::kSuccess);
  std::unique_ptr<Client> client;
};

TEST_P(CreditFormula, CallsOfOneMessageAreServed) {
  RecordProperty("proves", "W2-4.2.1-7");
  EXPECT_EQ(call(null_call(), kMany), all_served);
}

// The client sends four messages for each of the server's.
TEST_P(CreditFormula, CallsInPartsAreServed) {
  RecordProperty("proves", "W2-4.2.1-7");
  const Octets data = pattern(12000);
  const Octets args = write_args(data.size());
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(call(write_call(args, data), 1), std::vector{CallStatus::kSuccess}) << i;
  // A literal end makes up by GRANTs for what it does not count.
  EXPECT_EQ(server->counters().sends_tx > 2 * kMany, GetParam().server_is_literal) << server->counters().sends_tx;
  EXPECT_EQ(call(write_call(args, data), kMany), all_served);
  EXPECT_EQ(server->counters().reads_tx, 0u);
  EXPECT_EQ(file.data, data);
}

// The server sends three messages for each of the client's.
TEST_P(CreditFormula, RepliesInPartsAreServedOneAtATime) {
  RecordProperty("proves", "W2-4.2.1-7");
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(call(long_listing(), 1), std::vector{CallStatus::kSuccess}) << i;
  EXPECT_EQ(client->counters().sends_tx > 2 * kMany, GetParam().client_is_literal) << client->counters().sends_tx;
  EXPECT_EQ(server->counters().writes_tx, 0u);
}

// With many at once an end that is literal may have given credits beyond its Receives.
TEST_P(CreditFormula, ManyRepliesInPartsAreServedOrEndTheConnection) {
  RecordProperty("proves", "W2-4.2.1-7");
  const auto ended = call(long_listing(), kMany);
  EXPECT_THAT(ended, ::testing::SizeIs(kMany));
  EXPECT_THAT(ended, Each(AnyOf(Eq(CallStatus::kSuccess), Eq(CallStatus::kDisconnected))));
  begin();
}

INSTANTIATE_TEST_SUITE_P(Readings, CreditFormula,
                         ::testing::Values(Readings{"BothLiteral", true, true},
                                           Readings{"LiteralClientSaneServer", true, false},
                                           Readings{"SaneClientLiteralServer", false, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::rpcrdma::testing
