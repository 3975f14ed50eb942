// Every record of ddp-vectors.txt against a whole stream: as the first FPDU it ever gets and as a later one, whole and
// cut. The four records that begin 2^32 messages into a stream are for the DDP layer alone (tests/vectors).
#include <cstdio>
#include <map>
#include <string>

#include "tests/conformance/ddp_peer.h"
#include "tests/vectors/vector_file.h"

namespace weft::conformance {
namespace {

using rdmap::CloseReason;
using rdmap::Completion;
using rdmap::WorkOp;
using rdmap::WorkStatus;
using rdmap::testing::FakeMemory;
using vectors::Record;

constexpr std::uint8_t kFill = 0xa5;
constexpr std::uint32_t kRecvKey = 0x11;
constexpr std::uint32_t kRecvLens[] = {4096, 4096, 4096, 64};
constexpr std::size_t kChunks[] = {SIZE_MAX, 1, 11};

// Which FPDU of the peer's the record's first segment is.
enum class Place { kFirstToInitiator, kFirstToResponder, kLater };
constexpr Place kPlaces[] = {Place::kFirstToInitiator, Place::kFirstToResponder, Place::kLater};

const std::map<std::string, std::uint32_t> kStags = {
    {"W1", 0x1a2b3c01}, {"Z2", 0x5d6e7f02}, {"P3", 0x33445503}, {"S4", 0x77889904},
    {"R5", 0x0badf005}, {"L6", 0x0c0ffe06}, {"X7", 0x2468ac07}, {"E8", 0x9abcde08},
};

const std::vector<Record>& records() {
  static const std::vector<Record> all = vectors::read_vector_file("tests/vectors/ddp-vectors.txt");
  return all;
}

// Subject is a stream in state S0, or one of its variants.
struct Subject : rdmap::testing::Side {
  static rdmap::StreamConfig config() {
    rdmap::StreamConfig config = sim::Victim::config();
    config.mpa_revision = 1;
    return config;
  }
  Subject(Place place, const std::string& state, std::size_t chunk) : Side(config()), chunk(chunk) {
    add_regions();
    if (state != "S0+NOBUF") post_receives();
    if (place == Place::kFirstToInitiator) {
      stream.start_initiator({}, recvs, now);
      transmit(now);
      receive(sim::startup_frame(mpa::FrameKind::kReply, 1), now, chunk);
    } else {
      stream.start_responder(now);
      receive(sim::startup_frame(mpa::FrameKind::kRequest, 1), now, chunk);
      drain();
      stream.accept({}, recvs, 2, 2, 7, now);
      transmit(now);
    }
    if (place == Place::kLater) feed(tagged({.rsvd_ulp = kWriteControl}));
    if (state == "S0+READ") post_read();
    drain();
  }

  void feed(ConstBytes ulpdu) {
    receive(sim::frame_fpdu(ulpdu), now, chunk);
    drain();
  }
  std::vector<Octets> ulpdus() {
    auto out = sim::deframe(transmit(now));
    drain();
    return out;
  }
  std::map<std::uint32_t, Octets> snapshot() const {
    std::map<std::uint32_t, Octets> all;
    for (const auto& [stag, region] : memory.regions) all[stag] = region.octets;
    return all;
  }

  TimePoint now{};
  std::size_t chunk;

