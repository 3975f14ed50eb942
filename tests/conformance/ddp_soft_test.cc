// RFC 5041's requirements that show with real sockets and real memory alone: streams beside each other, the end of a
// connection, registration and its end.
#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "base/fd.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/api/testing/window.h"
#include "verbs-shim/soft/device.h"

namespace weft::verbs::testing {
namespace {

constexpr Access kAll = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;

Result<std::unique_ptr<Device>> open_verify() {
  return open_soft_device({});
}
Result<std::unique_ptr<Device>> open_direct() {
  SoftConfig config;
  config.direct_placement = true;
  return open_soft_device(config);
}

// How many sockets this process has open.
std::size_t num_sockets() {
  std::size_t num = 0;
  DIR* const dir = ::opendir("/proc/self/fd");
  EXPECT_NE(dir, nullptr);
  while (const dirent* entry = ::readdir(dir)) {
    char target[64] = {};
    if (::readlinkat(::dirfd(dir), entry->d_name, target, sizeof(target) - 1) < 0) continue;
    if (std::string_view(target).starts_with("socket:")) ++num;
  }
  ::closedir(dir);
  return num;
}

class DdpSoftTest : public VerbsTest {
 protected:
  // A peer that is a plain socket, accepted and in Full Operation at the server.
  Fd raw_establish() {
    EXPECT_TRUE(listen().ok());
    const sockaddr_storage to = server_.id->local_addr();
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0);
    // M=0 C=1 R=0, revision 1, no private data.
    say(fd, std::string("MPA ID Req Frame") + std::string("\x40\x01\x00\x00", 4));
    take_request();
    make_qp(server_);
    EXPECT_TRUE(server_.id->accept({}).ok());
    EXPECT_TRUE(drive([&] { return server_.has(CmEventType::kEstablished); }));
    return fd;
  }
  static void say(const Fd& fd, const std::string& octets) {
    EXPECT_EQ(::send(fd.get(), octets.data(), octets.size(), MSG_NOSIGNAL), static_cast<ssize_t>(octets.size()));
  }
  bool both_disconnected() {
    return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected);
  }
  // The client's text at the end of its connection.
  std::string last_words() {
    EXPECT_TRUE(drive([&] { return both_disconnected(); }));
    const auto event = client_.take(CmEventType::kDisconnected);
    return event ? event->text : "";
  }
};

TEST_P(DdpSoftTest, AStreamStalledInsideAMessageHoldsNoOtherUp) {
  RecordProperty("proves", "DDP-1.2-05");
  const Fd stalled = raw_establish();
  Mem inbox(*server_.pd, 64, Access::kLocalWrite);
  ASSERT_TRUE(server_.recv({inbox.sge()}, 1).ok());
  // A Send of 40 octets of which 20 come.
  say(stalled, std::string("\x00\x3a\x41\x43", 4) + std::string(36, '\0'));
  settle();
  // Meanwhile another stream of the same device does all it wants.
  auto idle_qp = std::move(server_.qp);
  auto idle_id = std::move(server_.id);
  server_.id = std::move(listener_);
  server_.events.clear();
  start_connect();
  take_request();
  make_qp(server_);
  ASSERT_TRUE(server_.id->accept({{}, 16, 16}).ok());
  ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kEstablished); }));
  Mem to(*server_.pd, 1 << 20, kAll);
  Mem from(*client_.pd, 1 << 20, kAll, 7);
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(server_.recv({to.sge(0, 64)}, 10 + i).ok());
    ASSERT_TRUE(client_.send({from.sge(0, 64)}, i).ok());
  }
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, to.addr(), to.mr->rkey(), 30).ok());
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaRead, {from.sge()}, to.addr(), to.mr->rkey(), 31).ok());
  ASSERT_TRUE(drive([&] { return client_.wcs.size() == 22 && server_.wcs.size() == 20; }));
  for (const Wc& wc : client_.wcs) EXPECT_EQ(wc.status, WcStatus::kSuccess);
  for (const Wc& wc : server_.wcs) EXPECT_EQ(wc.qp_num, server_.qp->qp_num());
  idle_qp.reset();
}

TEST_P(DdpSoftTest, ATerminateExchangeLeavesNoSocketBehind) {
  RecordProperty("proves", "DDP-3-10 DDP-6.2-02");
  ASSERT_TRUE(listen().ok());
  const std::size_t before = num_sockets();
  Mem from(*client_.pd, 64, Access::kLocalWrite);
  start_connect();
  take_request();
  make_qp(server_);
  ASSERT_TRUE(server_.id->accept({{}, 16, 16}).ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kEstablished) && client_.has(CmEventType::kEstablished); }));
  EXPECT_EQ(num_sockets(), before + 2);
  ASSERT_TRUE(client_.send({from.sge()}, 1).ok());  // no receive is there for it
  ASSERT_TRUE(drive([&] { return both_disconnected() && num_sockets() == before; }));
}

