// Clients of many addresses over RDMA that are gone while their Calls are under way. They speak version 1.
#include <arpa/inet.h>

#include <algorithm>

#include "tests/gateway/to_tcp_world.h"
#include "verbs-shim/api/testing/post_tap.h"

namespace weft::gateway::testing {
namespace {

struct LostAddressTest : ToTcpTest {
  // A client from an address of its own choice, which speaks version 1 by hand: one Call, and no more.
  struct Peer {
    Peer(verbs::Device& device, const sockaddr_storage& to, const char* from, const Octets& rpc) : octets(28) {
      octets[3] = octets[7] = octets[11] = 1;  // XID, version and credits; RDMA_MSG without chunks
      std::copy(rpc.begin(), rpc.begin() + 4, octets.begin());
      octets.insert(octets.end(), rpc.begin(), rpc.end());
      pd = std::move(*device.alloc_pd());
      cq = std::move(*device.create_cq(200, nullptr));
      events = std::move(*device.create_event_channel());
      id = std::move(*events->create_id());
      mr = std::move(*pd->reg_mr(octets.data(), octets.size(), verbs::Access::kLocalWrite));
      sockaddr_storage source{};
      source.ss_family = AF_INET;
      EXPECT_EQ(inet_pton(AF_INET, from, &reinterpret_cast<sockaddr_in&>(source).sin_addr), 1);
      EXPECT_TRUE(id->bind_addr(source).ok());
      EXPECT_TRUE(id->resolve_addr(to, std::chrono::seconds(5)).ok());
    }
    ~Peer() { qp.reset(); }
    void turn() {
      while (const auto event = events->get_event()) {
        if (event->type == verbs::CmEventType::kAddrResolved) {
          EXPECT_TRUE(id->resolve_route(std::chrono::seconds(5)).ok());
        } else if (event->type == verbs::CmEventType::kRouteResolved) {
          verbs::QpInitAttr attr;
          attr.send_cq = attr.recv_cq = cq.get();
          qp = std::move(*id->create_qp(*pd, attr));
          EXPECT_TRUE(id->connect({}).ok());
        } else if (event->type == verbs::CmEventType::kEstablished) {
          const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(octets.data()),
                               static_cast<std::uint32_t>(octets.size()), mr->lkey()};
          verbs::SendWr wr;
          wr.sg_list = std::span(&sge, 1);
          EXPECT_TRUE(qp->post_send(wr).ok());
        }
      }
    }

    Octets octets;
    std::unique_ptr<verbs::Pd> pd;
    std::unique_ptr<verbs::Cq> cq;
    std::unique_ptr<verbs::CmChannel> events;
    std::unique_ptr<verbs::CmId> id;
    std::unique_ptr<verbs::Mr> mr;
    std::unique_ptr<verbs::Qp> qp;
  };
  // A client at that address sends a REMOVE, which reaches the server, and is lost. Returns the server's end.
  TcpEnd& lose_one(const char* from, std::uint32_t xid) {
    rpcrdma::xdr::XdrWriter out(args);
    args.clear();
    out.opaque(Octets{1, 2, 3, 4});
    out.string("name");
    sockaddr_storage to = gateway->local_addr();
    reinterpret_cast<sockaddr_in&>(to).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    verbs::Device& device = verbs::testing::bare(*client_device);
    const std::size_t num = servers.size();
    peer =
        std::make_unique<Peer>(device, to, from, call_message(xid, nfsulb::kNfsProgram, nfsulb::kNfsV3, kRemove, args));
    EXPECT_TRUE(run([&] {
      device.process(std::chrono::steady_clock::now());
      peer->turn();
      return servers.size() > num && !servers.back()->records.empty();
    }));
    peer.reset();
    EXPECT_TRUE(run([&] {
      device.process(std::chrono::steady_clock::now());
      return gateway->snapshot().server.connections.empty();
    }));
    return *servers.back();
  }
  std::unique_ptr<Peer> peer;

  static constexpr std::uint32_t kRemove = 12, kXid = 0x5eed0001;
  Octets args;
};

// Whatever another address loses, the answer to an honest client's Call is awaited, and its Call runs once.
TEST_F(LostAddressTest, AnAddressThatLosesManyTakesNoPlaceOfAnother) {
  config.max_lost = 8;
  start_gateway();
  TcpEnd& honest = lose_one("127.0.0.2", kXid);
  std::vector<TcpEnd*> others;
  for (std::uint32_t i = 0; i < 10; ++i) others.push_back(&lose_one("127.0.0.1", 1000 + i));
  settle();
  EXPECT_FALSE(honest.ended.has_value());
  const auto is_kept = [](TcpEnd* end) { return !end->ended.has_value(); };
  EXPECT_EQ(std::ranges::count_if(others, is_kept), 7);
  EXPECT_TRUE(others[0]->ended.has_value()) << "the first ones go first";
  // An address that has none takes one from the address with most.
  lose_one("127.0.0.3", 2000);
  settle();
  EXPECT_FALSE(honest.ended.has_value());
  EXPECT_EQ(std::ranges::count_if(others, is_kept), 6);
}

}  // namespace
}  // namespace weft::gateway::testing
