// Remote invalidation by a client whole: R of RFC 8797, and the order in which things end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpcrdma/client.h"
#include "rpcrdma/connection_setup.h"
#include "rpcrdma/testing/engines.h"
#include "rpcrdma/testing/fake_device.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;

struct ClientInvalidationTest : ::testing::Test {
  void open(ClientConfig config) {
    const auto answer = emit_private_data({false, 4096, 4096});
    device.private_data = {answer.begin(), answer.end()};
    auto made = Client::connect(device, sockaddr_storage{}, config);
    ASSERT_TRUE(made.ok()) << made.error().message;
    client = std::move(*made);
    run(0);
    ASSERT_EQ(client->state(), Client::State::kReady);
  }
  void run(int ms) {
    for (int i = 0; i < 20; ++i) client->process(at(ms));
  }
  bool says_r() const { return parse_private_data(device.sent_private_data).remote_invalidate; }
  void call() {
    CallSpec spec = call_of(test_binding(), kRead);
    spec.result_items = room;
    ASSERT_TRUE(client
                    ->call(spec,
                           [this](const Reply& reply) {
                             ended.push_back(reply.status);
                             disconnects_at_end = device.num_disconnects();
                             remote_at_end = memory.num_remote();
                           })
                    .ok());
    run(1);
  }
  bool reply(bool invalidates) {
    v1::Header header = parse(device.qp().sent.at(0));
    const std::uint32_t handle = handles_of(header).front();
    header.proc = v1::Proc::kMsg;
    header.credit = 8;
    for (auto& segment : header.lists.write_list.at(0)) segment.length = 0;
    const auto invalidated = invalidates ? std::optional(handle) : std::nullopt;
    return device.qp().inject(message(header, rpc_reply(header.xid)), invalidated);
  }

  FakeMemory memory;
  FakeDevice device{memory};
  Octets room = Octets(9000);
  std::vector<CallStatus> ended;
  std::size_t disconnects_at_end = 0;
  std::size_t remote_at_end = 0;
  std::unique_ptr<Client> client;
};

TEST_F(ClientInvalidationTest, RIsSetOnlyWhereAllIsWindows) {
  RecordProperty("proves", "R1-4.3.2-18");
  open({.remote_invalidation = true});  // the device has none
  EXPECT_FALSE(says_r());
  call();
  EXPECT_TRUE(memory.bound().empty());
  client.reset();
  device.have_windows();
  open({});
  EXPECT_FALSE(says_r());
  client.reset();
  open({.remote_invalidation = true});
  EXPECT_TRUE(says_r());
  call();
  EXPECT_EQ(memory.bound(), handles_of(parse(device.qp().sent.at(0))));
  EXPECT_EQ(memory.num_remote(), 1u);
}

// Linux servers invalidate although their own R is clear.
TEST_F(ClientInvalidationTest, AServerMayInvalidateAlthoughItsRIsClear) {
  device.have_windows();
  open({.remote_invalidation = true});
  call();
  ASSERT_TRUE(reply(true));
  run(2);
  EXPECT_THAT(ended, ElementsAre(CallStatus::kSuccess));
  EXPECT_EQ(remote_at_end, 0u);
  EXPECT_TRUE(device.qp().local_invalidations.empty());
  EXPECT_EQ(client->state(), Client::State::kReady);
}

TEST_F(ClientInvalidationTest, TheConnectionIsClosedBeforeACallWhoseMemoryStays) {
  RecordProperty("proves", "R1-5.5.4-02");
  device.have_windows();
  open({.remote_invalidation = true});
  call();
  memory.faults.fail_invalidations = true;
  ASSERT_TRUE(reply(false));
  run(2);
  EXPECT_TRUE(ended.empty());
  run(5000);
  EXPECT_THAT(ended, ElementsAre(CallStatus::kDisconnected));
  EXPECT_EQ(disconnects_at_end, 1u);
  EXPECT_EQ(remote_at_end, 0u);
  EXPECT_EQ(client->state(), Client::State::kClosed);
}

}  // namespace
}  // namespace weft::rpcrdma::testing
