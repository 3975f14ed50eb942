// Atomic Operations (RFC 7306 section 5) as the responder and as the requester has them, octet for octet.
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <sstream>

#include "tests/sim/rfc7306.h"

namespace weft::sim {
namespace {

using rdmap::Completion;
using rdmap::SendWr;
using rdmap::WorkOp;
using rdmap::WorkStatus;
using rdmap::testing::Pair;

constexpr std::uint64_t kOnes = ~std::uint64_t{0};

TEST(AtomicResponder, AnswersTheVectors) {
  RecordProperty("proves",
                 "EXT-4-02 EXT-4.1-04 EXT-5-05 EXT-5.1.1-01 EXT-5.1.1-06 EXT-5.1.2-03 EXT-5.2.2-01 EXT-5.2.2-02 "
                 "EXT-5.2.1-04 EXT-5-03 EXT-5.2.2-07 EXT-5.2.1-16 EXT-5.2.1-12 EXT-5.2.1-05");
  for (const std::size_t chunk : {SIZE_MAX, std::size_t{1}, std::size_t{11}}) {
    ExtVictim v(chunk);
    v.set_word(41, 0x100);
    v.set_word(0x4041424344454647, 0x108);
    v.set_word(0x00000001ffffffff, 0x110);
    v.feed(vector_octets("E03"));
    v.feed(vector_octets("E05"));
    v.feed(renumbered(vector_octets("E07"), 3, 7));
    // IRD is 2: the third comes when the first two have been answered.
    auto sent = v.ulpdus();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(terminate_of(sent[0]), (Octets{0x12, 2, 0xc0}));
  }
  ExtVictim v;
  v.set_word(41, 0x100);
  v.set_word(0x4041424344454647, 0x108);
  v.set_word(0x00000001ffffffff, 0x110);
  v.feed(vector_octets("E03"));
  v.feed(vector_octets("E05"));
  const auto first = v.ulpdus();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0], vector_octets("E04"));
  EXPECT_EQ(first[1], vector_octets("E06"));
  EXPECT_EQ(first[0].size(), 30u);
  v.feed(vector_octets("E07"));
  const auto second = v.ulpdus();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0], vectors::from_hex("414b000000000000000300000003000000000a0b0c0f00000001ffffffff"));
  EXPECT_EQ(v.word(0x100), 42u);
  EXPECT_EQ(v.word(0x110), 0x0000000200000000u) << "two counters: the low one wrapped without a carry";
  EXPECT_TRUE(v.completions.empty()) << "the ULP hears nothing of it";
  EXPECT_EQ(v.recvs.num_taken, 0u);
  EXPECT_EQ(v.stream.counters().atomics_rx, 3u);
  // The identifier came back each time. An answer with another identifier is refused.
  ExtVictim requester;
  ASSERT_EQ(requester.post(atomic_wr(1, fetch_add(1))), rdmap::PostResult::kOk);
  requester.ulpdus();
  requester.feed(renumbered(vector_octets("E04"), 1, 2));
  const auto refusal = requester.ulpdus();
  ASSERT_EQ(refusal.size(), 1u);
  EXPECT_EQ(terminate_of(refusal[0]), (Octets{0x02, 7, 0xc0}));
}

// The lines "fetchadd ..." and "cmpswap ..." of the vector file, each as a request that a stream carries out.
TEST(AtomicResponder, DoesTheArithmeticOfTheTable) {
  RecordProperty("proves", "EXT-5.1.1-01 EXT-5.1.1-02 EXT-5.1.1-03 EXT-5.1.2-01 EXT-5.1.2-02");
  std::ifstream file("tests/vectors/rdmap-vectors.txt");
  std::string line;
  std::size_t num = 0;
  ExtVictim v;
  while (std::getline(file, line)) {
    const bool add = line.starts_with("fetchadd ");
    if (!add && !line.starts_with("cmpswap ")) continue;
    SCOPED_TRACE(line);
    std::istringstream in(line);
    std::string word, arrow;
    std::uint64_t original = 0, after = 0;
    rdmap::AtomicRequestHeader request;
    in >> word >> std::hex >> original >> request.operands.add_swap >> request.operands.add_swap_mask;
    if (!add) in >> request.operands.compare >> request.operands.compare_mask;
    in >> arrow >> after;
    ASSERT_TRUE(in && arrow == "->");
    request.aop_code = add ? 0 : 2;
    request.stag = ddp::Stag{kAtomicStag};
    request.to = 0x100;
    const auto body = rdmap::emit_atomic_request_header(request);
    Octets ulpdu = vector_octets("E03");
    std::copy(body.begin(), body.end(), ulpdu.begin() + 18);
    ++num;
    v.set_word(original);
    v.feed(renumbered(ulpdu, static_cast<std::uint32_t>(num), 5));
    const auto sent = v.ulpdus();
    ASSERT_EQ(sent.size(), 1u);
    const auto answer = rdmap::parse_atomic_response_header(ConstBytes(sent[0]).subspan(18));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->original, original);
    EXPECT_EQ(v.word(), after);
  }
  EXPECT_EQ(num, 17u);
}

