// MPA startup as it concerns sockets: falling back to revision 1, connections that were there before MPA, and ends that
// leave nothing unsaid. The peer is the test itself, or another soft RNIC.
#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/address.h"
#include "verbs-shim/soft/socket.h"
#include "verbs-shim/soft/testing/raw_peer.h"

namespace weft::verbs::testing {
namespace {

class StartupTest : public RawPeerTest {
 protected:
  // ---- two connected sockets that have nothing to do with MPA yet
  void make_sockets(Fd& a, Fd& b) {
    const sockaddr_storage to = listen_raw();
    a = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(a.get(), as_sockaddr(to), sizeof(sockaddr_in)), 0);
    b = Fd(::accept4(raw_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(b);
  }
  void expect_traffic() {
    Mem to(*server_.pd, 4000, Access::kLocalWrite);
    Mem from(*client_.pd, 4000, Access::kLocalWrite, 7);
    ASSERT_TRUE(server_.recv({to.sge()}).ok());
    ASSERT_TRUE(client_.send({from.sge()}).ok());
    ASSERT_TRUE(drive([&] { return server_.wcs.size() == 1 && client_.wcs.size() == 1; }));
    EXPECT_EQ(to.octets, from.octets);
    Mem answer(*client_.pd, 4000, Access::kLocalWrite);
    ASSERT_TRUE(client_.recv({answer.sge()}).ok());
    ASSERT_TRUE(server_.send({to.sge()}).ok());
    ASSERT_TRUE(drive([&] { return server_.wcs.size() == 2 && client_.wcs.size() == 2; }));
    EXPECT_EQ(answer.octets, from.octets);
    server_.wcs.clear();
    client_.wcs.clear();
  }
};

TEST_P(StartupTest, FallsBackToRevision1OnceWhenThePeerCloses) {
  RecordProperty("proves", "MPA2-10-05 MPA2-6-08");
  for (const bool reset : {false, true}) {
    SCOPED_TRACE(reset);
    reopen_client({});
    connect_to(listen_raw(), {{'h', 'i'}, 16, 16});
    Fd first = accept_raw();
    EXPECT_EQ(hear(first, 26), kRequestKey + octets({0x50, 2, 0, 6, 0, 16, 0, 16, 'h', 'i'}));
    if (reset) soft::set_reset_on_close(first.get());
    first.reset();
    const Fd second = accept_raw();
    EXPECT_EQ(hear(second, 22), kRequestKey + octets({0x40, 1, 0, 2, 'h', 'i'}));
    EXPECT_TRUE(client_.events.empty() || client_.events.front().type != CmEventType::kConnectError);
    say(second, kPlainReply);
    ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kEstablished); }));
    EXPECT_FALSE(client_.has(CmEventType::kConnectError));
  }
}

TEST_P(StartupTest, FallsBackWhenTheReplyIsOfRevision1) {
  connect_to(listen_raw());
  const Fd first = accept_raw();
  hear(first, 24);
  say(first, kPlainReply);
  const Fd second = accept_raw();
  EXPECT_EQ(hear(second, 20), kRequestKey + octets({0x40, 1, 0, 0}));
  // It goes no further: there is no revision below.
  std::string heard;
  ::shutdown(second.get(), SHUT_RDWR);
  ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kConnectError); }));
}

// Each of its Replies asks for less than it was asked with; below revision 1 there is nothing.
TEST_P(StartupTest, FallsBackOnceWhereEveryReplyIsOfRevision0) {
  RecordProperty("proves", "MPA2-10-05");
  connect_to(listen_raw());
  for (const std::string& request : {octets({0x50, 2}), octets({0x40, 1})}) {
    const Fd raw = accept_raw();
    EXPECT_EQ(hear(raw, 20).substr(16, 2), request);
    say(raw, kReplyKey + octets({0xc0, 0, 0, 0}));
    std::string rest;
    ASSERT_TRUE(drive_raw([&] { return hear_more(raw, rest); }));
  }
  ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kConnectError); }));
  const std::string text = client_.take(CmEventType::kConnectError)->text;
  EXPECT_NE(text.find("asked with MPA revision 2, then with 1"), text.npos) << text;
  EXPECT_NE(text.find("Rev 0 to our Rev 1"), text.npos) << text;
  settle();
  EXPECT_LT(::accept4(raw_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC), 0);
}

TEST_P(StartupTest, DoesNotFallBackWhereItMustNot) {
  RecordProperty("proves", "MPA2-10-05");
  SoftConfig off;
  off.fall_back = false;
  SoftConfig strict;
  strict.peer = "strict";
  for (const SoftConfig& config : {off, strict}) {
    reopen_client(config);
    connect_to(listen_raw());
    Fd first = accept_raw();
    hear(first, 24);
    first.reset();
    ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kConnectError); }));
    EXPECT_LT(::accept4(raw_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC), 0);
  }
  // A rejecting Reply is an answer.
  reopen_client({});
  connect_to(listen_raw());
  const Fd first = accept_raw();
  hear(first, 24);
  say(first, kReplyKey + octets({0x60, 1, 0, 0}));
  ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kRejected); }));
  EXPECT_LT(::accept4(raw_listener_.get(), nullptr, nullptr, SOCK_CLOEXEC), 0);
}

