#include "verbs-shim/soft/trace.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "mpa/testing/naive_framer.h"
#include "verbs-shim/soft/frame_cutter.h"
#include "verbs-shim/soft/packet_head.h"
#include "verbs-shim/soft/stream_trace.h"
#include "verbs-shim/soft/trace_file.h"
#include "verbs-shim/soft/translate.h"

namespace weft::verbs::soft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Octets = std::vector<std::uint8_t>;

Octets ulpdu(std::size_t len, bool tagged) {
  Octets octets(len, 0x5a);
  octets[0] = tagged ? 0xc1 : 0x41;
  return octets;
}

struct Packets {
  std::vector<Octets> kept;
  std::vector<std::size_t> lens;
  std::vector<bool> cuts;
  FrameCutter::Put put() {
    return [this](const Octets& octets, std::size_t len, bool is_cut) {
      kept.emplace_back(octets.begin(), octets.end());
      lens.push_back(len);
      cuts.push_back(is_cut);
    };
  }
};

Octets startup(bool markers, const Octets& private_data = {}) {
  Octets octets;
  mpa::emit_startup_frame({.kind = mpa::FrameKind::kRequest, .m = markers, .rev = 1, .private_data = private_data},
                          octets);
  return octets;
}

// Frames are found however the octets are cut, and whether or not there are Markers.
TEST(FrameCutter, APacketForEachFrame) {
  for (const bool markers : {false, true}) {
    for (const std::size_t piece : {1u, 2u, 3u, 7u, 100u, 100000u}) {
      mpa::testing::NaiveFramer framer(true, markers);
      std::vector<Octets> frames{startup(false, Octets(9))};
      for (const std::size_t len : {20u, 1000u, 511u, 2u, 3000u, 65535u, 18u})
        frames.push_back(framer.frame(ulpdu(len, true)));
      Octets all;
      for (const Octets& frame : frames) all.insert(all.end(), frame.begin(), frame.end());
      Packets packets;
      FrameCutter cutter({}, packets.put());
      cutter.set_markers(markers);
      for (std::size_t at = 0; at < all.size(); at += piece) {
        cutter.add(ConstBytes(all).subspan(at, std::min(piece, all.size() - at)));
      }
      // A frame beyond the limit of a packet is two.
      ASSERT_THAT(packets.kept, SizeIs(frames.size() + 1));
      EXPECT_EQ(packets.lens[6], FrameCutter::kMaxPacket);
      packets.kept[6].insert(packets.kept[6].end(), packets.kept[7].begin(), packets.kept[7].end());
      packets.kept.erase(packets.kept.begin() + 7);
      EXPECT_EQ(packets.kept, frames) << markers << " " << piece;
    }
  }
}

TEST(FrameCutter, KeepsTheFrontOfAFrame) {
  for (const std::size_t piece : {1u, 50u, 100000u}) {
    mpa::testing::NaiveFramer framer(true, false);
    Packets packets;
    FrameCutter cutter({.tagged = 100, .other = 300}, packets.put());
    cutter.add(startup(false));
    for (const bool tagged : {true, false}) {
      const Octets frame = framer.frame(ulpdu(1000, tagged));
      for (std::size_t at = 0; at < frame.size(); at += piece) {
        cutter.add(ConstBytes(frame).subspan(at, std::min(piece, frame.size() - at)));
      }
      ASSERT_EQ(packets.kept.back().size(), tagged ? 100u : 300u) << piece;
      EXPECT_TRUE(std::equal(packets.kept.back().begin(), packets.kept.back().end(), frame.begin()));
      EXPECT_EQ(packets.lens.back(), frame.size());
    }
  }
}

// Of a message in several FPDUs, the first one tells what it is about, and the others have their headers. The cut is
// reported once for each message.
TEST(FrameCutter, KeepsTheHeadersOfTheFurtherFpdusOfAMessage) {
  for (const bool markers : {false, true}) {
    mpa::testing::NaiveFramer framer(true, markers);
    Packets packets;
    FrameCutter cutter({.tagged = 100, .tagged_more = 32, .other = 300}, packets.put());
    cutter.set_markers(markers);
    cutter.add(startup(false));
    const auto segment = [](std::uint8_t ddp, std::uint8_t rdmap) {
      Octets octets(900, 0x5a);
      octets[0] = ddp;
      octets[1] = rdmap;
      return octets;
    };
    // A Write of three segments with a Read Response of two and a Send among them, and another Write.
    for (const auto& [ddp, rdmap] : {std::pair<std::uint8_t, std::uint8_t>{0x81, 0x40},
                                     {0x81, 0x42},
                                     {0x81, 0x40},
                                     {0x41, 0x43},
                                     {0xc1, 0x42},
                                     {0xc1, 0x40},
                                     {0xc1, 0x40}}) {
      cutter.add(framer.frame(segment(ddp, rdmap)));
    }
    EXPECT_THAT(packets.kept, ElementsAre(SizeIs(20), SizeIs(100), SizeIs(100), SizeIs(32), SizeIs(300), SizeIs(32),
                                          SizeIs(32), SizeIs(100)));
    EXPECT_THAT(packets.cuts, ElementsAre(false, true, true, false, true, false, false, true));
  }
}

