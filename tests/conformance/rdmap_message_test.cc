// RFC 5040 sections 1, 3 and 4.1 to 4.7: the octets of each operation on the wire.
#include <gtest/gtest.h>

#include "mpa/fpdu.h"
#include "tests/conformance/rdmap_peer.h"

namespace weft::conformance {
namespace {

// Everything an RDMAP stream can say: the four Sends, a Write, a Read Request, a Read Response, and the Terminate.
struct Everything {
  std::vector<Segment> of_opcode(unsigned opcode) const {
    std::vector<Segment> out;
    for (const Segment& s : all)
      if (s.opcode == opcode) out.push_back(s);
    return out;
  }
  std::vector<Segment> all;
};

// len: octets of each message's payload, sent with FPDUs as small as they may be where `small`.
Everything say_everything(std::uint32_t len, bool small) {
  Subject s;
  s.emss = small ? 134 : 1460;  // a MULPDU of 128, or 1454
  s.remote(kSource, 0x40000, 8192);
  for (const bool solicited : {false, true})
    for (const SendOp op : {SendOp::kSend, SendOp::kSendInvalidate})
      EXPECT_EQ(s.post(work(op, 1, {{0, len, ddp::Stag{Subject::kLocal}}},
                            op == SendOp::kSendInvalidate ? 0x11223344 : 0, 0, solicited)),
                PostResult::kOk);
  EXPECT_EQ(s.post(work(SendOp::kRdmaWrite, 2, {{0, len, ddp::Stag{Subject::kLocal}}}, 0x55667788, 0x0102030405060708)),
            PostResult::kOk);
  EXPECT_EQ(
      s.post(work(SendOp::kRdmaRead, 3, {{0x80, len, ddp::Stag{Subject::kLocal}}}, 0x99aabbcc, 0x1112131415161718)),
      PostResult::kOk);
  s.feed(read_request(1, 0xddeeff01, 0x2122232425262728, len, kSource, 0x40000));
  Everything e;
  for (Segment& segment : s.sent()) e.all.push_back(std::move(segment));
  s.feed(write(0xbad, 0, Octets(4)));
  for (Segment& segment : s.sent()) e.all.push_back(std::move(segment));
  return e;
}

TEST(RdmapMessage, EveryOperationIsOneMessageAndAReadTwo) {
  RecordProperty("proves", "RDMAP-1.2-01 RDMAP-3.1-03 RDMAP-3.2-01 RDMAP-4.1-05 RDMAP-4.1-15");
  const Everything e = say_everything(300, true);  // three segments each
  for (unsigned opcode = 0; opcode < 16; ++opcode) {
    const auto segments = e.of_opcode(opcode);
    SCOPED_TRACE(opcode);
    // One message of each kind: the Read as a request out and a response to the peer's. No opcode above Terminate
    // occurs. No ULP posts a Terminate: the only one is the answer to the bad Write.
    ASSERT_EQ(segments.size(), opcode > 7 ? 0u : opcode == 1 || opcode == 7 ? 1u : 3u);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      EXPECT_EQ(segments[i].last, i + 1 == segments.size());
      EXPECT_EQ(segments[i].ulpdu[1], segments[0].ulpdu[1]);
      EXPECT_EQ(segments[i].stag, segments[0].stag);
      EXPECT_EQ(segments[i].msn, segments[0].msn);
      EXPECT_EQ(segments[i].qn, segments[0].qn);
    }
  }
  const auto response = e.of_opcode(2);
  EXPECT_EQ(response[0].ulpdu[0], 0x81);
  EXPECT_EQ(response[1].ulpdu[0], 0x81);
  EXPECT_EQ(response[2].ulpdu[0], 0xc1);
  EXPECT_EQ(response[0].ulpdu[1], 0x42);
}

TEST(RdmapMessage, ControlOctetsAreAsTheFigureHasThem) {
  RecordProperty("proves",
                 "RDMAP-4.1-01 RDMAP-4.1-02 RDMAP-4.1-04 RDMAP-4.1-06 RDMAP-4.1-07 RDMAP-4.1-09 RDMAP-3.1-02 "
                 "RDMAP-5.1-01 RDMAP-5.2.1-01 RDMAP-5.2.1-06 RDMAP-5.2.2-02 RDMAP-5.3-01 RDMAP-5.3-09 RDMAP-5.4-02 "
                 "RDMAP-5.4-03");
  for (const bool small : {false, true}) {
    const Everything e = say_everything(300, small);
    for (const Segment& s : e.all) {
      SCOPED_TRACE(s.opcode);
      EXPECT_EQ(s.rv, 1u);
      EXPECT_EQ(s.rsv, 0u);
      EXPECT_EQ(s.dv, 1u);
      EXPECT_EQ(s.resrv, 0u);
      EXPECT_EQ(s.tagged, s.opcode == 0 || s.opcode == 2);
      if (s.opcode >= 3 && s.opcode <= 6) {
        EXPECT_EQ(s.qn, 0u);
      }
      if (s.opcode == 1) {
        EXPECT_EQ(s.qn, 1u);
      }
      if (s.opcode == 7) {
        EXPECT_EQ(s.qn, 2u);
      }
      if (s.opcode == 0) {
        EXPECT_EQ(s.stag, 0x55667788u);
      }
      if (s.opcode == 2) {
        EXPECT_EQ(s.stag, 0xddeeff01u);
      }
    }
    EXPECT_EQ(e.of_opcode(0)[0].to, 0x0102030405060708u);
    EXPECT_EQ(e.of_opcode(2)[0].to, 0x2122232425262728u);
    const auto send = e.of_opcode(3);
    EXPECT_EQ(send.back().ulpdu[0], 0x41);
    EXPECT_EQ(send.back().ulpdu[1], 0x43);
  }
  // Inbound, an unknown queue draws DDP's error.
  Subject s;
  s.post_recvs(1);
  const Octets bad = untagged(0x43, 7, 1, ramp(4));
  s.feed(bad);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].ulpdu, terminate_for(bad, 0x12, 0x01));
}