TEST(AtomicResponder, NumbersAreTheMachinesOwnAndBigEndianOnTheWire) {
  RecordProperty("proves", "EXT-5.1.1-06");
  ExtVictim v;
  auto& octets = v.memory.regions[kAtomicStag].octets;
  std::fill_n(octets.begin(), 8, std::uint8_t{0});
  octets[0] = 1;
  v.feed(vector_octets("E08"));
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  const bool little = std::endian::native == std::endian::little;
  EXPECT_EQ(Octets(sent[0].begin() + 22, sent[0].end()),
            little ? (Octets{0, 0, 0, 0, 0, 0, 0, 1}) : (Octets{1, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(AtomicResponder, ReservedBitsCompareFieldsAndInvalidateStagMeanNothing) {
  RecordProperty("proves", "EXT-5.2.1-02");
  ExtVictim v;
  v.set_word(41);
  Octets request = vector_octets("E03");
  request[18] = request[19] = request[20] = 0xff;
  request[21] = 0xf0;
  for (std::size_t i = 54; i < 70; ++i) request[i] = 0x5a;  // compare data and mask
  request[2] = 0xa3, request[3] = 0xb4, request[4] = 0xc5, request[5] = 0x0a;
  v.feed(request);
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0], vector_octets("E04"));
  EXPECT_EQ(v.word(), 42u);
  EXPECT_TRUE(v.memory.regions[kAtomicStag].valid);
}

TEST(AtomicResponder, IsCarriedOutOnceHoweverOftenItsResponseIsFramed) {
  ExtVictim v;
  v.set_word(41);
  v.feed(vector_octets("E03"));
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(v.stream.tx_buffers(1460, 1 << 20, v.now).empty());
    v.stream.on_tx(0, v.now);
  }
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0], vector_octets("E04"));
  EXPECT_EQ(v.word(), 42u);
}

TEST(AtomicResponder, WaitsForTheReadBeforeItAndTheWriteBeforeItIsSeen) {
  RecordProperty("proves", "EXT-7-06 EXT-5.4-03 EXT-7-08");
  ExtVictim v;
  v.memory.regions[kAtomicStag].octets.assign(64, 0);
  // A Read of 4096 octets, then FetchAdd: the Atomic Response follows the last segment.
  v.feed(vectors::from_hex(
      "4141000000000000000100000001000000006f7081060000000000008000000010002b3c4d020000000000040000"));
  v.feed(renumbered(vector_octets("E03"), 2, 9));
  auto sent = v.ulpdus();
  ASSERT_GE(sent.size(), 4u);
  for (std::size_t i = 0; i + 1 < sent.size(); ++i) EXPECT_EQ(sent[i][1], 0x42);
  EXPECT_EQ(sent[sent.size() - 2][0] & 0x40, 0x40);
  EXPECT_EQ(sent.back()[1], 0x4b);
  // A Write whose last octet is missing, and then comes in front of the request.
  Octets write = vectors::from_hex("c140a3b4c50a0000000000000100");
  std::uint64_t five = 5;
  Octets five_octets(8);
  std::memcpy(five_octets.data(), &five, 8);
  write.insert(write.end(), five_octets.begin(), five_octets.end());
  Octets stream = frame_fpdu(write);
  const Octets request = frame_fpdu(renumbered(vector_octets("E08"), 3, 10));
  const std::size_t cut = stream.size() - 5;  // the payload's last octet is not there either
  stream.insert(stream.end(), request.begin(), request.end());
  v.receive(ConstBytes(stream).first(cut), v.now);
  EXPECT_TRUE(v.ulpdus().empty());
  v.receive(ConstBytes(stream).subspan(cut), v.now);
  sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(rdmap::parse_atomic_response_header(ConstBytes(sent[0]).subspan(18))->original, 5u);
}

