// RFC 5040 sections 1.2, 3.2, 5.1 and 5.3: RDMA Writes and the four Sends.
#include <gtest/gtest.h>

#include "tests/conformance/rdmap_peer.h"

namespace weft::conformance {
namespace {

constexpr std::uint32_t kControls[] = {0x43, 0x44, 0x45, 0x46};  // Send, +Inv, +SE, +SE+Inv

TEST(RdmapWrite, PlacedAndNeverDelivered) {
  RecordProperty("proves", "RDMAP-3.2-06 RDMAP-5.1-02 RDMAP-5.1-04 RDMAP-3.1-07");
  Subject s;
  Octets expected(64, 0xa5);
  s.remote(kRegion, 0x1000, 64, false, true);
  s.post_recvs(1);
  s.feed(write(kRegion, 0x1000 + 20, ramp(10)));  // the middle of a region that begins at a nonzero TO
  std::copy_n(ramp(10).begin(), 10, expected.begin() + 20);
  EXPECT_TRUE(s.sent().empty());
  EXPECT_EQ(s.memory.regions[kRegion].octets, expected);
  EXPECT_TRUE(s.completions.empty());
  EXPECT_TRUE(s.closed.empty());
  EXPECT_EQ(s.recvs.num_taken, 0u);

  const Octets bad = write(kRegion, 0x1000 + 60, ramp(5));
  s.feed(bad);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, terminate_for(bad, 0x11, 0x01));
  EXPECT_EQ(s.memory.regions[kRegion].octets, expected);
  s.stream.on_rx_eof(s.now);
  s.drain();
  ASSERT_EQ(s.closed.size(), 1u);
  EXPECT_EQ(s.closed[0].reason, rdmap::CloseReason::kTerminateSent);
  EXPECT_EQ(s.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kDdp, 1, 1}));
}

TEST(RdmapWrite, GathersLeaveAsOneMessageEachInOrderOfPosting) {
  RecordProperty("proves", "RDMAP-5.1-05 RDMAP-5.1-06 RDMAP-5.1-08 RDMAP-3.2-05");
  Subject s;
  s.emss = 134;
  const ddp::Stag key{Subject::kLocal};
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_EQ(s.post(work(SendOp::kRdmaWrite, i, {{100, 50, key}, {7, 100, key}, {300, 90, key}},
                          static_cast<std::uint32_t>(kRegion + i), 0x1000 * (5 - i))),
              PostResult::kOk);
  Octets gathered;
  for (const auto& [at, len] : {std::pair{100, 50}, {7, 100}, {300, 90}}) {
    const Octets local = ramp(Subject::kLocalLen);
    gathered.insert(gathered.end(), local.begin() + at, local.begin() + at + len);
  }
  const auto sent = s.sent();
  std::size_t next = 0;
  for (std::uint64_t i = 0; i < 5; ++i) {
    Octets message;
    do {
      ASSERT_LT(next, sent.size());
      EXPECT_EQ(sent[next].stag, kRegion + i);
      EXPECT_EQ(sent[next].to, 0x1000 * (5 - i) + message.size());
      message.insert(message.end(), sent[next].payload.begin(), sent[next].payload.end());
    } while (!sent[next++].last);
    EXPECT_EQ(message, gathered);
  }
  EXPECT_EQ(next, sent.size());
  EXPECT_EQ(ids(s.completions), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(RdmapSend, GatherIsOneMessageOfConsecutiveOffsets) {
  RecordProperty("proves", "RDMAP-5.3-08 RDMAP-3.1-03");
  Subject s;
  s.emss = 134;
  const ddp::Stag key{Subject::kLocal};
  ASSERT_EQ(s.post(work(SendOp::kSend, 1, {{5, 100, key}, {1000, 1, key}, {2000, 150, key}})), PostResult::kOk);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 3u);
  Octets message;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i].mo, message.size());
    EXPECT_EQ(sent[i].msn, 1u);
    EXPECT_EQ(sent[i].last, i == 2);
    EXPECT_EQ(sent[i].ulpdu[1], 0x43);
    message.insert(message.end(), sent[i].payload.begin(), sent[i].payload.end());
  }
  const Octets local = ramp(Subject::kLocalLen);
  Octets gathered(local.begin() + 5, local.begin() + 105);
  gathered.push_back(local[1000]);
  gathered.insert(gathered.end(), local.begin() + 2000, local.begin() + 2150);
  EXPECT_EQ(message, gathered);
  ASSERT_EQ(s.completions.size(), 1u);
  EXPECT_EQ(s.completions[0].status, WorkStatus::kSuccess);
}

