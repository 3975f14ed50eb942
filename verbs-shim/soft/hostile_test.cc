// Peers that say nothing, too little or nonsense: raw sockets against a listening soft RNIC.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/fd.h"
#include "verbs-shim/api/testing/pair.h"
#include "verbs-shim/soft/device.h"

namespace weft::verbs::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMaxSilent = 64;
constexpr char kUnwelcome[] = "127.0.0.9";  // the address that the devices do not admit

bool admits(const sockaddr_storage& peer) {
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, text, sizeof text);
  return std::string(text) != kUnwelcome;
}

Result<std::unique_ptr<Device>> open_guarded() {
  SoftConfig config;
  config.max_silent = kMaxSilent;
  config.admits = admits;
  return open_soft_device(config);
}

class HostileTest : public VerbsTest {
 protected:
  Fd raw_connect(const char* from = "127.0.0.1") {
    const sockaddr_storage to = (listener_ ? listener_ : server_.id)->local_addr();
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_TRUE(fd) << std::strerror(errno);
    sockaddr_in source{};
    source.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, from, &source.sin_addr), 1);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&source), sizeof source), 0);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0);
    return fd;
  }
  static void say(const Fd& fd, const std::string& octets) {
    EXPECT_EQ(::send(fd.get(), octets.data(), octets.size(), MSG_NOSIGNAL), static_cast<ssize_t>(octets.size()));
  }
  // Whether the other end has closed or reset. Its earlier octets go to `heard`.
  static bool ended(const Fd& fd, std::string* heard = nullptr) {
    char buffer[512];
    for (;;) {
      const ssize_t n = ::recv(fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (n > 0) {
        if (heard != nullptr) heard->append(buffer, static_cast<std::size_t>(n));
        continue;
      }
      return n == 0 || errno == ECONNRESET;
    }
  }
  // Ends one connection. UBSan needs a descriptor when it first sees the type of an object, so the objects of an ending
  // connection must be known to it before there are no descriptors.
  void end_one() {
    const Fd http = raw_connect();
    say(http, "GET / HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(drive([&] { return ended(http); }));
  }
  // The client can still do everything.
  void expect_served() {
    Mem to(*server_.pd, 64, Access::kLocalWrite | Access::kRemoteWrite);
    Mem from(*client_.pd, 64, Access::kNone, 7);
    ASSERT_TRUE(client_.rdma(WrOpcode::kRdmaWrite, {from.sge()}, to.addr(), to.mr->rkey()).ok());
    ASSERT_TRUE(server_.recv({to.sge()}).ok());
    ASSERT_TRUE(client_.send({from.sge()}).ok());
    ASSERT_TRUE(drive([&] { return client_.wcs.size() == 2 && server_.wcs.size() == 1; }));
    EXPECT_EQ(to.octets, from.octets);
    client_.wcs.clear();
    server_.wcs.clear();
  }
};

TEST_P(HostileTest, NonsenseInsteadOfARequestIsClosedAtOnce) {
  RecordProperty("proves", "MPA-7.1.3-02");
  establish();
  const Fd http = raw_connect();
  say(http, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(drive([&] { return ended(http); }));
  expect_served();
  EXPECT_FALSE(server_.has(CmEventType::kConnectRequest));
}

TEST_P(HostileTest, SilentClientIsDroppedInTime) {
  RecordProperty("proves", "MPA-7.1.2-19");
  establish();
  const Fd mute = raw_connect();
  settle();
  EXPECT_FALSE(ended(mute));
  skew_ += seconds(4);
  settle();
  EXPECT_FALSE(ended(mute));
  skew_ += seconds(2);
  ASSERT_TRUE(drive([&] { return ended(mute); }));
  expect_served();
}

TEST_P(HostileTest, TricklingDoesNotHelp) {
  RecordProperty("proves", "MPA-7.1.2-03 MPA-7.1.2-23");
  establish();
  const Fd slow = raw_connect();
  const std::string request = "MPA ID Req Frame";
  std::string heard;
  for (std::size_t i = 0; i < 10; ++i) {
    if (i < 5) say(slow, request.substr(i, 1));
    settle();
    skew_ += milliseconds(600);
  }
  ASSERT_TRUE(drive([&] { return ended(slow, &heard); }));
  EXPECT_TRUE(heard.empty());
  expect_served();
}

TEST_P(HostileTest, ManySilentClientsAreBounded) {
  establish();
  std::vector<Fd> mutes;
  for (int i = 0; i < 500; ++i) {
    mutes.push_back(raw_connect());
    if (i % 50 == 0) settle();
  }
  ASSERT_TRUE(drive([&] {
    std::size_t open = 0;
    for (const Fd& mute : mutes) open += ended(mute) ? 0 : 1;
    return open == kMaxSilent;
  }));
  EXPECT_TRUE(ended(mutes.front()));
  EXPECT_FALSE(ended(mutes.back()));  // the oldest gave way
  expect_served();

  // A newcomer that speaks gets in.
  auto id = std::move(client_.cm->create_id().value());
  ASSERT_TRUE(id->resolve_addr(listener_->local_addr(), seconds(1)).ok());
  ASSERT_TRUE(id->resolve_route(seconds(1)).ok());
  auto qp = std::move(id->create_qp(*client_.pd, init_attr(client_)).value());
  ASSERT_TRUE(id->connect({}).ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kConnectRequest); }));
  qp.reset();
}