TEST(AtomicResponder, ImmediateThatIsNotWholeHoldsBackWhatFollows) {
  RecordProperty("proves", "EXT-7-03");
  const Octets read =
      vectors::from_hex("4141000000000000000100000001000000006f7081060000000000008000000000082b3c4d020000000000040000");
  for (const Octets& first :
       {vector_octets("E01"), vectors::from_hex("41430000000000000000000000010000000061626364")}) {
    for (const bool atomic : {false, true}) {
      ExtVictim v;
      Octets stream = frame_fpdu(first);
      const std::size_t cut = stream.size() - 5;  // its last octet, and the CRC
      const Octets request = frame_fpdu(atomic ? vector_octets("E03") : read);
      stream.insert(stream.end(), request.begin(), request.end());
      v.receive(ConstBytes(stream).first(cut), v.now);
      EXPECT_TRUE(v.ulpdus().empty());
      EXPECT_TRUE(v.completions.empty());
      v.receive(ConstBytes(stream).subspan(cut), v.now);
      v.drain();
      EXPECT_EQ(v.completions.size(), 1u);
      const auto sent = v.ulpdus();
      ASSERT_EQ(sent.size(), 1u);
      EXPECT_EQ(sent[0][1], atomic ? 0x4b : 0x42);
    }
  }
}

// The ULP of the responder does nothing: it takes no event and posts nothing. And a Send behind an Atomic may be
// delivered before the Atomic's response has left.
TEST(AtomicResponder, NeedsNobodyAboveAndHoldsBackNobody) {
  RecordProperty("proves", "EXT-5.2.1-11 EXT-7-05");
  ExtVictim v;
  v.set_word(41);
  v.feed(renumbered(vector_octets("E03"), 1, 1));
  v.feed(vector_octets("R01"));
  const auto out = deframe(v.transmit(v.now));
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0][1] & 0x0f, 11) << "the Atomic Response";
  EXPECT_NE(v.word(), 41u);

  ExtVictim slow;
  slow.feed(renumbered(vector_octets("E03"), 1, 1));
  slow.feed(vector_octets("R01"));
  slow.drain();
  ASSERT_EQ(slow.completions.size(), 1u) << "the Send, while the response waits for its turn to leave";
  EXPECT_EQ(slow.completions[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(slow.ulpdus().size(), 1u);
}

TEST(AtomicResponder, SharesItsSlotsWithReads) {
  RecordProperty("proves", "EXT-5.2.1-10 EXT-5.2.2-03");
  const Octets read =
      vectors::from_hex("4141000000000000000100000001000000006f7081060000000000008000000000082b3c4d020000000000040000");
  for (unsigned mix = 0; mix < 8; ++mix) {  // IRD is 2; one bit for each request: Read or Atomic
    ExtVictim v;
    v.set_word(0);
    for (std::uint32_t i = 0; i < 3; ++i) {
      Octets request = (mix >> i & 1) != 0 ? vector_octets("E03") : read;
      request[13] = static_cast<std::uint8_t>(i + 1);
      v.feed(request);
    }
    const auto sent = v.ulpdus();
    ASSERT_EQ(sent.size(), 1u) << mix;
    EXPECT_EQ(terminate_of(sent[0]), (Octets{0x12, 2, 0xc0})) << mix;
    EXPECT_EQ(v.word(), 0u);
  }
}

TEST(AtomicResponder, AlignmentIsThatOfTheAddress) {
  RecordProperty("proves", "EXT-5.1.1-05 EXT-5.1.2-05 EXT-5.1.2-06 EXT-8.1-02");
  for (const int off : {1, 4}) {
    for (const char* name : {"E03", "E05"}) {
      ExtVictim v;
      const auto before = v.snapshot();
      Octets request = vector_octets(name);
      request[13] = 1;
      request[37] = static_cast<std::uint8_t>(off);  // TO 0x101 or 0x104
      // Any value compares equal.
      for (std::size_t i = 62; i < 70; ++i) request[i] = 0;
      v.feed(request);
      const auto sent = v.ulpdus();
      ASSERT_EQ(sent.size(), 1u);
      EXPECT_EQ(sent[0].size(), 42u);
      EXPECT_EQ(terminate_of(sent[0]), (Octets{0x02, 7, 0xc0}));
      EXPECT_EQ(Octets(sent[0].begin() + 22, sent[0].begin() + 24), (Octets{0, 70}));
      EXPECT_TRUE(std::equal(request.begin(), request.begin() + 18, sent[0].begin() + 24, sent[0].end()));
      EXPECT_TRUE(v.snapshot() == before);
      EXPECT_NE(v.stream.llp_action(), rdmap::LlpAction::kNone);
      v.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
      v.stream.on_rx_eof(v.now);
      v.drain();
      ASSERT_EQ(v.closed.size(), 1u);
      EXPECT_EQ(v.closed[0].terminate, rdmap::kStreamCatastrophic);
    }
  }
  // It is refused when it comes, not when its turn to be carried out has come.
  ExtVictim busy;
  busy.feed(vectors::from_hex(
      "4141000000000000000100000001000000006f7081060000000000008000000010002b3c4d020000000000040000"));
  Octets second = renumbered(vector_octets("E03"), 2, 9);
  second[37] = 0x04;
  busy.feed(second);
  const auto refusal = busy.ulpdus();
  ASSERT_EQ(refusal.size(), 1u) << "no Response of the Read before it";
  EXPECT_EQ(terminate_of(refusal[0]), (Octets{0x02, 7, 0xc0}));
  // A tagged offset that is no multiple of 8 and names an address that is one.
  ExtVictim v;
  v.memory.add_simple(0x77, 7, 0x104, 64);
  Octets request = vector_octets("E03");
  request[26] = request[27] = request[28] = 0, request[29] = 0x77;
  request[37] = 0x04;
  v.feed(request);
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0][1], 0x4b);
}

