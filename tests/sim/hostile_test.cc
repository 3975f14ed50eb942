// Every hostile record of rdmap-vectors.txt and ddp-vectors.txt that a stream of this part can meet: the Terminate that
// answers it, octet for octet; that no memory changed; that everything outstanding ended.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <set>
#include <sstream>

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

constexpr std::uint64_t kReadId = 55;

void post_read(Victim& v, std::uint32_t sink, std::uint64_t sink_to) {
  SendWr wr;
  wr.wr_id = kReadId;
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

// The victim's outstanding requests when the bad message comes: a Read on the wire, a Send that waits for it, one
// behind. Without the Read, and where the victim may not speak yet, nothing has left. A Read of the test's own is
// older.
constexpr std::uint64_t kOutstanding[] = {60, 61, 62};

void post_work(Victim& v, bool with_read) {
  for (const std::uint64_t id : kOutstanding) {
    SendWr wr;
    wr.wr_id = id;
    wr.op = with_read && id == 60 ? SendOp::kRdmaRead : SendOp::kSend;
    wr.fence = id == 61;
    wr.remote_stag = ddp::Stag{0x99};
    ASSERT_EQ(v.stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
  }
  if (with_read) v.ulpdus();
  ASSERT_TRUE(v.completions.empty());
}

std::vector<Octets> snapshot(const Victim& v) {
  std::vector<Octets> all;
  for (const auto& [stag, region] : v.memory.regions) all.push_back(region.octets);
  return all;
}

bool is_terminate(const Octets& ulpdu) {
  return ulpdu.size() >= 18 && (ulpdu[1] & 0x0f) == 7;
}

// A tagged segment that says it answers a Read.
bool is_response(const Octets& ulpdu) {
  return ulpdu.size() >= 14 && (ulpdu[0] & 0x80) != 0 && (ulpdu[1] & 0x0f) == 2;
}

// Ends the connection from the peer's side and checks that everything ended once and in order, Closed last; work: the
// ids that were outstanding.
void expect_ended(Victim& v, const std::vector<std::uint64_t>& work) {
  if (v.stream.llp_action() == rdmap::LlpAction::kShutdownWrite)
    v.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
  v.stream.on_rx_eof(v.now);
  v.drain();
  EXPECT_EQ(v.closed.size(), 1u);
  EXPECT_EQ(v.stream.llp_action(), rdmap::LlpAction::kClose);
  std::vector<std::uint64_t> recvs, others;
  for (const Completion& c : v.completions) {
    (c.op == WorkOp::kRecv ? recvs : others).push_back(c.wr_id);
    if (c.op != WorkOp::kRecv) {
      EXPECT_NE(c.status, WorkStatus::kSuccess);
    }
  }
  EXPECT_EQ(recvs.size(), v.recvs.num_taken);
  for (std::size_t i = 0; i < recvs.size(); ++i) EXPECT_EQ(recvs[i], 100 + i);
  EXPECT_EQ(others, work);
}

// How a vector is tried: the size of the pieces, and the traffic before it.
struct Try {
  std::size_t chunk;
  Heard heard;
};
std::vector<Try> tries(bool must_speak) {
  std::vector<Try> all;
  for (const std::size_t chunk : kChunks)
    for (const Heard heard : {Heard::kNothing, Heard::kOneFpdu, Heard::kSeveral})
      if (!must_speak || heard != Heard::kNothing) all.push_back({chunk, heard});
  return all;
}
std::vector<std::uint64_t> outstanding(bool read_posted) {
  std::vector<std::uint64_t> ids(std::begin(kOutstanding), std::end(kOutstanding));
  if (read_posted) ids.insert(ids.begin(), kReadId);
  return ids;
}

// The rows of terminate-codes.tsv as layer, etype and code; code -1 where the type has no code list.
std::set<std::array<int, 3>> registered() {
  std::set<std::array<int, 3>> rows;
  std::ifstream in("tests/conformance/tables/terminate-codes.tsv");
  std::string line;
  std::getline(in, line);
  for (; std::getline(in, line);) {
    std::istringstream columns(line);
    std::string layer, etype, code;
    columns >> layer >> etype >> code;
    const auto number = [](const std::string& text) { return text == "any" ? -1 : std::stoi(text, nullptr, 16); };
    rows.insert({number(layer), number(etype), number(code)});
  }
  return rows;
}

// RDMAP-4.8-03: every Terminate that anything here draws is a row of that table.
void expect_registered(const Octets& terminate) {
  static const auto rows = registered();
  EXPECT_GE(rows.size(), 30u);
  const int layer = terminate.at(18) >> 4, etype = terminate.at(18) & 0x0f, code = terminate.at(19);
  EXPECT_TRUE(rows.count({layer, etype, code}) == 1 || rows.count({layer, etype, -1}) == 1)
      << layer << '/' << etype << '/' << code;
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
  expect_registered(sent.back());
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
  RecordProperty(
      "proves",
      "RDMAP-3.1-07 RDMAP-4.1-08 RDMAP-4.8-03 RDMAP-4.8-07 RDMAP-4.8-08 RDMAP-4.8-14 RDMAP-4.8-19 RDMAP-5.1-03 "
      "RDMAP-5.2.2-05 RDMAP-5.2.2-08 RDMAP-5.3-07 RDMAP-6.1-08 RDMAP-6.2.1-01 RDMAP-7.1-03 RDMAP-7.1-04 "
      "RDMAP-7.2-02 RDMAP-7.2-06 RDMAP-7.2-07 RDMAP-7.2-09");
  std::size_t num_run = 0;
  for (const Record& record : vectors::read_vector_file("tests/vectors/rdmap-vectors.txt")) {
    const std::string state = record.find("state").value_or("");
    if (record.name[0] != 'H' || !state.starts_with("S0") || state.find("+EXT") != std::string::npos) continue;
    if (record.find("term") == "none") continue;
    ++num_run;
    const bool read = state.find("+READ") != std::string::npos;
    for (const Try& how : tries(read)) {
      SCOPED_TRACE(testing::Message() << record.name << " in chunks of " << how.chunk << ", heard "
                                      << static_cast<int>(how.heard));
      Victim v(how.chunk, how.heard);
      set_rdmap_state(v, state);
      auto before = segments(record);
      ASSERT_FALSE(before.empty());
      const Octets bad = before.back();
      before.pop_back();
      post_work(v, read || !is_response(bad));
      run_refused(v, before, bad, {}, vectors::from_hex(*record.find("expect.hex")));
      expect_ended(v, outstanding(read));
      EXPECT_EQ(v.closed[0].reason, CloseReason::kTerminateSent);
    }
  }
  EXPECT_EQ(num_run, 39u);
}

TEST(Hostile, DdpVectorsDrawTheirTerminates) {
  RecordProperty("proves", "DDP-7.1-01 DDP-7.1-13 DDP-7.1-14 DDP-7.1-15 RDMAP-4.8-25 RDMAP-7-02 RDMAP-7.2-01");
  std::size_t num_run = 0;
  for (const Record& record : vectors::read_vector_file("tests/vectors/ddp-vectors.txt")) {
    const std::string state = record.find("state").value_or("");
    const auto term = record.find("term.hex");
    if (!term || state.find("+WRAP") != std::string::npos) continue;  // 2^32 messages away from a fresh stream
    ++num_run;
    const bool read = state.find("+READ") != std::string::npos;
    for (const Try& how : tries(read)) {
      SCOPED_TRACE(testing::Message() << record.name << " in chunks of " << how.chunk << ", heard "
                                      << static_cast<int>(how.heard));
      Victim v(how.chunk, how.heard);
      set_ddp_state(v, state);
      post_work(v, read || !is_response(record.octets("seg").value()));
      std::vector<Octets> before, after;
      for (int i = 1; const auto pre = record.octets("pre" + std::to_string(i)); ++i) before.push_back(*pre);
      for (int i = 1; const auto post = record.octets("post" + std::to_string(i)); ++i) after.push_back(*post);
      Octets expected = vectors::from_hex(*term);
      // MPA refuses a ULPDU_Length of 0 itself (MPA-A-08), before DDP could.
      if (record.name == "R12") expected = vectors::from_hex("41470000000000000002000000010000000020030000");
      run_refused(v, before, record.octets("seg").value(), after, expected);
      expect_ended(v, outstanding(read));
    }
  }
  EXPECT_GE(num_run, 40u);
}

TEST(Hostile, RdmapVectorsThatDrawNoTerminate) {
  RecordProperty("proves", "RDMAP-4.1-10 RDMAP-4.1-12 RDMAP-5.2.1-14 RDMAP-5.2.1-15");
  const std::set<std::string> alive = {"H11", "H22", "H39"};
  std::size_t num_run = 0;
  for (const Record& record : vectors::read_vector_file("tests/vectors/rdmap-vectors.txt")) {
    const std::string state = record.find("state").value_or("");
    if (record.name[0] != 'H' || state != "S0" || record.find("term") != "none") continue;
    ++num_run;
    for (const Try& how : tries(false)) {
      SCOPED_TRACE(testing::Message() << record.name << " in chunks of " << how.chunk << ", heard "
                                      << static_cast<int>(how.heard));
      Victim v(how.chunk, how.heard);
      set_rdmap_state(v, state);
      const bool ends = alive.count(record.name) == 0;
      if (ends) post_work(v, true);
      for (const Octets& ulpdu : segments(record)) v.feed(ulpdu);
      v.drain();
      const auto sent = v.ulpdus();
      for (const Octets& ulpdu : sent) EXPECT_FALSE(is_terminate(ulpdu));
      const bool lives = v.stream.llp_action() == rdmap::LlpAction::kNone;
      EXPECT_EQ(lives, !ends);
      if (record.name == "H11") {
        ASSERT_EQ(v.completions.size(), 1u);
        EXPECT_EQ(v.completions[0].status, WorkStatus::kSuccess);
        EXPECT_EQ(v.completions[0].byte_len, 4u);
        EXPECT_FALSE(v.completions[0].invalidated);
        EXPECT_TRUE(v.memory.regions[0x3c4d5e03].valid);
      } else {
        EXPECT_EQ(v.completions.size(), ends ? 3u : 0u);
      }
      if (record.name == "H22") {
        ASSERT_EQ(sent.size(), 1u);
        EXPECT_EQ(sent[0], vectors::from_hex("c142ffffffffffffffffffffffff"));
      }
      expect_ended(v, ends ? outstanding(false) : std::vector<std::uint64_t>{});
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
  RecordProperty("proves", "MPA-6-01");
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

TEST(Hostile, FirstFpduBadStillDrawsTerminate) {  // MPA-A-05
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
    expect_ended(v, read ? std::vector<std::uint64_t>{kReadId} : std::vector<std::uint64_t>{});
  }
}

TEST(Hostile, ReadSourceTakenAwayHalfWayDrawsAdvancedHeader) {
  Victim v;
  set_rdmap_state(v, "S0");
  v.feed(vectors::from_hex(
      "4141000000000000000100000001000000006f7081060000000000008000000020002b3c4d020000000000040000"));
  // One segment of 128 octets leaves (EMSS at its least), then the owner takes the memory back.
  ASSERT_FALSE(v.stream.tx_buffers(134, 1, v.now).empty());
  v.stream.on_tx(134, v.now);
  v.memory.regions[0x2b3c4d02].valid = false;
  // The rest of the FPDU under way, then the Terminate: 114 octets were sent.
  const auto out = v.transmit(v.now);
  Octets all = frame_fpdu(Octets(128));
  const auto sent = deframe(ConstBytes(out).last(out.size() - (all.size() - 134)));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0], vectors::from_hex("4147000000000000000200000001000000000100e000002e"
                                       "414100000000000000010000000100000000"
                                       "6f708106000000000000807200001f8e2b3c4d020000000000040072"));
}

// The owner takes memory back while an FPDU for it is under way: from then on not an octet lands there, in either
// placement, and the rest of the FPDU draws the Terminate that the access deserves.
TEST(Hostile, MemoryTakenAwayInsideAnFpduGetsNothingMore) {
  constexpr std::size_t kLen = 2000, kFirst = 700;
  for (const bool send : {false, true}) {
    SCOPED_TRACE(send ? "Send" : "Write");
    Victim v;
    const std::uint32_t stag = send ? kRecvKey : 0x222;
    v.memory.add_simple(stag, 7, 0, 4096);
    if (send) v.recvs.post(5, {{0, 4096, ddp::Stag{kRecvKey}}});
    Octets ulpdu = vectors::from_hex(send ? "414300000000000000000000000100000000" : "c140000002220000000000000000");
    const std::size_t header_len = ulpdu.size();
    ulpdu.resize(header_len + kLen, 0x5a);
    const Octets fpdu = frame_fpdu(ulpdu);
    v.receive(ConstBytes(fpdu).first(kFirst), v.now);
    v.receive(ConstBytes(fpdu).subspan(kFirst, 1), v.now);
    // The octets stay where they are, under a name that no request has.
    v.memory.regions[0x999].octets.swap(v.memory.regions[stag].octets);
    v.memory.regions.erase(stag);
    const Octets before = v.memory.regions[0x999].octets;
    v.receive(ConstBytes(fpdu).subspan(kFirst + 1), v.now, 100);
    EXPECT_EQ(v.memory.regions[0x999].octets, before);
    const auto sent = v.ulpdus();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(Octets(sent[0].begin() + 18, sent[0].begin() + 20), send ? (Octets{0x10, 0x00}) : (Octets{0x11, 0x00}));
    ASSERT_EQ(v.completions.size(), send ? 1u : 0u);
    if (send) {
      EXPECT_EQ(v.completions[0].status, WorkStatus::kLocalProtection);
    }
  }
}

}  // namespace
}  // namespace weft::sim