// Each failure has one line, with a cause and something to try.
TEST_P(StartupTest, AFailedConnectIsPutInWords) {
  const auto expect_words = [&](CmEventType type, const std::vector<std::string>& parts) {
    ASSERT_TRUE(drive_raw([&] { return client_.has(type); }));
    const std::string text = client_.take(type)->text;
    EXPECT_EQ(text.find('\n'), text.npos) << text;
    for (const std::string& part : {std::string("Likely cause: "), std::string("Try: ")})
      EXPECT_NE(text.find(part), text.npos) << text;
    for (const std::string& part : parts) EXPECT_NE(text.find(part), text.npos) << part << ": " << text;
  };
  // No socket listens any more.
  const sockaddr_storage closed = listen_raw();
  raw_listener_.reset();
  connect_to(closed);
  expect_words(CmEventType::kUnreachable, {address_str(closed), "Connection refused", "iwpmd"});

  reopen_client({});
  connect_to(listen_raw());
  const Fd web = accept_raw();
  hear(web, 24);
  say(web, "HTTP/1.1 400 Bad Request\r\n\r\n");
  expect_words(CmEventType::kConnectError,
               {"\"HTTP/1.1 400 Bad Request\\x0d", "which is HTTP", "the port of an iWARP program"});

  reopen_client({});
  connect_to(listen_raw());
  for (int i = 0; i < 2; ++i) {
    const Fd mute = accept_raw();
    hear(mute, 20);
  }
  expect_words(CmEventType::kConnectError, {"asked with MPA revision 2, then with 1", "closed the connection"});

  reopen_client({});
  connect_to(listen_raw(), {{}, 0, 0});
  const Fd server = accept_raw();
  hear(server, 24);
  say(server, kReplyKey + octets({0x70, 2, 0, 6, 0, 0, 0, 0, 'n', 'o'}));
  expect_words(CmEventType::kRejected, {"R=1", "with private data \"no\"", "we offered IRD 0"});
}

TEST_P(StartupTest, PrivateDataIsBoundedByRevisionAndPeer) {
  RecordProperty("proves", "MPA-7.1.1-24 MPA2-9-03");
  struct Row {
    std::uint8_t revision;
    const char* peer;
    std::size_t most;
  };
  for (const Row& row : {Row{2, "auto", 508}, Row{1, "auto", 512}, Row{2, "siw", 252}, Row{1, "cxgb4", 256}}) {
    SoftConfig config;
    config.mpa_revision = row.revision;
    config.peer = row.peer;
    reopen_client(config);
    EXPECT_EQ(client_.device->caps().max_private_data, row.most);
    const sockaddr_storage to = listen_raw();
    ASSERT_TRUE(client_.id->resolve_addr(to, seconds(1)).ok());
    ASSERT_TRUE(client_.id->resolve_route(seconds(1)).ok());
    make_qp(client_);
    const Status refused = client_.id->connect({std::vector<std::uint8_t>(row.most + 1, 'x'), 1, 1});
    EXPECT_EQ(refused.error().errno_value, EINVAL);
    EXPECT_NE(refused.error().message.find("at most " + std::to_string(row.most)), std::string::npos);
    ASSERT_TRUE(client_.id->connect({std::vector<std::uint8_t>(row.most, 'x'), 1, 1}).ok());
    const Fd raw = accept_raw();
    const std::size_t pd_length = row.most + (row.revision == 2 ? 4 : 0);
    const std::string request = hear(raw, 20 + pd_length);
    EXPECT_EQ(request.size(), 20 + pd_length);
    EXPECT_EQ(request.substr(18, 2), octets({static_cast<int>(pd_length >> 8), static_cast<int>(pd_length & 0xff)}));
  }
}

TEST_P(StartupTest, NothingIsSentBehindARequestUntilTheReply) {
  RecordProperty("proves", "MPA-7.1-03 MPA-7.1.2-10 MPA-7.1.2-13");
  connect_to(listen_raw());
  const Fd raw = accept_raw();
  std::string heard = hear(raw, 24);
  const std::string reply = kReplyKey + octets({0x50, 2, 0, 4, 0, 16, 0, 16});
  for (const char octet : reply) {
    hear_more(raw, heard);
    EXPECT_EQ(heard.size(), 24u);
    EXPECT_FALSE(client_.has(CmEventType::kEstablished));
    say(raw, std::string(1, octet));
    settle();
  }
  ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kEstablished); }));
  Mem from(*client_.pd, 5, Access::kNone, 'z');
  ASSERT_TRUE(client_.send({from.sge()}).ok());
  // ULPDU_Length 23: a DDP header and the five octets.
  heard = hear(raw, 32);
  EXPECT_EQ(heard.substr(0, 4), octets({0, 23, 0x41, 0x43}));
}