TEST(AtomicResponder, MemoryTakenAwayBeforeItsTurnDrawsTerminate) {
  ExtVictim v;
  v.feed(vector_octets("E03"));
  v.memory.regions[kAtomicStag].valid = false;
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0], vectors::from_hex("4147000000000000000200000001000000000100c0000046"
                                       "414a00000000000000010000000100000000"));
}

TEST(AtomicRequester, SendsTheVectors) {
  RecordProperty("proves", "EXT-4.1-03 EXT-4.1-09 EXT-5.2.1-01 EXT-5.2.1-03 EXT-5.2.1-07 EXT-5.2.1-09");
  ExtVictim v;
  auto add = fetch_add(1);
  add.compare = 77, add.compare_mask = 3;  // fields that FetchAdd does not use are not sent
  ASSERT_EQ(v.post(atomic_wr(1, add)), rdmap::PostResult::kOk);
  rdmap::AtomicOperands swap{rdmap::AtomicOp::kCmpSwap, 0x2021222324252627, 0x28292a2b2c2d2e2f, 0x3031323334353637,
                             0x38393a3b3c3d3e3f};
  ASSERT_EQ(v.post(atomic_wr(2, swap, 0x108)), rdmap::PostResult::kOk);
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0], renumbered(vector_octets("E03"), 1, 1));
  EXPECT_EQ(sent[1], renumbered(vector_octets("E05"), 2, 2));
  EXPECT_EQ(sent[0].size(), 70u);
  // The answers: identifiers as they came, in order.
  v.feed(renumbered(vector_octets("E04"), 1, 1));
  v.feed(renumbered(vector_octets("E06"), 2, 2));
  v.drain();
  ASSERT_EQ(v.completions.size(), 2u);
  for (const Completion& c : v.completions) {
    EXPECT_EQ(c.status, WorkStatus::kSuccess);
    EXPECT_EQ(c.op, WorkOp::kAtomic);
    EXPECT_EQ(c.byte_len, 8u);
  }
  std::uint64_t original[2];
  std::memcpy(original, &v.memory.regions[kOwnStag].octets[8], sizeof(original));
  EXPECT_EQ(original[0], 0x29u);
  EXPECT_EQ(original[1], 0x4041424344454647u);
  EXPECT_EQ(v.memory.regions[kOwnStag].octets[24], 0xa5);
}

