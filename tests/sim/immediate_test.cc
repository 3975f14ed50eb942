// Immediate Data (RFC 7306 section 6), and every way to break the rules of RFC 7306.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/sim/rfc7306.h"

namespace weft::sim {
namespace {

using rdmap::Completion;
using rdmap::ImmediateData;
using rdmap::SendOp;
using rdmap::SendWr;
using rdmap::WorkOp;
using rdmap::WorkStatus;
using rdmap::testing::Pair;

constexpr ImmediateData kFirst = {1, 2, 3, 4, 5, 6, 7, 8};
constexpr ImmediateData kSecond = {0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff};

TEST(Immediate, SourceSendsTheVectors) {
  RecordProperty("proves", "EXT-4.1-01 EXT-6.1-01 EXT-6.2-01 EXT-6.3-01");
  ExtVictim v;
  ASSERT_EQ(v.post(immediate_wr(1, kFirst)), rdmap::PostResult::kOk);
  ASSERT_EQ(v.post(immediate_wr(2, kSecond, true)), rdmap::PostResult::kOk);
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0], vector_octets("E01"));
  EXPECT_EQ(sent[1], vector_octets("E02"));
  ASSERT_EQ(v.completions.size(), 2u);
  EXPECT_EQ(v.completions[0].wr_id, 1u);
  EXPECT_EQ(v.completions[0].op, WorkOp::kSend);
  EXPECT_EQ(v.stream.counters().immediates_tx, 2u);
  SendWr wr = immediate_wr(3, kFirst);
  wr.args = {};
  EXPECT_EQ(v.post(wr), rdmap::PostResult::kInvalid);
  wr = immediate_wr(3, kFirst);
  wr.sg_list = {{0, 8, ddp::Stag{kRecvStag}}};
  EXPECT_EQ(v.post(wr), rdmap::PostResult::kInvalid);
}

TEST(Immediate, SinkTakesTheVectors) {
  RecordProperty("proves", "EXT-4.1-02");
  for (const std::size_t chunk : {SIZE_MAX, std::size_t{1}, std::size_t{11}}) {
    ExtVictim v(chunk);
    v.feed(vector_octets("E01"));
    v.feed(vector_octets("E02"));
    v.drain();
    ASSERT_EQ(v.completions.size(), 2u);
    EXPECT_EQ(v.completions[0].immediate, kFirst);
    EXPECT_EQ(v.completions[1].immediate, kSecond);
    EXPECT_FALSE(v.completions[0].solicited);
    EXPECT_TRUE(v.completions[1].solicited);
    EXPECT_EQ(v.completions[0].wr_id, 100u);
    EXPECT_EQ(v.completions[0].byte_len, 8u);
    const auto& memory = v.memory.regions[kRecvStag].octets;
    EXPECT_TRUE(std::equal(kFirst.begin(), kFirst.end(), memory.begin()));
    EXPECT_TRUE(std::equal(kSecond.begin(), kSecond.end(), memory.begin() + 64));
    EXPECT_EQ(memory[8], 0xa5);
    EXPECT_EQ(v.stream.counters().immediates_rx, 2u);
  }
  // The source's side of the same, with the solicited event: 41 49.
  ExtVictim source;
  ASSERT_EQ(source.post(immediate_wr(2, kSecond, true)), rdmap::PostResult::kOk);
  const auto sent = source.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(Octets(sent[0].begin(), sent[0].begin() + 2), (Octets{0x41, 0x49}));
  EXPECT_EQ(sent[0].size(), 26u);
}

TEST(Immediate, ReceiveWithoutRoomKeepsItInTheCompletion) {
  ExtVictim v;
  v.recvs.posted.clear();
  v.recvs.post(7);
  v.recvs.post(8, {{0, 7, ddp::Stag{kRecvStag}}});
  const auto before = v.snapshot();
  v.feed(vector_octets("E01"));
  v.feed(vector_octets("E02"));
  v.drain();
  ASSERT_EQ(v.completions.size(), 2u);
  EXPECT_EQ(v.completions[0].immediate, kFirst);
  EXPECT_EQ(v.completions[1].immediate, kSecond);
  EXPECT_EQ(v.completions[0].byte_len, 0u);
  EXPECT_TRUE(v.snapshot() == before);
}

