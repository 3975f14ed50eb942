// The socket's side of a connection, over a socketpair: no loop, no queue pair, no listener.
#include "verbs-shim/soft/stream_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <vector>

#include "rdmap/testing/pair.h"

namespace weft::verbs::soft {
namespace {

constexpr TimePoint kNow{std::chrono::hours(1)};
constexpr std::size_t kMiB = std::size_t{1} << 20;

// Half is one end of the pair: a Stream and its socket.
struct Half {
  Half(Poller& poller, int fd) : side({}), source(Source::Kind::kConnection), socket(Fd(fd), false, poller, source) {}
  std::size_t read(std::size_t most = 8 * kMiB) {
    const std::size_t moved = socket.read(side.stream, side.staging, iov, most, kNow);
    side.drain();
    return moved;
  }
  StreamSocket::Written write(std::size_t most = 3 * kMiB) {
    const auto written = socket.write(side.stream, iov, most, kNow);
    side.drain();
    return written;
  }
  // Both directions, until nothing moves.
  static void settle(Half& a, Half& b) {
    while (a.write().moved + b.read() + b.write().moved + a.read() > 0) {
    }
  }

  rdmap::testing::Side side;
  Source source;
  StreamSocket socket;
  StreamSocket::IoVectors iov{};
};

class StreamSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(poller_.open().ok());
    int fds[2] = {};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    a_.emplace(poller_, fds[0]);
    b_.emplace(poller_, fds[1]);
    a_->side.memory.add_simple(1, 0, 0, 4 * kMiB);
    b_->side.memory.add_simple(1, 0, 0, 4 * kMiB);
  }
  void establish() {
    a_->side.stream.start_initiator({}, a_->side.recvs, kNow);
    b_->side.stream.start_responder(kNow);
    a_->socket.start();
    b_->socket.start();
    Half::settle(*a_, *b_);
    b_->side.stream.accept({}, b_->side.recvs, 16, 16, 0, kNow);
    Half::settle(*a_, *b_);
    ASSERT_TRUE(a_->side.established);
  }
  void post_write(std::size_t len) {
    rdmap::SendWr wr;
    wr.op = rdmap::SendOp::kRdmaWrite;
    wr.sg_list.push_back({0, static_cast<std::uint32_t>(len), ddp::Stag{1}});
    wr.remote_stag = ddp::Stag{1};
    ASSERT_EQ(a_->side.stream.post_send(wr), rdmap::PostResult::kOk);
  }
  // The Poller's events of this half now.
  std::uint32_t events_of(const Half& half) {
    for (const epoll_event& event : poller_.poll()) {
      if (event.data.ptr == &half.source) return event.events;
    }
    return 0;
  }

  Poller poller_;
  std::optional<Half> a_;
  std::optional<Half> b_;
};

TEST_F(StreamSocketTest, OctetsGoBothWays) {
  establish();
  std::fill_n(a_->side.memory.regions[1].octets.begin(), 100, 7);
  post_write(100);
  EXPECT_GT(a_->write().moved, 100u);
  EXPECT_EQ(a_->side.completions.size(), 1u);
  EXPECT_GT(b_->read(), 100u);
  EXPECT_EQ(b_->side.memory.regions[1].octets[99], 7);
  EXPECT_EQ(b_->side.memory.regions[1].octets[100], 0xa5);
  EXPECT_FALSE(b_->socket.more_to_read()) << "that was all";
  EXPECT_EQ(b_->read(), 0u);
}

TEST_F(StreamSocketTest, AFullSocketBlocksUntilItHasRoom) {
  establish();
  for (int i = 0; i < 4; ++i) post_write(kMiB);
  EXPECT_FALSE(poller_.expects_room());
  EXPECT_FALSE(a_->write().cut_short);
  ASSERT_TRUE(a_->socket.blocked());
  EXPECT_TRUE(poller_.expects_room()) << "epoll has to be asked";
  EXPECT_EQ(a_->write().moved, 0u) << "nothing is framed for a full socket";
  a_->socket.rearm();
  EXPECT_EQ(events_of(*a_) & EPOLLOUT, 0u);
  while (b_->read() > 0) {
  }
  EXPECT_NE(events_of(*a_) & EPOLLOUT, 0u);
  a_->socket.set_blocked(false);
  EXPECT_FALSE(poller_.expects_room());
  EXPECT_GT(a_->write().moved, 0u);
}