TEST_P(HostileTest, AddressesThatAreNotAdmittedTakeNobodysPlace) {
  establish();
  std::vector<Fd> mutes, refused;
  for (std::size_t i = 0; i < kMaxSilent / 2; ++i) mutes.push_back(raw_connect());
  for (std::size_t i = 0; i < 2 * kMaxSilent; ++i) refused.push_back(raw_connect(kUnwelcome));
  ASSERT_TRUE(
      drive([&] { return std::all_of(refused.begin(), refused.end(), [](const Fd& fd) { return ended(fd); }); }));
  for (const Fd& mute : mutes) EXPECT_FALSE(ended(mute));
  expect_served();
}

TEST_P(HostileTest, OutOfDescriptors) {
  establish();
  end_one();
  std::vector<Fd> mutes;
  for (int i = 0; i < 8; ++i) mutes.push_back(raw_connect());
  settle();
  // Nine more connections reach the kernel; then there is not one descriptor left to accept them with.
  for (int i = 0; i < 8; ++i) mutes.push_back(raw_connect());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Fd probe(::dup(0));
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(probe.get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int i = 0; i < 50; ++i) step();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  std::size_t open = 0;
  for (const Fd& mute : mutes) open += ended(mute) ? 0 : 1;
  EXPECT_GT(open, 0u);
  EXPECT_LT(open, mutes.size());  // silent ones gave way
  expect_served();
}

TEST_P(HostileTest, OutOfDescriptorsWithNobodyToDrop) {
  establish();
  end_one();
  const Fd waiting = raw_connect();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Fd probe(::dup(0));
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(probe.get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int i = 0; i < 20; ++i) step();
  const std::size_t moved = step();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(moved, 0u);  // it pauses and does not spin
  expect_served();
  EXPECT_FALSE(ended(waiting));
  skew_ += milliseconds(200);
  settle();
  say(waiting, "nonsense, but heard now");
  ASSERT_TRUE(drive([&] { return ended(waiting); }));
}

TEST_P(HostileTest, RequestThenSilenceThenDisappearance) {
  ASSERT_TRUE(listen().ok());
  Fd raw = raw_connect();
  // M=0 C=1 R=0, revision 1, no private data.
  say(raw, std::string("MPA ID Req Frame") + std::string("\x40\x01\x00\x00", 4));
  take_request();
  make_qp(server_);
  Fd gone = std::move(raw);
  gone.reset();
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kConnectError); }));
  EXPECT_EQ(server_.id->accept({}).error().errno_value, ENOTCONN);
}

