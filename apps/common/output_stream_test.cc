#include "apps/common/output_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <thread>

#include "apps/common/signals.h"

namespace weft::apps {
namespace {

// A pipe of one page, and a stream into it.
struct OutputStreamTest : ::testing::Test {
  OutputStreamTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader = Fd(ends[0]);
    ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
    write_end = ends[1];
    stream = open_output_stream(Fd(ends[1]));
  }
  // No later test sees the signal of this one.
  ~OutputStreamTest() override { signals.emplace(); }

  bool put(const std::string& text) {
    return std::fwrite(text.data(), 1, text.size(), stream.get()) == text.size() && std::fflush(stream.get()) == 0;
  }
  std::string read_all() const {
    std::string text;
    std::array<char, 1000> room{};
    for (ssize_t num = 0; (num = ::read(reader.get(), room.data(), room.size())) > 0;) {
      text.append(room.data(), static_cast<std::size_t>(num));
    }
    return text;
  }

  // The reader reads while the stream takes more than the pipe holds.
  void expect_all_arrives() {
    std::thread writer([this] {
      EXPECT_TRUE(put(longer));
      stream.reset();
    });
    EXPECT_EQ(read_all(), longer);
    writer.join();
  }

  const std::string longer = std::string(100'000, 'x') + "end";  // than the pipe
  std::optional<StopSignals> signals{std::in_place};
  Fd reader;
  int write_end = -1;
  OutputStream stream;
};

TEST_F(OutputStreamTest, WaitsForItsReader) {
  expect_all_arrives();
}

// A parent can leave its pipe in this state.
TEST_F(OutputStreamTest, WaitsAtADescriptorThatDoesNotBlock) {
  ::fcntl(write_end, F_SETFL, O_NONBLOCK);
  expect_all_arrives();
}

TEST_F(OutputStreamTest, AReaderThatDoesNotReadDoesNotOutliveAStopSignal) {
  ::raise(SIGTERM);
  EXPECT_FALSE(put(longer));
  EXPECT_FALSE(put("more"));
}

TEST_F(OutputStreamTest, AReaderThatReadsHasEverythingAfterAStopSignal) {
  ::raise(SIGINT);
  expect_all_arrives();
}

TEST_F(OutputStreamTest, SaysThatTheReaderHasGone) {
  reader.reset();
  EXPECT_FALSE(put("text"));
  EXPECT_EQ(errno, EPIPE);
}

TEST(OutputStream, SaysThatTheDiskIsFull) {
  const OutputStream stream = open_output_stream(Fd(::open("/dev/full", O_WRONLY | O_CLOEXEC)));
  std::fputs("text", stream.get());
  EXPECT_NE(std::fflush(stream.get()), 0);
  EXPECT_EQ(errno, ENOSPC);
}

}  // namespace
}  // namespace weft::apps
