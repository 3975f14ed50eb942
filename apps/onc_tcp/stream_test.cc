#include "apps/onc_tcp/stream.h"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <numeric>
#include <thread>

#include "rpcrdma/testing/fake_verbs.h"

namespace weft::onc_tcp {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Octets = std::vector<std::uint8_t>;

constexpr std::size_t kMaxRecord = 1 << 20;

struct Owned : OutRecord {
  explicit Owned(Octets the_octets) : octets(std::move(the_octets)) {
    // In two parts, as a message with an item is.
    const std::size_t half = octets.size() / 2;
    parts = {ConstBytes(octets).first(half), ConstBytes(octets).subspan(half)};
  }
  Octets octets;
};

// A Stream, and the other end of its connection as a plain socket.
struct StreamTest : ::testing::Test {
  StreamTest() {
    tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    peer.connect(acceptor.local_endpoint());
    accepted.emplace(acceptor.accept());
  }
  ~StreamTest() override {
    if (stream) stream->close("");
    io.restart();
    io.run_for(std::chrono::seconds(5));
  }
  void start(const StreamConfig& config) {
    stream = std::make_shared<Stream>(std::move(*accepted), pool, config);
    stream->start({.on_record =
                       [this](Record record) {
                         records.emplace_back(record.octets().begin(), record.octets().end());
                         if (pause_after == records.size()) stream->pause();
                       },
                   .on_drained = [this] { ++drained; },
                   .on_end = [this](const std::string& why) { ends.push_back(why); }});
  }
  static Octets counted(std::size_t len) {
    Octets octets(len);
    std::iota(octets.begin(), octets.end(), std::uint8_t{1});
    return octets;
  }
  static Octets as_record(const Octets& message) {
    Octets out;
    emit_record(message, out);
    return out;
  }
  void put(const Octets& octets) { asio::write(peer, asio::buffer(octets)); }
  bool run(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(50));
    }
    return done();
  }
  // Whatever can happen at once.
  void settle() {
    io.restart();
    while (io.poll() > 0) {
    }
  }

  rpcrdma::testing::FakeMemory memory;
  rpcrdma::testing::FakePd pd{memory};
  rpcrdma::BufferPool pool{pd, kMaxRecord, 4 * kMaxRecord};
  asio::io_context io{1};
  tcp::socket peer{io};
  std::optional<tcp::socket> accepted;
  std::shared_ptr<Stream> stream;
  std::vector<Octets> records;
  std::size_t pause_after = 0;
  int drained = 0;
  std::vector<std::string> ends;
};

// Asio may carry out a read that was due before, and hand it out, ahead of saying that a write is done.
TEST_F(StreamTest, WhatIsAnsweredHasLeft) {
  struct Noticed : Owned {
    Noticed(Octets the_octets, bool& flag) : Owned(std::move(the_octets)), gone(flag) {}
    ~Noticed() override { gone = true; }
    bool& gone;
  };
  bool gone = false;
  std::vector<bool> gone_at_record;
  stream = std::make_shared<Stream>(std::move(*accepted), pool, StreamConfig{});
  stream->start({.on_record = [&](Record) { gone_at_record.push_back(gone); },
                 .on_drained = {},
                 .on_end = [](const std::string&) {}});
  settle();
  const Octets first = as_record(counted(8)), call = counted(100), answer = as_record(counted(12));
  std::jthread answerer([&] {
    Octets heard(as_record(call).size());
    asio::read(peer, asio::buffer(heard));
    put(answer);
  });
  put(first);  // Asio sees it before it calls the function below, and reads behind that
  asio::post(io, [&] {
    stream->send(std::make_unique<Noticed>(call, gone));
    answerer.join();
  });
  ASSERT_TRUE(run([&] { return gone_at_record.size() == 2; }));
  EXPECT_TRUE(gone_at_record[1]);
}

TEST_F(StreamTest, RecordsComeWholeAndInOrder) {
  start({});
  put(as_record(counted(10)));
  put(as_record(counted(300000)));
  put(as_record({}));
  ASSERT_TRUE(run([&] { return records.size() == 3; }));
  EXPECT_EQ(records, (std::vector<Octets>{counted(10), counted(300000), {}}));
  peer.shutdown(tcp::socket::shutdown_send);
  ASSERT_TRUE(run([&] { return !ends.empty(); }));
  EXPECT_EQ(ends, std::vector<std::string>{""}) << "the peer was done";
}

