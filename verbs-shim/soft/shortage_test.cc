// The kernel has no room: in epoll, for descriptors, for sockets. The failed operation is reported. All else goes on,
// and waiting work goes on when there is room again.
#include <netinet/in.h>
#include <optional>

#include "verbs-shim/soft/testing/failing_calls.h"
#include "verbs-shim/soft/testing/raw_peer.h"

namespace weft::verbs::testing {
namespace {

using std::chrono::milliseconds;

class ShortageTest : public RawPeerTest {
 protected:
  Fd connect_raw(const sockaddr_storage& to) {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), as_sockaddr(to), sizeof(sockaddr_in)), 0);
    return fd;
  }
  // Whether a Request over a new connection reaches the listening server.
  void expect_request_is_heard(const sockaddr_storage& to) {
    const Fd raw = connect_raw(to);
    say(raw, kRequestKey + octets({0x40, 1, 0, 0}));
    EXPECT_TRUE(drive_raw([&] { return server_.has(CmEventType::kConnectRequest); }));
    server_.events.clear();
  }
  // The server's turns at a time of the test's own, in which no timer comes due by itself.
  void server_turns(TimePoint at, int num = 50) {
    for (int i = 0; i < num; ++i) {
      server_.device->process(at);
      server_.collect();
    }
  }
};

TEST_P(ShortageTest, AConnectionThatEpollHasNoRoomForIsClosed) {
  ASSERT_TRUE(listen().ok());
  const sockaddr_storage to = server_.id->local_addr();
  {
    const FailCalls full(FailingCall::kEpollAdd, ENOSPC, 1);
    const Fd raw = connect_raw(to);
    std::string heard;
    ASSERT_TRUE(drive_raw([&] { return hear_more(raw, heard); }));
    EXPECT_TRUE(heard.empty());
    EXPECT_EQ(full.num_failed(), 1);
  }
  expect_request_is_heard(to);
}

TEST_P(ShortageTest, AConnectThatEpollHasNoRoomForFailsAtOnce) {
  const sockaddr_storage to = listen_raw();
  ASSERT_TRUE(client_.id->resolve_addr(to, seconds(1)).ok());
  ASSERT_TRUE(client_.id->resolve_route(seconds(1)).ok());
  make_qp(client_);
  ASSERT_TRUE(client_.recv({}, 7).ok());
  {
    const FailCalls full(FailingCall::kEpollAdd, ENOSPC, 1);
    const Status status = client_.id->connect({});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().errno_value, ENOSPC);
  }
  EXPECT_EQ(client_.qp->state(), QpState::kErr);
  settle();
  ASSERT_EQ(client_.wcs.size(), 1u) << "what was posted is flushed";
  EXPECT_EQ(client_.wcs[0].wr_id, 7u);
  EXPECT_FALSE(client_.has(CmEventType::kConnectError)) << "the caller was told already";
  reopen_client({});
  connect_to(to);
  accept_raw();  // of the attempt that failed
  const Fd raw = accept_raw();
  hear(raw, 24);
  say(raw, kReplyKey + octets({0x50, 2, 0, 4, 0, 16, 0, 16}));
  EXPECT_TRUE(drive_raw([&] { return client_.has(CmEventType::kEstablished); }));
}

TEST_P(ShortageTest, AListenerThatEpollHasNoRoomForIsToldAndListensLater) {
  ASSERT_TRUE(server_.id->bind_addr(loopback(AF_INET, 0)).ok());
  {
    const FailCalls full(FailingCall::kEpollAdd, ENOSPC, 1);
    const Status status = server_.id->listen(4);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().errno_value, ENOSPC);
  }
  ASSERT_TRUE(server_.id->listen(4).ok());
  expect_request_is_heard(server_.id->local_addr());
}

// The second attempt, with revision 1, needs a socket and a place in epoll of its own.
TEST_P(ShortageTest, AFallBackWithoutASocketFailsInWords) {
  for (const FailingCall call : {FailingCall::kSocket, FailingCall::kEpollAdd}) {
    reopen_client({});
    connect_to(listen_raw());
    Fd raw = accept_raw();
    hear(raw, 24);
    const FailCalls none(call, EMFILE, 1);
    raw.reset();
    ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kUnreachable); }));
    const CmEvent event = *client_.take(CmEventType::kUnreachable);
    EXPECT_EQ(event.status, EMFILE);
    EXPECT_NE(event.text.find("ulimit -n"), std::string::npos) << event.text;
    EXPECT_EQ(client_.qp->state(), QpState::kErr);
  }
}

