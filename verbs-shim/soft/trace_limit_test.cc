// Traces with a limit, and rings of files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "verbs-shim/soft/trace.h"
#include "verbs-shim/soft/trace_file.h"
#include "verbs-shim/soft/trace_ring.h"

namespace weft::verbs::soft {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Octets = std::vector<std::uint8_t>;

constexpr std::uint64_t kLimit = TraceConfig::kMinFile;

struct TraceLimitTest : ::testing::Test {
  TraceLimitTest() { EXPECT_NE(::mkdtemp(folder.data()), nullptr); }
  ~TraceLimitTest() override { std::filesystem::remove_all(folder); }

  std::shared_ptr<TraceFile> open(std::size_t num_files) {
    auto trace = open_trace({.path = folder + "/x.pcapng",
                             .max_file = kLimit,
                             .num_files = num_files,
                             .log = {.sink = [this](LogLevel, std::string_view line) { lines.emplace_back(line); }}});
    if (!trace.ok()) {
      ADD_FAILURE() << trace.error().message;
      return nullptr;
    }
    return std::static_pointer_cast<TraceFile>(std::move(trace.value()));
  }
  // Packets of different lengths that begin with their numbers.
  static void put(TraceFile& trace, std::uint32_t first, std::uint32_t num) {
    for (std::uint32_t i = first; i < first + num; ++i) {
      Octets payload(500 + i * 37 % 1000, 0x5a);
      std::memcpy(payload.data(), &i, sizeof(i));
      trace.put({}, payload, payload.size(), TimePoint{}, i % 3 == 0 ? "a comment" : "");
    }
  }
  // The numbers of the packets of a file, which is whole blocks: a head, packets, statistics.
  std::vector<std::uint32_t> numbers_in(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const Octets octets{std::istreambuf_iterator<char>(in), {}};
    std::vector<std::uint32_t> types, numbers;
    for (std::size_t at = 0; at < octets.size();) {
      std::uint32_t words[2] = {}, number = 0, behind = 0;
      if (octets.size() - at < 12) ADD_FAILURE() << path << ": a block without its head";
      if (octets.size() - at < 12) return {};
      std::memcpy(words, octets.data() + at, 8);
      if (words[1] % 4 != 0 || words[1] < 12 || words[1] > octets.size() - at) {
        ADD_FAILURE() << path << ": a block of " << words[1] << " bytes";
        return {};
      }
      std::memcpy(&behind, octets.data() + at + words[1] - 4, 4);
      EXPECT_EQ(behind, words[1]);
      types.push_back(words[0]);
      if (words[0] == 6) {
        std::memcpy(&number, octets.data() + at + 28, 4);
        numbers.push_back(number);
      }
      at += words[1];
    }
    EXPECT_LE(octets.size(), kLimit) << path;
    EXPECT_GE(types.size(), 3u);
    if (types.size() < 3) return {};
    EXPECT_EQ(types[0], 0x0a0d0d0au);
    EXPECT_EQ(types[1], 1u);
    EXPECT_EQ(types.back(), 5u);
    EXPECT_EQ(numbers.size(), types.size() - 3);
    return numbers;
  }
  std::string file(const std::string& name) const { return folder + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) all.push_back(entry.path().filename());
    std::ranges::sort(all);
    return all;
  }
  // The files were written at these seconds, in the order of their names.
  void set_ages(const std::vector<std::pair<std::string, time_t>>& ages) const {
    for (const auto& [name, second] : ages) {
      const timespec times[2] = {{second, 0}, {second, 0}};
      ASSERT_EQ(::utimensat(AT_FDCWD, file(name).c_str(), times, 0), 0);
    }
  }

  std::string folder = "/tmp/weft-trace-limit-XXXXXX";
  std::vector<std::string> lines;
};

TEST_F(TraceLimitTest, AFileEndsWithTheLastPacketThatFits) {
  auto trace = open(0);
  put(*trace, 0, 1000);
  const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!trace->counters().full && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  const auto before = trace->counters();
  put(*trace, 1000, 1000);
  EXPECT_EQ(trace->counters().packets, before.packets) << "a trace that is full counts nothing more";
  EXPECT_FALSE(trace->is_open());
  trace.reset();
  EXPECT_THAT(names(), ElementsAre("x.pcapng"));
  const auto numbers = numbers_in(file("x.pcapng"));
  for (std::uint32_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], i);
  EXPECT_GT(std::filesystem::file_size(file("x.pcapng")), kLimit - 1600) << "another packet would have fitted";
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("x.pcapng"), HasSubstr("131072 bytes"))));
}

