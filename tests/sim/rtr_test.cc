// The ready-to-receive indication of RFC 6581, at both ends.
#include <gtest/gtest.h>

#include "tests/sim/startup_side.h"

namespace weft::sim {
namespace {

constexpr mpa::RtrSet kAll = {.send = true, .write = true, .read = true};

struct Kind {
  mpa::RtrSet set;
  const char* fpdu;      // the record of the indication
  std::uint8_t a_and_b;  // octets 20 and 22 of the Reply that names it
  std::uint8_t c_and_d;
  std::uint8_t send_msn;  // of the ULP's first Send
};
const Kind kKinds[] = {{{.write = true}, "F01", 0x80, 0x80, 1},
                       {{.read = true}, "F02", 0x80, 0x40, 1},
                       {{.send = true}, "F03", 0xc0, 0x00, 2}};

rdmap::StreamConfig offering(mpa::RtrSet set) {
  rdmap::StreamConfig config;
  config.rtr_offered = set;
  return config;
}

Octets reply_of(std::uint8_t a_and_b, std::uint8_t c_and_d, std::uint8_t ird = 16, std::uint8_t ord = 16) {
  Octets reply = startup_frame(mpa::FrameKind::kReply, 2, {a_and_b, ird, c_and_d, ord});
  reply[16] |= 0x10;
  return reply;
}

TEST(Rtr, TheInitiatorSendsWhatWasNamedBeforeAllElse) {
  RecordProperty("proves", "MPA2-5-02 MPA2-9.2-09 MPA2-9.3-01");
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.fpdu);
    for (const bool all : {false, true}) {
      Initiator i(offering(all ? kAll : kind.set));
      i.receive(reply_of(kind.a_and_b, kind.c_and_d), kNow);
      const auto sent = deframe(i.transmit(kNow));
      ASSERT_EQ(sent.size(), 2u);
      EXPECT_EQ(sent[0], record_octets(kind.fpdu));
      EXPECT_EQ(sent[1][1], 0x43);
      EXPECT_EQ(sent[1][13], kind.send_msn);
      // The answer to an RTR by Read, which no ULP asked for.
      if (kind.set.read) i.receive(frame_fpdu(Octets{0xc1, 0x42, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}), kNow);
      i.drain();
      EXPECT_TRUE(i.established);
      ASSERT_EQ(i.completions.size(), 1u) << "the indication is no work request";
      EXPECT_EQ(i.completions[0].wr_id, 1u);
      EXPECT_EQ(i.completions[0].status, rdmap::WorkStatus::kSuccess);
      EXPECT_TRUE(i.closed.empty());
    }
  }
}

TEST(Rtr, TheInitiatorChoosesAmongSeveral) {
  RecordProperty("proves", "MPA2-1.1-01 MPA2-5-01 MPA2-9.2-02");
  Initiator i(offering(kAll));
  EXPECT_EQ(i.request[20] & 0xc0, 0xc0);
  EXPECT_EQ(i.request[22] & 0xc0, 0xc0);
  i.receive(reply_of(0xc0, 0xc0), kNow);
  EXPECT_EQ(deframe(i.transmit(kNow)).at(0), record_octets("F01"));
  EXPECT_EQ(Initiator().request[20] & 0x80, 0);
}

TEST(Rtr, NothingFlushedOfTheIndicationEither) {
  RecordProperty("proves", "MPA2-5-04");
  for (const Kind& kind : kKinds) {
    Initiator i(offering(kind.set));
    i.receive(reply_of(kind.a_and_b, kind.c_and_d), kNow);
    i.stream.on_llp_error(ECONNRESET, kNow);
    i.drain();
    ASSERT_EQ(i.completions.size(), 1u);
    EXPECT_EQ(i.completions[0].wr_id, 1u);
    EXPECT_EQ(i.completions[0].status, rdmap::WorkStatus::kFlushed);
  }
}

TEST(Rtr, TheSendQueueKeepsItsDepth) {
  rdmap::StreamConfig config = offering(kAll);
  config.max_send_wr = 2;
  Initiator i(config);
  i.receive(reply_of(0x80, 0x80), kNow);
  EXPECT_EQ(i.stream.post_send({}), rdmap::PostResult::kOk);
  EXPECT_EQ(i.stream.post_send({}), rdmap::PostResult::kQueueFull);
}

