// RFC 5040 sections 4.8 and 5.4: the Terminate Message, sent and received.
#include <gtest/gtest.h>

#include <map>

#include "tests/conformance/rdmap_peer.h"

namespace weft::conformance {
namespace {

constexpr std::uint32_t kSource = 0x2b3c4d02;

// The answer of a subject with a region and a receive. It has to be one Terminate.
Segment answer_to(const Octets& bad) {
  Subject s;
  s.remote(kSource, 0, 64);
  s.post_recvs(1);
  s.feed(bad);
  const auto sent = s.sent();
  EXPECT_EQ(sent.size(), 1u);
  return sent.empty() ? Segment{} : sent[0];
}

// The Terminate of a subject whose own memory is gone when a Send is to leave.
Segment local_catastrophic() {
  Subject s;
  s.memory.regions.erase(Subject::kLocal);
  EXPECT_EQ(s.post(work(SendOp::kSend, 1, {{0, 8, ddp::Stag{Subject::kLocal}}})), PostResult::kOk);
  const auto sent = s.sent();
  EXPECT_EQ(sent.size(), 1u);
  EXPECT_EQ(s.completions.size(), 1u);
  if (!s.completions.empty()) {
    EXPECT_EQ(s.completions[0].status, WorkStatus::kLocalProtection);
  }
  return sent.empty() ? Segment{} : sent[0];
}

Segment bad_crc() {
  Subject s;
  Octets fpdu = sim::frame_fpdu(send(1, ramp(8)));
  fpdu.back() ^= 0x80;
  s.receive(fpdu, s.now);
  const auto sent = s.sent();
  EXPECT_EQ(sent.size(), 1u);
  return sent.empty() ? Segment{} : sent[0];
}

const Octets kBadWrite = write(0x999, 0, ramp(8));
const Octets kBadQn = untagged(0x43, 5, 1, ramp(8));
const Octets kBadOpcode = untagged(0x4c, 0, 1, ramp(8));
const Octets kBadRead = read_request(1, 1, 0, 8, 0x999, 0);
const Octets kBadInvalidate = send(1, ramp(8), true, 0, 0x44, 0x999);

TEST(RdmapTerminateSent, LengthsAndOctetsOfEachForm) {
  RecordProperty("proves",
                 "RDMAP-4.1-20 RDMAP-4.8-01 RDMAP-4.8-04 RDMAP-4.8-09 RDMAP-4.8-10 RDMAP-4.8-11 RDMAP-4.8-12 "
                 "RDMAP-4.8-16 RDMAP-4.8-17 RDMAP-4.8-22 RDMAP-4.8-24 RDMAP-4.8-25 RDMAP-4.8-26 RDMAP-7.1-02");
  struct Case {
    Segment terminate;
    std::size_t len;
    Octets control;
  };
  const Case cases[] = {
      {local_catastrophic(), 22, {0x00, 0x00, 0x00, 0x00}},  {bad_crc(), 22, {0x20, 0x02, 0x00, 0x00}},
      {answer_to(kBadWrite), 38, {0x11, 0x00, 0xc0, 0x00}},  {answer_to(kBadQn), 42, {0x12, 0x01, 0xc0, 0x00}},
      {answer_to(kBadOpcode), 42, {0x02, 0x06, 0xc0, 0x00}}, {answer_to(kBadInvalidate), 42, {0x02, 0x09, 0xc0, 0x00}},
      {answer_to(kBadRead), 70, {0x01, 0x00, 0xe0, 0x00}}};
  for (const Case& c : cases) {
    const Octets& u = c.terminate.ulpdu;
    ASSERT_EQ(u.size(), c.len);
    // Queue 2, MSN 1, MO 0, nothing in the Invalidate STag field.
    EXPECT_EQ(Octets(u.begin(), u.begin() + 18), untagged(0x47, 2, 1, {}));
    EXPECT_EQ(Octets(u.begin() + 18, u.begin() + 22), c.control);
  }
}

TEST(RdmapTerminateSent, HeadersAreThoseOfTheMessageThatFailed) {
  RecordProperty("proves",
                 "RDMAP-4.8-14 RDMAP-4.8-15 RDMAP-4.8-16 RDMAP-4.8-18 RDMAP-4.8-19 RDMAP-7.1-03 RDMAP-7.1-04");
  for (const Octets& bad : {kBadWrite, kBadQn, kBadOpcode, kBadInvalidate, kBadRead}) {
    const bool is_read = bad == kBadRead;
    const Octets u = answer_to(bad).ulpdu;
    const std::size_t header_len = (bad[0] & 0x80) != 0 ? 14 : 18;
    ASSERT_EQ(u.size(), 24 + header_len + (is_read ? 28u : 0u));
    EXPECT_EQ(u[20], is_read ? 0xe0 : 0xc0);
    EXPECT_EQ(get(u, 22, 2), bad.size()) << "the DDP header and all that follows it";
    const std::size_t copied = header_len + (is_read ? 28 : 0);
    EXPECT_EQ(Octets(u.begin() + 24, u.end()), Octets(bad.begin(), bad.begin() + static_cast<std::ptrdiff_t>(copied)));
  }
}

TEST(RdmapTerminateSent, RemoteProtectionIsForReadsAndInvalidatesOnly) {
  RecordProperty("proves", "RDMAP-4.8-23 RDMAP-4.8-11");
  EXPECT_EQ(answer_to(kBadRead).payload[2], 0xe0);
  EXPECT_EQ(answer_to(kBadRead).payload[0], 0x01);
  Subject s;
  s.remote(0x333, 0, 8, true, true, {2});
  s.post_recvs(1);
  s.feed(send(1, ramp(4), true, 0, 0x44, 0x333));
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].payload[0], 0x01);
  EXPECT_EQ(sent[0].payload[2], 0xc0);
  // The same defects on a Write or a Read Response are DDP's.
  for (const unsigned control : {0x40u, 0x42u}) {
    for (const std::uint32_t stag : {0x999u, 0x333u, kSource}) {
      for (const std::uint64_t to : {std::uint64_t{0}, std::uint64_t{60}, ~std::uint64_t{3}}) {
        if (control == 0x40 && stag == kSource && to == 0) continue;  // a good Write
        Subject t;
        t.remote(kSource, 0, 64);
        t.remote(0x333, 0, 64, true, true, {2});
        t.feed(tagged(control, stag, to, ramp(8)));
        const auto out = t.sent();
        ASSERT_EQ(out.size(), 1u);
        EXPECT_EQ(out[0].payload[0], 0x11);
      }
    }
  }
}