// The part of a frame that a turn leaves comes as a packet, too. The limit of a frame counts over its packets.
TEST(FrameCutter, ATurnEndsAPacket) {
  mpa::testing::NaiveFramer framer(true, false);
  Packets packets;
  FrameCutter cutter({.tagged = 100, .other = 0}, packets.put());
  cutter.add(startup(false));
  const Octets frame = framer.frame(ulpdu(1000, true));
  cutter.add(ConstBytes(frame).first(80));
  cutter.end_turn();
  cutter.end_turn();
  cutter.add(ConstBytes(frame).subspan(80, 70));
  cutter.end_turn();
  cutter.add(ConstBytes(frame).subspan(150));
  EXPECT_THAT(packets.lens, ElementsAre(20, 80, 70, frame.size() - 150));
  EXPECT_THAT(packets.kept, ElementsAre(SizeIs(20), SizeIs(80), SizeIs(20), SizeIs(0)));
  EXPECT_THAT(packets.cuts, ElementsAre(false, false, true, false));
}

// ---- the file

struct TraceTest : ::testing::Test {
  ~TraceTest() override { ::unlink(path.c_str()); }

  std::shared_ptr<TraceFile> open(TraceConfig config = {}) {
    const int fd = ::mkstemp(path.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    config.path = path;
    auto trace = open_trace(config);
    EXPECT_TRUE(trace.ok());
    return std::static_pointer_cast<TraceFile>(trace.value());
  }
  struct Block {
    std::uint32_t type = 0;
    Octets body;
  };
  // The file's blocks, each of which has its length at both ends.
  std::vector<Block> blocks() {
    std::ifstream in(path, std::ios::binary);
    const Octets octets{std::istreambuf_iterator<char>(in), {}};
    std::vector<Block> out;
    for (std::size_t at = 0; at < octets.size();) {
      std::uint32_t words[2] = {}, behind = 0;
      if (octets.size() - at < 12) ADD_FAILURE() << "a block without its head";
      std::memcpy(words, octets.data() + at, 8);
      if (words[1] % 4 != 0 || words[1] > octets.size() - at) {
        ADD_FAILURE() << "a block with a wrong length";
        return out;
      }
      std::memcpy(&behind, octets.data() + at + words[1] - 4, 4);
      EXPECT_EQ(behind, words[1]);
      out.push_back({words[0],
                     {octets.begin() + static_cast<std::ptrdiff_t>(at + 8),
                      octets.begin() + static_cast<std::ptrdiff_t>(at + words[1] - 4)}});
      at += words[1];
    }
    return out;
  }

  std::string path = "/tmp/weft-trace-XXXXXX";
};

TEST_F(TraceTest, TheFileIsWholeWhenTheTraceIsReleased) {
  const Octets head(40, 1), payload(77, 2);
  {
    auto trace = open();
    for (int i = 0; i < 1000; ++i) trace->put(head, payload, 500, TimePoint{}, i == 999 ? "the last one" : "");
    EXPECT_EQ(trace->counters().packets, 1000u);
  }
  const auto all = blocks();
  ASSERT_THAT(all, SizeIs(1003));
  EXPECT_EQ(all[0].type, 0x0a0d0d0au);
  EXPECT_EQ(all[1].type, 1u);
  EXPECT_EQ(all[2].type, 6u);
  EXPECT_EQ(all[1002].type, 5u);
  const std::string last(all[1001].body.begin(), all[1001].body.end());
  EXPECT_NE(last.find("the last one"), std::string::npos);
}

sockaddr_storage address(int family, std::uint8_t last, std::uint16_t port) {
  sockaddr_storage out{};
  out.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(out);
    in6.sin6_addr.s6_addr[15] = last;
    in6.sin6_port = htons(port);
  } else {
    auto& in = reinterpret_cast<sockaddr_in&>(out);
    in.sin_addr.s_addr = htonl(0x0a000000u + last);
    in.sin_port = htons(port);
  }
  return out;
}

std::uint32_t word(const Octets& octets, std::size_t at) {
  return static_cast<std::uint32_t>(octets[at] << 24 | octets[at + 1] << 16 | octets[at + 2] << 8 | octets[at + 3]);
}