TEST(Immediate, CountsAmongTheSendsInOrder) {
  RecordProperty("proves", "EXT-6.3-02 EXT-6.3-03 EXT-6.4-01 EXT-7-01");
  Pair pair;
  pair.connect();
  pair.a.memory.add_simple(kRecvStag, 0, 0, 64);
  pair.b.memory.add_simple(kRecvStag, 0, 0, 4096);
  for (std::uint64_t i = 0; i < 6; ++i) pair.b.recvs.post(i, {{64 * i, 64, ddp::Stag{kRecvStag}}});
  for (std::uint8_t i = 0; i < 6; ++i) {
    SendWr send;
    send.sg_list = {{0, 4, ddp::Stag{kRecvStag}}};
    SendWr wr = i % 2 == 1 || i == 4 ? immediate_wr(i, {i}) : send;
    wr.wr_id = i;
    ASSERT_EQ(pair.a.stream.post_send(wr), rdmap::PostResult::kOk);
  }
  const auto octets = pair.a.transmit(pair.now);
  std::uint8_t msn = 0;
  for (const Octets& ulpdu : deframe(octets)) EXPECT_EQ(ulpdu[13], ++msn);
  EXPECT_EQ(msn, 6);
  pair.b.receive(octets, pair.now);
  pair.run();
  ASSERT_EQ(pair.b.completions.size(), 6u);
  EXPECT_EQ(pair.b.recvs.num_taken, 6u);
  for (std::uint8_t i = 0; i < 6; ++i) {
    EXPECT_EQ(pair.b.completions[i].wr_id, i);
    const bool immediate = i % 2 == 1 || i == 4;
    ASSERT_EQ(pair.b.completions[i].immediate.has_value(), immediate);
    if (immediate) {
      EXPECT_EQ((*pair.b.completions[i].immediate)[0], i);
    }
    EXPECT_EQ(pair.a.completions[i].wr_id, i);
  }
}

TEST(Immediate, BehindAWriteItTellsThatTheDataIsThere) {
  RecordProperty("proves", "EXT-6-01 EXT-7-04");
  Pair pair;
  pair.emss = 600;
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 5000).octets.assign(5000, 7);
  auto& sink = pair.b.memory.add_simple(2, 0, 0x1000, 5000);
  pair.b.recvs.post(9);
  SendWr wr;
  wr.wr_id = 1;
  wr.op = SendOp::kWriteImmediate;
  wr.sg_list = {{0, 5000, ddp::Stag{1}}};
  wr.remote_stag = ddp::Stag{2};
  wr.remote_to = 0x1000;
  wr.args = kFirst;
  ASSERT_EQ(pair.a.stream.post_send(wr), rdmap::PostResult::kOk);
  const auto octets = pair.a.transmit(pair.now, 600, 777);  // cut and framed again
  const auto ulpdus = deframe(octets);
  EXPECT_EQ(ulpdus.back()[1], 0x48);
  std::size_t tail = frame_fpdu(ulpdus.back()).size();
  // Without the Write's last octet nothing is complete.
  const ConstBytes all(octets);
  pair.b.receive(all.first(all.size() - tail - 5), pair.now);
  pair.b.drain();
  EXPECT_TRUE(pair.b.completions.empty());
  pair.b.receive(all.subspan(all.size() - tail - 5), pair.now);
  pair.b.drain();
  ASSERT_EQ(pair.b.completions.size(), 1u);
  EXPECT_EQ(pair.b.completions[0].immediate, kFirst);
  EXPECT_EQ(sink.octets, Octets(5000, 7));
  pair.a.drain();
  ASSERT_EQ(pair.a.completions.size(), 1u);
  EXPECT_EQ(pair.a.completions[0].op, WorkOp::kRdmaWrite);
  EXPECT_EQ(pair.a.stream.counters().writes_tx, 1u);
  EXPECT_EQ(pair.a.stream.counters().write_octets_tx, 5000u);
}

