// Connections whose user has gone, and attempts that come to nothing: the device ends them by itself, in time and
// within its bounds, against any peer. The peer is the test itself.
#include <netinet/in.h>

#include <filesystem>
#include <iterator>

#include "base/address.h"
#include "verbs-shim/soft/socket.h"
#include "verbs-shim/soft/testing/raw_peer.h"

namespace weft::verbs::testing {
namespace {

constexpr std::size_t kMaxLingering = 3;

Result<std::unique_ptr<Device>> open_tight() {
  SoftConfig config;
  config.max_lingering = kMaxLingering;
  return open_soft_device(config);
}

class LingeringTest : public RawPeerTest {
 protected:
  // A Request of revision 1 over a socket of the test's; the server has accepted it as server_.id.
  Fd accept_one() {
    Fd raw(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int small = 65536;
    ::setsockopt(raw.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    const sockaddr_storage to = (listener_ ? listener_ : server_.id)->local_addr();
    EXPECT_EQ(::connect(raw.get(), as_sockaddr(to), sizeof(sockaddr_in)), 0);
    say(raw, kRequestKey + octets({0x40, 1, 0, 0}));
    EXPECT_TRUE(drive_raw([&] { return server_.has(CmEventType::kConnectRequest); }));
    if (!listener_) listener_ = std::move(server_.id);
    server_.id = std::move(server_.take(CmEventType::kConnectRequest)->new_id);
    make_qp(server_);
    EXPECT_TRUE(server_.id->accept({}).ok());
    hear(raw, 20);
    return raw;
  }
  void leave() {
    server_.qp.reset();
    server_.id.reset();
    server_.events.clear();
  }
  // Descriptors of this process.
  static std::ptrdiff_t num_fds() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  }
  // Whether the socket behind this one has gone altogether, and not just its sending half.
  bool is_gone(const Fd& raw) {
    if (::send(raw.get(), "x", 1, MSG_NOSIGNAL) < 0) return true;
    settle();
    return soft::take_error(raw.get()) != 0;
  }
};

TEST_P(LingeringTest, OnlySoManyPeersCanHoldUpTheirEnd) {
  ASSERT_TRUE(listen().ok());
  std::vector<Fd> raws;
  const std::ptrdiff_t before = num_fds();
  for (std::size_t i = 0; i < kMaxLingering + 2; ++i) {
    raws.push_back(accept_one());
    ASSERT_TRUE(server_.id->disconnect().ok());
    leave();
    settle();
  }
  EXPECT_EQ(num_fds() - before, static_cast<std::ptrdiff_t>(raws.size() + kMaxLingering));
  for (std::size_t i = 0; i < raws.size(); ++i) EXPECT_EQ(is_gone(raws[i]), i < 2) << i;
  Connection newcomer;
  ASSERT_NO_FATAL_FAILURE(connect_another(newcomer));
}

TEST_P(LingeringTest, APeerThatNeverClosesIsLeftInTime) {
  ASSERT_TRUE(listen().ok());
  const Fd raw = accept_one();
  ASSERT_TRUE(server_.id->disconnect().ok());
  leave();
  const std::ptrdiff_t before = num_fds();
  skew_ += SoftConfig{}.close_timeout - seconds(1);
  settle();
  EXPECT_EQ(num_fds(), before);
  skew_ += seconds(1);
  settle();
  EXPECT_EQ(num_fds(), before - 1);
  EXPECT_EQ(server_.device->next_timeout(), std::nullopt);
}

TEST_P(LingeringTest, APeerThatBrokeTheProtocolAndNeverClosesIsLeftInTime) {
  ASSERT_TRUE(listen().ok());
  const Fd raw = accept_one();
  say(raw, fpdu(octets({0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0})));
  ASSERT_TRUE(drive_raw([&] { return server_.has(CmEventType::kDisconnected); }));
  leave();
  settle();
  const std::ptrdiff_t before = num_fds();
  skew_ += SoftConfig{}.close_timeout - seconds(1);
  settle();
  EXPECT_EQ(num_fds(), before);
  skew_ += seconds(2);
  settle();
  EXPECT_EQ(num_fds(), before - 1);
  EXPECT_EQ(server_.device->next_timeout(), std::nullopt);
}

// A peer that takes a little now and then keeps the Stream's own deadline moving, but not the driver's.
TEST_P(LingeringTest, APeerThatTakesLittleAtATimeIsLeftInTime) {
  constexpr std::size_t kLen = std::size_t{1} << 20;
  constexpr int kWrites = 32;
  Mem from(*server_.pd, kLen, Access::kLocalWrite, 7);
  ASSERT_TRUE(listen().ok());
  const Fd raw = accept_one();
  say(raw, fpdu(octets({0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})));  // now the server may speak
  ASSERT_TRUE(drive_raw([&] { return server_.has(CmEventType::kEstablished); }));
  settle();
  for (int i = 0; i < kWrites; ++i) {
    ASSERT_TRUE(server_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, 0x1000, 0x100).ok());
  }
  ASSERT_TRUE(server_.id->disconnect().ok());
  leave();
  const auto step_len = SoftConfig{}.close_timeout - seconds(1);
  std::size_t heard = 0;
  bool reset = false;
  int steps = 0;
  std::vector<char> buffer(kLen / 4);
  while (!reset && steps < 10) {
    // So much that the socket has room again.
    for (int i = 0; i < 20; ++i) {
      const ssize_t n = ::recv(raw.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n > 0) heard += static_cast<std::size_t>(n);
      reset = reset || (n < 0 && errno == ECONNRESET);
      step();
    }
    if (reset) break;
    skew_ += step_len;
    settle();
    ++steps;
  }
  EXPECT_TRUE(reset);
  EXPECT_GE(steps, 2) << "progress counts for a while";
  EXPECT_LE(steps, 4) << "twice close_timeout is over";
  EXPECT_LT(heard, kLen * kWrites);
}

TEST_P(LingeringTest, AConnectWithoutAnAnswerEndsInTime) {
  // A listening socket whose queue is full drops new connections.
  const Fd full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_storage any = loopback(AF_INET, 0);
  ASSERT_EQ(::bind(full.get(), as_sockaddr(any), sizeof(sockaddr_in)), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  const sockaddr_storage to = local_address(full.get());
  std::vector<Fd> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::connect(fillers.back().get(), as_sockaddr(to), sizeof(sockaddr_in));
  }
  connect_to(to);
  skew_ += SoftConfig{}.connect_timeout - seconds(1);
  settle();
  EXPECT_FALSE(client_.has(CmEventType::kUnreachable));
  skew_ += seconds(1);
  ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kUnreachable); }));
  const CmEvent event = *client_.take(CmEventType::kUnreachable);
  EXPECT_EQ(event.status, ETIMEDOUT);
  EXPECT_NE(event.text.find("Likely cause: "), std::string::npos) << event.text;
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
}