 private:
  void add_regions() {
    const auto add = [&](const char* name, std::uint32_t pd, std::vector<std::uint32_t> streams, std::uint64_t base,
                         std::size_t len, bool read, bool write, bool valid = true) {
      memory.add(kStags.at(name), {pd, std::move(streams), base, read, write, valid, Octets(len, kFill)});
    };
    add("W1", 7, {}, 0x00007f0000001000, 8192, false, true);
    add("Z2", 7, {1}, 0, 4096, true, true);  // of this stream alone: V11 takes it away
    add("P3", 9, {}, 0, 4096, false, true);
    add("S4", 7, {2}, 0, 4096, false, true);
    add("R5", 7, {}, 0, 4096, true, false);
    add("L6", 7, {}, 0, 4096, false, false);
    add("X7", 7, {}, 0, 4096, false, true, false);
    add("E8", 7, {}, 0, 65536, false, true);
  }
  void post_receives() {
    std::uint64_t addr = 0;
    for (std::uint64_t i = 0; i < std::size(kRecvLens); ++i) {
      recvs.post(100 + i, {{addr, kRecvLens[i], ddp::Stag{kRecvKey}}});
      addr += kRecvLens[i];
    }
    memory.add(kRecvKey, {7, {}, 0, false, false, true, Octets(addr + 64, kFill)});
  }
  void post_read() {
    SendWr wr;
    wr.wr_id = 55;
    wr.op = SendOp::kRdmaRead;
    wr.sg_list = {{0x100, 16, ddp::Stag{kStags.at("L6")}}};
    wr.remote_stag = ddp::Stag{0x99};
    ASSERT_EQ(stream.post_send(std::move(wr)), rdmap::PostResult::kOk);
    ASSERT_EQ(ulpdus().size(), 1u);
  }
};

// Whether a stream can be in the record's state when it gets its first FPDU.
bool is_possible(Place place, const std::string& state) {
  return place != Place::kFirstToResponder || state != "S0+READ";  // a responder's Read waits for that FPDU
}
bool begins_late(const std::string& state) {
  return state.starts_with("S0+WRAP");
}

std::vector<Octets> numbered(const Record& record, const std::string& stem) {
  std::vector<Octets> all;
  for (int i = 1;; ++i) {
    auto octets = record.octets(stem + std::to_string(i));
    if (!octets) return all;
    all.push_back(std::move(*octets));
  }
}

// Applies "W1+0x7fd e0e1e2" or "Q0.1+0x0 ramp=0x80 len=300" to the expected contents of memory. Queues 1 and 2 have no
// visible memory.
void apply_mem_line(const std::string& line, std::map<std::uint32_t, Octets>& memory) {
  const std::size_t plus = line.find('+');
  const std::size_t space = line.find(' ');
  ASSERT_TRUE(plus != std::string::npos && space != std::string::npos) << line;
  const std::string name = line.substr(0, plus);
  std::size_t offset = std::stoul(line.substr(plus + 1, space - plus - 1), nullptr, 0);
  std::uint32_t stag = kRecvKey;
  if (name[0] != 'Q') {
    stag = kStags.at(name);
  } else if (name.starts_with("Q0.")) {
    for (std::size_t i = 0; i < std::stoul(name.substr(3)); ++i) offset += kRecvLens[i];
  } else {
    return;
  }
  const Octets octets = vectors::from_pattern(line.substr(space + 1));
  std::copy(octets.begin(), octets.end(), memory.at(stag).begin() + static_cast<std::ptrdiff_t>(offset));
}

// The completions that a line of events announces: receives in the order of delivery, and the Read.
void check_completions(const std::string& events, const Subject& s) {
  std::vector<std::uint32_t> lens;
  std::vector<std::uint32_t> invalidated;
  for (std::size_t at = 0; (at = events.find("deliver qn=0 ", at)) != std::string::npos; ++at) {
    unsigned msn = 0, len = 0;
    unsigned long long ulp = 0;
    ASSERT_EQ(std::sscanf(events.c_str() + at, "deliver qn=0 msn=%x len=%u ulp=%llx", &msn, &len, &ulp), 3);
    lens.push_back(len);
    const unsigned opcode = static_cast<unsigned>(ulp >> 32 & 0xf);
    if (opcode == 4 || opcode == 6) invalidated.push_back(static_cast<std::uint32_t>(ulp));
  }
  const bool read = events.find("ulp=0x42") != std::string::npos;
  ASSERT_EQ(s.completions.size(), lens.size() + (read ? 1 : 0));
  std::size_t next = 0, next_invalidated = 0;
  for (const Completion& c : s.completions) {
    EXPECT_EQ(c.status, WorkStatus::kSuccess);
    if (c.op != WorkOp::kRecv) {
      EXPECT_EQ(c.byte_len, 16u);
      continue;
    }
    EXPECT_EQ(c.wr_id, 100 + next);
    EXPECT_EQ(c.byte_len, lens[next++]);
    if (!c.invalidated) continue;
    ASSERT_LT(next_invalidated, invalidated.size());
    EXPECT_EQ(c.invalidated->value, invalidated[next_invalidated++]);
    EXPECT_FALSE(s.memory.regions.at(c.invalidated->value).valid);
  }
  EXPECT_EQ(next, lens.size());
  EXPECT_EQ(next_invalidated, invalidated.size());
}

void run_valid(const Record& record, Place place, std::size_t chunk) {
  Subject s(place, record.find("state").value(), chunk);
  auto want = s.snapshot();
  for (int i = 1; const auto line = record.find("mem" + std::to_string(i)); ++i) apply_mem_line(*line, want);
  for (const Octets& ulpdu : numbered(record, "seg")) s.feed(ulpdu);
  EXPECT_TRUE(s.snapshot() == want);
  check_completions(record.find("events").value(), s);
  const auto answers = s.ulpdus();
  if (record.name == "V13") {  // a Terminate ends the stream; it is not answered
    EXPECT_TRUE(answers.empty());
    EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kShutdownWrite);
    s.stream.on_rx_eof(s.now);
    s.drain();
    ASSERT_EQ(s.closed.size(), 1u);
    EXPECT_EQ(s.closed[0].reason, CloseReason::kTerminateReceived);
    EXPECT_EQ(s.closed[0].terminate, (rdmap::Terminate{rdmap::Layer::kDdp, 2, 5}));
    return;
  }
  std::vector<Octets> responses;
  if (record.name == "V12")
    responses = {tagged({.rsvd_ulp = kReadResponseControl, .stag = {0x0c0ffe06}, .to = 0x100}, Octets(16, kFill))};
  if (record.name == "V18")
    responses = {tagged({.rsvd_ulp = kReadResponseControl, .stag = {0x0c0ffe06}}, Octets(1, kFill))};
  EXPECT_EQ(answers, responses);
  EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kNone) << "the stream stays up";
  EXPECT_TRUE(s.closed.empty());
}