TEST(Rfc7306, AllFourHaveTheirLengthsAndNoInvalidateStag) {
  RecordProperty("proves", "EXT-4-01 EXT-4.1-05 EXT-4.1-06 EXT-4.1-07");
  ExtVictim v;
  v.set_word(41);
  ASSERT_EQ(v.post(immediate_wr(1, kFirst)), rdmap::PostResult::kOk);
  ASSERT_EQ(v.post(immediate_wr(2, kSecond, true)), rdmap::PostResult::kOk);
  ASSERT_EQ(v.post(atomic_wr(3, fetch_add(1))), rdmap::PostResult::kOk);
  v.feed(vector_octets("E03"));
  auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 4u);
  std::sort(sent.begin(), sent.end(), [](const Octets& a, const Octets& b) { return a[1] < b[1]; });
  const std::size_t lens[] = {26, 26, 70, 30};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sent[i][0], 0x41);
    EXPECT_EQ(sent[i][1], 0x48 + i);
    EXPECT_EQ(sent[i].size(), lens[i]);
    EXPECT_EQ(Octets(sent[i].begin() + 2, sent[i].begin() + 6), Octets(4, 0));
    // The version is 01b, and no other is taken.
    ExtVictim other;
    Octets bad = sent[i];
    bad[1] = static_cast<std::uint8_t>(bad[1] & 0x3f);
    other.feed(bad);
    const auto refusal = other.ulpdus();
    ASSERT_EQ(refusal.size(), 1u);
    EXPECT_EQ(terminate_of(refusal[0]), (Octets{0x02, 5, 0xc0}));
  }
}

TEST(Rfc7306, InvalidateStagIsNotActedOn) {
  RecordProperty("proves", "EXT-4.1-08");
  for (const char* name : {"E01", "E02", "E03", "E04"}) {
    SCOPED_TRACE(name);
    ExtVictim v;
    v.memory.add(0x3c4d5e03, {7, {1}, 0, true, true, true, Octets(64)});  // the peer could invalidate it
    ASSERT_EQ(v.post(atomic_wr(1, fetch_add(1))), rdmap::PostResult::kOk);
    v.ulpdus();
    Octets ulpdu = vector_octets(name);
    ulpdu[2] = 0x3c, ulpdu[3] = 0x4d, ulpdu[4] = 0x5e, ulpdu[5] = 0x03;
    ulpdu[13] = 1;
    v.feed(name[2] == '4' ? renumbered(ulpdu, 1, 1) : ulpdu);
    const auto sent = v.ulpdus();
    EXPECT_EQ(sent.size(), name[2] == '3' ? 1u : 0u);
    EXPECT_EQ(v.completions.size(), name[2] == '3' ? 0u : 1u);
    for (const Completion& c : v.completions) {
      EXPECT_EQ(c.status, WorkStatus::kSuccess);
      EXPECT_FALSE(c.invalidated);
    }
    EXPECT_EQ(v.stream.llp_action(), rdmap::LlpAction::kNone);
    EXPECT_TRUE(v.memory.regions[0x3c4d5e03].valid);
  }
}

void expect_refused(ExtVictim& v, const Octets& bad, const Octets& terminate) {
  v.drain();
  const std::size_t num_good = v.completions.size();
  const auto memory = v.snapshot();
  v.feed(bad);
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(terminate_of(sent[0]), terminate);
  EXPECT_TRUE(v.snapshot() == memory);
  for (std::size_t i = num_good; i < v.completions.size(); ++i)
    EXPECT_NE(v.completions[i].status, WorkStatus::kSuccess);
  EXPECT_NE(v.stream.llp_action(), rdmap::LlpAction::kNone);
}