TEST_P(ShortageTest, AcceptingPausesAndGoesOnAfterAWhile) {
  ASSERT_TRUE(listen().ok());
  const sockaddr_storage to = server_.id->local_addr();
  const TimePoint begin = std::chrono::steady_clock::now() + std::chrono::hours(1);
  server_turns(begin, 1);
  const Fd raw = connect_raw(to);
  say(raw, kRequestKey + octets({0x40, 1, 0, 0}));
  std::optional<FailCalls> full(std::in_place, FailingCall::kAccept, EMFILE, 1000);
  server_turns(begin);
  EXPECT_EQ(full->num_failed(), 1) << "it does not spin";
  ASSERT_TRUE(server_.device->next_timeout());
  EXPECT_EQ(*server_.device->next_timeout(), begin + milliseconds(100));
  server_turns(begin + milliseconds(99));
  EXPECT_EQ(full->num_failed(), 1);
  // Still none: one more try, one more pause.
  server_turns(begin + milliseconds(100));
  EXPECT_EQ(full->num_failed(), 2);
  EXPECT_EQ(*server_.device->next_timeout(), begin + milliseconds(200));
  EXPECT_FALSE(server_.has(CmEventType::kConnectRequest));
  full.reset();
  server_turns(begin + milliseconds(199));
  EXPECT_FALSE(server_.has(CmEventType::kConnectRequest));
  server_turns(begin + milliseconds(200));
  EXPECT_TRUE(server_.has(CmEventType::kConnectRequest));
}

TEST_P(ShortageTest, AcceptingGoesOnAsSoonAsAConnectionOfItsOwnEnds) {
  ASSERT_TRUE(listen().ok());
  const sockaddr_storage to = server_.id->local_addr();
  const TimePoint begin = std::chrono::steady_clock::now() + std::chrono::hours(1);
  // One that has spoken, so that it is not dropped for the sake of others.
  Fd first = connect_raw(to);
  say(first, kRequestKey + octets({0x40, 1, 0, 0}));
  server_turns(begin, 1000);
  ASSERT_TRUE(server_.has(CmEventType::kConnectRequest));
  const Fd second = connect_raw(to);
  say(second, kRequestKey + octets({0x40, 1, 0, 0}));
  {
    const FailCalls full(FailingCall::kAccept, ENFILE, 1);
    server_turns(begin);
    EXPECT_EQ(full.num_failed(), 1);
  }
  EXPECT_EQ(server_.events.size(), 1u);
  server_.events.clear();  // dropped, which rejects and ends it
  std::string heard;
  server_turns(begin, 1000);
  ASSERT_TRUE(hear_more(first, heard));
  first.reset();
  server_turns(begin, 1000);
  EXPECT_TRUE(server_.has(CmEventType::kConnectRequest));
}

TEST_P(ShortageTest, ASilentConnectionGivesWayToOneThatComes) {
  ASSERT_TRUE(listen().ok());
  const sockaddr_storage to = server_.id->local_addr();
  const TimePoint begin = std::chrono::steady_clock::now() + std::chrono::hours(1);
  const Fd older = connect_raw(to);
  server_turns(begin);
  const Fd newer = connect_raw(to);
  server_turns(begin);
  const FailCalls full(FailingCall::kAccept, EMFILE, 1);
  const Fd third = connect_raw(to);
  say(third, kRequestKey + octets({0x40, 1, 0, 0}));
  server_turns(begin);
  EXPECT_TRUE(server_.has(CmEventType::kConnectRequest));
  std::string heard;
  EXPECT_TRUE(hear_more(older, heard));
  EXPECT_FALSE(hear_more(newer, heard));
}

// A client may abort its connection attempt meanwhile. The listener does not end its turn for that.
TEST_P(ShortageTest, AnAbortedConnectionDoesNotHoldUpTheNext) {
  ASSERT_TRUE(listen().ok());
  for (const int error : {ECONNABORTED, EINTR}) {
    const Fd raw = connect_raw(server_.id->local_addr());
    say(raw, kRequestKey + octets({0x40, 1, 0, 0}));
    const FailCalls aborted(FailingCall::kAccept, error, 3);
    server_.device->process(std::chrono::steady_clock::now());
    EXPECT_EQ(aborted.num_failed(), 3);
    ASSERT_TRUE(drive_raw([&] { return server_.has(CmEventType::kConnectRequest); }));
    server_.events.clear();
  }
}

// More sockets are ready at once than one look at epoll tells of.
TEST_P(ShortageTest, ManyReadySocketsAreAllServed) {
  ASSERT_TRUE(listen(4096).ok());
  const sockaddr_storage to = server_.id->local_addr();
  std::vector<Fd> raws;
  for (int i = 0; i < 300; ++i) {
    raws.push_back(connect_raw(to));
    if (i % 100 == 99) settle();
  }
  for (const Fd& raw : raws) say(raw, kRequestKey + octets({0x40, 1, 0, 0}));
  ASSERT_TRUE(drive_raw([&] { return server_.events.size() == raws.size(); }));
}

INSTANTIATE_TEST_SUITE_P(Soft, ShortageTest,
                         ::testing::Values(Backend{"Spinning", [] { return open_soft_device({}); }, false},
                                           Backend{"Blocking", [] { return open_soft_device({}); }, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::verbs::testing