TEST_F(StreamTest, WhatIsSentArrivesAndSaysWhenItHasGone) {
  start({.low_water = 1000});
  Octets expected;
  for (const std::size_t len : {5ul, 200000ul, 0ul, 7ul}) {
    stream->send(std::make_unique<Owned>(counted(len)));
    const Octets one = as_record(counted(len));
    expected.insert(expected.end(), one.begin(), one.end());
  }
  EXPECT_EQ(stream->queued(), expected.size());
  Octets got(expected.size());
  bool arrived = false;
  asio::async_read(peer, asio::buffer(got), [&](boost::system::error_code error, std::size_t) { arrived = !error; });
  ASSERT_TRUE(run([&] { return arrived; }));
  EXPECT_EQ(got, expected);
  EXPECT_EQ(drained, 1);
  EXPECT_EQ(stream->queued(), 0u);
}

TEST_F(StreamTest, PausedItReadsNothingAndThenGoesOn) {
  pause_after = 1;
  start({});
  for (int i = 0; i < 3; ++i) put(as_record(counted(100)));
  ASSERT_TRUE(run([&] { return records.size() == 1; }));
  settle();
  EXPECT_EQ(records.size(), 1u);
  stream->resume();
  ASSERT_TRUE(run([&] { return records.size() == 3; }));
}

TEST_F(StreamTest, WaitsForThePool) {
  std::vector<rpcrdma::Buffer> taken;
  for (int i = 0; i < 4; ++i) taken.push_back(pool.take(kMaxRecord));
  start({});
  put(as_record(counted(100)));
  settle();
  EXPECT_TRUE(records.empty());
  taken.clear();
  ASSERT_TRUE(run([&] { return records.size() == 1; }));
  EXPECT_TRUE(ends.empty());
}

TEST_F(StreamTest, EndsWithAReason) {
  start({.max_record = 100});
  put(as_record(counted(101)));
  ASSERT_TRUE(run([&] { return !ends.empty(); }));
  EXPECT_NE(ends[0].find("more than 100 octets"), std::string::npos) << ends[0];
  settle();
  EXPECT_EQ(ends.size(), 1u);
  EXPECT_TRUE(stream->is_closed());
}

TEST_F(StreamTest, EndWithinARecordIsNoGoodEnd) {
  start({});
  put({0x80, 0, 0, 9, 1});
  peer.close();
  ASSERT_TRUE(run([&] { return !ends.empty(); }));
  EXPECT_NE(ends[0].find("within a record"), std::string::npos) << ends[0];
}

TEST_F(StreamTest, AResetBetweenRecordsIsAnEnd) {
  start({});
  put(as_record(counted(10)));
  ASSERT_TRUE(run([&] { return records.size() == 1; }));
  peer.set_option(asio::socket_base::linger(true, 0));
  peer.close();
  ASSERT_TRUE(run([&] { return !ends.empty(); }));
  EXPECT_EQ(ends, std::vector<std::string>{""});
}

TEST_F(StreamTest, WhoHoldsBackTheRestOfARecordIsLeft) {
  start({.stall_timeout = std::chrono::milliseconds(20)});
  put(as_record(counted(10)));
  put({0x80, 0, 0, 9, 1});
  ASSERT_TRUE(run([&] { return !ends.empty(); }));
  EXPECT_EQ(records.size(), 1u);
  EXPECT_NE(ends[0].find("a record has begun"), std::string::npos) << ends[0];
}

TEST_F(StreamTest, WhoReadsNothingIsLeft) {
  start({.stall_timeout = std::chrono::milliseconds(20)});
  for (int i = 0; i < 32; ++i) stream->send(std::make_unique<Owned>(counted(1 << 20)));
  ASSERT_TRUE(run([&] { return !ends.empty(); }));
  EXPECT_NE(ends[0].find("some wait to be sent"), std::string::npos) << ends[0];
}

TEST_F(StreamTest, SilenceBetweenRecordsIsNoStall) {
  start({.stall_timeout = std::chrono::milliseconds(5)});
  put(as_record(counted(10)));
  ASSERT_TRUE(run([&] { return records.size() == 1; }));
  io.restart();
  io.run_for(std::chrono::milliseconds(40));
  EXPECT_TRUE(ends.empty());
}

}  // namespace
}  // namespace weft::onc_tcp