// ---- delayed startup

TEST_P(StartupTest, MpaBeginsAfterStreamingModeAtTheSameOctet) {
  RecordProperty("proves", "MPA-7.1-01 MPA-7.1-02 MPA-7.1-04 MPA-7.1-07 MPA-7.1.3-01");
  for (const std::size_t len : {1u, 512u, 2000u}) {
    SCOPED_TRACE(len);
    reopen(server_);
    reopen(client_);
    Fd a;
    Fd b;
    make_sockets(a, b);
    // Hello, Hello Ack: the end that answers is in responder mode by then.
    say(a, std::string(len, 'h'));
    std::string heard = hear(b, len);
    say(b, std::string(len, 'k'));
    ASSERT_TRUE(accept_socket(*server_.id, b.release()).ok());
    heard = hear(a, len);
    ASSERT_EQ(heard, std::string(len, 'k'));
    make_qp(client_);
    ASSERT_TRUE(connect_socket(*client_.id, a.release(), {{'p', 'd'}, 4, 4}).ok());
    CmEvent request;
    take_request(&request);
    EXPECT_EQ(request.param.private_data, (std::vector<std::uint8_t>{'p', 'd'}));
    make_qp(server_);
    ASSERT_TRUE(server_.id->accept({{}, 4, 4}).ok());
    ASSERT_TRUE(
        drive([&] { return client_.has(CmEventType::kEstablished) && server_.has(CmEventType::kEstablished); }));
    expect_traffic();
  }
}

// Either end may have made the TCP connection. Octets read too far are not lost.
TEST_P(StartupTest, OctetsReadTooFarAreTheRequests) {
  RecordProperty("proves", "MPA-7.1-01 MPA-7.1-04");
  const std::string request = kRequestKey + octets({0x40, 1, 0, 3, 'a', 'b', 'c'});
  for (std::size_t cut = 1; cut <= request.size(); ++cut) {
    reopen(server_);
    Fd a;
    Fd b;
    make_sockets(a, b);
    const std::vector<std::uint8_t> received(request.begin(), request.begin() + static_cast<std::ptrdiff_t>(cut));
    ASSERT_TRUE(accept_socket(*server_.id, a.release(), received).ok());
    if (cut < request.size()) say(b, request.substr(cut));
    ASSERT_TRUE(drive_raw([&] { return server_.has(CmEventType::kConnectRequest); })) << cut;
    EXPECT_EQ(server_.take(CmEventType::kConnectRequest)->param.private_data,
              (std::vector<std::uint8_t>{'a', 'b', 'c'}));
    server_.close();
  }
}

TEST_P(StartupTest, StreamingOctetsThatWereNotReadAreNoRequest) {
  RecordProperty("proves", "MPA-7.1.5-01 MPA-7.1.3-02");
  Fd a;
  Fd b;
  make_sockets(a, b);
  say(a, "still streaming");
  ASSERT_TRUE(accept_socket(*server_.id, b.release()).ok());
  std::string heard;
  ASSERT_TRUE(drive_raw([&] { return hear_more(a, heard); }));
  EXPECT_TRUE(heard.empty());
  EXPECT_FALSE(server_.has(CmEventType::kConnectRequest));
}

TEST_P(StartupTest, AnEmssThatCannotBeReadIsALikelyOne) {
  RecordProperty("proves", "MPA-5.1-03");
  EXPECT_EQ(soft::read_emss(-1), 1448u);
}

