// Remote invalidation with both ends on soft RNICs: chunks are memory windows, and either end invalidates them.
#include "tests/rpc/world.h"

namespace weft::rpcrdma::testing {
namespace {

struct InvalidationOverSoft : World, ::testing::WithParamInterface<bool> {};

// The parameter: whether the server does; else the client invalidates all by itself.
INSTANTIATE_TEST_SUITE_P(ServerSetsR, InvalidationOverSoft, ::testing::Bool());

TEST_P(InvalidationOverSoft, ItemsGoByWindowsEachWay) {
  listen({.remote_invalidation = GetParam()});
  auto client = connect({.credits = 8, .remote_invalidation = true});
  clients = {client.get()};
  constexpr std::size_t kLen = 300'001;
  const Octets data = pattern(kLen);
  const Octets args = write_args(kLen);
  std::vector<CallStatus> ended;
  const auto note = [&](const Reply& reply) { ended.push_back(reply.status); };
  ASSERT_TRUE(client->call(write_call(args, data), note).ok());
  run_until([&] { return client->num_outstanding() == 0; });
  ASSERT_EQ(ended, std::vector{CallStatus::kSuccess}) << client->error();
  EXPECT_EQ(file.data, data);

  constexpr std::size_t kPiece = 20'001;
  Octets back(kLen, 0xa5);
  std::vector<Octets> pieces;  // the arguments
  for (std::size_t at = 0; at < kLen; at += kPiece) {
    pieces.push_back(
        read_args(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(std::min(kPiece, kLen - at))));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const MutBytes rest = MutBytes(back).subspan(i * kPiece);
    ASSERT_TRUE(client->call(read_call(pieces[i], rest.first(std::min(kPiece, rest.size()))), note).ok());
  }
  run_until([&] { return client->num_outstanding() == 0; });
  EXPECT_EQ(ended, std::vector(1 + pieces.size(), CallStatus::kSuccess)) << client->error();
  EXPECT_EQ(back, data);

  CallSpec list = null_call();
  list.procedure = kReaddir;
  list.max_results = 20000;
  Octets got;
  ASSERT_TRUE(client->call(list, [&](const Reply& reply) { got = copy_of(reply.results); }).ok());
  run_until([&] { return client->num_outstanding() == 0; });
  EXPECT_EQ(got, pattern(10000));
  EXPECT_EQ(client->state(), Client::State::kReady) << client->error();
}

TEST_P(InvalidationOverSoft, CallsGoOnOverTheNextConnection) {
  listen({.remote_invalidation = GetParam()});
  auto client = connect({.remote_invalidation = true, .reconnect = {.max_time = std::chrono::seconds(10)}});
  clients = {client.get()};
  run_until_ready(*client);
  file.data = pattern(20000);
  file.hold = true;
  const Octets args = read_args(0, 20000);
  Octets back(20000);
  std::optional<CallStatus> status;
  ASSERT_TRUE(client->call(read_call(args, back), [&](const Reply& reply) { status = reply.status; }).ok());
  run_until([&] { return file.held.size() == 1; });
  server->disconnect(file.held[0].connection);
  file.held.clear();
  file.hold = false;
  run_until([&] { return status.has_value(); });
  EXPECT_EQ(status, CallStatus::kSuccess) << client->error();
  EXPECT_EQ(back, file.data);
  EXPECT_EQ(client->num_connections(), 2u);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
