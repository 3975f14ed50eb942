// Framing by RFC 5044 sections 3, 4 and 6, as far as single FPDUs and the vectors do not show it.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "mpa/crc32c.h"
#include "mpa/fpdu.h"
#include "tests/conformance/mpa_ends.h"

namespace weft::conformance {
namespace {

using rdmap::CloseReason;
using rdmap::testing::Side;
using sim::Victim;

TEST(MpaFraming, OneUlpduInEachFpdu) {
  RecordProperty("proves", "MPA-3-01 MPA-3-07 MPA-4.1-01 MPA-4.4-18");
  mpa::FpduWriter writer(true);
  const std::size_t lens[] = {1, 14, 1442, 20'000, 42};
  for (const std::size_t len : lens) ASSERT_TRUE(writer.add(ramp(len), {}, true));
  Octets stream;
  for (ConstBytes view : writer.buffers()) stream.insert(stream.end(), view.begin(), view.end());
  std::size_t at = 0;
  for (const std::size_t len : lens) {
    ASSERT_LT(at + 2, stream.size());
    EXPECT_EQ(std::size_t{stream[at]} << 8 | stream[at + 1], len);
    const std::size_t crc_at = at + (2 + len + 3) / 4 * 4;
    EXPECT_EQ(mpa::parse_crc(ConstBytes(stream).subspan(crc_at).first<4>()),
              mpa::crc32c(ConstBytes(stream).subspan(at, crc_at - at)));
    if (len == 42) {
      EXPECT_EQ(crc_at + 4 - at, 48u);
    }
    at = crc_at + 4;
  }
  EXPECT_EQ(at, stream.size());
}

TEST(MpaFraming, LengthsOfAThousandRandomUlpdus) {
  RecordProperty("proves", "MPA-4.1-07");
  constexpr unsigned kSeed = 41;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (const bool markers : {false, true}) {
    std::uint64_t position = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::size_t len = i == 0 ? 1 : 1 + random() % 3000;
      mpa::FpduWriter writer(true, markers, position);
      ASSERT_TRUE(writer.add(ramp(len), {}, true));
      const std::size_t bare = 2 + len + (4 - (2 + len) % 4) % 4 + 4;
      std::size_t total = 0;  // octet by octet: a Marker wherever one falls due before an octet of the FPDU
      for (std::size_t octet = 0; octet < bare; ++octet) {
        if (markers && (position + total) % 512 == 0) total += 4;
        ++total;
      }
      ASSERT_EQ(writer.pending_octets(), total) << len << " at " << position;
      if (!markers && i == 0) {
        EXPECT_EQ(total, 8u);
      }
      position += total;
    }
  }
}

TEST(MpaFraming, TheMulpduIsNeverExceeded) {
  RecordProperty("proves", "MPA-3-02 MPA-3-03 MPA-3-05");
  for (const bool markers : {false, true}) {
    for (const std::size_t emss : {std::size_t{1448}, std::size_t{8948}, std::size_t{65483}, std::size_t{1} << 20}) {
      SCOPED_TRACE(emss);
      const std::size_t formula =
          emss - (6 + (markers ? 4 * ((emss + 511) / 512) : 0) + emss % 4);  // RFC 5044 section 4.5
      const std::size_t mulpdu = mpa::mulpdu(emss, markers);
      EXPECT_EQ(mulpdu, std::min<std::size_t>(formula, 64768));
      End end(true, revision_1(), markers, true);
      end.write(ramp(1 << 20));
      const Octets stream = end.transmit(end.now, emss);
      std::vector<Octets> ulpdus = markers ? Walk(stream).ulpdus : sim::deframe(stream);
      ASSERT_GT(ulpdus.size(), 16u);
      for (const Octets& ulpdu : ulpdus) ASSERT_LE(ulpdu.size(), mulpdu);
      EXPECT_EQ(ulpdus[0].size(), std::min<std::size_t>(mulpdu, 64766)) << "the largest without a PAD";
    }
  }
}

TEST(MpaFraming, TheLeastMulpduHoldsForTheNarrowestTcp) {
  RecordProperty("proves", "MPA-3-04");
  EXPECT_EQ(mpa::mulpdu(88, false), 128u);
  EXPECT_EQ(mpa::mulpdu(65483, false), 64768u);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_TRUE(listener >= 0 && client >= 0);
  const int narrow = 88;
  ASSERT_EQ(::setsockopt(client, IPPROTO_TCP, TCP_MAXSEG, &narrow, sizeof(narrow)), 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof(at);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&at), len), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &len), 0);
  ASSERT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&at), len), 0);
  int emss = 0;
  len = sizeof(emss);
  ASSERT_EQ(::getsockopt(client, IPPROTO_TCP, TCP_MAXSEG, &emss, &len), 0);
  ::close(client);
  ::close(listener);
  ASSERT_GT(emss, 0);
  ASSERT_LE(emss, narrow);
  EXPECT_EQ(mpa::mulpdu(static_cast<std::size_t>(emss), false), 128u);
  End end(true, revision_1(), false, true);
  end.write(ramp(1000));
  const auto sent = sim::deframe(end.transmit(end.now, static_cast<std::size_t>(emss)));
  ASSERT_GT(sent.size(), 8u);
  EXPECT_EQ(sent[0].size(), 128u);
}