TEST(RdmapSend, AllFourKindsAreAskedForAndReported) {
  RecordProperty("proves", "RDMAP-3.1-05 RDMAP-3.2-02 RDMAP-3.2-03");
  // Outgoing: opcodes 3 to 6, the STag only with the Invalidate kinds, one completion each.
  Subject out;
  for (const bool solicited : {false, true}) {
    for (const SendOp op : {SendOp::kSend, SendOp::kSendInvalidate}) {
      const bool invalidate = op == SendOp::kSendInvalidate;
      ASSERT_EQ(out.post(work(op, 1, {{0, 8, ddp::Stag{Subject::kLocal}}}, invalidate ? 0xcafe0042 : 0, 0, solicited)),
                PostResult::kOk);
      const auto sent = out.sent();
      ASSERT_EQ(sent.size(), 1u);
      EXPECT_EQ(sent[0].opcode, 3u + (invalidate ? 1 : 0) + (solicited ? 2 : 0));
      EXPECT_EQ(sent[0].invalidate_stag, invalidate ? 0xcafe0042 : 0u);
      ASSERT_EQ(out.completions.size(), 1u);
      EXPECT_EQ(out.completions[0].status, WorkStatus::kSuccess);
      EXPECT_EQ(out.completions[0].op, WorkOp::kSend);
      out.completions.clear();
    }
  }
  // Incoming: length, event and STag.
  Subject in;
  in.post_recvs(4);
  std::uint32_t msn = 0;
  for (const unsigned control : kControls) {
    const bool invalidate = control % 2 == 0;
    const std::uint32_t stag = 0x700 + control;
    in.remote(stag, 0, 8, true, true, {1});
    ++msn;
    in.feed(send(msn, ramp(9, msn), true, 0, control, stag));
    in.drain();
    ASSERT_EQ(in.completions.size(), msn);
    const Completion& c = in.completions.back();
    EXPECT_EQ(c.status, WorkStatus::kSuccess);
    EXPECT_EQ(c.byte_len, 9u);
    EXPECT_EQ(c.solicited, control >= 0x45);
    EXPECT_EQ(c.invalidated, invalidate ? std::optional(ddp::Stag{stag}) : std::nullopt);
    EXPECT_EQ(in.memory.regions[stag].valid, !invalidate);
    const Octets& inbox = in.memory.regions[Subject::kInbox].octets;
    EXPECT_EQ(Octets(inbox.begin() + 64 * (msn - 1), inbox.begin() + 64 * (msn - 1) + 9), ramp(9, msn));
  }
}

TEST(RdmapSend, EachKindTakesOneReceiveAndTheNextFindsNone) {
  RecordProperty("proves", "RDMAP-5.3-02 RDMAP-5.3-12");
  for (const std::size_t len : {std::size_t{6}, std::size_t{0}}) {
    Subject s;
    s.remote(0x77, 0, 8, true, true, {1});
    s.post_recvs(3);
    s.feed(send(1, ramp(len)));
    s.feed(send(2, ramp(len), true, 0, 0x45));
    s.feed(send(3, ramp(len), true, 0, 0x44, 0x77));
    EXPECT_TRUE(s.sent().empty());
    ASSERT_EQ(ids(s.completions), (std::vector<std::uint64_t>{100, 101, 102}));
    for (const Completion& c : s.completions) {
      EXPECT_EQ(c.status, WorkStatus::kSuccess);
      EXPECT_EQ(c.byte_len, len);
    }
    const Octets fourth = send(4, ramp(len));
    s.feed(fourth);
    const auto sent = s.sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].ulpdu, terminate_for(fourth, 0x12, 0x02));
    EXPECT_EQ(s.completions.size(), 3u);
  }
}

