// The comments of packets, and their times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpa/testing/naive_framer.h"
#include "verbs-shim/soft/stream_trace.h"
#include "verbs-shim/soft/testing/trace.h"
#include "verbs-shim/soft/translate.h"

namespace weft::verbs::soft {
namespace {

using testing::address;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::Octets;
using ::testing::SizeIs;
using testing::startup;
using testing::TraceTest;
using testing::ulpdu;

struct CommentTest : TraceTest {
  void sends(Octets octets) {
    const ConstBytes out[] = {octets};
    trace->on_tx(out, octets.size(), TimePoint{});
  }
  void receives(Octets octets) {
    const MutBytes in[] = {octets};
    trace->on_rx(in, octets.size(), TimePoint{});
  }
  // Both startup frames.
  void start() {
    sends(startup(false));
    receives(startup(false));
  }
  // The comments of the packets behind TCP's handshake, up to the FIN.
  std::vector<std::string> comments() {
    trace.reset();
    file.reset();
    std::vector<std::string> all;
    for (const Block& block : blocks()) {
      if (block.type != 6) continue;
      std::uint32_t kept = 0;
      std::memcpy(&kept, block.body.data() + 12, sizeof(kept));
      const std::size_t options = 20 + (kept + 3) / 4 * 4;
      std::uint16_t len = 0;
      if (options < block.body.size()) std::memcpy(&len, block.body.data() + options + 2, sizeof(len));
      const auto* begin = reinterpret_cast<const char*>(block.body.data()) + std::min(options + 4, block.body.size());
      all.emplace_back(begin, len);
    }
    all.erase(all.begin(), all.begin() + 3);
    return all;
  }

  // A request of the user's ended.
  void ends(rdmap::WorkOp op, std::uint64_t wr_id, rdmap::WorkStatus status = rdmap::WorkStatus::kSuccess,
            bool signaled = true) {
    rdmap::Completion done;
    done.wr_id = wr_id;
    done.op = op;
    done.status = status;
    done.note = signaled ? kSignaled : 0;
    if (op == rdmap::WorkOp::kRecv) done.byte_len = 82;
    if (status != rdmap::WorkStatus::kSuccess) done.terminate = rdmap::kUnexpectedOpcode;
    trace->on_event(done);
  }