// Both directions of a connection: the numbers of TCP fit, and the last packet says why it ended.
TEST_F(TraceTest, AStreamIsATcpConnection) {
  for (const int family : {AF_INET, AF_INET6}) {
    path = "/tmp/weft-trace-XXXXXX";
    const Octets request = startup(false), reply = startup(false, Octets(4));
    {
      StreamTrace trace(open(), address(family, 1, 40000), address(family, 2, 20049), true);
      const ConstBytes out[] = {ConstBytes(request).first(5), ConstBytes(request).subspan(5)};
      trace.on_tx(out, request.size(), TimePoint{});
      Octets received = reply;
      const MutBytes in[] = {received};
      trace.on_rx(in, received.size(), TimePoint{});
      trace.on_event(rdmap::Closed{.reason = rdmap::CloseReason::kLlp, .terminate = {}, .text = "the peer is gone"});
    }
    std::vector<Octets> packets;
    for (const Block& block : blocks()) {
      if (block.type == 6) packets.emplace_back(block.body.begin() + 20, block.body.end());
    }
    const std::size_t ip = family == AF_INET ? 20 : 40;
    ASSERT_THAT(packets, SizeIs(6));
    struct Expected {
      std::uint16_t src;
      std::uint32_t seq, ack;
      std::uint8_t flags;
    };
    const Expected expected[] = {{40000, 0, 0, 0x02}, {20049, 0, 1, 0x12},  {40000, 1, 1, 0x10},
                                 {40000, 1, 1, 0x18}, {20049, 1, 21, 0x18}, {40000, 21, 25, 0x11}};
    for (std::size_t i = 0; i < 6; ++i) {
      const Octets& packet = packets[i];
      EXPECT_EQ(packet[0] >> 4, family == AF_INET ? 4 : 6);
      EXPECT_EQ(word(packet, ip) >> 16, expected[i].src) << i;
      EXPECT_EQ(word(packet, ip + 4), expected[i].seq) << i;
      EXPECT_EQ(word(packet, ip + 8), expected[i].ack) << i;
      EXPECT_EQ(packet[ip + 13], expected[i].flags) << i;
    }
    EXPECT_TRUE(std::equal(request.begin(), request.end(), packets[3].begin() + static_cast<std::ptrdiff_t>(ip + 20)));
    EXPECT_TRUE(std::equal(reply.begin(), reply.end(), packets[4].begin() + static_cast<std::ptrdiff_t>(ip + 20)));
    // The lengths of IP, and IPv4's checksum (RFC 1071): all its words together make 0xffff.
    if (family == AF_INET) {
      EXPECT_EQ(word(packets[3], 0) & 0xffff, 40u + request.size());
      std::uint32_t sum = 0;
      for (std::size_t at = 0; at < 20; at += 4) sum += (word(packets[3], at) >> 16) + (word(packets[3], at) & 0xffff);
      EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu);
    } else {
      EXPECT_EQ(word(packets[3], 4) >> 16, 20u + request.size());
    }
    const std::string last(packets[5].begin(), packets[5].end());
    EXPECT_NE(last.find("the peer is gone"), std::string::npos);
    ::unlink(path.c_str());
  }
}

// ---- comments

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

// ---- the head of a packet

std::uint32_t sum_of(const Octets& octets) {
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < octets.size(); at += 2) {
    sum += static_cast<std::uint32_t>(octets[at] << 8 | (at + 1 < octets.size() ? octets[at + 1] : 0));
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

// RFC 1071: what was summed up, and its checksum, make 0xffff.
TEST(PacketHead, TheChecksumOfTcpHolds) {
  for (const int family : {AF_INET, AF_INET6}) {
    for (const std::size_t len : {0u, 1u, 2u, 7u, 8u, 9u, 1001u, 65000u}) {
      Octets payload(len);
      for (std::size_t i = 0; i < len; ++i) payload[i] = static_cast<std::uint8_t>(i * 37 + 11);
      const PacketHead head(address(family, 1, 40000), address(family, 2, 20049),
                            {.seq = 1, .ack = 0xfffffff0, .flags = kAck}, payload, len);
      const std::size_t ip = family == AF_INET ? 20 : 40;
      const Octets octets(head.octets().begin(), head.octets().end());
      // The pseudo header: addresses, protocol, length.
      Octets all(octets.begin() + static_cast<std::ptrdiff_t>(family == AF_INET ? 12 : 8),
                 octets.begin() + static_cast<std::ptrdiff_t>(ip));
      const std::size_t tcp_len = 20 + len;
      for (const std::size_t word : {std::size_t{6}, tcp_len}) {
        all.push_back(static_cast<std::uint8_t>(word >> 8));
        all.push_back(static_cast<std::uint8_t>(word));
      }
      all.insert(all.end(), octets.begin() + static_cast<std::ptrdiff_t>(ip), octets.end());
      all.insert(all.end(), payload.begin(), payload.end());
      EXPECT_EQ(sum_of(all), 0xffffu) << family << " " << len;
    }
  }
}

// ---- files that are none

TEST_F(TraceTest, ADiskThatIsTooSlowCostsPacketsAndNothingElse) {
  std::vector<std::string> lines;
  const Octets payload(60000, 2);
  std::uint64_t dropped = 0;
  {
    // Nothing fits.
    auto trace = open(
        {.max_buffered = 50000, .log = {.sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); }}});
    for (int i = 0; i < 10; ++i) trace->put({}, payload, payload.size(), TimePoint{}, "");
    dropped = trace->counters().dropped;
  }
  EXPECT_EQ(dropped, 10u);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("10 packets were dropped")));
  EXPECT_THAT(blocks(), SizeIs(3));
}