TEST(RdmapSend, ShorterThanTheReceiveLeavesItsRestAlone) {
  RecordProperty("proves", "RDMAP-5.3-03 RDMAP-3.1-04");
  Subject s;
  s.post_recvs(2, 400);
  s.feed(send(1, ramp(5)));
  s.drain();
  ASSERT_EQ(s.completions.size(), 1u);
  EXPECT_EQ(s.completions[0].byte_len, 5u);
  const Octets& inbox = s.memory.regions[Subject::kInbox].octets;
  EXPECT_EQ(Octets(inbox.begin(), inbox.begin() + 5), ramp(5));
  EXPECT_EQ(Octets(inbox.begin() + 5, inbox.end()), Octets(inbox.size() - 5, 0xa5));
  // Three segments: the length reported is the last MO and its payload.
  s.feed(send(2, ramp(110), false));
  s.feed(send(2, ramp(110, 110), false, 110));
  s.drain();
  ASSERT_EQ(s.completions.size(), 1u);
  s.feed(send(2, ramp(17, 220), true, 220));
  s.drain();
  ASSERT_EQ(s.completions.size(), 2u);
  EXPECT_EQ(s.completions[1].byte_len, 237u);
}

TEST(RdmapSend, TooLongForTheReceiveIsToldToBothEnds) {
  RecordProperty("proves", "RDMAP-3.2-04 RDMAP-5.3-04 RDMAP-4.8-02");
  Subject sink;
  sink.post_recvs(1);
  const Octets bad = send(1, ramp(65));
  sink.feed(bad);
  const auto sent = sink.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, terminate_for(bad, 0x12, 0x05));
  EXPECT_EQ(Octets(sent[0].payload.begin(), sent[0].payload.begin() + 4), (Octets{0x12, 0x05, 0xc0, 0x00}));
  ASSERT_EQ(sink.completions.size(), 1u);
  EXPECT_EQ(sink.completions[0].status, WorkStatus::kLocalLength);
  EXPECT_EQ(sink.memory.regions[Subject::kInbox].octets, Octets(Subject::kLocalLen, 0xa5));

  Subject source;
  ASSERT_EQ(source.post(work(SendOp::kSend, 1, {{0, 65, ddp::Stag{Subject::kLocal}}})), PostResult::kOk);
  ASSERT_EQ(source.sent().size(), 1u);
  source.feed(sent[0].ulpdu);
  source.stream.on_rx_eof(source.now);
  source.drain();
  source.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
  ASSERT_EQ(source.closed.size(), 1u);
  EXPECT_EQ(source.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kDdp, 2, 5}));
}

TEST(RdmapSend, ThousandOfMixedKindsComeInOrder) {
  RecordProperty("proves", "RDMAP-5.3-05 RDMAP-B-01");
  Subject s;
  s.post_recvs(1000, 8);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const unsigned control = kControls[i * 7 % 4];
    if (control % 2 == 0) s.remote(0x10000 + i, 0, 1, true, true, {1});
    Octets number;
    put(number, i, 4);
    s.feed(send(i + 1, number, true, 0, control, 0x10000 + i));
  }
  s.drain();
  ASSERT_EQ(s.completions.size(), 1000u);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(s.completions[i].wr_id, 100 + i);
    EXPECT_EQ(s.completions[i].status, WorkStatus::kSuccess);
    EXPECT_EQ(get(s.memory.regions[Subject::kInbox].octets, 8 * i, 4), i);
  }
}