  mpa::testing::NaiveFramer framer{true, false};
  std::shared_ptr<TraceFile> file = open();
  std::optional<StreamTrace> trace{std::in_place, file, address(AF_INET, 1, 40000), address(AF_INET, 2, 20049), true};
};

TEST_F(CommentTest, AConnectionTellsWhatWasAgreed) {
  start();
  rdmap::Established begun;
  begun.ird = 3;
  begun.ord = 5;
  begun.revision = 2;
  begun.markers_rx = true;
  trace->on_event(begun);
  EXPECT_THAT(comments(), ElementsAre("", "established: MPA revision 2, IRD 3, ORD 5, CRC on, Markers received", ""));
}

TEST_F(CommentTest, AWorkRequestEndsAtThePacketOfItsTurn) {
  start();
  receives(framer.frame(ulpdu(100, false)));
  ends(rdmap::WorkOp::kRecv, 0x77);
  sends(framer.frame(ulpdu(200, true)));
  ends(rdmap::WorkOp::kRdmaWrite, 8);
  ends(rdmap::WorkOp::kRdmaWrite, 9, rdmap::WorkStatus::kSuccess, false);
  trace->end_turn();
  ends(rdmap::WorkOp::kSend, 10);
  EXPECT_THAT(comments(),
              ElementsAre("", "", "Receive 0x77 ended: success, 82 bytes", "RDMA Write 0x8 ended: success", ""))
      << "no word of unsignaled requests, and of what ended in no packet's turn";
}

// The reason stands at the FPDU at fault, at the Terminate, and at the end.
TEST_F(CommentTest, ATerminateHasItsReason) {
  start();
  receives(framer.frame(ulpdu(100, false)));
  const rdmap::Closed why{rdmap::CloseReason::kTerminateSent, rdmap::kUnexpectedOpcode, "that is no opcode"};
  trace->on_failure(why);
  ends(rdmap::WorkOp::kSend, 1, rdmap::WorkStatus::kFlushed);
  sends(framer.frame(ulpdu(40, false)));
  trace->on_event(why);
  const auto all = comments();
  ASSERT_THAT(all, SizeIs(5));
  EXPECT_THAT(all[2], AllOf(HasSubstr("that is no opcode; Send 0x1 ended: "), HasSubstr("unexpected opcode")));
  EXPECT_EQ(all[3], "that is no opcode");
  EXPECT_EQ(all[4], "that is no opcode");
}

TEST_F(CommentTest, AdviceHasTheWordsOfTheProgram) {
  trace.reset();
  file.reset();
  ::unlink(path.c_str());
  path = "/tmp/weft-trace-XXXXXX";
  file = open(
      {.in_words = [](std::string_view advice) { return "--" + std::string(advice.substr(advice.rfind(':') + 1)); }});
  trace.emplace(file, address(AF_INET, 1, 40000), address(AF_INET, 2, 20049), true);
  start();
  const rdmap::Closed why{rdmap::CloseReason::kTerminateSent, rdmap::kUnexpectedOpcode, "SoftConfig::markers"};
  trace->on_failure(why);
  sends(framer.frame(ulpdu(40, false)));
  rdmap::Rejected rejected;
  rejected.text = "SoftConfig::rtr";
  trace->on_event(rejected);
  trace->on_event(why);
  EXPECT_THAT(comments(), ElementsAre("", "--markers", "--markers; --rtr", "--markers"));
}

TEST_F(CommentTest, ALongCommentIsCut) {
  start();
  for (std::uint64_t i = 0; i < 1000; ++i) ends(rdmap::WorkOp::kSend, i, rdmap::WorkStatus::kFlushed);
  const auto all = comments();
  EXPECT_LE(all[1].size(), StreamTrace::kMaxComment + 20);
  EXPECT_THAT(all[1], EndsWith("; and more"));
}

// Programs that read captures miss the octets. The packet says why they do, in the words of the program.
TEST_F(CommentTest, ACutPacketSaysSo) {
  trace.reset();
  file.reset();
  ::unlink(path.c_str());
  path = "/tmp/weft-trace-XXXXXX";
  file = open({.tagged_len = 100, .other_len = 300, .in_words = [](std::string_view advice) {
                 return "<" + std::string(advice) + ">";
               }});
  trace.emplace(file, address(AF_INET, 1, 40000), address(AF_INET, 2, 20049), true);
  start();
  const std::string note = "<" + std::string(kTraceCutNote) + ">";
  sends(framer.frame(ulpdu(94, true)));
  sends(framer.frame(ulpdu(95, true)));
  ends(rdmap::WorkOp::kRdmaWrite, 8);
  sends(framer.frame(ulpdu(294, false)));
  sends(framer.frame(ulpdu(295, false)));
  EXPECT_THAT(comments(), ElementsAre("", "", "", note + "; RDMA Write 0x8 ended: success", "", note, ""));
}

// A reader of a pipe sees each packet when its turn is over.
TEST_F(CommentTest, NoPacketWaitsLongerThanItsTurn) {
  sends(startup(false));
  EXPECT_EQ(file->counters().packets, 3u);
  trace->end_turn();
  EXPECT_EQ(file->counters().packets, 4u);
}

// The time of the loop's turn is the same for all that happens in it.
TEST_F(CommentTest, EachPacketHasItsOwnTime) {
  const TimePoint turn = std::chrono::steady_clock::now();
  start();
  for (int i = 0; i < 2; ++i) {
    const TimePoint before = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() == before) continue;
    Octets octets = framer.frame(ulpdu(40, false));
    const ConstBytes out[] = {octets};
    trace->on_tx(out, octets.size(), turn);
  }
  trace.reset();
  file.reset();
  std::vector<std::uint64_t> times;
  for (const Block& block : blocks()) {
    if (block.type != 6) continue;
    std::uint32_t words[3] = {};
    std::memcpy(words, block.body.data(), sizeof(words));
    times.push_back(std::uint64_t{words[1]} << 32 | words[2]);
  }
  ASSERT_GE(times.size(), 3u);
  EXPECT_LT(times[times.size() - 3], times[times.size() - 2]);
}

}  // namespace
}  // namespace weft::verbs::soft