TEST_P(DdpSoftTest, AHalfClosedPeerGetsAFinAndNoReset) {
  RecordProperty("proves", "DDP-6.2.1-06");
  const Fd raw = raw_establish();
  ASSERT_EQ(::shutdown(raw.get(), SHUT_WR), 0);
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(server_.take(CmEventType::kDisconnected)->status, 0);
  (void)server_.id->disconnect();
  char buffer[256];
  ssize_t n = -1;
  ASSERT_TRUE(drive([&] {
    do {
      n = ::recv(raw.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    } while (n > 0);
    return n == 0 || errno != EAGAIN;
  }));
  EXPECT_EQ(n, 0) << std::strerror(errno);
}

TEST_P(DdpSoftTest, EverythingOutstandingEndsOnceAfterAFatalError) {
  RecordProperty("proves", "DDP-3-03 DDP-6.2.2-04");
  Mem to(*server_.pd, 1 << 20, kAll);
  Mem from(*client_.pd, 1 << 20, kAll);
  establish();
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(client_.recv({from.sge(0, 8)}, 100 + i).ok());
  for (std::uint64_t i = 0; i < 21; ++i) {
    if (i % 3 == 2) {
      ASSERT_TRUE(client_.send({from.sge(0, 8)}, i).ok());  // no receive is there for it
    } else {
      const WrOpcode opcode = i % 3 == 0 ? WrOpcode::kRdmaWrite : WrOpcode::kRdmaRead;
      ASSERT_TRUE(client_.rdma(opcode, {from.sge()}, to.addr(), to.mr->rkey(), i).ok());
    }
  }
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(server_.rdma(WrOpcode::kRdmaRead, {to.sge()}, from.addr(), from.mr->rkey(), i).ok());
  }
  ASSERT_TRUE(drive([&] { return both_disconnected(); }));
  settle();
  for (const auto& [side, num] : {std::pair(&client_, std::size_t{31}), std::pair(&server_, std::size_t{10})}) {
    std::map<std::uint64_t, int> ended;
    for (const Wc& wc : side->wcs) ++ended[wc.wr_id];
    EXPECT_EQ(ended.size(), num);
    for (const auto& [wr_id, times] : ended) EXPECT_EQ(times, 1) << wr_id;
  }
}

TEST_P(DdpSoftTest, NothingChangesOnceDeregistrationHasReturned) {
  RecordProperty("proves", "DDP-8.3.1-06");
  constexpr std::size_t kLen = 1 << 20;
  std::vector<std::uint8_t> target(kLen, 0xa5);
  auto mr = std::move(server_.pd->reg_mr(target.data(), kLen, kAll).value());
  Mem a(*client_.pd, kLen, Access::kNone, 1);
  Mem b(*client_.pd, kLen, Access::kNone, 2);
  establish();
  const auto addr = reinterpret_cast<std::uintptr_t>(target.data());
  for (std::uint64_t i = 0; i < 32; ++i) {
    ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {(i % 2 == 0 ? a : b).sge()}, addr, mr->rkey(), i).ok());
  }
  ASSERT_TRUE(drive([&] { return server_.qp->counters().write_octets_rx > 3 * kLen / 2; }));
  mr.reset();
  const std::vector<std::uint8_t> at_return = target;
  EXPECT_NE(at_return, std::vector<std::uint8_t>(kLen, 0xa5));
  ASSERT_TRUE(drive([&] { return both_disconnected() && client_.wcs.size() == 32; }));
  settle();
  EXPECT_EQ(target, at_return);
}

TEST_P(DdpSoftTest, RegisterWriteThenShrinkAndWriteAgain) {
  RecordProperty("proves", "DDP-8.3-01 DDP-8.3.1-04");
  std::vector<std::uint8_t> target(4096, 0xa5);
  const auto addr = reinterpret_cast<std::uintptr_t>(target.data());
  auto mr = std::move(server_.pd->reg_mr(target.data(), target.size(), kAll).value());
  Mem from(*client_.pd, 4096, Access::kNone, 1);
  establish();
  const std::uint32_t rkey = mr->rkey();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, addr, rkey, 1).ok());
  ASSERT_TRUE(drive([&] { return server_.qp->counters().write_octets_rx == 4096; }));
  EXPECT_EQ(target, from.octets);
  std::fill(target.begin(), target.end(), 0xa5);
  mr.reset();
  // The first 1000 octets are registered again, under a new STag. A Write beyond them is refused.
  mr = std::move(server_.pd->reg_mr(target.data(), 1000, kAll).value());
  EXPECT_NE(mr->rkey(), rkey);
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge(0, 500)}, addr, mr->rkey(), 2).ok());
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge(0, 501)}, addr + 500, mr->rkey(), 3).ok());
  const std::string text = last_words();
  EXPECT_NE(text.find("1/1/01"), std::string::npos) << text;
  std::vector<std::uint8_t> want(4096, 0xa5);
  std::fill_n(want.begin(), 500, 1);
  EXPECT_EQ(target, want);
}