TEST(RdmapTerminateSent, ReadThatFailsHalfWayReturnsWhatIsLeft) {
  RecordProperty("proves", "RDMAP-4.8-20");
  Subject s;
  s.remote(kSource, 0x40000, 8192);
  const Octets request = read_request(1, 0x6f708106, 0x8000, 8192, kSource, 0x40000);
  s.feed(request);
  // Two segments of 1,024 octets leave, then the owner takes the memory back.
  ASSERT_FALSE(s.stream.tx_buffers(1044, 2 * 1044, s.now).empty());
  s.stream.on_tx(2 * 1044, s.now);
  EXPECT_EQ(s.stream.counters().read_octets_tx, 2048u);
  s.memory.regions[kSource].valid = false;
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  Octets expected = terminate_for(request, 0x01, 0x00, true);
  const Octets left = read_request(1, 0x6f708106, 0x8000 + 2048, 6144, kSource, 0x40000 + 2048);
  std::copy(left.begin() + 18, left.end(), expected.begin() + 42);
  EXPECT_EQ(sent[0].ulpdu, expected);
}

TEST(RdmapTerminateSent, NothingFollowsIt) {
  RecordProperty("proves", "RDMAP-5.4-01 RDMAP-5.4-09 RDMAP-7-01 RDMAP-7-02");
  Subject s;
  Octets region(64, 0xa5);
  s.remote(kSource, 0, 64);
  s.post_recvs(4);
  s.feed_all({kBadWrite, write(kSource, 0, ramp(8)), send(1, ramp(8)), read_request(1, 1, 0, 8, kSource, 0)});
  EXPECT_EQ(s.sent().size(), 1u);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(s.post(work(SendOp::kSend, i, {{0, 8, ddp::Stag{Subject::kLocal}}})), PostResult::kNotConnected);
    EXPECT_TRUE(s.sent().empty());
    EXPECT_FALSE(s.stream.wants_tx());
    EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kShutdownWrite);
  }
  s.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
  s.feed(write(kSource, 0, ramp(8)));
  EXPECT_TRUE(s.sent().empty());
  EXPECT_EQ(s.memory.regions[kSource].octets, region);
  EXPECT_TRUE(s.completions.empty());
  EXPECT_EQ(s.recvs.num_taken, 0u);
  s.stream.on_rx_eof(s.now);
  s.drain();
  EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kClose);
  EXPECT_EQ(s.closed.size(), 1u);
}

