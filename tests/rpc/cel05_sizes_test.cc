// How long the messages of cel05 are, with clients on verbs alone and with clients of the library.
#include <gmock/gmock.h>

#include "tests/rpc/hostile_v2.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::SizeIs;

constexpr std::size_t kHeader = 36;
constexpr std::size_t kCallHeaders = kHeader + 40;       // with the RPC header
constexpr std::size_t kReadReply = kHeader + 24 + 4;     // a Reply to READ without the data
constexpr std::size_t kReplyResource = kHeader - 3 * 4;  // an error with one word in its arm

struct Cel05SizesTest : HostileV2Test {
  // A WRITE in one message of `len` octets.
  Octets write_of(std::size_t len) {
    data = pattern(len - kCallHeaders - write_args(0).size());
    Octets args = write_args(data.size());
    args.insert(args.end(), data.begin(), data.end());
    return cel05_octets(7, cel05::Msg{}, rpc_call(7, kWrite, args));
  }
  // The length of the answer to a READ of `len` octets without chunks.
  std::size_t answer_to_read(V2Peer& peer, std::size_t len) {
    const std::size_t num = peer.received.size();
    peer.send(cel05_octets(9, cel05::Msg{}, rpc_call(9, kRead, read_args(0, static_cast<std::uint32_t>(len)))));
    run([&] { return peer.received.size() > num; }, kServed);
    return peer.received.back().size();
  }
  // RDMA Reads of the server for a WRITE whose message has `len` octets if it has no chunk.
  std::uint64_t reads_for_write(Client& client, std::size_t len) {
    data = pattern(len - kCallHeaders - write_args(0).size());
    const Octets args = write_args(data.size());
    const std::uint64_t before_it = server->counters().reads_tx;
    std::optional<CallStatus> status;
    EXPECT_TRUE(client.call(write_call(args, data), [&](const Reply& reply) { status = reply.status; }).ok());
    run([&] { return status.has_value(); }, kServed);
    EXPECT_EQ(status, CallStatus::kSuccess);
    EXPECT_EQ(file.data, data);
    return server->counters().reads_tx - before_it;
  }

  Octets data;
};

TEST_F(Cel05SizesTest, EveryServerTakesMessagesOf4096Octets) {
  RecordProperty("proves", "R2-3.3-1 R2-3.3-2");
  for (const auto& [own, len] : {std::pair{1024ul, 4096ul}, {16384ul, 16384ul}}) {
    open({.inline_threshold = own});
    V2Peer& peer = open_cel05();
    const Octets message = write_of(len);
    ASSERT_THAT(message, SizeIs(len));
    peer.send(message);
    run([&] { return peer.received.size() == 2; }, kServed);
    EXPECT_EQ(file.data, data);
    EXPECT_FALSE(peer.disconnected);
    expect_served();
    peers.clear();
    good.clear();
    server.reset();
  }
}

// The client's Receives have 8192 octets, and the server may send 16384.
TEST_F(Cel05SizesTest, AServersMessagesGrowWithTheClientsWord) {
  RecordProperty("proves", "R2-3.1-2 R2-3.3-3 R2-6.2.1-1");
  open({.inline_threshold = 16384});
  file.data = pattern(9000);
  V2Peer& peer = open_cel05();
  EXPECT_EQ(answer_to_read(peer, 4096 - kReadReply), 4096u);
  EXPECT_EQ(answer_to_read(peer, 4096 - kReadReply + 4), kReplyResource);
  const Properties said{.receive_size = 8192};
  peer.send(cel05_octets(3, cel05::Connprop{.start = v2::make_propset(said, cel05::kProperties)}));
  settle();
  EXPECT_EQ(answer_to_read(peer, 8192 - kReadReply), 8192u);
  EXPECT_EQ(answer_to_read(peer, 8192 - kReadReply + 4), kReplyResource);
}

TEST_F(Cel05SizesTest, AClientsMessagesGrowWithTheServersWord) {
  RecordProperty("proves", "R2-3.1-2 R2-3.3-3 R2-6.2.1-1");
  open({.inline_threshold = 8192});
  for (const bool tells : {false, true}) {
    auto client = Client::connect(*client_device, server->local_addr(),
                                  {.inline_threshold = 16384, .protocols = {Protocol::k2Cel05}, .properties = tells});
    ASSERT_TRUE(client.ok());
    good.push_back(std::move(*client));
    expect_served(kEnough);
    expect_served(kEnough);
    const std::size_t threshold = tells ? 8192 : 4096;
    EXPECT_EQ(reads_for_write(*good.back(), threshold), 0u);
    EXPECT_NE(reads_for_write(*good.back(), threshold + 4), 0u);
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
