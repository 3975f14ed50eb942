// RFC 5041's requirements on the source: every segment that a stream puts on the wire.
#include <limits>
#include <map>
#include <set>
#include <type_traits>

#include "ddp/segmenter.h"
#include "ddp/untagged_queue.h"
#include "mpa/crc32c.h"
#include "mpa/fpdu.h"
#include "rdmap/send_queue.h"
#include "tests/conformance/ddp_peer.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kLeastMulpdu = 128;
constexpr std::size_t kTaggedRoom = kLeastMulpdu - ddp::kTaggedHeaderLen;
constexpr std::size_t kUntaggedRoom = kLeastMulpdu - ddp::kUntaggedHeaderLen;

// The whole payload of some segments, in order.
Octets joined(const std::vector<Captured>& segments) {
  Octets out;
  for (const Captured& s : segments) out.insert(out.end(), s.segment.payload.begin(), s.segment.payload.end());
  return out;
}

// Some of everything that a stream sends: Sends, Sends with Invalidate, Writes, Read Requests and Read Responses, and
// at last a Terminate.
Octets mixed_workload(const rdmap::StreamConfig& config) {
  Sender s(config);
  s.memory.add_simple(7, config.scope.pd, 0, 1000);
  for (const std::size_t len : {0u, 1u, 300u, 1000u}) {
    s.post(SendOp::kSend, ramp(len));
    s.post(SendOp::kRdmaWrite, ramp(len), 0x1a2b3c01, 0x1000);
    s.post(SendOp::kSendInvalidate, ramp(len), 0x11223344);
    s.post_read();
  }
  Octets out = s.transmit(s.now);
  for (const std::uint32_t size : {0u, 1u, 700u}) {
    ddp::UntaggedHeader h{.rsvd_ulp = kReadRequestControl, .qn = 1, .msn = {size == 0 ? 1u : size == 1 ? 2u : 3u}};
    s.feed(untagged(h, rdmap::emit_read_request_header({ddp::Stag{5}, 0x100, size, ddp::Stag{7}, 0})));
  }
  const Octets responses = s.transmit(s.now);
  out.insert(out.end(), responses.begin(), responses.end());
  s.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {0xdeadbeef}}, ramp(4)));
  const Octets terminate = s.transmit(s.now);
  out.insert(out.end(), terminate.begin(), terminate.end());
  return out;
}

TEST(DdpSource, ControlFieldsOfAMixedWorkload) {
  RecordProperty("proves", "DDP-4.1-02 DDP-4.1-10 DDP-4.1-12");
  std::map<std::uint8_t, int> first_octets;
  for (const Captured& s : capture(mixed_workload(Sender::config(1)))) ++first_octets[s.ulpdu[0]];
  ASSERT_EQ(first_octets.size(), 4u);
  for (const std::uint8_t legal : Octets{0x01, 0x41, 0x81, 0xc1}) EXPECT_GT(first_octets[legal], 0) << int{legal};
}

TEST(DdpSource, NeitherProtectionDomainNorStreamIsOnTheWire) {
  RecordProperty("proves", "DDP-8.2-04");
  rdmap::StreamConfig config = Sender::config(1);
  config.scope = {.pd = 0xd1e2f3a4, .stream = 0xb5c6d7e8};
  const Octets wire = mixed_workload(config);
  for (Octets secret : {Octets{0xd1, 0xe2, 0xf3, 0xa4}, Octets{0xb5, 0xc6, 0xd7, 0xe8}}) {
    EXPECT_EQ(std::search(wire.begin(), wire.end(), secret.begin(), secret.end()), wire.end());
    std::reverse(secret.begin(), secret.end());
    EXPECT_EQ(std::search(wire.begin(), wire.end(), secret.begin(), secret.end()), wire.end());
  }
}