TEST(AtomicRequester, SharesMsnsAndOrdWithReads) {
  RecordProperty("proves", "EXT-5.2-01 EXT-5.4-06");
  Pair pair;
  rdmap::StreamConfig narrow;
  narrow.ord = 1;
  Pair one(narrow, {});
  one.connect();
  one.a.memory.add_simple(kOwnStag, 0, 0x8000, 8192);
  one.b.memory.add_simple(kAtomicStag, 0, 0x100, 64);
  ASSERT_EQ(one.a.stream.post_send(read_wr(1, 8, 0x100, kAtomicStag)), rdmap::PostResult::kOk);
  ASSERT_EQ(one.a.stream.post_send(atomic_wr(2, fetch_add(1))), rdmap::PostResult::kOk);
  ASSERT_EQ(one.a.stream.post_send(read_wr(3, 8, 0x100, kAtomicStag)), rdmap::PostResult::kOk);
  for (std::uint8_t msn = 1; msn <= 3; ++msn) {
    const auto octets = one.a.transmit(one.now);
    const auto sent = deframe(octets);
    ASSERT_EQ(sent.size(), 1u) << "one at a time";
    EXPECT_EQ(sent[0][1], msn == 2 ? 0x4a : 0x41);
    EXPECT_EQ(sent[0][9], 1);
    EXPECT_EQ(sent[0][13], msn);
    one.a.drain();
    EXPECT_EQ(one.a.completions.size(), msn - 1u) << "not before its response";
    one.b.receive(octets, one.now);
    one.a.receive(one.b.transmit(one.now), one.now);
  }
  one.a.drain();
  EXPECT_EQ(one.a.completions.size(), 3u);
}

TEST(AtomicRequester, ResponsesCountAtomicsOnly) {
  RecordProperty("proves", "EXT-5-06 EXT-5.2.2-04 EXT-5.2.2-05 EXT-5.2.1-14 EXT-5.2.1-15");
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(kOwnStag, 0, 0x8000, 8192);
  pair.b.memory.add_simple(kAtomicStag, 0, 0x100, 64).octets.assign(64, 0);
  for (std::uint64_t i = 0; i < 10; ++i) {  // a Read before every second one
    if (i % 2 == 0) {
      ASSERT_EQ(pair.a.stream.post_send(read_wr(50 + i, 8, 0x108, kAtomicStag)), rdmap::PostResult::kOk);
    }
    ASSERT_EQ(pair.a.stream.post_send(atomic_wr(i, fetch_add(1))), rdmap::PostResult::kOk);
  }
  const auto requests = pair.a.transmit(pair.now);
  std::uint8_t request_msn = 0, num_atomics = 0;
  for (const Octets& ulpdu : deframe(requests)) {
    EXPECT_EQ(ulpdu[9], 1);
    EXPECT_EQ(ulpdu[13], ++request_msn);
    if (ulpdu[1] != 0x4a) continue;
    EXPECT_EQ(ulpdu[25], request_msn) << "our identifier";
    ++num_atomics;
  }
  EXPECT_EQ(num_atomics, 10);
  pair.b.receive(requests, pair.now);
  const auto octets = pair.b.transmit(pair.now);
  std::uint8_t msn = 0;
  for (const Octets& ulpdu : deframe(octets)) {
    if (ulpdu[1] != 0x4b) continue;
    ++msn;
    EXPECT_EQ(ulpdu[9], 3);
    EXPECT_EQ(ulpdu[13], msn);
    EXPECT_EQ(ulpdu[21], msn + (msn + 1) / 2) << "which request it answers";
  }
  EXPECT_EQ(msn, 10);
  pair.a.receive(octets, pair.now);  // all in one burst
  pair.a.drain();
  ASSERT_EQ(pair.a.completions.size(), 15u);
  for (std::uint64_t i = 0; i < 10; ++i) {
    std::uint64_t original = 0;
    std::memcpy(&original, &pair.a.memory.regions[kOwnStag].octets[static_cast<std::size_t>(8 * i)], 8);
    EXPECT_EQ(original, i);
  }
}