TEST(MpaFraming, TheLayersAboveAreToldTheVersionThatWasAgreedOn) {
  RecordProperty("proves", "MPA-3-13");
  enum { kOwn, kForeign };
  for (const bool rdmac : {false, true}) {
    for (const int peer_sends : {kOwn, kForeign}) {
      rdmap::StreamConfig config = revision_1();
      config.permissive = rdmac;
      Side s(config);
      const TimePoint now{};
      mpa::StartupFrame request;
      request.m = rdmac;  // RDMAC's peers always ask for Markers
      request.c = true;
      request.rev = rdmac ? 0 : 1;
      Octets octets;
      mpa::emit_startup_frame(request, octets);
      s.stream.start_responder(now);
      s.receive(octets, now);
      s.drain();
      s.stream.accept({}, s.recvs, 16, 16, 0, now);
      s.transmit(now);
      const std::uint8_t version = rdmac ? 0 : 1;
      const std::uint8_t theirs = peer_sends == kOwn ? version : 1 - version;
      const Octets write = tagged({.dv = theirs, .rsvd_ulp = static_cast<std::uint8_t>(theirs << 6)});
      mpa::FpduWriter writer(true, rdmac);
      ASSERT_TRUE(writer.add(write, {}, true));
      octets.clear();
      for (ConstBytes view : writer.buffers()) octets.insert(octets.end(), view.begin(), view.end());
      s.receive(octets, now);
      EXPECT_EQ(s.stream.counters().writes_rx, peer_sends == kOwn ? 1u : 0u);
      SendWr wr;
      wr.inline_data = ramp(300);
      if (peer_sends == kOwn) {
        ASSERT_EQ(s.stream.post_send(wr), rdmap::PostResult::kOk);
      }
      const Octets stream = s.transmit(now);
      const auto sent = rdmac ? Walk(stream).ulpdus : sim::deframe(stream);
      ASSERT_FALSE(sent.empty());
      for (const Octets& ulpdu : sent) {
        EXPECT_EQ(ulpdu[0] & 0x03, version);
        EXPECT_EQ(ulpdu[1] & 0xc0, version << 6);
      }
      EXPECT_EQ(is_terminate(sent[0]) || (sent[0][1] & 0x0f) == 7, peer_sends == kForeign);
    }
  }
}

// Where the socket takes a few octets at a time, segments begin anywhere in an FPDU. Small FPDUs posted back to back
// leave together. The receiver need not know of either.
TEST(MpaFraming, AlignmentIsNotNeededAndSmallFpdusTravelTogether) {
  RecordProperty("proves", "MPA-4.5-11 MPA-5.1-05 MPA-5.1-06");
  constexpr int kNum = 60;
  rdmap::testing::Pair pair;
  pair.connect();
  pair.b.memory.add_simple(7, 0, 0, 4096);
  for (int i = 0; i < kNum; ++i) {
    SendWr wr;
    wr.op = SendOp::kRdmaWrite;
    wr.inline_data = Octets(static_cast<std::size_t>(i), static_cast<std::uint8_t>(i));
    wr.remote_stag = ddp::Stag{7};
    wr.remote_to = static_cast<std::uint64_t>(64 * i);
    ASSERT_EQ(pair.a.stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
  }
  std::size_t num_together = 0;
  for (ConstBytes view : pair.a.stream.tx_buffers(1460, 1 << 20, pair.now)) num_together += view.size();
  EXPECT_GT(num_together, kNum * mpa::fpdu_len(14)) << "all of them in one batch";
  pair.a.stream.on_tx(0, pair.now);
  // A window of 29 octets: no segment is a whole FPDU.
  const Octets stream = pair.a.transmit(pair.now, 1460, 29);
  std::size_t at = 0;
  while (at < stream.size()) {
    const std::size_t len = std::min<std::size_t>(29, stream.size() - at);
    pair.b.receive(ConstBytes(stream).subspan(at, len), pair.now);
    at += len;
  }
  pair.run();
  EXPECT_EQ(pair.b.stream.counters().writes_rx, std::uint64_t{kNum});
  const auto& sink = pair.b.memory.regions[7].octets;
  for (int i = 1; i < kNum; ++i) {
    EXPECT_EQ(sink[static_cast<std::size_t>(64 * i)], i);
    EXPECT_EQ(sink[static_cast<std::size_t>(64 * i + i - 1)], i);
  }
}

TEST(MpaFraming, RandomOctetsAreAnErrorOrNothingYet) {
  RecordProperty("proves", "MPA-9.1-01");
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    Victim v;
    v.memory.add_simple(7, 7, 0, 4096);
    Octets octets(70000);
    for (auto& octet : octets) octet = static_cast<std::uint8_t>(random());
    v.receive(octets, v.now, 1 + random() % 70000);
    v.drain();
    EXPECT_TRUE(v.completions.empty());
    EXPECT_EQ(v.memory.regions[7].octets, Octets(4096, 0xa5));
    const auto answer = sim::deframe(v.transmit(v.now));
    ASSERT_EQ(answer.size(), 1u) << "70,000 octets are more than any FPDU";
    EXPECT_EQ(answer[0][18], 0x20);
    EXPECT_TRUE(answer[0][19] == 2 || answer[0][19] == 3);
  }
}