TEST(DdpSource, LengthHeaderPayloadPadCrcInThisOrder) {
  RecordProperty("proves", "DDP-1.3-01");
  for (std::size_t len = 0; len < 9; ++len) {
    for (const bool is_tagged : {true, false}) {
      SCOPED_TRACE(len);
      Sender s;
      s.post(is_tagged ? SendOp::kRdmaWrite : SendOp::kSend, ramp(len, 0xb0), 0x1a2b3c01, 0x1000);
      const Octets fpdu = s.transmit(s.now);
      const std::size_t payload_at = is_tagged ? 16 : 20;
      const std::size_t pad = (4 - (payload_at + len) % 4) % 4;
      ASSERT_EQ(fpdu.size(), payload_at + len + pad + 4);
      EXPECT_EQ(static_cast<std::size_t>(fpdu[0]) << 8 | fpdu[1], payload_at - 2 + len);
      EXPECT_EQ(fpdu[2], is_tagged ? 0xc1 : 0x41);
      for (std::size_t i = 0; i < len; ++i) EXPECT_EQ(fpdu[payload_at + i], 0xb0 + i);
      for (std::size_t i = 0; i < pad; ++i) EXPECT_EQ(fpdu[payload_at + len + i], 0);
      const std::uint32_t crc = mpa::crc32c(ConstBytes(fpdu).first(fpdu.size() - 4));
      Octets stored(4);
      for (int i = 0; i < 4; ++i) stored[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(crc >> 8 * i);
      EXPECT_EQ(Octets(fpdu.end() - 4, fpdu.end()), stored);
    }
  }
}

TEST(DdpSource, LastIsSetOnTheFinalSegmentOnly) {
  RecordProperty("proves", "DDP-4.1-04 DDP-4.1-05 DDP-4.1-07 DDP-5.2-11 DDP-5.2-03 DDP-4.3-13");
  for (const SendOp op : {SendOp::kRdmaWrite, SendOp::kSend}) {
    const std::size_t room = op == SendOp::kRdmaWrite ? kTaggedRoom : kUntaggedRoom;
    for (const std::size_t len :
         {std::size_t{0}, std::size_t{1}, room - 1, room, room + 1, std::size_t{300}, 10 * room}) {
      SCOPED_TRACE(len);
      Sender s;
      s.post(op, ramp(len), 5, 77);
      const auto sent = s.sent();
      ASSERT_EQ(sent.size(), std::max<std::size_t>(1, (len + room - 1) / room));
      std::size_t sum = 0;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        EXPECT_EQ(sent[i].last(), i + 1 == sent.size());
        if (!sent[i].tagged()) {
          EXPECT_EQ(sent[i].u().mo, sum);
        }
        sum += sent[i].payload_len();
      }
      EXPECT_EQ(sum, len);
      EXPECT_EQ(joined(sent), ramp(len));
    }
  }
}

TEST(DdpSource, HeadersOfATaggedMessage) {
  RecordProperty("proves", "DDP-4.2-02 DDP-4.2-04 DDP-4.2-06 DDP-4.2-08 DDP-5.2-09 DDP-5.3-02");
  Sender s;
  s.post(SendOp::kRdmaWrite, ramp(300), 0x1a2b3c01, 0x00007f0000001100);
  s.memory.add_simple(7, 0, 0, 300);
  auto sent = s.sent();
  s.feed(untagged({.rsvd_ulp = kReadRequestControl, .qn = 1},
                  rdmap::emit_read_request_header({ddp::Stag{0x0c0ffe06}, 0x101, 300, ddp::Stag{7}, 0})));
  const auto responses = s.sent();
  ASSERT_EQ(sent.size(), 3u);
  ASSERT_EQ(responses.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::uint64_t offset = i * kTaggedRoom;
    EXPECT_EQ(sent[i].ulpdu[1], 0x40);
    EXPECT_EQ(sent[i].octets(2, 6), (Octets{0x1a, 0x2b, 0x3c, 0x01}));
    EXPECT_EQ(sent[i].t().to, 0x00007f0000001100 + offset);
    EXPECT_EQ(responses[i].ulpdu[1], 0x42);
    EXPECT_EQ(responses[i].octets(2, 6), (Octets{0x0c, 0x0f, 0xfe, 0x06}));
    EXPECT_EQ(responses[i].t().to, 0x101 + offset);
  }
}