TEST(DdpVectorsStream, EveryRecordIsHere) {
  std::vector<std::string> want, names;
  char name[16];
  for (const auto& [letter, num] : {std::pair('V', 20), std::pair('H', 31), std::pair('R', 16)}) {
    for (int i = 1; i <= num; ++i) {
      std::snprintf(name, sizeof name, "%c%02d", letter, i);
      want.emplace_back(name);
    }
  }
  for (const Record& record : records()) names.push_back(record.name);
  EXPECT_EQ(names, want);
}

TEST(DdpVectorsStream, ValidRecordsArePlacedAndDelivered) {
  RecordProperty("proves",
                 "DDP-1.2-01 DDP-1.2-03 DDP-3-04 DDP-4.1-09 DDP-4.1-11 DDP-4.2-09 DDP-4.2-10 DDP-4.3-04 "
                 "DDP-4.4-02 DDP-5.1.1-01 DDP-5.1.1-02 DDP-5.1.2-02 DDP-5.1.2-04 DDP-5.2-13 DDP-5.4-03 SEC-6.2.1-02");
  std::size_t num_run = 0;
  for (const Record& record : records()) {
    if (record.name[0] != 'V' || begins_late(record.find("state").value())) continue;
    ++num_run;
    for (const Place place : kPlaces) {
      if (!is_possible(place, record.find("state").value())) continue;
      for (const std::size_t chunk : kChunks) {
        SCOPED_TRACE(record.name + " place " + std::to_string(static_cast<int>(place)) + " chunk " +
                     std::to_string(chunk));
        run_valid(record, place, chunk);
      }
    }
  }
  EXPECT_EQ(num_run, 19u);  // all but V08
}

// The error that the record's report names.
rdmap::Terminate reported(const Record& record) {
  if (record.name == "R12") return {rdmap::Layer::kLlp, 0, 3};  // MPA itself refuses a ULPDU_Length of 0
  unsigned layer = 0, type = 0, code = 0;
  EXPECT_EQ(std::sscanf(record.find("report").value().c_str(), "layer=%x type=%x code=%x", &layer, &type, &code), 3);
  return {static_cast<rdmap::Layer>(layer), static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(code)};
}

Octets terminate_of(const Record& record) {
  if (record.name == "R12") return vectors::from_hex("41470000000000000002000000010000000020030000");
  return vectors::from_hex(record.find("term.hex").value());
}

