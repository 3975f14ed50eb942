// Why a connection ended has to reach its user, at either end, however long the peer keeps TCP open: it arrives with
// the end, not with the peer's FIN. The peer is the test itself, which never closes.
#include "verbs-shim/soft/testing/raw_peer.h"

namespace weft::verbs::testing {
namespace {

// Queue 2, MSN 1: "remote operation: catastrophic error, global", without headers.
const std::string kTerminate =
    fpdu(octets({0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x02, 0x08, 0, 0}));
const std::string kWords = "(0/2/08)";
// A Send to a queue that does not exist, which the device answers with a Terminate of its own.
const std::string kNonsense = fpdu(octets({0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0}));
const std::string kEnhancedReply = kReplyKey + octets({0x50, 2, 0, 4, 0, 16, 0, 16});

class EndWordsTest : public RawPeerTest {
 protected:
  // The client is established over the socket returned; two Receives are posted.
  Fd establish_raw() {
    connect_to(listen_raw());
    Fd raw = accept_raw();
    hear(raw, 24);
    say(raw, kEnhancedReply);
    EXPECT_TRUE(drive_raw([&] { return client_.has(CmEventType::kEstablished); }));
    return raw;
  }
  // A Request of the peer-to-peer model; the server accepts, and waits for the indication.
  Fd accept_awaiting_rtr() {
    EXPECT_TRUE(listen().ok());
    Fd raw(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_storage to = server_.id->local_addr();
    EXPECT_EQ(::connect(raw.get(), as_sockaddr(to), sizeof(sockaddr_in)), 0);
    say(raw, kRequestKey + octets({0x50, 2, 0, 4, 0x80, 1, 0x80, 1}));
    take_request();
    make_qp(server_);
    EXPECT_TRUE(server_.id->accept({}).ok());
    EXPECT_EQ(hear(raw, 24).size(), 24u);
    return raw;
  }
  // The event comes while the peer's half is open, says why, and is the only one.
  void expect_end(Side& side, CmEventType type, const std::vector<std::string>& parts) {
    ASSERT_TRUE(drive_raw([&] { return side.has(type); }));
    const CmEvent event = *side.take(type);
    EXPECT_EQ(event.status, EPROTO);
    for (const std::string& part : parts) EXPECT_NE(event.text.find(part), std::string::npos) << event.text;
    EXPECT_EQ(event.text.find('\n'), std::string::npos) << event.text;
    EXPECT_EQ(side.qp->state(), QpState::kErr);
  }
  void expect_no_more(Side& side, const Fd& raw) {
    ::shutdown(raw.get(), SHUT_WR);
    std::string heard;
    ASSERT_TRUE(drive_raw([&] { return hear_more(raw, heard); }));
    settle();
    EXPECT_FALSE(side.has(CmEventType::kDisconnected));
    EXPECT_FALSE(side.has(CmEventType::kConnectError));
  }
};

TEST_P(EndWordsTest, ATerminateReachesTheInitiatorsUser) {
  const Fd raw = establish_raw();
  Mem to(*client_.pd, 64, Access::kLocalWrite);
  ASSERT_TRUE(client_.recv({to.sge()}).ok());
  say(raw, kTerminate);
  expect_end(client_, CmEventType::kDisconnected, {"received a Terminate", kWords});
  ASSERT_EQ(client_.wcs.size(), 1u);
  EXPECT_EQ(client_.wcs[0].status, WcStatus::kWrFlushErr);
  EXPECT_EQ(client_.wcs[0].vendor_err, 0u) << "of a Receive that had not begun";
  expect_no_more(client_, raw);
}

TEST_P(EndWordsTest, ATerminateReachesTheRespondersUser) {
  const Fd raw = request_raw();
  make_qp(server_);
  ASSERT_TRUE(server_.id->accept({}).ok());
  hear(raw, 20);
  say(raw, kTerminate);
  expect_end(server_, CmEventType::kDisconnected, {"received a Terminate", kWords});
  expect_no_more(server_, raw);
}

TEST_P(EndWordsTest, ATerminateInPlaceOfTheRtrReachesTheRespondersUser) {
  const Fd raw = accept_awaiting_rtr();
  say(raw, kTerminate);
  expect_end(server_, CmEventType::kConnectError, {"received a Terminate", kWords});
  expect_no_more(server_, raw);
}

// Before the Request leaves: after a Reply that agrees, nothing saves Linux's NFS/RDMA server over siw.
TEST_P(EndWordsTest, AnOfferWithoutAWriteIsWarnedOf) {
  struct Case {
    Rtr rtr;
    std::string peer;
    std::string named;  // empty: no warning
  };
  std::vector<std::string> warnings;
  for (const Case& one :
       {Case{Rtr::kRead, "auto", "SoftConfig::rtr read"}, Case{Rtr::kSend, "siw", "SoftConfig::rtr send"},
        Case{Rtr::kAuto, "cxgb4", "SoftConfig::peer cxgb4"}, Case{Rtr::kAuto, "auto", ""},
        Case{Rtr::kAuto, "irdma", ""}, Case{Rtr::kWrite, "cxgb4", ""}, Case{Rtr::kNone, "cxgb4", ""}}) {
    SoftConfig config;
    config.rtr = one.rtr;
    config.peer = one.peer;
    config.log = {[&](LogLevel, std::string_view line) { warnings.emplace_back(line); }, LogLevel::kWarn};
    reopen_client(config);
    warnings.clear();
    connect_to(listen_raw());
    const Fd raw = accept_raw();
    hear(raw, 24);
    if (one.named.empty()) {
      EXPECT_TRUE(warnings.empty()) << one.peer << ": " << warnings.front();
      continue;
    }
    ASSERT_EQ(warnings.size(), 1u) << one.named;
    EXPECT_NE(warnings[0].find(one.named + " offers no RDMA Write"), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find("SoftConfig::rtr write is safe"), std::string::npos) << warnings[0];
  }
  reopen_client({});  // the last one's log has no sink any more
}

TEST_P(EndWordsTest, AReplyThatCannotBeLivedWithIsToldBeforeThePeerCloses) {
  SoftConfig config;
  config.rtr = Rtr::kSend;
  reopen_client(config);
  connect_to(listen_raw());
  const Fd raw = accept_raw();
  hear(raw, 24);
  say(raw, kReplyKey + octets({0x50, 2, 0, 4, 0x80, 16, 0x80, 16}));  // it takes a Write only
  expect_end(client_, CmEventType::kConnectError, {"no RTR indication that both ends can do", "(2/0/07)"});
  EXPECT_EQ(hear(raw, 28).substr(20, 2), octets({0x20, 0x07}));
  expect_no_more(client_, raw);
}

TEST_P(EndWordsTest, ATerminateOfOurOwnIsToldBeforeThePeerCloses) {
  const Fd raw = establish_raw();
  say(raw, kNonsense);
  expect_end(client_, CmEventType::kDisconnected, {"sent a Terminate", "queue number"});
  expect_no_more(client_, raw);
}

// A client must not take it for a server that was slow, and try again for a minute.
TEST_P(EndWordsTest, NoiseIsAViolationAlthoughOnlyTimeShowsIt) {
  const Fd raw = establish_raw();
  say(raw, octets({0, 60, 0xff, 0xff}) + "noise");
  settle();
  skew_ += std::chrono::seconds(1);
  expect_end(client_, CmEventType::kDisconnected, {"do not begin with a header of DDP and RDMAP"});
  expect_no_more(client_, raw);
}

// The user may go as soon as it knows of the end. MPA's last octets are still sent, in order.
TEST_P(EndWordsTest, TheTerminateIsSentAfterItsUserHasGone) {
  const Fd raw = establish_raw();
  say(raw, kNonsense + std::string(100000, 'x'));
  expect_end(client_, CmEventType::kDisconnected, {"sent a Terminate"});
  client_.qp.reset();
  client_.id.reset();
  std::string heard;
  bool reset = false;
  ASSERT_TRUE(drive_raw([&] { return hear_more(raw, heard, &reset); }));
  EXPECT_FALSE(reset);
  ASSERT_EQ(heard.size(), 48u);
  EXPECT_EQ(heard.substr(20, 2), octets({0x12, 0x01}));
}

INSTANTIATE_TEST_SUITE_P(Soft, EndWordsTest,
                         ::testing::Values(Backend{"Spinning", [] { return open_soft_device({}); }, false},
                                           Backend{"Blocking", [] { return open_soft_device({}); }, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::verbs::testing