TEST_P(DdpSoftTest, AnStagThatWasTakenBackIsUnknown) {
  RecordProperty("proves", "DDP-8.3-02 DDP-8.3.1-04");
  std::vector<std::uint8_t> target(4096, 0xa5);
  const auto addr = reinterpret_cast<std::uintptr_t>(target.data());
  auto mr = std::move(server_.pd->reg_mr(target.data(), target.size(), kAll).value());
  Mem from(*client_.pd, 4096, Access::kNone, 1);
  establish();
  const std::uint32_t rkey = mr->rkey();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge(0, 10)}, addr, rkey, 1).ok());
  ASSERT_TRUE(drive([&] { return server_.qp->counters().write_octets_rx == 10; }));
  mr.reset();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, addr, rkey, 2).ok());
  const std::string text = last_words();
  EXPECT_NE(text.find("1/1/00"), std::string::npos) << text;
  EXPECT_EQ(target[10], 0xa5);
}

TEST_P(DdpSoftTest, ARegionBelongsToThePdThatRegisteredIt) {
  RecordProperty("proves", "DDP-8.2-02 DDP-8.2-05 DDP-8.3.1-01");
  auto other = std::move(server_.device->alloc_pd().value());
  Mem own(*server_.pd, 64, kAll, 0xa5);
  Mem foreign(*other, 64, kAll, 0xa5);
  Mem from(*client_.pd, 64, Access::kNone, 1);
  establish();
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, own.addr(), own.mr->rkey(), 1).ok());
  ASSERT_TRUE(drive([&] { return server_.qp->counters().write_octets_rx == 64; }));
  EXPECT_EQ(own.octets, from.octets);
  ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, foreign.addr(), foreign.mr->rkey(), 2).ok());
  const std::string text = last_words();
  EXPECT_NE(text.find("1/1/02"), std::string::npos) << text;
  EXPECT_NE(server_.take(CmEventType::kDisconnected)->status, 0);
  EXPECT_EQ(foreign.octets, std::vector<std::uint8_t>(64, 0xa5));
}

TEST_P(DdpSoftTest, TheSocketThatAcceptedMayBeTheInitiators) {
  RecordProperty("proves", "MPA-2-01");
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage at = loopback(AF_INET, 0);
  socklen_t len = sizeof(sockaddr_in);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), len), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &len), 0);
  Fd connected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(connected.get(), reinterpret_cast<sockaddr*>(&at), len), 0);
  Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted);
  ASSERT_TRUE(accept_socket(*server_.id, connected.release()).ok());
  make_qp(client_);
  ASSERT_TRUE(connect_socket(*client_.id, accepted.release(), {{}, 16, 16}).ok());
  take_request();
  make_qp(server_);
  ASSERT_TRUE(server_.id->accept({{}, 16, 16}).ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kEstablished) && client_.has(CmEventType::kEstablished); }));
  Mem to(*server_.pd, 64, kAll);
  Mem from(*client_.pd, 64, kAll, 7);
  ASSERT_TRUE(server_.recv({to.sge()}, 1).ok());
  ASSERT_TRUE(client_.send({from.sge()}, 2).ok());
  ASSERT_TRUE(drive([&] { return server_.wcs.size() == 1 && client_.wcs.size() == 1; }));
  EXPECT_EQ(to.octets, from.octets);
}

INSTANTIATE_TEST_SUITE_P(Soft, DdpSoftTest,
                         ::testing::Values(Backend{"Verify", open_verify, false}, Backend{"Direct", open_direct, true}),
                         [](const auto& info) { return info.param.name; });