TEST(RdmapInvalidate, TheStagLivesUntilItIsNamed) {
  RecordProperty("proves", "RDMAP-1.2-02 RDMAP-1.2-03 RDMAP-5.3-14");
  Subject s;
  s.remote(kRegion, 0, 64, true, true, {1});
  s.remote(0x66, 0, 64, true, true, {1});
  s.post_recvs(1);
  for (std::uint32_t i = 0; i < 3; ++i) {
    s.feed(write(kRegion, 0, ramp(8, i)));
    s.feed(read_request(i + 1, 1, 0, 8, kRegion, 0));
    const auto sent = s.sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].payload, ramp(8, i));
  }
  // Write, Send with Invalidate, Write, in one go.
  const Octets late = write(kRegion, 0, ramp(8, 90));
  s.feed_all({write(kRegion, 0, ramp(8, 50)), send(1, ramp(3), true, 0, 0x44, kRegion), write(0x66, 0, ramp(8, 60)),
              late, write(0x66, 0, ramp(8, 70))});
  const auto sent = s.sent();
  ASSERT_EQ(s.completions.size(), 1u);
  EXPECT_EQ(s.completions[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(s.completions[0].invalidated, ddp::Stag{kRegion});
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, terminate_for(late, 0x11, 0x00));
  const Octets& region = s.memory.regions[kRegion].octets;
  EXPECT_EQ(Octets(region.begin(), region.begin() + 8), ramp(8, 50));
  // Another STag still worked behind the Invalidate.
  const Octets& other = s.memory.regions[0x66].octets;
  EXPECT_EQ(Octets(other.begin(), other.begin() + 8), ramp(8, 60));
}

TEST(RdmapInvalidate, ForeignUnknownAndStaleStagsAreRefused) {
  RecordProperty("proves", "RDMAP-5.3-15 RDMAP-7.2-04");
  struct Case {
    std::uint32_t stag;
    unsigned layer_etype;
  };
  for (const Case c : {Case{0x5e6f7005, 0x01}, Case{0x4d5e6f04, 0x01}, Case{0x11223344, 0x02}, Case{0x70819207, 0x02},
                       Case{0x8192a308, 0x02}}) {
    for (const unsigned control : {0x44u, 0x46u}) {
      SCOPED_TRACE(c.stag);
      Subject s;
      s.remote(0x5e6f7005, 0, 64, true, true, {2});     // another stream's
      s.remote(0x8192a308, 0, 64, true, true, {1, 2});  // shared
      s.remote(0x70819207, 0, 64, true, true, {1});     // invalid already
      s.memory.regions[0x70819207].valid = false;
      s.memory.add(0x4d5e6f04, {9, {}, 0, true, true, true, Octets(64, 0xa5)});  // another PD's
      s.post_recvs(2);
      const Octets bad = send(1, ramp(4), true, 0, control, c.stag);
      s.feed(bad);
      const auto sent = s.sent();
      ASSERT_EQ(sent.size(), 1u);
      EXPECT_EQ(sent[0].ulpdu, terminate_for(bad, c.layer_etype, 0x09));
      ASSERT_EQ(s.completions.size(), 1u);
      EXPECT_EQ(s.completions[0].status, WorkStatus::kRemoteInvalidRequest);
      // Their owners can still use them.
      const auto usable = [&](std::uint32_t pd, std::uint32_t stream, std::uint32_t stag) {
        return std::holds_alternative<MutBytes>(
            s.memory.resolve({pd, stream}, ddp::Stag{stag}, 0, 64, ddp::Right::kRemoteWrite));
      };
      EXPECT_TRUE(usable(7, 2, 0x5e6f7005));
      EXPECT_TRUE(usable(7, 2, 0x8192a308));
      EXPECT_TRUE(usable(9, 1, 0x4d5e6f04));
    }
  }
}

TEST(RdmapInvalidate, AnInvalidateNamesAnStag) {
  RecordProperty("proves", "RDMAP-5.3-13");
  Subject s;
  EXPECT_EQ(s.post(work(SendOp::kSendInvalidate, 1, {})), PostResult::kInvalid);
  EXPECT_EQ(s.post(work(SendOp::kSendInvalidate, 1, {}, 0, 0, true)), PostResult::kInvalid);
  ASSERT_EQ(s.post(work(SendOp::kSendInvalidate, 1, {}, 0x00000100)), PostResult::kOk);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(Octets(sent[0].ulpdu.begin() + 2, sent[0].ulpdu.begin() + 6), (Octets{0, 0, 1, 0}));
  EXPECT_EQ(sent[0].msn, 1u) << "what was refused took no MSN";
}

}  // namespace
}  // namespace weft::conformance