// One turn of reading is eight reads, each as long as the room in the staging area.
TEST_F(StreamSocketTest, ATurnOfReadingEndsAtItsBoundAndSaysSo) {
  establish();
  const int room = static_cast<int>(8 * kMiB);
  ASSERT_EQ(::setsockopt(a_->socket.fd(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
  for (int i = 0; i < 3; ++i) post_write(kMiB);
  ASSERT_GT(a_->write().moved, 2 * kMiB);
  ASSERT_FALSE(a_->socket.blocked());
  const std::size_t first = b_->read();
  EXPECT_LE(first, 8 * b_->side.staging.capacity());
  EXPECT_TRUE(b_->socket.more_to_read());
  for (int i = 0; i < 100 && b_->socket.more_to_read(); ++i) b_->read();
  EXPECT_FALSE(b_->socket.more_to_read());
  EXPECT_EQ(b_->read(), 0u);
}

TEST_F(StreamSocketTest, ATurnMovesNoMoreThanItsOctets) {
  establish();
  constexpr std::size_t kMost = 64 << 10;
  const int room = static_cast<int>(8 * kMiB);
  ASSERT_EQ(::setsockopt(a_->socket.fd(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)), 0);
  post_write(kMiB);
  const StreamSocket::Written written = a_->write(kMost);
  EXPECT_TRUE(written.cut_short);
  EXPECT_LT(written.moved, 2 * kMost) << "an FPDU is not cut";
  EXPECT_EQ(b_->read(1000), 1000u);
  EXPECT_TRUE(b_->socket.more_to_read());
  while (a_->write(kMost).moved + b_->read(kMost) > 0) {
  }
  EXPECT_EQ(a_->side.completions.size(), 1u);
}

TEST_F(StreamSocketTest, ReadingThatIsPutOffIsStillToCome) {
  establish();
  b_->socket.put_off_reading();
  EXPECT_TRUE(b_->socket.more_to_read());
  EXPECT_EQ(b_->read(), 0u);
  EXPECT_FALSE(b_->socket.more_to_read()) << "a turn has looked";
}

TEST_F(StreamSocketTest, TheEndOfThePeerIsToldOnceAndNotReadAgain) {
  establish();
  b_->socket.close();
  EXPECT_EQ(a_->read(), 1u);
  ASSERT_FALSE(a_->socket.readable());
  ASSERT_EQ(a_->side.closed.size(), 1u);
  EXPECT_EQ(a_->side.closed[0].reason, rdmap::CloseReason::kGraceful);
}

TEST_F(StreamSocketTest, AnErrorOfTheSocketEndsTheStream) {
  establish();
  post_write(100);
  b_->socket.close();
  EXPECT_EQ(a_->write().moved, 1u) << "EPIPE";
  EXPECT_FALSE(a_->socket.readable());
  ASSERT_EQ(a_->side.closed.size(), 1u);
  EXPECT_EQ(a_->side.closed[0].reason, rdmap::CloseReason::kLlp);
}

TEST_F(StreamSocketTest, AClosedStreamIsNotReadFor) {
  establish();
  b_->side.stream.abort(kNow);
  post_write(100);
  a_->write();
  EXPECT_EQ(b_->read(), 1u);
  EXPECT_FALSE(b_->socket.readable());
}

TEST_F(StreamSocketTest, ThePollerIsToldOfWhatCanBeGoneOnWith) {
  establish();
  b_->socket.rearm();
  post_write(16);
  a_->write();
  EXPECT_EQ(events_of(*b_), 0u) << "nobody watches it";
  ASSERT_TRUE(b_->socket.watch(EPOLLOUT));
  b_->socket.rearm();
  EXPECT_EQ(events_of(*b_), std::uint32_t{EPOLLIN});
  b_->socket.end_reading();
  b_->socket.rearm();
  EXPECT_EQ(events_of(*b_), 0u);
  b_->socket.unwatch();
  b_->socket.rearm();
  EXPECT_EQ(events_of(*b_), 0u);
}

TEST_F(StreamSocketTest, AnotherSocketStartsAnew) {
  establish();
  ASSERT_TRUE(a_->socket.watch(EPOLLIN));
  a_->socket.set_blocked(true);
  a_->socket.end_reading();
  int fds[2] = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const Fd other(fds[1]);
  a_->socket.replace(Fd(fds[0]));
  EXPECT_TRUE(a_->socket.readable());
  EXPECT_FALSE(a_->socket.blocked());
  EXPECT_FALSE(poller_.expects_room());
  ASSERT_EQ(::send(other.get(), "x", 1, 0), 1);
  EXPECT_EQ(events_of(*a_), 0u) << "the Poller does not know it yet";
  ASSERT_TRUE(a_->socket.watch(EPOLLIN));
  EXPECT_EQ(events_of(*a_), std::uint32_t{EPOLLIN});
}

TEST_F(StreamSocketTest, AReleasedSocketIsItsOwners) {
  establish();
  ASSERT_TRUE(a_->socket.watch(EPOLLIN));
  const Fd given = a_->socket.release();
  EXPECT_FALSE(a_->socket.open());
  EXPECT_FALSE(a_->socket.readable());
  ASSERT_EQ(::send(b_->socket.fd(), "x", 1, 0), 1);
  EXPECT_EQ(events_of(*a_), 0u);
  char octet = 0;
  EXPECT_EQ(::recv(given.get(), &octet, 1, 0), 1);
}

}  // namespace
}  // namespace weft::verbs::soft