// The last packets are there, without a gap, in files that can each be read alone.
TEST_F(TraceLimitTest, ARingKeepsTheLastFiles) {
  auto trace = open(3);
  constexpr std::uint32_t kNum = 2000;
  put(*trace, 0, kNum);
  trace.reset();
  EXPECT_THAT(names(), ElementsAre("x_1.pcapng", "x_2.pcapng", "x_3.pcapng"));
  std::vector<std::uint32_t> all;
  for (const std::string& name : names()) {
    const auto numbers = numbers_in(file(name));
    EXPECT_GT(numbers.size(), 10u);
    for (std::size_t i = 1; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], numbers[i - 1] + 1);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  std::ranges::sort(all);
  ASSERT_GT(all.size(), 200u);
  ASSERT_LT(all.size(), kNum);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], kNum - all.size() + i);
  EXPECT_THAT(lines, IsEmpty());
}

// A program that is started again goes on behind its last file: the files of the run before are lost last.
TEST_F(TraceLimitTest, ARingGoesOnBehindTheLastFile) {
  put(*open(3), 0, 10);
  EXPECT_THAT(names(), ElementsAre("x_1.pcapng"));
  put(*open(3), 100, 10);
  EXPECT_THAT(names(), ElementsAre("x_1.pcapng", "x_2.pcapng"));
  put(*open(3), 200, 10);
  set_ages({{"x_1.pcapng", 3000}, {"x_2.pcapng", 1000}, {"x_3.pcapng", 2000}});
  put(*open(3), 300, 10);
  EXPECT_THAT(numbers_in(file("x_1.pcapng")), Contains(0u));
  EXPECT_THAT(numbers_in(file("x_2.pcapng")), Contains(300u));
  EXPECT_THAT(numbers_in(file("x_3.pcapng")), Contains(200u));
}

TEST_F(TraceLimitTest, TwoTracesDoNotShareARing) {
  const auto first = open(3);
  const auto second = open_trace({.path = file("x.pcapng"), .max_file = kLimit, .num_files = 3});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().errno_value, EWOULDBLOCK);
  EXPECT_THAT(second.error().message, HasSubstr("another trace is being written to it"));
  EXPECT_THAT(names(), ElementsAre("x_1.pcapng"));
}

TEST_F(TraceLimitTest, LimitsThatCannotBeKeptAreErrors) {
  for (const auto& [limit, num] : {std::pair<std::uint64_t, std::size_t>{kLimit - 1, 0},
                                   {0, 2},
                                   {kLimit, 1},
                                   {kLimit, TraceConfig::kMaxFiles + 1}}) {
    const auto trace = open_trace({.path = file("x.pcapng"), .max_file = limit, .num_files = num});
    ASSERT_FALSE(trace.ok()) << limit << " " << num;
    EXPECT_EQ(trace.error().errno_value, EINVAL);
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(TraceLimitTest, ARingIsMadeOfRegularFiles) {
  ASSERT_EQ(::mkfifo(file("x_1.pcapng").c_str(), 0600), 0);
  const auto trace = open_trace({.path = file("x.pcapng"), .max_file = kLimit, .num_files = 2});
  EXPECT_TRUE(trace.ok()) << "x_2.pcapng is not there, so the trace begins with it";
  const auto other = open_trace({.path = file("x.pcapng"), .max_file = kLimit, .num_files = 2});
  EXPECT_FALSE(other.ok());
}

TEST(TraceRing, TheNumberStandsBeforeTheEndingOfTheName) {
  EXPECT_THAT(ring_paths("a/x.pcapng", 0), ElementsAre("a/x.pcapng"));
  EXPECT_THAT(ring_paths("a/x.pcapng", 2), ElementsAre("a/x_1.pcapng", "a/x_2.pcapng"));
  EXPECT_THAT(ring_paths("a.b/x", 2), ElementsAre("a.b/x_1", "a.b/x_2"));
  EXPECT_THAT(ring_paths(".x", 2), ElementsAre(".x_1", ".x_2"));
  const auto many = ring_paths("x.y.pcapng", 12);
  ASSERT_THAT(many, SizeIs(12));
  EXPECT_EQ(many[0], "x.y_01.pcapng");
  EXPECT_EQ(many[11], "x.y_12.pcapng");
}

}  // namespace
}  // namespace weft::verbs::soft