TEST(RdmapMessage, InvalidateStagIsThereWhereItBelongsAndZeroElsewhere) {
  RecordProperty("proves", "RDMAP-4.1-03 RDMAP-4.1-11");
  const Everything e = say_everything(300, true);
  for (const Segment& s : e.all) {
    if (s.tagged) continue;
    const Octets field(s.ulpdu.begin() + 2, s.ulpdu.begin() + 6);
    const bool invalidates = s.opcode == 4 || s.opcode == 6;
    EXPECT_EQ(field, invalidates ? (Octets{0x11, 0x22, 0x33, 0x44}) : Octets(4)) << s.opcode;
  }
}

TEST(RdmapMessage, LengthsAreThoseOfTheHeadersAndThePayload) {
  RecordProperty("proves",
                 "RDMAP-3.1-06 RDMAP-4-01 RDMAP-4.3-01 RDMAP-4.4-01 RDMAP-4.5-01 RDMAP-4.6-01 RDMAP-5.1-09 "
                 "RDMAP-5.3-11");
  for (const std::uint32_t len : {0u, 8u}) {
    const Everything e = say_everything(len, false);
    for (const Segment& s : e.all) {
      SCOPED_TRACE(s.opcode);
      EXPECT_TRUE(s.last);
      switch (s.opcode) {
        case 0:
        case 2: EXPECT_EQ(s.ulpdu.size(), 14u + len); break;
        case 1: EXPECT_EQ(s.ulpdu.size(), 46u); break;
        case 7: EXPECT_EQ(s.ulpdu.size(), 18u + 4 + 2 + 14); break;  // for the Write that was refused
        default: EXPECT_EQ(s.ulpdu.size(), 18u + len); EXPECT_EQ(s.mo, 0u);
      }
    }
    EXPECT_EQ(e.all.size(), 8u);
    EXPECT_EQ(e.of_opcode(2).at(0).ulpdu[0], 0xc1);
  }
  // Zero length on the way in: one ULPDU of 14 octets, with any STag and offset.
  Subject s;
  const auto memory = s.memory.regions[Subject::kLocal].octets;
  s.feed(write(0xdeadbeef, ~std::uint64_t{0}, {}));
  EXPECT_TRUE(s.sent().empty());
  EXPECT_TRUE(s.completions.empty());
  EXPECT_EQ(s.memory.regions[Subject::kLocal].octets, memory);
  EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kNone);
}