// M09, M10, F02: with an ORD of 0 the Read is still possible, and is the only one.
TEST(Rtr, ByReadWithoutAnOrd) {
  RecordProperty("proves", "MPA2-9.1-08");
  rdmap::StreamConfig config = offering({.read = true});
  config.ird = 4;
  config.ord = 0;
  rdmap::testing::Pair pair(config, {});
  pair.a.stream.start_initiator({}, pair.a.recvs, kNow);
  const Octets request = pair.a.transmit(kNow);
  EXPECT_EQ(request, record_octets("M09"));
  pair.b.stream.start_responder(kNow);
  pair.b.receive(request, kNow);
  pair.b.drain();
  pair.b.stream.accept({}, pair.b.recvs, 16, 16, 0, kNow);
  const Octets reply = pair.b.transmit(kNow);
  EXPECT_EQ(reply, record_octets("M10"));
  pair.a.receive(reply, kNow);
  const auto sent = deframe(pair.a.transmit(kNow));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0], record_octets("F02"));
  pair.b.receive(frame_fpdu(sent[0]), kNow);
  pair.run();
  EXPECT_TRUE(pair.a.established);
  EXPECT_TRUE(pair.b.established);
  EXPECT_TRUE(pair.a.completions.empty());
  EXPECT_TRUE(pair.b.completions.empty());
}

// The responder's ULP serves no Read (IRD 0), as every RPC listener does. The indication has its slot, and no more.
TEST(Rtr, ByReadWithoutAnIrd) {
  RecordProperty("proves", "MPA2-9.1-08");
  for (const std::uint8_t revision : {std::uint8_t{2}, std::uint8_t{1}}) {
    for (const auto ord : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{16}}) {
      SCOPED_TRACE(testing::Message() << "revision " << int{revision} << " ord " << ord);
      rdmap::StreamConfig config;
      config.mpa_revision = revision;
      config.peer = *mpa::find_peer_profile("cxgb4");
      if (revision == 2) config.rtr_offered = config.peer.rtr_offered;
      config.ord = ord;
      rdmap::testing::Pair pair(config, {});
      pair.a.stream.start_initiator({}, pair.a.recvs, kNow);
      pair.b.stream.start_responder(kNow);
      pair.b.receive(pair.a.transmit(kNow), kNow);
      pair.b.drain();
      pair.b.stream.accept({}, pair.b.recvs, 0, 0, 0, kNow);
      pair.a.receive(pair.b.transmit(kNow), kNow);
      pair.run();
      EXPECT_TRUE(pair.a.established);
      EXPECT_TRUE(pair.b.established);
      EXPECT_EQ(pair.b.stream.counters().reads_rx, 1u);
      pair.b.recvs.post(5);
      rdmap::SendWr wr;
      ASSERT_EQ(pair.a.stream.post_send(wr), rdmap::PostResult::kOk);
      pair.run();
      ASSERT_EQ(pair.b.completions.size(), 1u);
      EXPECT_EQ(pair.b.completions[0].wr_id, 5u);
      EXPECT_TRUE(pair.a.closed.empty());
      EXPECT_TRUE(pair.b.closed.empty());
    }
  }
}

TEST(Rtr, TheRespondersUlpSeesNothingOfItButTheConnection) {
  RecordProperty("proves", "MPA2-4.4.3-01 MPA2-5-04");
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.fpdu);
    for (const std::size_t chunk : {SIZE_MAX, std::size_t{1}}) {
      Responder r;
      r.recvs.post(7);
      r.answer(record_octets("M02"));
      EXPECT_FALSE(r.established);
      ASSERT_EQ(r.stream.post_send({}), rdmap::PostResult::kOk);
      EXPECT_TRUE(r.transmit(kNow).empty());
      r.receive(frame_fpdu(record_octets(kind.fpdu)), kNow, chunk);
      r.drain();
      EXPECT_TRUE(r.established);
      EXPECT_FALSE(r.stream.next_timeout());
      EXPECT_EQ(r.recvs.num_taken, 0u);
      EXPECT_TRUE(r.completions.empty());
      r.transmit(kNow);
      // The ULP's own first Send takes the receive.
      Octets send = record_octets("F03");
      send[13] = kind.send_msn;
      r.receive(frame_fpdu(send), kNow);
      r.drain();
      EXPECT_EQ(r.recvs.num_taken, 1u);
      ASSERT_EQ(r.completions.size(), 2u);
      EXPECT_EQ(r.completions[1].wr_id, 7u);
      EXPECT_TRUE(r.closed.empty());
    }
  }
}

