// Every hostile record of rdmap-vectors.txt and ddp-vectors.txt that a stream of this part can meet: the Terminate that
// answers it, octet for octet; that no memory changed; that everything outstanding ended.
#include <gtest/gtest.h>

#include <set>

#include "tests/sim/victim.h"
#include "tests/vectors/vector_file.h"

namespace weft::sim {
namespace {

using rdmap::CloseReason;
using rdmap::Completion;
using rdmap::SendOp;
using rdmap::SendWr;
using rdmap::WorkOp;
using rdmap::WorkStatus;
using rdmap::testing::FakeMemory;
using vectors::Record;

constexpr std::size_t kChunks[] = {SIZE_MAX, 1, 11};
constexpr std::uint32_t kRecvKey = 0x11;

FakeMemory::Region region(std::uint32_t pd, std::vector<std::uint32_t> streams, std::uint64_t base, std::size_t len,
                          bool read, bool write, bool valid = true) {
  return {pd, std::move(streams), base, read, write, valid, Octets(len, 0xa5)};
}

// The receives of both files: the lengths given, one behind the other in one region.
void post_receives(Victim& v, const std::vector<std::uint32_t>& lens) {
  std::uint64_t addr = 0;
  for (std::uint64_t i = 0; i < lens.size(); ++i) {
    v.recvs.post(100 + i, {{addr, lens[i], ddp::Stag{kRecvKey}}});
    addr += lens[i];
  }
  v.memory.add(kRecvKey, region(7, {}, 0, addr + 64, false, false));
}

void post_read(Victim& v, std::uint32_t sink, std::uint64_t sink_to) {
  SendWr wr;
  wr.wr_id = 55;
  wr.op = SendOp::kRdmaRead;
  wr.sg_list = {{sink_to, 16, ddp::Stag{sink}}};
  wr.remote_stag = ddp::Stag{0x99};
  ASSERT_EQ(v.stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
  ASSERT_EQ(v.ulpdus().size(), 1u);
}

// State S0 of rdmap-vectors.txt.
void set_rdmap_state(Victim& v, const std::string& state) {
  v.memory.add(0x1a2b3c01, region(7, {}, 0x1000, 4096, false, true));
  v.memory.add(0x2b3c4d02, region(7, {}, 0x40000, 8192, true, false));
  v.memory.add(0x3c4d5e03, region(7, {1}, 0, 4096, true, true));
  v.memory.add(0x4d5e6f04, region(9, {}, 0, 4096, true, true));
  v.memory.add(0x5e6f7005, region(7, {2}, 0, 4096, true, true));
  v.memory.add(0x6f708106, region(7, {}, 0x8000, 8192, false, false));
  v.memory.add(0x70819207, region(7, {1}, 0, 4096, true, true, false));
  v.memory.add(0x8192a308, region(7, {1, 2}, 0, 4096, true, true));
  v.memory.add(0x92a3b409, region(7, {}, 0xfffffffffffff000, 4080, true, true));
  v.memory.add(0xa3b4c50a, region(7, {}, 0x100, 64, true, true));
  post_receives(v, {64, 64, 64, 8});
  if (state.find("+READ") != std::string::npos) post_read(v, 0x6f708106, 0x8000);
}

// State S0 of ddp-vectors.txt.
void set_ddp_state(Victim& v, const std::string& state) {
  v.memory.add(0x1a2b3c01, region(7, {}, 0x7f0000001000, 8192, false, true));
  v.memory.add(0x5d6e7f02, region(7, {}, 0, 4096, true, true));
  v.memory.add(0x33445503, region(9, {}, 0, 4096, false, true));
  v.memory.add(0x77889904, region(7, {2}, 0, 4096, false, true));
  v.memory.add(0x0badf005, region(7, {}, 0, 4096, true, false));
  v.memory.add(0x0c0ffe06, region(7, {}, 0, 4096, false, false));
  v.memory.add(0x2468ac07, region(7, {}, 0, 4096, false, true, false));
  v.memory.add(0x9abcde08, region(7, {}, 0, 65536, false, true));
  if (state.find("+NOBUF") == std::string::npos) post_receives(v, {4096, 4096, 4096, 64});
  if (state.find("+READ") != std::string::npos) post_read(v, 0x0c0ffe06, 0x100);
}

std::vector<Octets> snapshot(const Victim& v) {
  std::vector<Octets> all;
  for (const auto& [stag, region] : v.memory.regions) all.push_back(region.octets);
  return all;
}

bool is_terminate(const Octets& ulpdu) {
  return ulpdu.size() >= 18 && (ulpdu[1] & 0x0f) == 7;
}

// Ends the connection from the peer's side and checks that everything ended once, Closed last.
void expect_ended(Victim& v, bool read_posted) {
  if (v.stream.llp_action() == rdmap::LlpAction::kShutdownWrite)
    v.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
  v.stream.on_rx_eof(v.now);
  v.drain();
  EXPECT_EQ(v.closed.size(), 1u);
  EXPECT_EQ(v.stream.llp_action(), rdmap::LlpAction::kClose);
  std::size_t num_recvs = 0, num_reads = 0;
  for (const Completion& c : v.completions) ++(c.op == WorkOp::kRecv ? num_recvs : num_reads);
  EXPECT_EQ(num_recvs, v.recvs.num_taken);
  EXPECT_EQ(num_reads, read_posted ? 1u : 0u);
}

void run_refused(Victim& v, const std::vector<Octets>& before, const Octets& bad, const std::vector<Octets>& after,
                 const Octets& expected) {
  for (const Octets& ulpdu : before) v.feed(ulpdu);
  v.drain();
  const std::size_t num_good = v.completions.size();
  const auto memory = snapshot(v);
  v.feed(bad);
  for (const Octets& ulpdu : after) v.feed(ulpdu);
  v.drain();
  EXPECT_TRUE(snapshot(v) == memory) << "memory changed";
  for (std::size_t i = num_good; i < v.completions.size(); ++i) {
    EXPECT_NE(v.completions[i].status, WorkStatus::kSuccess);
    EXPECT_TRUE(v.completions[i].terminate.has_value());
  }
  const auto sent = v.ulpdus();
  ASSERT_EQ(sent.size(), 1u) << "nothing but the Terminate, and that once";
  EXPECT_EQ(sent.back(), expected);
  EXPECT_FALSE(v.stream.wants_tx());
}

std::vector<Octets> segments(const Record& record) {
  if (const auto one = record.octets("")) return {*one};
  if (record.find("hex")) return {vectors::from_hex(*record.find("hex"))};
  std::vector<Octets> all;
  for (int i = 1; record.find("seg" + std::to_string(i) + ".hex"); ++i)
    all.push_back(*record.octets("seg" + std::to_string(i)));
  return all;
}

TEST(Hostile, RdmapVectorsDrawTheirTerminates) {
  RecordProperty("proves",
                 "RDMAP-7.2-01 RDMAP-7.2-02 RDMAP-7.2-03 RDMAP-7.2-04 RDMAP-7.2-05 RDMAP-7.2-06 RDMAP-7.2-07 "
                 "RDMAP-7.2-08 RDMAP-7.2-09 RDMAP-7.1-03 RDMAP-7.1-04 RDMAP-4.8-16 RDMAP-4.8-18 RDMAP-4.8-19 "
                 "RDMAP-5.3-15 RDMAP-6.1-08 RDMAP-8.1.1-01 RDMAP-8.1.1-02 RDMAP-8.1.1-03 RDMAP-8.1.1-06");
  std::size_t num_run = 0;
  for (const Record& record : vectors::read_vector_file("tests/vectors/rdmap-vectors.txt")) {
    const std::string state = record.find("state").value_or("");
    if (record.name[0] != 'H' || !state.starts_with("S0") || state.find("+EXT") != std::string::npos) continue;
    if (record.find("term") == "none") continue;
    ++num_run;
    for (std::size_t chunk : kChunks) {
      SCOPED_TRACE(record.name + " in chunks of " + std::to_string(chunk));
      Victim v(chunk);
      set_rdmap_state(v, state);
      auto before = segments(record);
      ASSERT_FALSE(before.empty());
      const Octets bad = before.back();
      before.pop_back();
      run_refused(v, before, bad, {}, vectors::from_hex(*record.find("expect.hex")));
      expect_ended(v, state.find("+READ") != std::string::npos);
      EXPECT_EQ(v.closed[0].reason, CloseReason::kTerminateSent);
    }
  }
  EXPECT_GE(num_run, 35u);
}

TEST(Hostile, DdpVectorsDrawTheirTerminates) {
  RecordProperty("proves",
                 "RDMAP-3.1-07 RDMAP-4.8-14 RDMAP-4.8-15 RDMAP-4.8-25 RDMAP-7-02 RDMAP-7.1-05 DDP-7.1-01 DDP-7.1-13 "
                 "DDP-7.1-14 DDP-7.1-15");
  std::size_t num_run = 0;
  for (const Record& record : vectors::read_vector_file("tests/vectors/ddp-vectors.txt")) {
    const std::string state = record.find("state").value_or("");
    const auto term = record.find("term.hex");
    if (!term || state.find("+WRAP") != std::string::npos) continue;  // 2^32 messages away from a fresh stream
    ++num_run;
    for (std::size_t chunk : kChunks) {
      SCOPED_TRACE(record.name + " in chunks of " + std::to_string(chunk));
      Victim v(chunk);
      set_ddp_state(v, state);
      std::vector<Octets> before, after;
      for (int i = 1; const auto pre = record.octets("pre" + std::to_string(i)); ++i) before.push_back(*pre);
      for (int i = 1; const auto post = record.octets("post" + std::to_string(i)); ++i) after.push_back(*post);
      Octets expected = vectors::from_hex(*term);
      // MPA refuses a ULPDU_Length of 0 itself (notes A-08), before DDP could.
      if (record.name == "R12") expected = vectors::from_hex("41470000000000000002000000010000000020030000");
      run_refused(v, before, record.octets("seg").value(), after, expected);
      expect_ended(v, state.find("+READ") != std::string::npos);
    }
  }
  EXPECT_GE(num_run, 40u);
}

TEST(Hostile, RdmapVectorsThatDrawNoTerminate) {
  RecordProperty("proves",
                 "RDMAP-4.1-10 RDMAP-4.1-12 RDMAP-4.8-13 RDMAP-5.1-09 RDMAP-5.2.1-14 RDMAP-5.2.1-15 RDMAP-5.4-07 "
                 "RDMAP-4.4-03");
  const std::set<std::string> alive = {"H11", "H22", "H39"};
  std::size_t num_run = 0;
  for (const Record& record : vectors::read_vector_file("tests/vectors/rdmap-vectors.txt")) {
    const std::string state = record.find("state").value_or("");
    if (record.name[0] != 'H' || state != "S0" || record.find("term") != "none") continue;
    ++num_run;
    for (std::size_t chunk : kChunks) {
      SCOPED_TRACE(record.name + " in chunks of " + std::to_string(chunk));
      Victim v(chunk);
      set_rdmap_state(v, state);
      for (const Octets& ulpdu : segments(record)) v.feed(ulpdu);
      v.drain();
      const auto sent = v.ulpdus();
      for (const Octets& ulpdu : sent) EXPECT_FALSE(is_terminate(ulpdu));
      const bool lives = v.stream.llp_action() == rdmap::LlpAction::kNone;
      EXPECT_EQ(lives, alive.count(record.name) == 1);
      if (record.name == "H11") {
        ASSERT_EQ(v.completions.size(), 1u);
        EXPECT_EQ(v.completions[0].status, WorkStatus::kSuccess);
        EXPECT_EQ(v.completions[0].byte_len, 4u);
        EXPECT_FALSE(v.completions[0].invalidated);
        EXPECT_TRUE(v.memory.regions[0x3c4d5e03].valid);
      } else {
        EXPECT_TRUE(v.completions.empty());
      }
      if (record.name == "H22") {
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent[0], vectors::from_hex("c142ffffffffffffffffffffffff"));
      }
      expect_ended(v, false);
      if (lives) continue;
      EXPECT_EQ(v.closed[0].reason, CloseReason::kTerminateReceived);
      if (record.name == "H43") {
        EXPECT_EQ(v.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kDdp, 2, 5}));
      }
      if (record.name == "H46") {
        EXPECT_NE(v.closed[0].text.find("1/2/02"), std::string::npos) << v.closed[0].text;
      }
    }
  }
  EXPECT_EQ(num_run, 9u);
}