TEST(Rfc7306, HostileVectorsDrawTheirTerminates) {
  RecordProperty("proves", "EXT-8.2-02");
  std::size_t num_run = 0;
  for (const auto& record : vectors::read_vector_file("tests/vectors/rdmap-vectors.txt")) {
    const std::string state = record.find("state").value_or("");
    if (record.name[0] != 'H' || state.find("+EXT") == std::string::npos) continue;
    ++num_run;
    for (const bool later : {false, true}) {
      for (const std::size_t chunk : {SIZE_MAX, std::size_t{1}, std::size_t{11}}) {
        SCOPED_TRACE(record.name + " in chunks of " + std::to_string(chunk));
        ExtVictim v(chunk);
        if (state.find("+ATOM") != std::string::npos) {
          ASSERT_EQ(v.post(atomic_wr(1, fetch_add(1))), rdmap::PostResult::kOk);
          ASSERT_EQ(v.ulpdus().size(), 1u);
        }
        if (later) v.feed(vectors::from_hex("c140000000000000000000000000"));  // an empty Write
        const Octets bad = vectors::from_hex(*record.find("hex"));
        const Octets expected = vectors::from_hex(*record.find("expect.hex"));
        const auto memory = v.snapshot();
        v.feed(bad);
        const auto sent = v.ulpdus();
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent[0], expected);
        EXPECT_TRUE(v.snapshot() == memory);
        for (const Completion& c : v.completions) EXPECT_NE(c.status, WorkStatus::kSuccess);
        if (state.find("+ATOM") != std::string::npos) {
          EXPECT_EQ(v.completions.size(), 1u);
        }
        EXPECT_NE(v.stream.llp_action(), rdmap::LlpAction::kNone);
      }
    }
  }
  EXPECT_EQ(num_run, 7u);
}

TEST(Rfc7306, LengthsAreExact) {
  RecordProperty("proves", "EXT-6.3-04 EXT-4.2-01 EXT-4.1-10 EXT-5.2.2-06");
  for (const std::size_t len : {0u, 7u, 9u, 16u}) {
    for (const int opcode : {0x48, 0x49}) {
      SCOPED_TRACE(len);
      ExtVictim v;
      Octets bad = vector_octets("E01");
      bad[1] = static_cast<std::uint8_t>(opcode);
      bad.resize(18 + len);
      expect_refused(v, bad, {0x02, 7, 0xc0});
      ASSERT_EQ(v.completions.size(), 1u);
      EXPECT_EQ(v.completions[0].wr_id, 100u);
    }
  }
  for (const auto& [name, len, etype, code] :
       {std::tuple("E03", 51u, 0x02, 7), {"E03", 53u, 0x12, 5}, {"E04", 11u, 0x02, 7}, {"E04", 13u, 0x12, 5}}) {
    SCOPED_TRACE(name);
    ExtVictim v;
    ASSERT_EQ(v.post(atomic_wr(1, fetch_add(1))), rdmap::PostResult::kOk);
    v.ulpdus();
    Octets bad = vector_octets(name);
    if (name[2] == '4') bad = renumbered(bad, 1, 1);
    bad.resize(18 + len);
    expect_refused(v, bad, {static_cast<std::uint8_t>(etype), static_cast<std::uint8_t>(code), 0xc0});
    ASSERT_EQ(v.completions.size(), 1u) << "our own Atomic ends too";
    EXPECT_EQ(v.completions[0].op, WorkOp::kAtomic);
  }
}

TEST(Rfc7306, MessagesInPiecesAreRefused) {
  for (const char* name : {"E01", "E03"}) {
    ExtVictim v;
    Octets bad = vector_octets(name);
    bad[0] = 0x01;  // L=0
    expect_refused(v, bad, {0x02, 7, 0xc0});
  }
  // A Response that is right in all else, to an Atomic that waits for it.
  ExtVictim v;
  ASSERT_EQ(v.post(atomic_wr(1, fetch_add(1))), rdmap::PostResult::kOk);
  v.ulpdus();
  Octets bad = renumbered(vector_octets("E04"), 1, 1);
  bad[0] = 0x01;
  expect_refused(v, bad, {0x02, 7, 0xc0});
  ASSERT_EQ(v.completions.size(), 1u) << "our own Atomic ends too";
  EXPECT_EQ(v.completions[0].op, WorkOp::kAtomic);
}

TEST(Rfc7306, ReservedOperationsAreRefused) {
  RecordProperty("proves", "EXT-5.2.1-13");
  for (std::uint8_t code = 0; code < 16; ++code) {
    if (code == 0 || code == 2) continue;
    ExtVictim v;
    Octets bad = vector_octets("E03");
    bad[21] = code;
    expect_refused(v, bad, {0x02, 6, 0xc0});
  }
  for (std::uint8_t opcode = 12; opcode < 16; ++opcode) {
    ExtVictim v;
    Octets bad = vector_octets("E01");
    bad[1] = static_cast<std::uint8_t>(0x40 | opcode);
    expect_refused(v, bad, {0x02, 6, 0xc0});
  }
  ExtVictim v;
  Octets bad = vector_octets("E01");
  bad[9] = 4;  // queue
  expect_refused(v, bad, {0x12, 1, 0xc0});
}