TEST(Rtr, WithoutTheModelAZeroLengthSendIsTheUlps) {
  RecordProperty("proves", "MPA2-9.2-13");
  Responder r;
  r.recvs.post(7);
  r.answer(record_octets("H58"));
  EXPECT_TRUE(r.established);
  r.receive(frame_fpdu(record_octets("F03")), kNow);
  r.drain();
  ASSERT_EQ(r.completions.size(), 1u);
  EXPECT_EQ(r.completions[0].wr_id, 7u);
}

TEST(Rtr, AResponderDoesNotWaitForEver) {
  RecordProperty("proves", "MPA-7.1.2-23");
  Responder r;
  r.answer(record_octets("M02"));
  ASSERT_TRUE(r.stream.next_timeout());
  r.stream.on_timeout(*r.stream.next_timeout());
  r.drain();
  EXPECT_FALSE(r.established);
  ASSERT_EQ(r.closed.size(), 1u);
  EXPECT_EQ(r.closed[0].reason, CloseReason::kStartup);
}

// Immediate Data takes a receive like a Send, but is no indication: in its place it must not vanish in the receive that
// is kept for one. Behind the indication it is the ULP's.
TEST(Rtr, ImmediateDataIsNoIndication) {
  const Octets request = [] {
    Octets frame = startup_frame(mpa::FrameKind::kRequest, 2, {0xc0, 16, 0x00, 16});  // peer-to-peer, RTR by Send
    frame[16] |= 0x10;
    return frame;
  }();
  Octets immediate = record_octets("F03");
  immediate[1] = 0x48;
  immediate.insert(immediate.end(), {1, 2, 3, 4, 5, 6, 7, 8});
  {
    Responder r;
    r.recvs.post(7);
    r.answer(request);
    r.receive(frame_fpdu(immediate), kNow);
    r.drain();
    EXPECT_FALSE(r.established);
    EXPECT_TRUE(r.completions.empty());
    EXPECT_EQ(r.stream.counters().sends_rx, 0u);
    EXPECT_EQ(r.stream.counters().immediates_rx, 0u);
    const auto sent = deframe(r.transmit(kNow));
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(Octets(sent[0].begin() + 18, sent[0].begin() + 20), (Octets{0x02, 0x06}));
  }
  immediate[13] = 2;
  for (const bool together : {false, true}) {
    Responder r;
    r.recvs.post(7);
    r.answer(request);
    r.receive(frame_fpdu(record_octets("F03")), kNow);
    if (!together) r.drain();
    r.receive(frame_fpdu(immediate), kNow);
    r.drain();
    EXPECT_TRUE(r.established);
    ASSERT_EQ(r.completions.size(), 1u);
    EXPECT_EQ(r.completions[0].wr_id, 7u);
    EXPECT_TRUE(r.completions[0].immediate);
    EXPECT_EQ(r.stream.counters().sends_rx, 0u);
  }
}

TEST(Rtr, ATerminateInItsPlaceIsNoConnection) {
  Responder r;
  r.answer(record_octets("M02"));
  r.receive(frame_fpdu(record_octets("F05")), kNow);
  r.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  r.stream.on_rx_eof(kNow);
  r.drain();
  EXPECT_FALSE(r.established);
  ASSERT_EQ(r.closed.size(), 1u);
  EXPECT_EQ(r.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kLlp, 0, 7}));
}

// The initiator cannot accept the Reply: one Terminate as its first FPDU, then FIN, and the ULP hears the reason.
void expect_terminate(Initiator& i, const char* record, std::uint8_t code) {
  const auto sent = deframe(i.transmit(kNow));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0], record_octets(record));
  EXPECT_EQ(i.stream.llp_action(), LlpAction::kShutdownWrite);
  i.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  i.stream.on_rx_eof(kNow);
  i.drain();
  ASSERT_EQ(i.completions.size(), 1u);
  EXPECT_EQ(i.completions[0].status, rdmap::WorkStatus::kFlushed);
  ASSERT_EQ(i.closed.size(), 1u);
  EXPECT_EQ(i.closed[0].reason, CloseReason::kStartup);
  EXPECT_EQ(i.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kLlp, 0, code}));
}