TEST_F(TraceTest, AFullDiskIsToldOnceAndPacketsBehindItAreCounted) {
  std::vector<std::string> lines;
  auto made = open_trace(
      {.path = "/dev/full", .log = {.sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); }}});
  ASSERT_TRUE(made.ok());
  auto trace = std::static_pointer_cast<TraceFile>(std::move(made.value()));
  const Octets payload(100, 2);
  EXPECT_TRUE(trace->counters().failed);
  trace->put({}, payload, payload.size(), TimePoint{}, "");
  EXPECT_EQ(trace->counters().dropped, 1u);
  trace.reset();
  EXPECT_THAT(lines, ElementsAre(HasSubstr("No space left on device"), HasSubstr("1 packets were dropped since then")));
}

TEST_F(TraceTest, AFullDiskIsToldOnce) {
  std::vector<std::string> lines;
  auto trace = open_trace(
      {.path = "/dev/full", .log = {.sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); }}});
  ASSERT_TRUE(trace.ok());
  trace.value().reset();
  EXPECT_THAT(lines, ElementsAre(HasSubstr("No space left on device")));
}

TEST_F(TraceTest, TheHeadOfTheFileIsThereBeforeAnyPacket) {
  const auto trace = open();
  EXPECT_THAT(blocks(), SizeIs(2));
}

TEST_F(TraceTest, TwoTracesDoNotShareAFile) {
  const Octets payload(100, 2);
  {
    auto first = open();
    first->put({}, payload, payload.size(), TimePoint{}, "");
    const auto second = open_trace({.path = path});
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().errno_value, EWOULDBLOCK);
    EXPECT_THAT(second.error().message, HasSubstr("another trace is being written to it"));
  }
  EXPECT_THAT(blocks(), SizeIs(4));
  // Afterwards the file is free, and begins anew.
  EXPECT_TRUE(open_trace({.path = path}).ok());
  EXPECT_THAT(blocks(), SizeIs(3));
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

struct FifoTest : TraceTest {
  FifoTest() {
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    fifo = folder + "/fifo";
    EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  }
  ~FifoTest() override {
    ::unlink(fifo.c_str());
    ::rmdir(folder.c_str());
  }
  std::shared_ptr<Trace> open_fifo() {
    auto made = open_trace(
        {.path = fifo, .log = {.sink = [this](LogLevel, std::string_view line) { lines.emplace_back(line); }}});
    EXPECT_TRUE(made.ok());
    return std::move(made.value());
  }
  Fd reader() { return Fd(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK)); }

  std::string folder = "/tmp/weft-trace-XXXXXX", fifo;
  std::vector<std::string> lines;
};

TEST_F(FifoTest, WithoutAReaderItIsAnError) {
  const auto trace = open_trace({.path = fifo});
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().errno_value, ENXIO);
  EXPECT_THAT(trace.error().message, HasSubstr("start the reader first"));
}

TEST_F(FifoTest, AReaderThatStopsDoesNotKeepTheProgram) {
  const Fd held = reader();
  auto trace = open_fifo();
  const Octets payload(60000, 2);
  for (int i = 0; i < 10; ++i) std::static_pointer_cast<TraceFile>(trace)->put({}, payload, 60000, TimePoint{}, "");
  trace.reset();
  EXPECT_THAT(lines, ElementsAre(HasSubstr("the program that reads it does not go on")));
}

TEST_F(FifoTest, AReaderThatGoesAwayIsToldOnce) {
  Fd held = reader();
  auto trace = open_fifo();
  held.reset();
  trace.reset();
  EXPECT_THAT(lines, ElementsAre(HasSubstr("Broken pipe")));
}

TEST_F(TraceTest, AFolderIsNoFile) {
  const auto trace = open_trace({.path = "/tmp"});
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().errno_value, EISDIR);
}

TEST_F(TraceTest, APathThatCannotBeMadeIsAnError) {
  const auto trace = open_trace({.path = "/nonexistent/trace"});
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().errno_value, ENOENT);
}

}  // namespace
}  // namespace weft::verbs::soft