TEST(RdmapTerminateSent, DescribesTheFirstErrorOnly) {
  RecordProperty("proves", "RDMAP-7.1-05");
  Subject s;
  const Octets second = write(0x888, 16, ramp(4));
  s.feed_all({kBadWrite, second, kBadOpcode});
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, terminate_for(kBadWrite, 0x11, 0x00));
}

// ---------------------------------------------------------------- received

// A subject that heard this; it must not answer with a Terminate.
struct Heard {
  explicit Heard(const Octets& ulpdu, std::size_t chunk = SIZE_MAX) {
    EXPECT_EQ(s.post(work(SendOp::kRdmaRead, 1, {{0, 8, ddp::Stag{Subject::kLocal}}}, 0x77, 0)), PostResult::kOk);
    EXPECT_EQ(s.sent().size(), 1u);
    s.post_recvs(3);
    s.feed(ulpdu, chunk);
    EXPECT_TRUE(s.sent().empty()) << "a Terminate is not answered";
    EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kShutdownWrite);
    EXPECT_EQ(s.recvs.num_taken, 0u);
    s.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
    s.stream.on_rx_eof(s.now);
    s.drain();
    EXPECT_EQ(s.closed.size(), 1u);
    EXPECT_EQ(s.completions.size(), 1u);
  }
  const rdmap::Closed& closed() const { return s.closed.at(0); }
  const Completion& read() const { return s.completions.at(0); }
  Subject s;
};

TEST(RdmapTerminateReceived, ReachesTheUlp) {
  RecordProperty("proves", "RDMAP-5.4-04 RDMAP-5.4-06");
  for (const std::size_t chunk : {SIZE_MAX, std::size_t{1}}) {
    const Heard heard(terminate_for(kBadRead, 0x01, 0x02, true), chunk);
    EXPECT_EQ(heard.closed().reason, rdmap::CloseReason::kTerminateReceived);
    EXPECT_EQ(heard.closed().terminate, (rdmap::Terminate{rdmap::Layer::kRdma, 1, 2}));
    EXPECT_NE(heard.closed().text.find("0/1/02"), std::string::npos) << heard.closed().text;
    EXPECT_EQ(heard.read().status, WorkStatus::kRemoteAccess);
    EXPECT_EQ(heard.read().terminate, heard.closed().terminate);
    EXPECT_EQ(heard.s.recvs.posted.size(), 3u) << "queue 0 gave no buffer";
  }
}

TEST(RdmapTerminateReceived, OneCanAlwaysBeTaken) {
  RecordProperty("proves", "RDMAP-5.4-05");
  // No receive posted, every Read slot of both directions taken, a Send half arrived: there is room for the longest.
  Subject s(2, 1);
  s.remote(kSource, 0, 64);
  s.post_recvs(1);
  ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 1, {{0, 8, ddp::Stag{Subject::kLocal}}}, 0x77, 0)), PostResult::kOk);
  ASSERT_EQ(s.sent().size(), 1u);
  s.feed(read_request(1, 1, 0, 64, kSource, 0));
  s.feed(read_request(2, 1, 0, 64, kSource, 0));
  s.feed(send(1, ramp(8), false));
  const Octets longest = terminate_for(read_request(1, Subject::kLocal, 0, 8, 0x77, 0), 0x01, 0x00, true);
  ASSERT_EQ(longest.size(), 18u + 52);
  s.feed(longest);
  s.drain();
  ASSERT_EQ(s.completions.size(), 2u);
  for (const Completion& c : s.completions) {
    EXPECT_EQ(c.status, c.op == WorkOp::kRecv ? WorkStatus::kFlushed : WorkStatus::kRemoteAccess);
    EXPECT_EQ(c.terminate, (rdmap::Terminate{rdmap::Layer::kRdma, 1, 0}));
  }
}