// The server's memory is in its protection domain, and the window in it was bound on the first connection.
class DdpScopeTest : public WindowTest {
 protected:
  struct Connection {
    std::unique_ptr<CmId> client_id, server_id;
    std::unique_ptr<Qp> client, server;
  };
  // One more connection of the same listener.
  Connection connect(Pd& server_pd) {
    Connection c;
    c.client_id = std::move(client_.cm->create_id().value());
    EXPECT_TRUE(c.client_id->resolve_addr(listener_->local_addr(), std::chrono::seconds(1)).ok());
    EXPECT_TRUE(c.client_id->resolve_route(std::chrono::seconds(1)).ok());
    const QpInitAttr at_client = init_attr(client_);
    c.client = std::move(c.client_id->create_qp(*client_.pd, at_client).value());
    EXPECT_TRUE(c.client_id->connect({{}, 16, 16}).ok());
    EXPECT_TRUE(drive([&] { return server_.has(CmEventType::kConnectRequest); }));
    c.server_id = std::move(server_.take(CmEventType::kConnectRequest)->new_id);
    const QpInitAttr at_server = init_attr(server_);
    c.server = std::move(c.server_id->create_qp(server_pd, at_server).value());
    EXPECT_TRUE(c.server_id->accept({{}, 16, 16}).ok());
    EXPECT_TRUE(drive([&] { return c.server->state() == QpState::kRts && c.client->state() == QpState::kRts; }));
    return c;
  }
  // A Write of eight octets through rkey. Returns "" where it arrived, else the client's error text.
  std::string attempt(Connection& c, std::uint32_t rkey) {
    const Sge sge = ours_->sge(0, 8);
    SendWr wr;
    wr.sg_list = {&sge, 1};
    wr.opcode = WrOpcode::kRdmaWrite;
    wr.remote_addr = memory_->addr(1024);
    wr.rkey = rkey;
    const auto before = memory_->octets;
    EXPECT_TRUE(c.client->post_send(wr).ok());
    std::string text;
    EXPECT_TRUE(drive([&] {
      while (const auto event = client_.take(CmEventType::kDisconnected)) {
        if (event->id == c.client_id.get()) text = event->text;
      }
      return !text.empty() || c.server->counters().write_octets_rx == 8;
    }));
    if (!text.empty()) {
      EXPECT_EQ(memory_->octets, before);
    }
    return text;
  }
};

TEST_P(DdpScopeTest, AnStagReachesAsFarAsItsProtectionDomainOrItsStream) {
  RecordProperty("proves", "DDP-8.2-01 DDP-8.3-03 DDP-8.3.2-02");
  bind();
  const std::uint32_t region = memory_->mr->rkey();
  auto other = std::move(server_.device->alloc_pd().value());
  Connection partner = connect(*server_.pd);
  EXPECT_EQ(attempt(partner, region), "") << "a stream of the region's domain";
  Connection stranger = connect(*other);
  EXPECT_NE(attempt(stranger, region).find("1/1/02"), std::string::npos) << "one of another";
  Connection neighbour = connect(*server_.pd);
  EXPECT_NE(attempt(neighbour, mw_->rkey()).find("1/1/02"), std::string::npos) << "bound to another stream";
  client_.wcs.clear();
  ASSERT_TRUE(write(mw_->rkey()).ok());
  ASSERT_TRUE(drive([&] { return server_.qp->counters().write_octets_rx == 512; })) << "the stream it was bound to";
}

INSTANTIATE_TEST_SUITE_P(Soft, DdpScopeTest,
                         ::testing::Values(Backend{"Verify", open_verify, false}, Backend{"Direct", open_direct, true}),
                         [](const auto& info) { return info.param.name; });

TEST(DdpSoftLimitsTest, WhatAConsumerMayAllocateIsBounded) {
  RecordProperty("proves", "DDP-8.3.2-04");
  SoftConfig config;
  config.max_mrs = 3;
  config.max_qp_wr = 64;
  config.max_cqe = 128;
  auto device = std::move(open_soft_device(config).value());
  auto pd = std::move(device->alloc_pd().value());
  std::uint8_t octets[16] = {};
  std::vector<std::unique_ptr<Mr>> mrs;
  for (int i = 0; i < 3; ++i) mrs.push_back(std::move(pd->reg_mr(octets, 16, Access::kNone).value()));
  EXPECT_FALSE(pd->reg_mr(octets, 16, Access::kNone).ok());
  mrs.pop_back();
  EXPECT_TRUE(pd->reg_mr(octets, 16, Access::kNone).ok());
  EXPECT_FALSE(device->create_cq(129, nullptr).ok());
  auto cq = std::move(device->create_cq(128, nullptr).value());
  auto channel = std::move(device->create_event_channel().value());
  auto id = std::move(channel->create_id().value());
  QpInitAttr attr{.send_cq = cq.get(), .recv_cq = cq.get(), .cap = {}};
  attr.cap.max_send_wr = 65;
  EXPECT_FALSE(id->create_qp(*pd, attr).ok());
  attr.cap = {.max_recv_wr = 65};
  EXPECT_FALSE(id->create_qp(*pd, attr).ok());
  attr.cap = {.max_send_wr = 64, .max_recv_wr = 64};
  EXPECT_TRUE(id->create_qp(*pd, attr).ok());
}

}  // namespace
}  // namespace weft::verbs::testing