TEST(Rtr, RepliesWithNothingInCommonGetATerminate) {
  RecordProperty("proves", "MPA2-8-01 MPA2-8-02 MPA2-9.1-13 MPA2-9.2-10 MPA2-11-01");
  for (const char* reply : {"H62", "H65", "M11"}) {
    SCOPED_TRACE(reply);
    rdmap::StreamConfig send_only = offering({.send = true});
    send_only.ird = 32;
    Initiator i(send_only);
    i.receive(record_octets(reply), kNow);
    i.drain();
    EXPECT_FALSE(i.established);
    expect_terminate(i, "F05", 7);
  }
  rdmap::StreamConfig config = offering(kAll);
  config.ird = 64;
  Initiator i(config);
  i.receive(record_octets("H63"), kNow);
  i.drain();
  EXPECT_FALSE(i.established);
  expect_terminate(i, "F04", 6);
}

TEST(Rtr, AFaultOfOurOwnIsReportedWhereItMayBe) {
  RecordProperty("proves", "MPA2-9.3-02");
  Initiator i;
  i.receive(reply_of(0, 0), kNow);
  i.stream.fail_setup(kNow);
  expect_terminate(i, "F06", 5);

  Initiator early;
  early.stream.fail_setup(kNow);
  early.drain();
  EXPECT_TRUE(early.transmit(kNow).empty());
  ASSERT_EQ(early.closed.size(), 1u);
  EXPECT_EQ(early.closed[0].reason, CloseReason::kStartup);

  // A responder may say nothing before the first FPDU, and everything after it.
  Responder held;
  held.answer(record_octets("M01"));
  held.stream.fail_setup(kNow);
  EXPECT_TRUE(held.transmit(kNow).empty());
  EXPECT_EQ(held.stream.llp_action(), LlpAction::kReset);
  Responder heard;
  heard.answer(record_octets("M01"));
  heard.receive(frame_fpdu(record_octets("F01")), kNow);
  heard.stream.fail_setup(kNow);
  EXPECT_EQ(deframe(heard.transmit(kNow)).at(0), record_octets("F06"));
}

TEST(Rtr, BothEndsOverEveryKind) {
  for (const mpa::RtrSet set :
       {mpa::RtrSet{.send = true}, mpa::RtrSet{.write = true}, mpa::RtrSet{.read = true}, kAll}) {
    rdmap::testing::Pair pair(offering(set), {});
    pair.b.recvs.post(1);
    pair.connect();
    EXPECT_TRUE(pair.a.established);
    EXPECT_TRUE(pair.b.established);
    EXPECT_TRUE(pair.a.completions.empty());
    EXPECT_TRUE(pair.b.completions.empty());
    rdmap::SendWr wr;
    wr.wr_id = 9;
    ASSERT_EQ(pair.a.stream.post_send(wr), rdmap::PostResult::kOk);
    pair.run();
    ASSERT_EQ(pair.b.completions.size(), 1u);
    EXPECT_EQ(pair.b.completions[0].wr_id, 1u);
    pair.a.stream.disconnect(kNow);
    pair.run();
    EXPECT_EQ(pair.a.closed.size(), 1u);
    EXPECT_EQ(pair.b.closed.size(), 1u);
  }
}

// The indication's place in the send queue is used again for requests of the ULP's, and each of these completes.
TEST(Rtr, NothingOfItStaysInTheSendQueue) {
  for (const Kind& kind : kKinds) {
    rdmap::testing::Pair pair(offering(kind.set), {});
    pair.connect();
    for (std::uint64_t i = 0; i < 40; ++i) {
      pair.b.recvs.post(i);
      rdmap::SendWr wr;
      wr.wr_id = i;
      ASSERT_EQ(pair.a.stream.post_send(wr), rdmap::PostResult::kOk);
      pair.run();
      ASSERT_EQ(pair.a.completions.size(), i + 1);
      ASSERT_EQ(pair.b.completions.size(), i + 1);
    }
    EXPECT_EQ(pair.a.stream.counters().sends_tx, 40u);
    EXPECT_EQ(pair.b.stream.counters().sends_rx, 40u);
  }
}

// cxgb4 with its defaults waits for a Read at revision 1, where nothing can be negotiated.
TEST(Rtr, UnaskedAtRevision1) {
  rdmap::StreamConfig config;
  config.mpa_revision = 1;
  config.peer = *mpa::find_peer_profile("cxgb4");
  Initiator i(config);
  i.receive(startup_frame(mpa::FrameKind::kReply, 1), kNow);
  EXPECT_EQ(deframe(i.transmit(kNow)).at(0), record_octets("F02"));
}

}  // namespace
}  // namespace weft::sim
