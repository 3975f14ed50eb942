// Startup agrees on the framing of the FPDUs behind it: Markers by direction, CRCs, versions.
#include <gtest/gtest.h>

#include "tests/sim/startup_side.h"

namespace weft::sim {
namespace {

void post_large_send(Side& side, std::size_t len = 2000) {
  rdmap::SendWr wr;
  wr.inline_data.assign(len, 0xab);
  ASSERT_EQ(side.stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
}

// A Marker at each multiple of 512, the first of them 0 (RFC 5044 section 4.3).
void expect_markers(const Octets& stream) {
  ASSERT_GT(stream.size(), 1024u);
  EXPECT_EQ(Octets(stream.begin(), stream.begin() + 4), (Octets{0, 0, 0, 0}));
  EXPECT_NE((stream[4] << 8 | stream[5]), 0) << "a ULPDU_Length";
  for (std::size_t at = 512; at < stream.size(); at += 512) {
    EXPECT_EQ(stream[at] | stream[at + 1], 0);
    EXPECT_LE((stream[at + 2] << 8 | stream[at + 3]), static_cast<int>(at));
  }
}

void expect_no_markers(const Octets& stream) {
  ASSERT_GT(stream.size(), 1024u);
  EXPECT_NE((stream[0] << 8 | stream[1]), 0) << "a ULPDU_Length";
  EXPECT_EQ(stream[512], 0xab);
  EXPECT_FALSE(deframe(stream).empty());
}

TEST(Framing, TheResponderSendsMarkersWhereTheRequestSaysSo) {
  RecordProperty("proves", "MPA-4.3-02 MPA-4.3-03 MPA-7.1.1-06 MPA-7.1.1-07 MPA-7.1.1-08");
  for (const char* name : {"REQ-M0C1", "REQ-M1C1"}) {
    SCOPED_TRACE(name);
    const Octets request = mpa_record_octets(name);
    Responder r;
    const Octets reply = r.answer(request);
    ASSERT_TRUE(r.established);
    EXPECT_EQ(reply[16] & 0xa0, 0) << "accepted, and no Markers wanted for what we receive";
    r.receive(frame_fpdu(record_octets("F01")), kNow);
    post_large_send(r);
    const Octets stream = r.transmit(kNow);
    const bool marked = (request[16] & 0x80) != 0;
    EXPECT_EQ(r.established->markers_tx, marked);
    EXPECT_FALSE(r.established->markers_rx);
    marked ? expect_markers(stream) : expect_no_markers(stream);
  }
}

TEST(Framing, TheInitiatorSendsMarkersWhereTheReplySaysSo) {
  RecordProperty("proves", "MPA-4.3-02 MPA-4.3-03 MPA-7.1.1-06 MPA-7.1.1-07 MPA-7.1.1-08");
  for (const char* name : {"REP-M0C1", "REP-M1C1"}) {
    SCOPED_TRACE(name);
    rdmap::StreamConfig config;
    config.mpa_revision = 1;
    Initiator i(config);
    EXPECT_EQ(i.request[16] & 0x80, 0);
    const Octets reply = mpa_record_octets(name);
    i.receive(reply, kNow);
    i.drain();
    ASSERT_TRUE(i.established);
    post_large_send(i);
    const Octets stream = i.transmit(kNow);
    (reply[16] & 0x80) != 0 ? expect_markers(stream) : expect_no_markers(stream);
  }
}

TEST(Framing, FourCombinationsOfMarkersCarryData) {
  RecordProperty("proves", "MPA-4.3-17 MPA-7.1.1-06");
  for (const bool initiator : {false, true}) {
    for (const bool responder : {false, true}) {
      SCOPED_TRACE(testing::Message() << initiator << responder);
      rdmap::StreamConfig ours;
      ours.markers = initiator;
      rdmap::StreamConfig theirs;
      theirs.markers = responder;
      rdmap::testing::Pair pair(ours, theirs);
      pair.connect();
      for (const bool back : {false, true}) {
        Side& from = back ? pair.b : pair.a;
        Side& to = back ? pair.a : pair.b;
        auto& region = to.memory.add_simple(9, 0, 0, 20000);
        to.recvs.post(1, {{0, 20000, ddp::Stag{9}}});
        post_large_send(from, 20000);
        const Octets stream = from.transmit(pair.now, 536);
        (back ? initiator : responder) ? expect_markers(stream) : expect_no_markers(stream);
        to.receive(stream, pair.now, 777);
        to.drain();
        ASSERT_EQ(to.completions.size(), back ? 2u : 1u);
        EXPECT_EQ(region.octets, Octets(20000, 0xab));
      }
    }
  }
}

TEST(Framing, TheTerminateForAReplyIsFramedAsTheReplySays) {
  Initiator i;
  Octets reply = record_octets("H63");
  reply[16] |= 0x80;
  reply[20] = reply[22] = 0;
  i.receive(reply, kNow);
  const Octets stream = i.transmit(kNow);
  ASSERT_EQ(stream.size(), 32u);
  EXPECT_EQ(Octets(stream.begin(), stream.begin() + 6), (Octets{0, 0, 0, 0, 0, 22}));
}

TEST(Framing, WithMarkersAnFpduStillFitsTheSegment) {
  RecordProperty("proves", "MPA-4.5-06");
  for (const std::size_t emss : {536u, 1448u, 1460u}) {
    Responder r;
    r.answer(mpa_record_octets("REQ-M1C1"));
    r.receive(frame_fpdu(record_octets("F01")), kNow);
    post_large_send(r, 100000);
    r.transmit(kNow, emss, SIZE_MAX, 1);
    EXPECT_GT(r.stream.counters().fpdus_tx, 100000 / emss);
    EXPECT_LT(r.stream.counters().fpdus_tx, 2 + 100000 / (mpa::mulpdu(emss, true) - 18));
  }
}

// The MULPDU of the largest EMSS would need a PAD of two octets.
TEST(Framing, OnlyTheLastFpduOfAMessageHasAPad) {
  constexpr std::size_t kLen = 200001, kHeaderLen = 18, kLengthLen = 2, kCrcLen = 4, kLargestEmss = 65483;
  Responder r;
  r.answer(mpa_record_octets("REQ-M0C1"));
  r.receive(frame_fpdu(record_octets("F01")), kNow);
  post_large_send(r, kLen);
  Octets stream;
  while (stream.size() < kLen) {
    const Octets more = r.transmit(kNow, kLargestEmss, SIZE_MAX, 1);
    ASSERT_FALSE(more.empty());
    stream.insert(stream.end(), more.begin(), more.end());
  }
  std::size_t at = 0, sent = 0;
  while (sent < kLen) {
    const std::size_t ulpdu = std::size_t{stream.at(at)} << 8 | stream.at(at + 1);
    sent += ulpdu - kHeaderLen;
    EXPECT_EQ((kLengthLen + ulpdu) % 4 != 0, sent == kLen) << ulpdu;
    at += (kLengthLen + ulpdu + 3) / 4 * 4 + kCrcLen;
  }
  EXPECT_EQ(at, stream.size());
}

TEST(Framing, RdmacAtNonPermissiveEnds) {
  RecordProperty("proves", "MPA-C.2.1-01 MPA-C.2.2-01");
  Responder r;
  r.receive(mpa_record_octets("RDMAC-REQ"), kNow);
  const Octets reply = r.transmit(kNow);
  ASSERT_EQ(reply.size(), 20u);
  EXPECT_EQ(reply[16] & 0x20, 0x20);
  EXPECT_EQ(reply[17], 1);
  EXPECT_EQ(r.stream.llp_action(), LlpAction::kShutdownWrite);
  rdmap::StreamConfig config;
  config.mpa_revision = 1;
  Initiator i(config);
  i.receive(mpa_record_octets("RDMAC-REP"), kNow);
  i.drain();
  EXPECT_TRUE(i.transmit(kNow).empty());
  EXPECT_FALSE(i.established);
  ASSERT_EQ(i.closed.size(), 1u);
  EXPECT_EQ(i.stream.llp_action(), LlpAction::kClose);
}

}  // namespace
}  // namespace weft::sim