TEST(DdpSource, HeadersOfAnUntaggedMessage) {
  RecordProperty("proves", "DDP-4.3-03 DDP-4.3-05 DDP-4.3-08 DDP-4.3-12 DDP-4.3-14 DDP-5.2-06 DDP-5.3-02");
  Sender s;
  s.post(SendOp::kSend, ramp(300));
  s.post(SendOp::kSendInvalidate, ramp(300), 0x5d6e7f02);
  const auto sent = s.sent();
  ASSERT_EQ(sent.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    const bool invalidate = i >= 3;
    EXPECT_EQ(sent[i].octets(1, 6), invalidate ? (Octets{0x44, 0x5d, 0x6e, 0x7f, 0x02}) : (Octets{0x43, 0, 0, 0, 0}));
    EXPECT_EQ(sent[i].octets(6, 10), (Octets{0, 0, 0, 0}));
    EXPECT_EQ(sent[i].octets(10, 14), (Octets{0, 0, 0, static_cast<std::uint8_t>(invalidate ? 2 : 1)}));
    EXPECT_EQ(sent[i].u().mo, i % 3 * kUntaggedRoom);
  }
  EXPECT_EQ(sent[0].octets(14, 18), (Octets{0, 0, 0, 0}));
}

TEST(DdpSource, EachQueueCountsItsMessagesFromOne) {
  RecordProperty("proves", "DDP-4.3-09");
  Sender s;
  std::map<std::uint32_t, std::uint32_t> next = {{0, 1}, {1, 1}};
  for (int i = 0; i < 8; ++i) {
    s.post(SendOp::kSend, ramp(i % 3 == 0 ? 200 : 3));
    s.post(SendOp::kRdmaWrite, ramp(3), 5, 0);
    if (i % 2 == 0) s.post_read();
  }
  for (const Captured& c : s.sent()) {
    if (c.tagged()) continue;
    EXPECT_EQ(c.u().msn.value, next.at(c.u().qn));
    if (c.u().last) ++next[c.u().qn];
  }
  EXPECT_EQ(next[0], 9u);
  EXPECT_EQ(next[1], 5u);
}

TEST(DdpSource, TheFirstMessageOfEveryQueueIsNumberOne) {
  RecordProperty("proves", "DDP-4.3-10");
  Sender s;
  s.post(SendOp::kSend, ramp(3));
  s.post_read();
  s.feed(tagged({.rsvd_ulp = kWriteControl, .stag = {0xdeadbeef}}, ramp(4)));
  // A Send and a Read Request have a stream of their own: the Terminate above overtakes waiting requests.
  Sender other;
  other.post(SendOp::kSend, ramp(3));
  other.post_read();
  auto sent = other.sent();
  const auto terminate = s.sent();
  ASSERT_EQ(sent.size(), 2u);
  ASSERT_EQ(terminate.size(), 1u);
  ASSERT_TRUE(is_terminate(terminate[0].ulpdu));
  EXPECT_EQ(sent[0].u().qn, 0u);
  EXPECT_EQ(sent[1].u().qn, 1u);
  EXPECT_EQ(terminate[0].u().qn, 2u);
  for (const Captured* c : std::initializer_list<const Captured*>{sent.data(), &sent[1], terminate.data()}) {
    EXPECT_EQ(c->octets(10, 14), (Octets{0, 0, 0, 1}));
    EXPECT_EQ(c->octets(14, 18), (Octets{0, 0, 0, 0}));
  }
  // The sink insists on it.
  sim::Victim v;
  v.recvs.post(1);
  v.feed(untagged({.rsvd_ulp = kSendControl, .msn = {0}}));
  const auto answer = v.ulpdus();
  ASSERT_EQ(answer.size(), 1u);
  EXPECT_EQ(Octets(answer[0].begin() + 18, answer[0].begin() + 20), (Octets{0x12, 0x03}));
}