// Feeds the record, its refused FPDU cut in two at `cut` with a pause between, and checks all that has to follow.
void run_hostile(const Record& record, Place place, std::size_t chunk, std::size_t cut) {
  Subject s(place, record.find("state").value(), chunk);
  for (const Octets& ulpdu : numbered(record, "pre")) s.feed(ulpdu);
  const auto memory = s.snapshot();
  const std::size_t num_good = s.completions.size();
  const Octets fpdu = sim::frame_fpdu(record.octets("seg").value());
  cut = std::min(cut, fpdu.size());
  s.receive(ConstBytes(fpdu).first(cut), s.now, chunk);
  EXPECT_TRUE(s.snapshot() == memory) << "memory changed before the whole segment was there";
  s.receive(ConstBytes(fpdu).subspan(cut), s.now, chunk);
  EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kNone) << "the Terminate first";
  for (const Octets& ulpdu : numbered(record, "post")) s.feed(ulpdu);
  s.drain();
  EXPECT_TRUE(s.snapshot() == memory) << "memory changed";

  EXPECT_EQ(s.ulpdus(), (std::vector<Octets>{terminate_of(record)}));
  EXPECT_FALSE(s.stream.wants_tx());
  EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kShutdownWrite);
  s.stream.on_llp_action_done(rdmap::LlpAction::kShutdownWrite);
  s.stream.on_rx_eof(s.now);
  s.drain();
  ASSERT_EQ(s.closed.size(), 1u);
  EXPECT_EQ(s.closed[0].reason, CloseReason::kTerminateSent);
  EXPECT_EQ(s.closed[0].terminate, reported(record));
  EXPECT_EQ(s.stream.llp_action(), rdmap::LlpAction::kClose);
  std::size_t num_recvs = 0;
  for (std::size_t i = 0; i < s.completions.size(); ++i) {
    num_recvs += s.completions[i].op == WorkOp::kRecv ? 1 : 0;
    if (i >= num_good) {
      EXPECT_NE(s.completions[i].status, WorkStatus::kSuccess);
    }
  }
  EXPECT_EQ(num_recvs, s.recvs.num_taken);
}

TEST(DdpVectorsStream, HostileRecordsDrawTheirTerminateAndChangeNothing) {
  RecordProperty("proves",
                 "DDP-1.2-02 DDP-4.1-13 DDP-4.2-05 DDP-4.3-07 DDP-4.4-01 DDP-5.1.2-03 DDP-5.2-14 DDP-5.3-05 "
                 "DDP-5.4-04 DDP-6.2.2-03 DDP-6.2.2-05 DDP-7.1-01 DDP-7.1-02 DDP-7.1-06 DDP-7.1-07 DDP-7.1-08 "
                 "DDP-7.1-11 DDP-7.1-12 DDP-7.1-13 DDP-7.1-14 DDP-7.1-15 DDP-7.1-16 DDP-7.1-17 DDP-7.1-18 DDP-7.1-19 "
                 "DDP-7.1-20 DDP-7.2-01 DDP-7.2-03 DDP-7.2-04 DDP-7.2-05 DDP-7.2-06 DDP-7.2-07 DDP-7.2-08 DDP-7.2-09 "
                 "DDP-7.2-11 DDP-7.2-12 DDP-7.2-13 DDP-8.2-02 DDP-8.2-03 DDP-8.3-03 DDP-8.3.1-01 DDP-8.3.1-02 "
                 "DDP-8.3.1-03 SEC-6.2.1-02");
  std::size_t num_run = 0;
  for (const Record& record : records()) {
    if (record.name[0] == 'V' || begins_late(record.find("state").value())) continue;
    ++num_run;
    for (const Place place : kPlaces) {
      if (!is_possible(place, record.find("state").value())) continue;
      SCOPED_TRACE(record.name + " place " + std::to_string(static_cast<int>(place)));
      for (const std::size_t chunk : kChunks) run_hostile(record, place, chunk, SIZE_MAX);
      const std::size_t fpdu_len = sim::frame_fpdu(record.octets("seg").value()).size();
      for (std::size_t cut = 1; cut<fpdu_len; cut += fpdu_len> 100 ? 511 : 1) {
        run_hostile(record, place, SIZE_MAX, cut);
        if (::testing::Test::HasFailure()) FAIL() << "cut at " << cut;
      }
    }
  }
  EXPECT_EQ(num_run, 44u);  // all but H22, H23 and R07
}

}  // namespace
}  // namespace weft::conformance
