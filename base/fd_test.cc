#include "base/fd.h"

#include <fcntl.h>

#include "gtest/gtest.h"

namespace weft {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

Fd open_null() {
  return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

TEST(Fd, ClosesItsDescriptorOnce) {
  int number = -1;
  {
    const Fd fd = open_null();
    number = fd.get();
    ASSERT_TRUE(fd);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, MovesItsDescriptor) {
  Fd from = open_null(), to = open_null();
  const int moved = from.get(), replaced = to.get();
  to = std::move(from);
  EXPECT_EQ(to.get(), moved);
  EXPECT_TRUE(is_open(moved));
  EXPECT_FALSE(is_open(replaced));
  Fd last(std::move(to));
  EXPECT_FALSE(to);  // NOLINT(bugprone-use-after-move): a moved Fd is empty
  EXPECT_EQ(last.get(), moved);
}

TEST(Fd, AssignmentClosesWhatWasHeld) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const Fd reader(pipe[0]);
  Fd writer(pipe[1]);
  Fd& same = writer;
  writer = std::move(same);
  EXPECT_EQ(writer.get(), pipe[1]);
  writer = Fd();
  char octet = 0;
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(::read(reader.get(), &octet, 1), 0) << "no process holds the other end";
}

TEST(Fd, ReleasesItsDescriptorOpen) {
  Fd fd = open_null();
  const Fd taken(fd.release());
  EXPECT_FALSE(fd);
  EXPECT_TRUE(is_open(taken.get()));
}

}  // namespace
}  // namespace weft
