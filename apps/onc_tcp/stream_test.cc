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
    // The record has two parts, as a message with an item has.
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
                   .on_end = [this](const std::string& why) { ends.push_back(why); },
                   .on_due = has_turns ? std::function<void()>([this] { ++num_due; }) : nullptr});
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
  // Handles every event that is ready.
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
  bool has_turns = false;
  int num_due = 0;
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
  stream->start({.on_record = [&](Record) { gone_at_record.push_back(gone); }, .on_end = [](const std::string&) {}});
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

TEST_F(StreamTest, WhatIsSentArrives) {
  start({});
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

struct StreamWithTurns : StreamTest {
  StreamWithTurns() { has_turns = true; }
  void put_records(std::size_t num) {
    Octets octets;
    for (std::size_t i = 0; i < num; ++i) {
      const Octets one = as_record(counted(8));
      octets.insert(octets.end(), one.begin(), one.end());
    }
    put(octets);
    settle();
  }
};

TEST_F(StreamWithTurns, ATurnHandsOutSoManyRecords) {
  start({});
  put_records(5);
  EXPECT_EQ(records.size(), 0u);
  EXPECT_EQ(num_due, 1);
  EXPECT_EQ(stream->turn(2), 2u);
  EXPECT_EQ(num_due, 2) << "more wait";
  settle();
  EXPECT_EQ(records.size(), 2u);
  EXPECT_EQ(stream->turn(10), 3u);
  EXPECT_EQ(num_due, 2);
  put_records(1);
  EXPECT_EQ(num_due, 3);
  EXPECT_EQ(stream->turn(1), 1u);
  EXPECT_EQ(records.size(), 6u);
}

TEST_F(StreamWithTurns, NothingIsReadBeforeTheTurn) {
  start({});
  put_records(1);
  peer.non_blocking(true);
  const Octets more(1 << 20);
  boost::system::error_code error;
  std::size_t taken = 0;
  while (!error) {
    taken += peer.write_some(asio::buffer(more), error);
    settle();
    ASSERT_LT(taken, std::size_t{64} << 20) << "it reads on";
  }
  EXPECT_EQ(error, asio::error::would_block);
}

TEST_F(StreamWithTurns, WhatAPauseLeftBecomesDueAgain) {
  pause_after = 2;
  start({});
  put_records(5);
  EXPECT_EQ(stream->turn(10), 2u);
  EXPECT_EQ(num_due, 1);
  stream->resume();
  settle();
  EXPECT_EQ(num_due, 2);
  EXPECT_EQ(stream->turn(10), 3u);
}

TEST_F(StreamWithTurns, APeerIsNotLateWhileItsRecordsWaitForATurn) {
  start({});
  put_records(1);
  const TimePoint now = std::chrono::steady_clock::now();
  stream->check(now);
  stream->check(now + std::chrono::minutes(5));
  EXPECT_TRUE(ends.empty());
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
  start({.record = {.max_record = 100}});
  put(as_record(counted(101)));
  ASSERT_TRUE(run([&] { return !ends.empty(); }));
  EXPECT_NE(ends[0].find("more than 100 bytes"), std::string::npos) << ends[0];
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

// The time is the test's.
struct SlowPeerTest : StreamTest {
  static constexpr std::chrono::seconds kTimeout{30};

  SlowPeerTest() {
    accepted->set_option(asio::socket_base::send_buffer_size(16 << 10));
    peer.set_option(asio::socket_base::receive_buffer_size(16 << 10));
    peer.non_blocking(true);
  }
  void start_and_answer(const StreamConfig& config, std::size_t answer_len) {
    stream = std::make_shared<Stream>(std::move(*accepted), pool, config);
    stream->start({.on_record =
                       [this, answer_len](Record) {
                         ++num_records;
                         stream->send(std::make_unique<Owned>(counted(answer_len)));
                         most_queued = std::max(most_queued, stream->queued());
                       },
                   .on_end = [this](const std::string& why) { ends.push_back(why); }});
  }
  // Sends an endless stream of small records, as far as the other end takes it at once.
  void ask_on() {
    static const Octets record = as_record(counted(96));
    while (true) {
      boost::system::error_code error;
      const std::size_t n = peer.write_some(asio::buffer(record.data() + asked, record.size() - asked), error);
      if (error) return;
      asked = (asked + n) % record.size();
    }
  }
  // Sends all of it, and the other end receives meanwhile.
  void put_all(const Octets& octets) {
    for (std::size_t done = 0; done < octets.size(); settle()) {
      boost::system::error_code error;
      done += peer.write_some(asio::buffer(octets.data() + done, octets.size() - done), error);
      ASSERT_TRUE(!error || error == asio::error::would_block) << error.message();
    }
  }
  std::size_t read_some(std::size_t most) {
    Octets octets(most);
    boost::system::error_code error;
    return peer.read_some(asio::buffer(octets), error);
  }
  // Time goes by, a second at a time. The peer acts meanwhile.
  void pass(
      std::chrono::seconds time, const std::function<void()>& meanwhile = [] {}) {
    for (; time.count() > 0; time -= std::chrono::seconds(1)) {
      now += std::chrono::seconds(1);
      meanwhile();
      settle();
      stream->check(now);
    }
    settle();
  }

  TimePoint now{};
  std::size_t num_records = 0, most_queued = 0, asked = 0;
};

TEST_F(SlowPeerTest, APeerThatAsksAndDoesNotReadIsNotReadEither) {
  constexpr std::size_t kHighWater = 100000, kAnswer = 10000;
  start_and_answer({.high_water = kHighWater, .low_water = 20000}, kAnswer);
  for (int i = 0; i < 50; ++i) {
    ask_on();
    settle();
  }
  EXPECT_LE(most_queued, kHighWater + kAnswer + kMarkLen);
  const std::size_t before = num_records;
  ask_on();
  settle();
  EXPECT_EQ(num_records, before);
  // It reads again, and gets every answer.
  std::size_t got = 0;
  ASSERT_TRUE(run([&] {
    got += read_some(1 << 20);
    return got > 2 * before * kAnswer || (ask_on(), false);
  }));
  EXPECT_GT(num_records, before);
  EXPECT_LE(most_queued, kHighWater + kAnswer + kMarkLen);
  EXPECT_TRUE(ends.empty());
}

// Records without octets, too, take memory while they wait.
TEST_F(SlowPeerTest, SmallAnswersAreBoundedInNumber) {
  start_and_answer({.high_water = 1000, .low_water = 100}, 0);
  for (int i = 0; i < 10; ++i) {
    ask_on();
    settle();
  }
  EXPECT_GT(num_records, 100u);
  EXPECT_LE(most_queued / kMarkLen, 1000u / 256 + 1);
}

TEST_F(SlowPeerTest, AStreamToAServerReceivesWhileItsOwnRecordsWait) {
  start_and_answer({.high_water = 1000, .low_water = 100, .receives_always = true}, 10000);
  for (int i = 0; i < 300; ++i) put(as_record(counted(96)));
  settle();
  EXPECT_GT(most_queued, 1000000u);
}

TEST_F(SlowPeerTest, HoldingBackTheRestOfARecordEndsIt) {
  start({});
  put(as_record(counted(10)));
  put({0x80, 0, 0, 9, 1});
  pass(kTimeout);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_TRUE(ends.empty());
  pass(std::chrono::seconds(2));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_NE(ends[0].find("a record has begun"), std::string::npos) << ends[0];
}

TEST_F(SlowPeerTest, ATrickleDoesNotKeepARecordForEver) {
  start({});
  put({0x80, 0x0f, 0xff, 0xff});
  int seconds = 0;
  while (ends.empty() && seconds < 1000) {
    pass(std::chrono::seconds(1), [&] { put({1, 2, 3}); });
    ++seconds;
  }
  EXPECT_LE(seconds, 32);
}

TEST_F(SlowPeerTest, ARecordMayComeSlowlyButSteadily) {
  start({});
  Octets record = as_record(counted(1 << 20));
  std::size_t put_yet = 0;
  pass(std::chrono::seconds(300), [&] {
    const std::size_t n = std::min<std::size_t>(4000, record.size() - put_yet);
    put(Octets(record.begin() + static_cast<std::ptrdiff_t>(put_yet),
               record.begin() + static_cast<std::ptrdiff_t>(put_yet + n)));
    put_yet += n;
  });
  ASSERT_TRUE(run([&] { return records.size() == 1; }));
  EXPECT_TRUE(ends.empty());
}

TEST_F(SlowPeerTest, ReadingNothingEndsItThoughItSendsAllTheTime) {
  start_and_answer({.receives_always = true}, 10000);
  // Sockets that are full at once make it end a second sooner.
  pass(kTimeout + std::chrono::seconds(2), [&] {
    for (int i = 0; i < 20 && ends.empty(); ++i) put(as_record(counted(96)));
  });
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_NE(ends[0].find("some wait to be sent"), std::string::npos) << ends[0];
}

TEST_F(SlowPeerTest, ReadingATrickleEndsIt) {
  start_and_answer({.receives_always = true}, 1 << 20);
  for (int i = 0; i < 10; ++i) put(as_record(counted(96)));
  settle();
  int seconds = 0;
  while (ends.empty() && seconds < 1000) {
    pass(std::chrono::seconds(1), [&] { read_some(100); });
    ++seconds;
  }
  EXPECT_LE(seconds, 64);  // the sockets' own buffers count as read
}

TEST_F(SlowPeerTest, SilenceBetweenRecordsIsNoStall) {
  start({});
  put(as_record(counted(10)));
  ASSERT_TRUE(run([&] { return records.size() == 1; }));
  pass(std::chrono::seconds(100));
  EXPECT_TRUE(ends.empty());
}

// Four seconds for as many octets as its record has.
TEST_F(SlowPeerTest, EarnsItsTimeByTheOctetsItSends) {
  constexpr std::size_t kHeld = 1 << 20;
  start({});
  put({0x80, 0x0f, 0xff, 0xff});
  put_all(Octets(64 << 10));  // the record has all of its memory now
  for (int i = 0; i < 3; ++i) {
    pass(std::chrono::seconds(1), [&] { put_all(Octets(kHeld / 4)); });
    EXPECT_FALSE(stream->is_slow()) << i;
  }
  pass(std::chrono::seconds(2), [&] { put_all(Octets(kHeld / 16)); });
  EXPECT_TRUE(stream->is_slow());
}

struct SlowReaderTest : SlowPeerTest {
  static constexpr std::size_t kAnswer = 4 << 20;

  void ask() {
    start_and_answer({.receives_always = true}, kAnswer);
    peer.set_option(tcp::no_delay(true));
    put(as_record(counted(96)));
    settle();
  }
  void read_all(std::size_t len) {
    for (; len > 0 && ends.empty(); settle()) len -= read_some(len);
  }
};

TEST_F(SlowReaderTest, EarnsItsTimeByTheOctetsItReads) {
  ask();
  for (int i = 0; i < 3; ++i) {
    pass(std::chrono::seconds(1), [&] { read_all(kAnswer / 4); });
    EXPECT_FALSE(stream->is_slow()) << i;
  }
  pass(std::chrono::seconds(2));
  EXPECT_TRUE(stream->is_slow());
}

TEST_F(SlowReaderTest, APauseIsForgottenOnceItReadsAgain) {
  ask();
  pass(std::chrono::seconds(10));
  EXPECT_TRUE(stream->is_slow());
  pass(std::chrono::seconds(1), [&] { read_all(kAnswer / 2); });
  EXPECT_FALSE(stream->is_slow());
}

TEST_F(SlowReaderTest, RecordsThatItSendsDoNotExcuseIt) {
  ask();
  pass(std::chrono::seconds(3), [&] { put(as_record(counted(96))); });
  EXPECT_EQ(num_records, 4u);
  EXPECT_TRUE(stream->is_slow());
}

}  // namespace
}  // namespace weft::onc_tcp