TEST(Rfc7306, AllHeaderFieldsAreChecked) {
  RecordProperty("proves", "EXT-8.2-01");
  for (const char* name : {"E01", "E02", "E03", "E04"}) {
    const auto refused = [&](std::size_t at, std::uint8_t value, const Octets& terminate) {
      SCOPED_TRACE(std::string(name) + " octet " + std::to_string(at));
      ExtVictim v;
      ASSERT_EQ(v.post(atomic_wr(1, fetch_add(1))), rdmap::PostResult::kOk);
      v.ulpdus();
      Octets bad = vector_octets(name);
      bad[13] = 1;
      if (name[2] == '4') bad = renumbered(bad, 1, 1);
      bad[at] = value;
      expect_refused(v, bad, terminate);
    };
    const std::uint8_t opcode = vector_octets(name)[1] & 0x0f;
    for (const int rv : {0x00, 0x80, 0xc0}) refused(1, static_cast<std::uint8_t>(rv | opcode), {0x02, 5, 0xc0});
    refused(0, 0x42, {0x12, 6, 0xc0});  // DV
    refused(9, 2, {0x02, 6, 0xc0});     // QN of another kind
    refused(9, 9, {0x12, 1, 0xc0});     // QN that does not exist
    for (const int msn : {0, 2, 7}) refused(13, static_cast<std::uint8_t>(msn), {0x12, 3, 0xc0});
    refused(17, 1, {0x12, 4, 0xc0});  // MO
  }
}

TEST(Rfc7306, AnswersOutOfTheirTurnAreRefused) {
  ExtVictim v;  // a Read is due first
  ASSERT_EQ(v.post(read_wr(1, 8)), rdmap::PostResult::kOk);
  ASSERT_EQ(v.post(atomic_wr(2, fetch_add(1))), rdmap::PostResult::kOk);
  v.ulpdus();
  expect_refused(v, renumbered(vector_octets("E04"), 1, 2), {0x12, 2, 0xc0});
  ExtVictim w;  // an Atomic is
  ASSERT_EQ(w.post(atomic_wr(1, fetch_add(1))), rdmap::PostResult::kOk);
  ASSERT_EQ(w.post(read_wr(2, 8)), rdmap::PostResult::kOk);
  w.ulpdus();
  expect_refused(w, vectors::from_hex("c1426f70810600000000000088000102030405060708"), {0x11, 0, 0xc0});
}

TEST(Rfc7306, SwitchedOffItIsUnknown) {
  for (const char* name : {"E01", "E02", "E03"}) {
    ExtVictim v(SIZE_MAX, false);
    Octets ulpdu = vector_octets(name);
    ulpdu[13] = 1;
    expect_refused(v, ulpdu, {0x02, 6, 0xc0});
  }
  ExtVictim v(SIZE_MAX, false);
  expect_refused(v, vector_octets("E04"), {0x12, 1, 0xc0});
}

TEST(Rfc7306, LocalFaultSendsABareTerminateInstead) {
  RecordProperty("proves", "EXT-8.1-01");
  ExtVictim v;
  SendWr write;
  write.wr_id = 1;
  write.op = SendOp::kWriteImmediate;
  write.sg_list = {{0, 8, ddp::Stag{0x999}}};  // an unknown key
  write.remote_stag = ddp::Stag{5};
  write.args = kFirst;
  ASSERT_EQ(v.post(write), rdmap::PostResult::kOk);
  ASSERT_EQ(v.post(atomic_wr(2, fetch_add(1))), rdmap::PostResult::kOk);
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u) << "neither Immediate nor Atomic";
  EXPECT_EQ(sent[0].size(), 22u);
  EXPECT_EQ(terminate_of(sent[0]), (Octets{0, 0, 0}));
  ASSERT_EQ(v.completions.size(), 2u);
  EXPECT_EQ(v.completions[0].status, WorkStatus::kLocalProtection);
}

}  // namespace
}  // namespace weft::sim