TEST(RdmapTerminateReceived, LocalCatastrophicMeansTheSameWhateverItsCode) {
  RecordProperty("proves", "RDMAP-4.8-06");
  std::map<std::string, int> meanings;
  for (const std::uint8_t code : std::initializer_list<std::uint8_t>{0x00, 0x01, 0x42, 0x80, 0xff}) {
    const Heard heard(terminate({0x00, code, 0x00, 0x00}));
    EXPECT_EQ(heard.closed().terminate->layer, rdmap::Layer::kRdma);
    EXPECT_EQ(heard.closed().terminate->etype, 0);
    EXPECT_EQ(heard.read().status, WorkStatus::kFlushed);
    ++meanings[heard.closed().text.substr(0, heard.closed().text.find('('))];
  }
  EXPECT_EQ(meanings.size(), 1u);
}

TEST(RdmapTerminateReceived, ReservedBitsAreOverlooked) {
  RecordProperty("proves", "RDMAP-4.8-13");
  for (const unsigned layer_etype : {0x00u, 0x01u, 0x02u, 0x11u, 0x12u, 0x20u}) {
    const Heard plain(terminate({static_cast<std::uint8_t>(layer_etype), 0x02, 0x00, 0x00}));
    // The body has as many octets as all headers would have, so that a reader that looks for headers finds something.
    Octets body{static_cast<std::uint8_t>(layer_etype), 0x02, 0x1f, 0xff};
    body.insert(body.end(), 48, 0x41);
    const Heard odd(terminate(body));
    EXPECT_EQ(odd.closed().terminate, plain.closed().terminate);
    EXPECT_EQ(odd.closed().text, plain.closed().text);
    EXPECT_EQ(odd.read().status, plain.read().status);
  }
}

TEST(RdmapTerminateReceived, PartsAreFoundByTheBitsAndByTheirOwnT) {
  RecordProperty("proves", "RDMAP-4.8-15 RDMAP-4.8-16");
  // Our two Reads: which of them a Terminate names is told by the header in it, so the header has to be found.
  struct Case {
    unsigned bits;
    bool read;  // whether the returned header is the second Read's; else it is one of our Writes'
  };
  for (const Case c : {Case{0xc0, true}, Case{0x40, true}, Case{0xe0, true}, Case{0xc0, false}, Case{0x40, false}}) {
    for (const unsigned layer_etype : {0x01u, 0x02u, 0x11u}) {
      Subject s;
      for (std::uint64_t i = 1; i <= 2; ++i)
        ASSERT_EQ(s.post(work(SendOp::kRdmaRead, i, {{0, 8, ddp::Stag{Subject::kLocal}}}, 0x77, 0)), PostResult::kOk);
      ASSERT_EQ(s.sent().size(), 2u);
      const Octets bad = c.read ? read_request(2, Subject::kLocal, 0, 8, 0x77, 0) : write(0x77, 0, ramp(40));
      Octets body{static_cast<std::uint8_t>(layer_etype), 0x01, static_cast<std::uint8_t>(c.bits), 0x00};
      put(body, (c.bits & 0x80) != 0 ? bad.size() : 0, 2);  // with D alone the field is there and says nothing
      body.insert(body.end(), bad.begin(), bad.begin() + (c.read ? 18 + ((c.bits & 0x20) != 0 ? 28 : 0) : 14));
      const auto message = rdmap::parse_terminate(body);
      ASSERT_TRUE(message);
      EXPECT_EQ(message->segment_len.has_value(), (c.bits & 0x80) != 0);
      EXPECT_EQ(Octets(message->ddp().begin(), message->ddp().end()),
                Octets(bad.begin(), bad.begin() + (c.read ? 18 : 14)));
      s.feed(terminate(body));
      s.drain();
      ASSERT_EQ(s.completions.size(), 2u);
      EXPECT_EQ(s.completions[0].status, WorkStatus::kFlushed);
      const WorkStatus blamed = layer_etype == 0x01 ? WorkStatus::kRemoteAccess : WorkStatus::kRemoteOperation;
      EXPECT_EQ(s.completions[1].status, c.read ? blamed : WorkStatus::kFlushed);
    }
  }
}