TEST(Hostile, BadCrcDrawsTerminateAndPlacesNothing) {
  RecordProperty("proves", "RDMAP-5.5-18 MPA-6-01 RDMAP-4.8-26");
  const auto write = vectors::from_hex(
      "c1401a2b3c010000000000001000"
      "1011121314151617");
  const Octets good = frame_fpdu(write);
  for (std::size_t bit = 16; bit < good.size() * 8; ++bit) {
    Victim v;
    set_rdmap_state(v, "S0");
    const auto memory = snapshot(v);
    Octets bad = good;
    bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1 << bit % 8);
    v.receive(bad, v.now);
    EXPECT_TRUE(snapshot(v) == memory) << bit;
    const auto sent = v.ulpdus();
    // PAD is covered by the CRC too; there is no bit behind the length that may change.
    ASSERT_EQ(sent.size(), 1u) << bit;
    EXPECT_EQ(sent[0], vectors::from_hex("41470000000000000002000000010000000020020000")) << bit;
  }
}

TEST(Hostile, FirstFpduBadStillDrawsTerminate) {  // notes A-05
  rdmap::testing::Side v(Victim::config());
  TimePoint now{};
  v.stream.start_responder(now);
  v.receive(startup_frame(mpa::FrameKind::kRequest, 1), now);
  v.drain();
  v.stream.accept({}, v.recvs, 2, 2, 7, now);
  v.transmit(now);
  v.receive(frame_fpdu(vectors::from_hex("c2401a2b3c010000000000001000")), now);
  const auto sent = deframe(v.transmit(now));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(is_terminate(sent[0]));
}