TEST(RdmapMessage, IntegersAreBigEndian) {
  RecordProperty("proves", "RDMAP-4-02 RDMAP-4.4-02 RDMAP-3.2-05 RDMAP-3.2-07");
  Subject s;
  s.memory.add(0x10111213, {7, {}, 0x1415161718191a1b, false, false, true, Octets(0x1d1e1f)});
  ASSERT_EQ(s.post(work(SendOp::kRdmaWrite, 1, {{0, 4, ddp::Stag{Subject::kLocal}}}, 0x31323334, 0x35363738393a3b3c)),
            PostResult::kOk);
  ASSERT_EQ(s.post(work(SendOp::kRdmaRead, 2, {{0x1415161718191a1b, 0x1d1e1f, ddp::Stag{0x10111213}}}, 0x20212223,
                        0x2425262728292a2b)),
            PostResult::kOk);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(Octets(sent[0].ulpdu.begin() + 2, sent[0].ulpdu.begin() + 14), ramp(12, 0x31));
  Octets header = ramp(28, 0x10);
  header[12] = 0;  // RDMARDSZ 0x001d1e1f: no region here has 450 MiB
  EXPECT_EQ(sent[1].payload, header);
  ASSERT_EQ(s.completions.size(), 1u);  // the Write's; the Read waits for its response
  EXPECT_EQ(s.completions[0].op, WorkOp::kRdmaWrite);

  // Inbound, the response goes to the octets that the request names.
  s.remote(kSource, 0x4041424344454647, 0x51525);
  s.feed(read_request(1, 0x61626364, 0x7172737475767778, 0x00000004, kSource, 0x4041424344454647 + 0x51521));
  const auto response = s.sent();
  ASSERT_EQ(response.size(), 1u);
  Octets expected{0xc1, 0x42, 0x61, 0x62, 0x63, 0x64, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78};
  expected.insert(expected.end(), 4, 0xa5);
  EXPECT_EQ(response[0].ulpdu, expected);
}

