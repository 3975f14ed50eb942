#include "apps/nfs/io_thread.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <vector>

namespace weft::nfs {
namespace {

IoThread::Done next_done(IoThread& io) {
  while (true) {
    pollfd polled{io.fd(), POLLIN, 0};
    poll(&polled, 1, -1);
    if (const auto done = io.poll()) return *done;
  }
}

TEST(IoThread, JobsEndInOrder) {
  IoThread io;
  std::vector<int> ran;
  for (int i = 0; i < 20; ++i) {
    io.post(static_cast<std::uint32_t>(i), [&ran, i]() -> std::int64_t {
      ran.push_back(i);
      return i * 10;
    });
  }
  for (std::uint32_t i = 0; i < 20; ++i) {
    const IoThread::Done done = next_done(io);
    EXPECT_EQ(done.tag, i);
    EXPECT_EQ(done.result, std::int64_t{i} * 10);
  }
  EXPECT_FALSE(io.poll());
  EXPECT_EQ(ran.size(), 20u);
}

TEST(IoThread, DiscardInterruptsABlockedReadAndDropsTheRest) {
  std::array<int, 2> pipe_fds{};
  ASSERT_EQ(pipe(pipe_fds.data()), 0);
  IoThread io;
  std::array<std::uint8_t, 4> buffer{};
  std::atomic<bool> begun = false;
  std::atomic<bool> second_ran = false;
  io.post(1, [&] {
    begun = true;
    return read_fully(pipe_fds[0], buffer, io);
  });
  io.post(2, [&]() -> std::int64_t {
    second_ran = true;
    return 0;
  });
  while (!begun) std::this_thread::yield();
  io.discard();
  EXPECT_FALSE(io.poll());
  EXPECT_FALSE(second_ran);
  io.post(3, []() -> std::int64_t { return 7; });
  EXPECT_EQ(next_done(io).result, 7);
  for (const int fd : pipe_fds) close(fd);
}

TEST(IoThread, DestructionInterruptsABlockedWrite) {
  std::array<int, 2> pipe_fds{};
  ASSERT_EQ(pipe(pipe_fds.data()), 0);
  std::vector<std::uint8_t> much(1 << 20);
  std::atomic<bool> begun = false;
  {
    IoThread io;
    io.post(1, [&] {
      begun = true;
      return write_fully(pipe_fds[1], much, io);
    });
    while (!begun) std::this_thread::yield();
  }
  for (const int fd : pipe_fds) close(fd);
}

TEST(ReadFully, StopsAtTheEnd) {
  std::array<int, 2> pipe_fds{};
  ASSERT_EQ(pipe(pipe_fds.data()), 0);
  ASSERT_EQ(write(pipe_fds[1], "abc", 3), 3);
  close(pipe_fds[1]);
  IoThread io;
  std::array<std::uint8_t, 8> buffer{};
  EXPECT_EQ(read_fully(pipe_fds[0], buffer, io), 3);
  EXPECT_EQ(read_fully(pipe_fds[0], buffer, io), 0);
  EXPECT_EQ(read_fully(-1, buffer, io), -EBADF);
  close(pipe_fds[0]);
}

}  // namespace
}  // namespace weft::nfs
