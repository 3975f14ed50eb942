#include "apps/dissect/read_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "apps/common/signals.h"

namespace weft::apps::dissect {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    out = Fd(ends[0]);
    in = Fd(ends[1]);
  }
  void write(std::vector<std::uint8_t> octets) {
    EXPECT_EQ(::write(in.get(), octets.data(), octets.size()), static_cast<ssize_t>(octets.size()));
  }
  Fd out, in;
};

// A reader of a live capture must not wait for the packet behind the one that is there.
TEST(ReadAhead, WaitsForNoMoreThanIsWanted) {
  Pipe pipe;
  ReadAhead ahead(std::move(pipe.out), {});
  pipe.write({1, 2, 3});
  EXPECT_THAT(ahead.peek(2), ElementsAre(1, 2));
  ahead.pass(2);
  EXPECT_THAT(ahead.peek(1), ElementsAre(3));
  pipe.write({4, 5});
  EXPECT_THAT(ahead.peek(3), ElementsAre(3, 4, 5));
}

TEST(ReadAhead, AtTheEndThereIsWhatIsLeft) {
  Pipe pipe;
  const std::uint8_t first = 1;
  ReadAhead ahead(std::move(pipe.out), std::span(&first, 1));
  pipe.write({2, 3});
  pipe.in.reset();
  EXPECT_THAT(ahead.peek(100), ElementsAre(1, 2, 3));
  ahead.pass(3);
  EXPECT_THAT(ahead.peek(1), IsEmpty());
  EXPECT_EQ(ahead.error(), 0);
}

TEST(ReadAhead, AFailedReadIsNamed) {
  ReadAhead ahead(Fd(), {});
  EXPECT_THAT(ahead.peek(1), IsEmpty());
  EXPECT_EQ(ahead.error(), EBADF);
}

// Views may be longer than a piece, and may begin anywhere in one.
TEST(ReadAhead, PiecesAreNoBounds) {
  std::vector<std::uint8_t> octets(5 * ReadAhead::kPiece / 2);
  std::iota(octets.begin(), octets.end(), 0);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(octets.data(), 1, octets.size(), file), octets.size());
  ASSERT_EQ(std::fseek(file, 0, SEEK_SET), 0);
  ReadAhead ahead(Fd(::dup(::fileno(file))), {});
  std::size_t at = 0;
  for (const std::size_t len : {std::size_t{7}, ReadAhead::kPiece - 3, ReadAhead::kPiece + 1, std::size_t{100}}) {
    const ConstBytes seen = ahead.peek(len);
    ASSERT_EQ(seen.size(), len);
    EXPECT_TRUE(std::ranges::equal(seen, ConstBytes(octets).subspan(at, len))) << len;
    ahead.pass(len);
    at += len;
  }
  std::fclose(file);
}

// A live capture without packets ends at once.
TEST(ReadAhead, AStopSignalEndsTheWait) {
  {
    const StopSignals signals;
    Pipe pipe;
    ReadAhead ahead(std::move(pipe.out), {});
    ::raise(SIGTERM);
    EXPECT_THAT(ahead.peek(1), IsEmpty());
    EXPECT_EQ(ahead.error(), EINTR);
  }
  const StopSignals none;  // no later test sees the signal of this one
}

}  // namespace
}  // namespace weft::apps::dissect