TEST(DdpSource, ZeroFollowsTheHighestMsn) {
  RecordProperty("proves", "DDP-4.3-11");
  // The source's counters, 2^32 - 2 messages on.
  rdmap::Ring<rdmap::Event> events;
  rdmap::SendQueue requests(16, events, ddp::Msn{0xffffffff});
  const SendOp ops[] = {SendOp::kSend, SendOp::kRdmaRead, SendOp::kSend, SendOp::kRdmaRead, SendOp::kSend};
  for (const SendOp op : ops) {
    SendWr wr;
    wr.op = op;
    ASSERT_EQ(requests.post(wr), rdmap::PostResult::kOk);
  }
  const std::uint32_t expected[] = {0xffffffff, 0xffffffff, 0, 0, 1};
  ddp::UntaggedQueue sink(ddp::Msn{0xffffffff});
  for (std::size_t i = 0; i < std::size(ops); ++i) {
    ddp::UntaggedSegmenter segmenter({.rsvd_ulp = kSendControl, .msn = requests[i].msn}, 0);
    const ddp::UntaggedHeader header = segmenter.next(kLeastMulpdu).header;
    const std::uint8_t octet = expected[i] == 0xffffffff ? 0xff : 0;
    const Octets ulpdu = untagged(header);
    EXPECT_EQ(Octets(ulpdu.begin() + 10, ulpdu.begin() + 14),
              (Octets{octet, octet, octet, static_cast<std::uint8_t>(expected[i])}));
    if (ops[i] == SendOp::kRdmaRead) continue;
    // The sink refuses the MSN before, an MSN too far, and an MSN that skips 0.
    for (const std::uint32_t wrong : {header.msn.value - 1, header.msn.value + 1, header.msn.value + 4})
      EXPECT_EQ(sink.check({.msn = {wrong}}, 16, 64), ddp::Error::kMsnRange) << wrong;
    EXPECT_EQ(sink.check(header, 16, 64), std::nullopt);
    sink.advance(header, 16);
  }
}

TEST(DdpSource, MessagesLeaveInTheOrderOfTheirPosting) {
  RecordProperty("proves", "DDP-5.3-01 DDP-4.1-06");
  Sender s;
  // Each message by a name of its own: a Write's STag, a Send's first octet.
  for (std::uint8_t name = 1; name <= 40; ++name) {
    const std::size_t len = std::size_t{name} * 17;
    if (name % 2 != 0) {
      s.post(SendOp::kRdmaWrite, Octets(len, name), name, 0);
    } else {
      s.post(SendOp::kSend, Octets(len, name));
    }
  }
  std::uint8_t open = 1;
  for (const Captured& c : s.sent()) {
    ASSERT_GT(c.payload_len(), 0u);
    ASSERT_EQ(c.segment.payload[0], open) << "another message than the one under way";
    if (c.last()) ++open;
  }
  EXPECT_EQ(open, 41);
}