TEST_P(LingeringTest, AConnectThatIsGivenUpIsTold) {
  connect_to(listen_raw());
  ASSERT_TRUE(client_.qp->modify(QpState::kErr).ok());
  ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kConnectError); }));
  EXPECT_NE(client_.take(CmEventType::kConnectError)->text.find("put into error"), std::string::npos);
  settle();
  EXPECT_FALSE(client_.has(CmEventType::kEstablished));
}

// An id that came with a request and is dropped without an answer rejects it: the peer is not left to guess.
TEST_P(LingeringTest, ADroppedRequestIsRejectedOnTheWire) {
  ASSERT_TRUE(listen().ok());
  const Fd raw(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_storage to = server_.id->local_addr();
  ASSERT_EQ(::connect(raw.get(), as_sockaddr(to), sizeof(sockaddr_in)), 0);
  say(raw, kRequestKey + octets({0x40, 1, 0, 0}));
  ASSERT_TRUE(drive_raw([&] { return server_.has(CmEventType::kConnectRequest); }));
  server_.events.clear();
  std::string heard;
  bool reset = false;
  ASSERT_TRUE(drive_raw([&] { return hear_more(raw, heard, &reset); }));
  EXPECT_FALSE(reset);
  EXPECT_EQ(heard, kReplyKey + octets({0x60, 1, 0, 0}));
}

INSTANTIATE_TEST_SUITE_P(Soft, LingeringTest,
                         ::testing::Values(Backend{"Spinning", open_tight, false},
                                           Backend{"Blocking", open_tight, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::verbs::testing