TEST_P(StartupTest, OnlyConnectedSocketsAreTaken) {
  Fd lonely(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  make_qp(client_);
  EXPECT_EQ(connect_socket(*client_.id, lonely.get(), {}).error().errno_value, EINVAL);
  EXPECT_EQ(accept_socket(*server_.id, lonely.get()).error().errno_value, EINVAL);
  EXPECT_EQ(accept_socket(*server_.id, -1).error().errno_value, EBADF);
  EXPECT_EQ(::fcntl(lonely.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC) << "still ours";
}

// Rules 2 and 3 of RFC 5044 section 7.1.2: MPA goes, TCP stays.
TEST_P(StartupTest, ARejectLeavesTheTcpConnectionToBothOwners) {
  RecordProperty("proves", "MPA-7.1.2-05 MPA-7.1.2-06 MPA-7.1.2-07 MPA-7.1.2-12");
  for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
    reopen(server_);
    SoftConfig config;
    config.mpa_revision = revision;
    reopen_client(config);
    Fd a;
    Fd b;
    make_sockets(a, b);
    ASSERT_TRUE(accept_socket(*server_.id, b.release()).ok());
    make_qp(client_);
    ASSERT_TRUE(connect_socket(*client_.id, a.release(), {}).ok());
    take_request();
    EXPECT_EQ(release_socket(*server_.id).error().errno_value, ENOTCONN);
    const std::vector<std::uint8_t> why = {'n', 'o'};
    ASSERT_TRUE(server_.id->reject(why).ok());
    ASSERT_TRUE(drive([&] { return client_.has(CmEventType::kRejected); }));
    EXPECT_EQ(client_.take(CmEventType::kRejected)->param.private_data, why);

    auto server_socket = release_socket(*server_.id);
    auto client_socket = release_socket(*client_.id);
    ASSERT_TRUE(server_socket.ok());
    ASSERT_TRUE(client_socket.ok());
    const Fd s(server_socket->fd);
    const Fd c(client_socket->fd);
    EXPECT_TRUE(client_socket->received.empty());
    say(s, "plain words");
    say(c, "plainly answered");
    EXPECT_EQ(hear(c, 11), "plain words");
    EXPECT_EQ(hear(s, 16), "plainly answered");
  }
}

TEST_P(StartupTest, WhatFollowsARejectingReplyIsNotMpas) {
  RecordProperty("proves", "MPA-7.1.2-12");
  Fd a;
  Fd b;
  make_sockets(a, b);
  make_qp(client_);
  ASSERT_TRUE(connect_socket(*client_.id, a.release(), {}).ok());
  hear(b, 24);
  say(b, kReplyKey + octets({0x70, 2, 0, 4, 0, 0, 0, 0}) + "plain");
  ASSERT_TRUE(drive_raw([&] { return client_.has(CmEventType::kRejected); }));
  auto released = release_socket(*client_.id);
  ASSERT_TRUE(released.ok());
  const Fd socket(released->fd);
  std::string plain(released->received.begin(), released->received.end());
  say(b, " words");
  ASSERT_TRUE(drive_raw([&] {
    hear_more(socket, plain);
    return plain.size() == 11;
  }));
  EXPECT_EQ(plain, "plain words");
}

// ---- the end

// With much unread input close() would answer with RST, and the Terminate would be lost (MPA-S-01).
TEST_P(StartupTest, ATerminateArrivesHoweverMuchInputIsUnread) {
  RecordProperty("proves", "MPA-8-13");
  const Fd raw = request_raw();
  make_qp(server_);
  ASSERT_TRUE(server_.id->accept({}).ok());
  std::string heard;
  ASSERT_TRUE(drive_raw([&] {
    hear_more(raw, heard);
    return heard.size() == 20;
  }));
  // A damaged FPDU, and many octets behind it that will not be read.
  say(raw, octets({0, 18}) + std::string(22, '\x11') + std::string(200000, 'x'));
  bool reset = false;
  ASSERT_TRUE(drive_raw([&] { return hear_more(raw, heard, &reset); }));
  EXPECT_FALSE(reset);
  ASSERT_EQ(heard.size(), 48u);
  EXPECT_EQ(heard.substr(20, 4), octets({0, 22, 0x41, 0x47}));
  EXPECT_EQ(heard.substr(40, 4), octets({0x20, 0x02, 0, 0}));
}

TEST_P(StartupTest, ARejectingReplyArrivesWholeBeforeTheFin) {
  RecordProperty("proves", "MPA-7.1.4-01");
  const Fd raw = request_raw();
  const std::vector<std::uint8_t> why(500, 'w');
  ASSERT_TRUE(server_.id->reject(why).ok());
  server_.id.reset();
  std::string heard;
  bool reset = false;
  ASSERT_TRUE(drive_raw([&] { return hear_more(raw, heard, &reset); }));
  EXPECT_FALSE(reset);
  EXPECT_EQ(heard, kReplyKey + octets({0x60, 1, 1, 0xf4}) + std::string(500, 'w'));
}

TEST(SoftConfigTest, StartupOptionsAreChecked) {
  SoftConfig config;
  config.peer = "nobody";
  EXPECT_EQ(open_soft_device(config).error().errno_value, EINVAL);
  config = {};
  config.peer = "siw";
  config.markers = true;
  EXPECT_EQ(open_soft_device(config).error().errno_value, EINVAL);
  config = {};
  config.mpa_revision = 1;
  config.rtr = Rtr::kWrite;
  EXPECT_EQ(open_soft_device(config).error().errno_value, EINVAL);
}

INSTANTIATE_TEST_SUITE_P(Soft, StartupTest,
                         ::testing::Values(Backend{"Spinning", [] { return open_soft_device({}); }, false},
                                           Backend{"Blocking", [] { return open_soft_device({}); }, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::verbs::testing