TEST(RdmapMessage, TheStreamIsStartupFramesAndThenFpdusOnly) {
  RecordProperty("proves", "RDMAP-1.3-01 RDMAP-3.1-01 RDMAP-6.1-01 RDMAP-6.1-02 RDMAP-5.2.2-01");
  rdmap::testing::Pair pair;
  Octets wire[2];
  const auto pass = [&](rdmap::testing::Side& from, rdmap::testing::Side& to, Octets& capture) {
    const Octets octets = from.transmit(pair.now, 1460);
    capture.insert(capture.end(), octets.begin(), octets.end());
    to.receive(octets, pair.now);
    from.drain();
    to.drain();
    return !octets.empty();
  };
  pair.a.stream.start_initiator(ramp(7), pair.a.recvs, pair.now);
  pair.b.stream.start_responder(pair.now);
  while (pass(pair.a, pair.b, wire[0]) || pass(pair.b, pair.a, wire[1])) {
  }
  pair.b.stream.accept(ramp(9), pair.b.recvs, 16, 16, 0, pair.now);
  pair.a.memory.add_simple(1, 0, 0, 5000);
  pair.b.memory.add_simple(2, 0, 0, 5000);
  pair.b.recvs.post(1, {{0, 5000, ddp::Stag{2}}});
  for (const SendOp op : {SendOp::kSend, SendOp::kRdmaWrite, SendOp::kRdmaRead})
    ASSERT_EQ(pair.a.stream.post_send(work(op, 1, {{0, 5000, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  while (pass(pair.a, pair.b, wire[0]) || pass(pair.b, pair.a, wire[1])) {
  }
  pair.a.stream.disconnect(pair.now);
  while (pass(pair.a, pair.b, wire[0]) || pass(pair.b, pair.a, wire[1])) {
  }
  for (const bool responder : {false, true}) {
    const Octets& octets = wire[responder ? 1 : 0];
    const std::string key = responder ? "MPA ID Rep Frame" : "MPA ID Req Frame";
    ASSERT_TRUE(std::equal(key.begin(), key.end(), octets.begin()));
    std::size_t at = 20 + static_cast<std::size_t>(get(octets, 18, 2));
    std::size_t num = 0;
    for (; at < octets.size(); ++num) {
      ASSERT_GE(octets.size() - at, 2u);
      const auto len = static_cast<std::size_t>(get(octets, at, 2));
      ASSERT_GE(octets.size() - at, mpa::fpdu_len(len));
      // The DDP control octet lies two octets behind a multiple of four, RDMAP's behind it.
      EXPECT_EQ(octets[at + 2] & 0x03, 0x01);
      EXPECT_EQ(octets[at + 3] & 0xf0, 0x40);
      const unsigned opcode = octets[at + 3] & 0x0f;
      EXPECT_TRUE(responder ? opcode == 2 : opcode == 0 || opcode == 1 || opcode == 3) << opcode;
      const auto ulpdu = sim::deframe(ConstBytes(octets).subspan(at, mpa::fpdu_len(len)));  // checks the CRC
      ASSERT_EQ(ulpdu.size(), 1u);
      EXPECT_EQ(ulpdu[0].size(), len);
      at += mpa::fpdu_len(len);
    }
    EXPECT_EQ(at, octets.size()) << "nothing is left over";
    EXPECT_GE(num, 4u);
  }
}

TEST(RdmapMessage, SendWithInvalidateDiffersFromSendInFiveOctets) {
  RecordProperty("proves", "RDMAP-4.7-01");
  const auto say = [](SendOp op, bool solicited) {
    Subject s;
    EXPECT_EQ(s.post(work(op, 1, {{0, 40, ddp::Stag{Subject::kLocal}}}, 0x01020304, 0, solicited)), PostResult::kOk);
    return s.sent().at(0).ulpdu;
  };
  for (const bool solicited : {false, true}) {
    const Octets plain = say(SendOp::kSend, solicited), invalidate = say(SendOp::kSendInvalidate, solicited);
    ASSERT_EQ(plain.size(), invalidate.size());
    for (std::size_t i = 0; i < plain.size(); ++i)
      if (i < 1 || i > 5) {
        EXPECT_EQ(plain[i], invalidate[i]) << i;
      }
    EXPECT_EQ(invalidate[1] - plain[1], 1);
    EXPECT_EQ(get(invalidate, 2, 4), 0x01020304u);
  }
}

TEST(RdmapMessage, ReadRequestsHaveTheirOwnMsns) {
  RecordProperty("proves", "RDMAP-4.1-14 RDMAP-4.1-17 RDMAP-5.2.1-07 RDMAP-5.3-10 RDMAP-5.2.1-09");
  Subject s;
  // Sends of all four kinds between ten Reads that differ in their source.
  for (std::uint64_t i = 0; i < 10; ++i) {
    const SendOp op = i % 2 == 0 ? SendOp::kSend : SendOp::kSendInvalidate;
    ASSERT_EQ(s.post(work(op, i, {{i, 1, ddp::Stag{Subject::kLocal}}}, i % 2 == 0 ? 0 : 7, 0, i % 4 > 1)),
              PostResult::kOk);
    ASSERT_EQ(s.post(work(SendOp::kRdmaRead, i, {{0, 8, ddp::Stag{Subject::kLocal}}}, 0x77, 1000 * i)),
              PostResult::kOk);
  }
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 20u);
  for (std::uint32_t i = 0; i < 10; ++i) {
    const Segment& send = sent[2 * i];
    EXPECT_EQ(send.msn, i + 1);
    EXPECT_EQ(send.opcode, (i % 2 == 0 ? 3u : 4u) + (i % 4 > 1 ? 2u : 0u));
    EXPECT_EQ(send.payload, ramp(1, i));
    const Segment& read = sent[2 * i + 1];
    EXPECT_EQ(read.msn, i + 1);
    EXPECT_EQ(read.qn, 1u);
    EXPECT_EQ(read.mo, 0u);
    EXPECT_EQ(read.ulpdu[0], 0x41);
    EXPECT_EQ(read.ulpdu[1], 0x41);
    EXPECT_EQ(get(read.payload, 16, 4), 0x77u);
    EXPECT_EQ(get(read.payload, 20, 8), 1000u * i);
  }
}

TEST(RdmapMessage, ReservedBitsAndForeignInvalidateStagsAreOverlooked) {
  RecordProperty("proves", "RDMAP-4.1-10 RDMAP-4.1-12");
  Subject s;
  s.remote(0x3c4d5e03, 0, 64, true, true, {1});
  s.post_recvs(2);
  Octets odd = send(1, ramp(4), true, 0, 0x73, 0x3c4d5e03);
  odd[0] |= 0x3c;
  s.feed(odd);
  Octets odd_se = send(2, ramp(5), true, 0, 0x75, 0x3c4d5e03);
  s.feed(odd_se);
  Octets request = read_request(1, 1, 2, 8, 0x3c4d5e03, 0, 0x71);
  request[2] = 0x3c, request[3] = 0x4d, request[4] = 0x5e, request[5] = 0x03;
  s.feed(request);
  const auto sent = s.sent();
  ASSERT_EQ(s.completions.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(s.completions[i].status, WorkStatus::kSuccess);
    EXPECT_EQ(s.completions[i].byte_len, 4 + i);
    EXPECT_EQ(s.completions[i].solicited, i == 1);
    EXPECT_FALSE(s.completions[i].invalidated);
  }
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].opcode, 2u);
  s.feed(write(0x3c4d5e03, 0, ramp(8)));  // the STag is as usable as before
  EXPECT_TRUE(s.sent().empty());
  EXPECT_EQ(Octets(s.memory.regions[0x3c4d5e03].octets.begin(), s.memory.regions[0x3c4d5e03].octets.begin() + 8),
            ramp(8));
}

}  // namespace
}  // namespace weft::conformance