TEST_P(HostileTest, GarbageAfterTheReplyIsTerminated) {
  ASSERT_TRUE(listen().ok());
  const Fd raw = raw_connect();
  say(raw, std::string("MPA ID Req Frame") + std::string("\x40\x01\x00\x00", 4));
  take_request();
  make_qp(server_);
  Mem to(*server_.pd, 64, Access::kLocalWrite, 0xa5);
  ASSERT_TRUE(server_.recv({to.sge()}, 5).ok());
  ASSERT_TRUE(server_.id->accept({}).ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kEstablished); }));
  std::string heard;
  ended(raw, &heard);
  // An FPDU of 18 octets of ULPDU whose CRC is wrong.
  say(raw, std::string("\x00\x12", 2) + std::string(22, '\x11'));
  ASSERT_TRUE(drive([&] { return ended(raw, &heard); }));
  // The Reply, and behind it an FPDU with a Terminate: untagged, last, opcode 7.
  ASSERT_GT(heard.size(), 24u);
  EXPECT_EQ(heard.substr(0, 16), "MPA ID Rep Frame");
  EXPECT_EQ(heard.substr(22, 2), "\x41\x47");
  ::shutdown(raw.get(), SHUT_RDWR);
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
  EXPECT_EQ(server_.take_wc()->status, WcStatus::kWrFlushErr);
  EXPECT_EQ(to.octets, std::vector<std::uint8_t>(64, 0xa5));
}

TEST_P(HostileTest, PeerThatNeverClosesIsResetInTime) {
  ASSERT_TRUE(listen().ok());
  const Fd raw = raw_connect();
  say(raw, std::string("MPA ID Req Frame") + std::string("\x40\x01\x00\x00", 4));
  take_request();
  make_qp(server_);
  ASSERT_TRUE(server_.id->accept({}).ok());
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kEstablished); }));
  ASSERT_TRUE(server_.id->disconnect().ok());
  settle();
  EXPECT_FALSE(server_.has(CmEventType::kDisconnected));
  skew_ += seconds(11);
  ASSERT_TRUE(drive([&] { return server_.has(CmEventType::kDisconnected); }));
}

TEST_P(HostileTest, BacklogHoldsRequestsBack) {
  ASSERT_TRUE(listen(2).ok());
  std::vector<Fd> raws;
  for (int i = 0; i < 5; ++i) {
    raws.push_back(raw_connect());
    say(raws.back(), std::string("MPA ID Req Frame") + std::string("\x40\x01\x00\x00", 4));
  }
  settle();
  EXPECT_EQ(server_.events.size(), 2u);
  server_.events.pop_front();  // dropped, which answers it
  settle();
  EXPECT_EQ(server_.events.size(), 2u);
  raws[3].reset();  // one that waits goes away meanwhile
  settle();
  server_.events.clear();
  settle();
  EXPECT_EQ(server_.events.size(), 1u);
}

TEST(SoftConfigTest, ValuesAreChecked) {
  SoftConfig config;
  config.mpa_revision = 3;
  EXPECT_EQ(open_soft_device(config).error().errno_value, EINVAL);
  config = {};
  config.congestion_control = "no-such-thing";
  const auto opened = open_soft_device(config);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("no-such-thing"), std::string::npos);
}

TEST(SoftConfigTest, LimitsOfQueues) {
  auto device = std::move(open_soft_device({}).value());
  EXPECT_EQ(device->create_cq(0, nullptr).error().errno_value, EINVAL);
  auto cq = std::move(device->create_cq(1, nullptr).value());
  auto pd = std::move(device->alloc_pd().value());
  auto channel = std::move(device->create_event_channel().value());
  auto id = std::move(channel->create_id().value());
  QpInitAttr attr{.send_cq = cq.get(), .recv_cq = cq.get(), .cap = {}};
  attr.cap.max_send_wr = device->caps().max_qp_wr + 1;
  EXPECT_EQ(id->create_qp(*pd, attr).error().errno_value, EINVAL);
  attr.cap = {.max_send_sge = device->caps().max_sge + 1};
  EXPECT_EQ(id->create_qp(*pd, attr).error().errno_value, EINVAL);
  attr.cap = {.max_inline_data = device->caps().max_inline_data + 1};
  EXPECT_EQ(id->create_qp(*pd, attr).error().errno_value, EINVAL);
  EXPECT_EQ(id->create_qp(*pd, {.recv_cq = cq.get(), .cap = {}}).error().errno_value, EINVAL);
}

INSTANTIATE_TEST_SUITE_P(Soft, HostileTest,
                         ::testing::Values(Backend{"Spinning", open_guarded, false},
                                           Backend{"Blocking", open_guarded, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::verbs::testing