// Each loss of the connection is code 1. Only a FIN on an FPDU boundary is no error.
TEST(MpaFraming, EveryLossOfTheConnectionIsCode1) {
  RecordProperty("proves", "MPA-8-03");
  enum class Loss { kFin, kFinInside, kReset, kTimeout };
  for (const Loss loss : {Loss::kFin, Loss::kFinInside, Loss::kReset, Loss::kTimeout}) {
    SCOPED_TRACE(static_cast<int>(loss));
    Victim v;
    if (loss == Loss::kFinInside) v.receive(Octets{0, 14, 0xc1}, v.now);
    if (loss == Loss::kFin || loss == Loss::kFinInside) v.stream.on_rx_eof(v.now);
    if (loss == Loss::kReset) v.stream.on_llp_error(ECONNRESET, v.now);
    if (loss == Loss::kTimeout) v.stream.on_llp_error(ETIMEDOUT, v.now);
    v.drain();
    ASSERT_EQ(v.closed.size(), 1u);
    const bool graceful = loss == Loss::kFin;
    EXPECT_EQ(v.closed[0].reason, graceful ? CloseReason::kGraceful : CloseReason::kLlp);
    EXPECT_EQ(v.closed[0].terminate.has_value(), !graceful);
    if (!graceful) {
      EXPECT_EQ(*v.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kLlp, 0, 1}));
    }
  }
}

TEST(MpaFraming, PayloadThatLooksLikeFramingIsPayload) {
  RecordProperty("proves", "MPA-6-02");
  for (const bool markers : {false, true}) {
    End sender(true, revision_1(), markers, true);
    End receiver(false, revision_1(true, markers), false, true);
    Octets imitation;
    while (imitation.size() < 3000) {
      const Octets fpdu = sim::frame_fpdu(tagged({.rsvd_ulp = kWriteControl, .stag = {7}}, ramp(9)));
      imitation.insert(imitation.end(), fpdu.begin(), fpdu.end());
      imitation.insert(imitation.end(), {0, 0, 0, 0, 0, 0, 0, 0x14});
    }
    auto& target = receiver.memory.add_simple(7, 0, 0, imitation.size());
    sender.write(imitation);
    Octets stream = sender.transmit(sender.now);
    receiver.receive(stream, receiver.now, 100);
    EXPECT_EQ(target.octets, imitation);
    EXPECT_FALSE(receiver.stream.wants_tx());
    // After a bad CRC the receiver ignores all later octets, wherever the FPDU's length leads.
    target.octets.assign(target.octets.size(), 0xa5);
    sender.write(ramp(16));
    stream = sender.transmit(sender.now);
    stream[stream.size() - 1] ^= 1;
    receiver.receive(stream, receiver.now);
    const std::uint64_t num_fpdus = receiver.stream.counters().fpdus_rx;
    sender.write(ramp(16));
    receiver.receive(sender.transmit(sender.now), receiver.now);
    EXPECT_EQ(receiver.stream.counters().fpdus_rx, num_fpdus);
    EXPECT_EQ(receiver.stream.counters().writes_rx, 1u);
  }
}

}  // namespace
}  // namespace weft::conformance