// PEER-H-20. Of three Reads siw refuses the one that it answers. Its header names another Read, because its MSN is the
// size. A Read that it refuses for another reason has the right MSN.
TEST(RdmapTerminateReceived, HeadersOfSiwNameTheReadAsFarAsTheyCanBeTrusted) {
  struct Case {
    Octets control;
    std::uint32_t msn;
    bool read;  // whether the returned header is a Read's
    std::size_t len;
    WorkStatus first, third;
  };
  const Octets protection{0x10, 0x02, 0x07, 0x00}, operation{0x20, 0x07, 0x03, 0x00};
  constexpr auto kNo = WorkStatus::kFlushed;
  for (const Case& c :
       {Case{protection, 3, true, 52, WorkStatus::kRemoteAccess, kNo},
        Case{protection, 3, true, 23, WorkStatus::kRemoteAccess, kNo},  // cut: as without headers
        Case{protection, 3, false, 24, kNo, kNo},                       // it is a Send of ours that was refused
        Case{operation, 3, true, 24, kNo, WorkStatus::kRemoteOperation}, Case{operation, 3, true, 23, kNo, kNo}}) {
    Subject s;
    for (std::uint64_t i = 1; i <= 3; ++i)
      ASSERT_EQ(s.post(work(SendOp::kRdmaRead, i, {{0, 3, ddp::Stag{Subject::kLocal}}}, 0x77, 0)), PostResult::kOk);
    ASSERT_EQ(s.sent().size(), 3u);
    const Octets bad = c.read ? read_request(c.msn, Subject::kLocal, 0, 3, 0x77, 0) : send(c.msn, ramp(40));
    Octets body = c.control;
    put(body, 0, 2);
    body.insert(body.end(), bad.begin(), bad.end());
    body.resize(c.len);
    s.feed(terminate(body));
    s.drain();
    ASSERT_EQ(s.completions.size(), 3u);
    EXPECT_EQ(s.completions[0].status, c.first) << c.len;
    EXPECT_EQ(s.completions[1].status, kNo);
    EXPECT_EQ(s.completions[2].status, c.third) << c.len;
  }
}

TEST(RdmapTerminateReceived, InvalidOnesEndTheStreamWithoutAnAnswer) {
  RecordProperty("proves", "RDMAP-5.4-07");
  const Octets whole = terminate_for(kBadRead, 0x01, 0x00, true);
  for (std::size_t len = 18; len < whole.size(); ++len) {
    const Heard heard(Octets(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(len)));
    EXPECT_EQ(heard.closed().reason, rdmap::CloseReason::kTerminateReceived);
    EXPECT_EQ(heard.closed().terminate.has_value(), len >= 22) << len;
    EXPECT_NE(heard.read().status, WorkStatus::kSuccess);
  }
  Octets r_without_header = terminate_for(kBadInvalidate, 0x01, 0x09);
  r_without_header[20] = 0xe0;
  EXPECT_EQ(Heard(r_without_header).closed().terminate, (rdmap::Terminate{rdmap::Layer::kRdma, 1, 9}));
  for (const std::uint32_t msn : {0u, 2u, 0xffffffffu}) {
    const Heard heard(terminate({0x12, 0x02, 0x00, 0x00}, msn));
    EXPECT_FALSE(heard.closed().text.empty());
    EXPECT_NE(heard.read().status, WorkStatus::kSuccess);
  }
  EXPECT_FALSE(Heard(untagged(0x47, 2, 1, Octets{0x12, 0x02, 0, 0}, true, 4)).closed().text.empty());
}

// Its first segment is all that comes in: the rest is an input behind the end, and no answer follows either.
TEST(RdmapTerminateReceived, OneInTwoSegmentsIsInvalid) {
  RecordProperty("proves", "RDMAP-5.4-07");
  const Octets body = {0x12, 0x02, 0, 0};
  Heard heard(untagged(0x47, 2, 1, body, false, 0));
  EXPECT_EQ(heard.closed().reason, rdmap::CloseReason::kTerminateReceived);
  EXPECT_EQ(heard.closed().terminate, std::nullopt);
  EXPECT_NE(heard.closed().text.find("invalid Terminate"), std::string::npos) << heard.closed().text;
  EXPECT_EQ(heard.read().status, WorkStatus::kFlushed);
}

}  // namespace
}  // namespace weft::conformance