TEST(AtomicRequester, ChainOfSwapsSucceeds) {
  RecordProperty("proves", "EXT-5.4-07 EXT-7-07");
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(kOwnStag, 0, 0x8000, 8192);
  auto& target = pair.b.memory.add_simple(kAtomicStag, 0, 0x100, 64);
  target.octets.assign(64, 0);
  for (std::uint64_t i = 0; i < 3; ++i)
    ASSERT_EQ(pair.a.stream.post_send(atomic_wr(i, cmp_swap(i, i + 1))), rdmap::PostResult::kOk);
  pair.run();
  ASSERT_EQ(pair.a.completions.size(), 3u);
  std::uint64_t original[3];
  std::memcpy(original, pair.a.memory.regions[kOwnStag].octets.data(), sizeof(original));
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(original[i], i);
  std::uint64_t now = 0;
  std::memcpy(&now, target.octets.data(), sizeof(now));
  EXPECT_EQ(now, 3u);
}

TEST(AtomicRequester, ProbeTellsWhoKnowsTheExtensions) {
  RecordProperty("proves", "EXT-1.1-02");
  for (const bool knows : {true, false}) {
    rdmap::StreamConfig config;
    config.rfc7306 = knows;
    Pair pair({}, config);
    pair.connect();
    pair.a.memory.add_simple(kOwnStag, 0, 0x8000, 8192);
    auto& target = pair.b.memory.add_simple(kAtomicStag, 0, 0x100, 64);
    const Octets before = target.octets;
    ASSERT_EQ(pair.a.stream.post_send(atomic_wr(1, fetch_add(0))), rdmap::PostResult::kOk);
    pair.run();
    EXPECT_EQ(target.octets, before);
    ASSERT_EQ(pair.a.completions.size(), 1u);
    if (knows) {
      EXPECT_EQ(pair.a.completions[0].status, WorkStatus::kSuccess);
      EXPECT_EQ(pair.a.memory.regions[kOwnStag].octets[8], 0xa5);
    } else {
      EXPECT_EQ(pair.a.completions[0].status, WorkStatus::kRemoteOperation);
      EXPECT_EQ(pair.a.completions[0].terminate, rdmap::kUnexpectedOpcode);
      EXPECT_EQ(pair.a.closed.size(), 1u);
    }
  }
}

TEST(AtomicRequester, RefusedByProtectionIsARemoteAccessError) {
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(kOwnStag, 0, 0x8000, 8192);
  pair.b.memory.add_simple(kAtomicStag, 0, 0x100, 64).remote_write = false;
  ASSERT_EQ(pair.a.stream.post_send(atomic_wr(1, fetch_add(1))), rdmap::PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(atomic_wr(2, fetch_add(1))), rdmap::PostResult::kOk);
  pair.run();
  ASSERT_EQ(pair.a.completions.size(), 2u);
  EXPECT_EQ(pair.a.completions[0].status, WorkStatus::kRemoteAccess);
  EXPECT_EQ(pair.a.completions[0].terminate, rdmap::kReadAccessRights);
  EXPECT_EQ(pair.a.completions[1].status, WorkStatus::kFlushed);
}

TEST(AtomicRequester, ResultWithoutMemoryIsALocalFault) {
  ExtVictim v;
  ASSERT_EQ(v.post(atomic_wr(1, fetch_add(1))), rdmap::PostResult::kOk);
  v.ulpdus();
  v.memory.regions.erase(kOwnStag);
  v.feed(renumbered(vector_octets("E04"), 1, 1));
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(terminate_of(sent[0]), (Octets{0x10, 0, 0xc0}));
  ASSERT_EQ(v.completions.size(), 1u);
  EXPECT_EQ(v.completions[0].status, WorkStatus::kLocalProtection);
}

TEST(AtomicRequester, RequestsThatMakeNoSenseAreRefused) {
  ExtVictim v;
  SendWr wr = atomic_wr(1, fetch_add(1));
  wr.sg_list[0].len = 7;
  EXPECT_EQ(v.post(wr), rdmap::PostResult::kInvalid);
  wr = atomic_wr(1, fetch_add(1));
  wr.args = {};
  EXPECT_EQ(v.post(wr), rdmap::PostResult::kInvalid);
  ExtVictim plain(SIZE_MAX, false);
  EXPECT_EQ(plain.post(atomic_wr(1, fetch_add(kOnes))), rdmap::PostResult::kInvalid);
  EXPECT_EQ(plain.post(immediate_wr(1, {})), rdmap::PostResult::kInvalid);
}

}  // namespace
}  // namespace weft::sim