TEST(Hostile, LocalMemoryTakenAwayDrawsDdpLocalCatastrophic) {
  for (const bool read : {false, true}) {
    Victim v;
    set_rdmap_state(v, read ? "S0+READ" : "S0");
    v.memory.regions.erase(read ? 0x6f708106 : kRecvKey);
    const auto ulpdu = read ? vectors::from_hex("c1426f7081060000000000008000000102030405060708090a0b0c0d0e0f")
                            : vectors::from_hex("41430000000000000000000000010000000061626364");
    v.feed(ulpdu);
    const auto sent = v.ulpdus();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(Octets(sent[0].begin() + 18, sent[0].begin() + 24),
              (Octets{0x10, 0, 0xc0, 0, 0, static_cast<std::uint8_t>(ulpdu.size())}));
    ASSERT_EQ(v.completions.size(), 1u);
    EXPECT_EQ(v.completions[0].status, WorkStatus::kLocalProtection);
    expect_ended(v, read);
  }
}

TEST(Hostile, ReadSourceTakenAwayHalfWayDrawsAdvancedHeader) {
  RecordProperty("proves", "RDMAP-4.8-20 RDMAP-8.1.1-05");
  Victim v;
  set_rdmap_state(v, "S0");
  v.feed(vectors::from_hex(
      "4141000000000000000100000001000000006f7081060000000000008000000020002b3c4d020000000000040000"));
  // One segment of 128 octets leaves (EMSS at its least), then the owner takes the memory back.
  ASSERT_FALSE(v.stream.tx_buffers(134, 1, v.now).empty());
  v.stream.on_tx(134, v.now);
  v.memory.regions[0x2b3c4d02].valid = false;
  // What is left of the FPDU under way, then the Terminate: 114 octets were sent.
  const auto out = v.transmit(v.now);
  Octets all = frame_fpdu(Octets(128));
  const auto sent = deframe(ConstBytes(out).last(out.size() - (all.size() - 134)));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0], vectors::from_hex("4147000000000000000200000001000000000100e000002e"
                                       "414100000000000000010000000100000000"
                                       "6f708106000000000000807200001f8e2b3c4d020000000000040072"));
}

}  // namespace
}  // namespace weft::sim
