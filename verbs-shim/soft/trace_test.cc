#include "verbs-shim/soft/trace.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "verbs-shim/soft/stream_trace.h"
#include "verbs-shim/soft/testing/trace.h"
#include "verbs-shim/soft/trace_file.h"

namespace weft::verbs::soft {
namespace {

using testing::address;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Octets;
using ::testing::SizeIs;
using testing::startup;
using testing::TraceTest;

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