TEST(DdpSource, NoSegmentExceedsTheMulpdu) {
  RecordProperty("proves", "DDP-5.2-01");
  for (const std::size_t emss : {std::size_t{536}, std::size_t{1447}, std::size_t{1448}, std::size_t{1449},
                                 std::size_t{1450}, std::size_t{8948}, std::size_t{64000}}) {
    SCOPED_TRACE(emss);
    const std::size_t mulpdu = emss - (6 + emss % 4);
    Sender s(std::size_t{0});
    s.post(SendOp::kRdmaWrite, ramp(200'000), 5, 0);
    s.post(SendOp::kSend, ramp(200'000));
    std::size_t longest = 0;
    for (const Captured& c : s.sent(emss)) {
      ASSERT_LE(c.ulpdu.size(), mulpdu);
      longest = std::max(longest, c.ulpdu.size());
    }
    EXPECT_EQ(longest, mulpdu) << "smaller than need be";
  }
}

// Takes octets as a socket would, n of the next batch.
Octets take(Sender& s, std::size_t emss, std::size_t n) {
  Octets out;
  for (ConstBytes view : s.stream.tx_buffers(emss, 64 * 1024, s.now)) out.insert(out.end(), view.begin(), view.end());
  out.resize(std::min(n, out.size()));
  s.stream.on_tx(out.size(), s.now);
  return out;
}

TEST(DdpSource, TheMulpduOfTheMomentIsFollowedAndNothingIsCutAgain) {
  RecordProperty("proves", "DDP-3-01 DDP-3-02");
  constexpr std::size_t kLen = 150'000;
  Sender s(std::size_t{0});
  s.post(SendOp::kRdmaWrite, ramp(kLen), 5, 1000);
  // Two segments and a part of the third, for 9,000; then the path has narrowed, then it is wide again.
  Octets wire = take(s, 9000, 2 * 9000 + 100);
  const Octets narrow = take(s, 1448, 20'000);
  wire.insert(wire.end(), narrow.begin(), narrow.end());
  const Octets rest = s.transmit(s.now, 9000);
  wire.insert(wire.end(), rest.begin(), rest.end());
  const auto sent = capture(wire);
  ASSERT_GT(sent.size(), 10u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(sent[i].ulpdu.size(), mpa::mulpdu(9000, false)) << i;
  for (std::size_t i = 3; i < 10; ++i) EXPECT_EQ(sent[i].ulpdu.size(), mpa::mulpdu(1448, false)) << i;
  EXPECT_EQ(sent[sent.size() - 2].ulpdu.size(), mpa::mulpdu(9000, false));
  std::uint64_t to = 1000;
  for (const Captured& c : sent) {
    EXPECT_EQ(c.t().to, to);
    to += c.payload_len();
  }
  EXPECT_EQ(to, 1000 + kLen);
  EXPECT_EQ(joined(sent), ramp(kLen));
}

TEST(DdpSource, AMessageOf2To32OctetsIsRefusedAtHome) {
  RecordProperty("proves", "DDP-5.2-02");
  for (const SendOp op : {SendOp::kSend, SendOp::kRdmaWrite}) {
    Sender s;
    s.memory.add_simple(1, 0, 0, 16);
    SendWr wr;
    wr.op = op;
    wr.sg_list = {{0, 0x80000000, ddp::Stag{1}}, {0, 0x80000000, ddp::Stag{1}}};
    EXPECT_EQ(s.stream.post_send(std::move(wr)), rdmap::PostResult::kInvalid);
    EXPECT_FALSE(s.stream.wants_tx());
    EXPECT_TRUE(s.transmit(s.now).empty());
  }
}

// A tagged message cannot be begun without both: the only thing to begin it from is a header that holds them.
static_assert(!std::is_constructible_v<ddp::TaggedSegmenter, std::uint32_t>);
static_assert(!std::is_constructible_v<ddp::TaggedSegmenter, ddp::Stag, std::uint32_t>);
static_assert(!std::is_constructible_v<ddp::TaggedSegmenter, std::uint64_t, std::uint32_t>);
static_assert(!std::is_constructible_v<ddp::TaggedSegmenter, ddp::UntaggedHeader, std::uint32_t>);
static_assert(std::is_constructible_v<ddp::TaggedSegmenter, ddp::TaggedHeader, std::uint32_t>);

TEST(DdpSource, TheLayerAboveNamesStagAndTo) {
  RecordProperty("proves", "DDP-5.2-08");
  ddp::TaggedSegmenter segmenter({.stag = {0x01020304}, .to = 0x05060708090a0b0c}, 1);
  const auto piece = segmenter.next(kLeastMulpdu);
  EXPECT_EQ(piece.header.stag, ddp::Stag{0x01020304});
  EXPECT_EQ(piece.header.to, 0x05060708090a0b0cu);
}

}  // namespace
}  // namespace weft::conformance
