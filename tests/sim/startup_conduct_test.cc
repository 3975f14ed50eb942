// Startup and end as the ULP and the peer see them: the events handed up, the unsent octets, the error code.
#include <gtest/gtest.h>

#include <random>

#include "tests/sim/startup_side.h"

namespace weft::sim {
namespace {

using rdmap::Layer;
using rdmap::Terminate;

constexpr Terminate mpa_error(std::uint8_t code) {
  return {Layer::kLlp, 0, code};
}

Octets private_data(std::size_t len) {
  Octets octets(len);
  for (std::size_t i = 0; i < len; ++i) octets[i] = static_cast<std::uint8_t>(7 * i + 1);
  return octets;
}

TEST(Conduct, PrivateDataOfEveryLengthReachesTheOtherUlp) {
  RecordProperty("proves", "MPA-7.1.1-23 MPA-7.1.2-21 MPA-7.1.1-18");
  for (const std::uint8_t revision : {std::uint8_t{1}, std::uint8_t{2}}) {
    for (const std::size_t len : {0u, 1u, 7u, 508u, 512u}) {
      if (revision == 2 && len > 508) continue;
      rdmap::StreamConfig config;
      config.mpa_revision = revision;
      rdmap::testing::Pair pair(config, {});
      pair.connect(private_data(len), private_data(len));
      ASSERT_TRUE(pair.b.request);
      EXPECT_EQ(pair.b.request->private_data, private_data(len));
      EXPECT_EQ(pair.b.request->revision, revision);
      ASSERT_TRUE(pair.a.established);
      EXPECT_EQ(pair.a.established->private_data, private_data(len));
      EXPECT_EQ(pair.a.established->revision, revision);
    }
  }
}

TEST(Conduct, FullOperationBeginsRightBehindTheFrames) {
  RecordProperty("proves", "MPA-7.1-05");
  rdmap::StreamConfig config;
  config.mpa_revision = 1;
  Side i(config);
  const Octets vector = mpa_record_octets("REQ-PD5");
  i.stream.start_initiator(ConstBytes(vector).subspan(20), i.recvs, kNow);
  EXPECT_EQ(i.transmit(kNow), vector);
  ASSERT_EQ(vector.size(), 25u);
  i.receive(startup_frame(mpa::FrameKind::kReply, 1), kNow);
  ASSERT_EQ(i.stream.post_send({}), rdmap::PostResult::kOk);
  EXPECT_EQ(i.transmit(kNow), frame_fpdu(record_octets("F03")));
}

TEST(Conduct, BothEndsHoldWhatTheOtherWasTold) {
  RecordProperty("proves", "MPA2-3-01 MPA2-9.1-07");
  for (const std::uint16_t ird : {std::uint16_t{0}, std::uint16_t{2}, std::uint16_t{40}}) {
    for (const std::uint16_t ord : {std::uint16_t{0}, std::uint16_t{5}, std::uint16_t{40}}) {
      rdmap::StreamConfig config;
      config.ird = ird;
      config.ord = ord;
      rdmap::testing::Pair pair(config, {});
      pair.connect();  // the responder's ULP wants 16 of either
      ASSERT_TRUE(pair.a.established);
      ASSERT_TRUE(pair.b.established);
      EXPECT_LE(pair.a.established->ord, pair.b.established->ird);
      EXPECT_LE(pair.b.established->ord, pair.a.established->ird);
      EXPECT_EQ(pair.b.established->ord, std::min<std::uint16_t>(ird, 16));
      EXPECT_EQ(pair.a.established->peer_ord, pair.b.established->ord);
    }
  }
}

// A thousand times the initiator's first FPDU, right behind the Reply.
TEST(Conduct, TheFirstFpduIsNeverLost) {
  RecordProperty("proves", "MPA-7.1.2-09 MPA-7.1-06");
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    std::mt19937 random(seed);
    Initiator i;
    Responder r;
    r.recvs.post(4);
    r.receive(i.request, kNow, 1 + random() % 30);
    r.drain();
    r.stream.accept({}, r.recvs, 4, 4, 0, kNow);
    // The Reply leaves in pieces, and the last of them is answered at once.
    Octets reply;
    while (r.stream.wants_tx()) {
      const auto views = r.stream.tx_buffers(1460, SIZE_MAX, kNow);
      const std::size_t n = 1 + random() % views[0].size();
      i.receive(views[0].first(n), kNow);
      r.stream.on_tx(n, kNow);
    }
    r.receive(i.transmit(kNow), kNow, 1 + random() % 30);
    r.drain();
    ASSERT_TRUE(r.established) << "seed " << seed;
    ASSERT_EQ(r.completions.size(), 1u) << "seed " << seed;
    EXPECT_EQ(r.completions[0].wr_id, 4u);
  }
}

TEST(Conduct, TheInitiatorsUlpMayCloseOnSeeingTheReply) {
  RecordProperty("proves", "MPA-7.1.2-16");
  Side i({});
  i.stream.start_initiator({}, i.recvs, kNow);
  i.transmit(kNow);
  Octets reply = startup_frame(mpa::FrameKind::kReply, 2, {0, 1, 0, 1, 'n', 'o'});
  reply[16] |= 0x10;
  i.receive(reply, kNow);
  i.drain();
  ASSERT_TRUE(i.established);
  i.stream.disconnect(kNow);
  EXPECT_TRUE(i.transmit(kNow).empty());
  EXPECT_EQ(i.stream.llp_action(), LlpAction::kShutdownWrite);
}

TEST(Conduct, ARejectIsOneFrameAndNothingBehindIt) {
  RecordProperty("proves", "MPA2-9.1-11");
  Responder r;
  r.receive(record_octets("M01"), kNow);
  r.drain();
  r.stream.reject(Octets{1, 2}, kNow);
  const Octets reply = r.transmit(kNow);
  EXPECT_EQ(reply.size(), 20u + 4 + 2);
  EXPECT_EQ(reply[16] & 0x30, 0x30);
  EXPECT_EQ(r.stream.post_send({}), rdmap::PostResult::kNotConnected);
  EXPECT_TRUE(r.transmit(kNow).empty());
  EXPECT_EQ(r.stream.llp_action(), LlpAction::kShutdownWrite);
}

TEST(Conduct, EachHalfEndsByItself) {
  RecordProperty("proves", "MPA-7.2-01 MPA-7.2-02");
  Victim v;
  v.recvs.post(3);
  v.stream.disconnect(kNow);
  EXPECT_EQ(v.stream.llp_action(), LlpAction::kShutdownWrite);
  v.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  v.feed(record_octets("F03"));
  v.drain();
  ASSERT_EQ(v.completions.size(), 1u);
  EXPECT_EQ(v.completions[0].status, rdmap::WorkStatus::kSuccess);
  EXPECT_TRUE(v.closed.empty());
  v.stream.on_rx_eof(kNow);
  v.drain();
  EXPECT_EQ(v.closed.size(), 1u);

  Victim graceful;
  graceful.stream.on_rx_eof(kNow);
  graceful.drain();
  ASSERT_EQ(graceful.closed.size(), 1u);
  EXPECT_EQ(graceful.closed[0].reason, CloseReason::kGraceful);
}

// RFC 5044 section 8, as the ULP is told.
TEST(Conduct, EachErrorHasItsCode) {
  RecordProperty("proves", "MPA-8-01 MPA-8-02");
  Victim lost;
  lost.stream.on_llp_error(ECONNRESET, kNow);
  lost.drain();
  ASSERT_EQ(lost.closed.size(), 1u);
  EXPECT_EQ(lost.closed[0].terminate, mpa_error(1));

  Victim inside;
  inside.receive(ConstBytes(frame_fpdu(record_octets("F03"))).first(7), kNow);
  inside.stream.on_rx_eof(kNow);
  inside.drain();
  ASSERT_EQ(inside.closed.size(), 1u);
  EXPECT_EQ(inside.closed[0].terminate, mpa_error(1));

  Victim v;
  v.recvs.post(1);
  Octets bad = frame_fpdu(record_octets("F03"));
  bad.back() ^= 1;
  v.receive(bad, kNow);
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(Octets(sent[0].begin() + 18, sent[0].end()), (Octets{0x20, 2, 0, 0}));
  v.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  v.stream.on_rx_eof(kNow);
  v.drain();
  ASSERT_EQ(v.closed.size(), 1u);
  EXPECT_EQ(v.closed[0].terminate, mpa_error(2));

  Victim length;
  length.receive(frame_fpdu({}), kNow);
  EXPECT_EQ(length.ulpdus().at(0)[19], 3);

  Responder startup;
  startup.receive(mpa_record_octets("BAD-KEY"), kNow);
  startup.drain();
  ASSERT_EQ(startup.closed.size(), 1u);
  EXPECT_EQ(startup.closed[0].terminate, mpa_error(4));
}

void expect_code_4(Side& side) {
  EXPECT_TRUE(side.transmit(kNow).empty()) << "no Terminate";
  side.drain();
  ASSERT_EQ(side.closed.size(), 1u);
  EXPECT_EQ(side.closed[0].terminate, mpa_error(4));
  EXPECT_EQ(side.stream.llp_action(), LlpAction::kClose);
}

TEST(Conduct, ABadStartupFrameClosesTcpAtOnceAndIsCode4) {
  RecordProperty("proves", "MPA-7.1.1-21 MPA-8-08 MPA-8-09 MPA-7.1.2-04 MPA-7.1.2-11 MPA-7.1.2-15");
  for (const char* name : {"BAD-KEY", "BAD-PD513", "BAD-PDFFFF", "REV3-REQ"}) {
    SCOPED_TRACE(name);
    Responder r;
    r.receive(mpa_record_octets(name), kNow);
    expect_code_4(r);
    // The end is the same as after a lost connection.
    EXPECT_EQ(r.stream.post_send({}), rdmap::PostResult::kNotConnected);
    EXPECT_FALSE(r.stream.next_timeout());
  }
  for (const std::size_t wrong : {0u, 15u, 17u}) {  // the Key, its end, Rev
    Initiator i;
    Octets reply = startup_frame(mpa::FrameKind::kReply, 2);
    reply[wrong] ^= 0x41;
    i.receive(reply, kNow);
    expect_code_4(i);
  }
  Initiator too_long;
  Octets reply = startup_frame(mpa::FrameKind::kReply, 2);
  reply[18] = 2;
  reply[19] = 1;
  too_long.receive(reply, kNow);
  expect_code_4(too_long);
  // PD_Length says 512 and the FIN comes one octet early; one octet too many.
  const Octets whole = mpa_record_octets("REQ-PD512");
  Responder early;
  early.receive(ConstBytes(whole).first(whole.size() - 1), kNow);
  early.stream.on_rx_eof(kNow);
  expect_code_4(early);
  Responder surplus;
  Octets more = whole;
  more.push_back(0);
  surplus.receive(more, kNow);
  expect_code_4(surplus);
}

TEST(Conduct, StartupIsBoundedInTimeAtBothEnds) {
  RecordProperty("proves", "MPA-7.1.2-19 MPA-7.1.2-23");
  rdmap::StreamConfig config;
  Responder r(config);
  const Octets request = record_octets("M01");
  TimePoint now = kNow;
  for (std::size_t i = 0; i + 1 < request.size(); ++i) {  // one octet each fifth of a second moves no deadline
    r.receive(ConstBytes(request).subspan(i, 1), now);
    now += std::chrono::milliseconds(200);
    EXPECT_EQ(r.stream.next_timeout(), kNow + config.request_timeout);
  }
  r.stream.on_timeout(kNow + config.request_timeout);
  expect_code_4(r);
  Initiator i(config);
  EXPECT_EQ(i.stream.next_timeout(), kNow + config.reply_timeout);
  i.stream.on_timeout(kNow + config.reply_timeout);
  i.drain();
  ASSERT_EQ(i.closed.size(), 1u);
  EXPECT_EQ(i.closed[0].reason, CloseReason::kStartup);
}

TEST(Conduct, AReplyThatThePeerDoesNotTakeIsBoundedInTime) {
  const rdmap::StreamConfig config;
  Responder r(config);
  r.receive(record_octets("M01"), kNow);
  r.drain();
  r.stream.accept({}, r.recvs, 16, 16, 0, kNow);
  const TimePoint end = kNow + config.request_timeout;
  ASSERT_EQ(r.stream.next_timeout(), end);
  r.stream.on_timeout(end - std::chrono::nanoseconds(1));
  r.drain();
  EXPECT_TRUE(r.closed.empty());
  r.stream.on_timeout(end);
  r.drain();
  ASSERT_EQ(r.closed.size(), 1u);
  EXPECT_EQ(r.closed[0].reason, CloseReason::kStartup);
  EXPECT_NE(r.closed[0].text.find("the MPA Reply could not be sent in time"), std::string::npos) << r.closed[0].text;
  EXPECT_EQ(r.stream.llp_action(), LlpAction::kClose);
}

TEST(Conduct, BelowAnEmssOf128AlignmentIsGivenUp) {
  RecordProperty("proves", "MPA-4.5-08 MPA-4.5-09");
  rdmap::testing::Pair pair;
  pair.emss = 76;
  pair.connect();
  pair.b.memory.add_simple(9, 0, 0, 1000);
  pair.b.recvs.post(1, {{0, 1000, ddp::Stag{9}}});
  rdmap::SendWr wr;
  wr.inline_data = private_data(1000);
  ASSERT_EQ(pair.a.stream.post_send(wr), rdmap::PostResult::kOk);
  pair.run();
  ASSERT_EQ(pair.b.completions.size(), 1u);
  EXPECT_EQ(pair.b.memory.regions[9].octets, private_data(1000));
  EXPECT_EQ(pair.a.stream.counters().fpdus_tx, (1000 + 109) / 110u) << "ULPDUs of 128 octets";
}

}  // namespace
}  // namespace weft::sim
