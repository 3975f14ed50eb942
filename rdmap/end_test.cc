// How a stream ends: in time, at once, by the peer; and the state after the end.
#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "rdmap/stream.h"
#include "rdmap/testing/pair.h"

namespace weft::rdmap {
namespace {

using testing::ids;
using testing::Pair;
using testing::rdma_wr;
using testing::send_wr;
using testing::Side;

TEST(Stream, DeadlinesOfStartupAndOfTheEnd) {
  const TimePoint begin{};
  StreamConfig config;
  config.request_timeout = std::chrono::seconds(3);
  config.reply_timeout = std::chrono::seconds(4);
  config.close_timeout = std::chrono::seconds(6);
  for (const bool initiator : {true, false}) {
    Side side(config);
    if (initiator) {
      side.stream.start_initiator({}, side.recvs, begin);
      ASSERT_EQ(side.stream.post_send(send_wr(1, {})), PostResult::kOk);
    } else {
      side.stream.start_responder(begin);
    }
    side.transmit(begin);
    const TimePoint end = begin + std::chrono::seconds(initiator ? 4 : 3);
    ASSERT_EQ(side.stream.next_timeout(), end);
    side.stream.on_timeout(end - std::chrono::nanoseconds(1));
    side.drain();
    EXPECT_TRUE(side.closed.empty());
    side.stream.on_timeout(end);
    side.drain();
    ASSERT_EQ(side.closed.size(), 1u);
    EXPECT_EQ(side.closed[0].reason, CloseReason::kStartup);
    EXPECT_EQ(side.completions.size(), initiator ? 1u : 0u);
    EXPECT_EQ(side.stream.llp_action(), LlpAction::kClose);
  }
  Pair pair(config, config);
  pair.connect();
  pair.a.stream.disconnect(begin);
  EXPECT_EQ(pair.a.stream.llp_action(), LlpAction::kShutdownWrite);
  pair.a.stream.on_llp_action_done(LlpAction::kShutdownWrite);
  EXPECT_EQ(pair.a.stream.llp_action(), LlpAction::kNone);
  ASSERT_EQ(pair.a.stream.next_timeout(), begin + config.close_timeout);
  pair.a.stream.on_timeout(begin + config.close_timeout);
  EXPECT_EQ(pair.a.stream.llp_action(), LlpAction::kClose);
}

// The end may come in any state. After it no timer wakes the driver, and passing time reports nothing more.
TEST(Stream, NoTimerOutlivesTheEnd) {
  StreamConfig config;
  config.nudge = std::chrono::milliseconds(50);
  const auto expect_rest = [](Side& side, TimePoint now) {
    side.drain();
    ASSERT_EQ(side.closed.size(), 1u);
    EXPECT_EQ(side.stream.next_timeout(), std::nullopt);
    side.stream.on_timeout(now + std::chrono::hours(1));
    side.drain();
    EXPECT_EQ(side.closed.size(), 1u);
    EXPECT_FALSE(side.stream.wants_tx());
    EXPECT_EQ(side.stream.next_timeout(), std::nullopt);
  };
  const std::function<void(Pair&)> ends[] = {
      [](Pair& pair) { pair.a.stream.abort(pair.now); },
      [](Pair& pair) { pair.a.stream.on_llp_error(104, pair.now); },
      [](Pair& pair) {
        pair.a.stream.disconnect(pair.now);
        pair.run();
      },
      [](Pair& pair) {
        pair.b.stream.disconnect(pair.now);
        pair.run();
      },
      [](Pair& pair) {
        pair.a.stream.fail_setup(pair.now);
        pair.run();
      },
      [](Pair& pair) {
        pair.a.stream.disconnect(pair.now);
        pair.a.stream.on_timeout(*pair.a.stream.next_timeout());
      },
  };
  for (const auto& end : ends) {
    Pair pair(config);
    pair.connect();
    ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 1, {}, 2, 0)), PostResult::kOk);
    pair.a.transmit(pair.now);
    ASSERT_TRUE(pair.a.stream.next_timeout()) << "of the nudge";
    end(pair);
    expect_rest(pair.a, pair.now);
  }
  for (const bool initiator : {true, false}) {
    Side side(config);
    if (initiator) {
      side.stream.start_initiator({}, side.recvs, {});
    } else {
      side.stream.start_responder({});
    }
    ASSERT_TRUE(side.stream.next_timeout());
    side.stream.disconnect({});
    expect_rest(side, {});
  }
}

// When the time for the end is up: in order where all was said, with a reset where something was not.
TEST(Stream, AnEndInWhichSomethingStaysUnsaidIsAReset) {
  for (const bool unsaid : {false, true}) {
    Pair pair;
    pair.connect();
    pair.a.memory.add_simple(1, 0, 0, 4000);
    ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 1, {{0, 4000, ddp::Stag{1}}}, 2, 0)),
              PostResult::kOk);
    if (!unsaid) pair.a.transmit(pair.now);
    pair.a.stream.disconnect(pair.now);
    if (!unsaid) pair.a.stream.on_llp_action_done(LlpAction::kShutdownWrite);
    ASSERT_TRUE(pair.a.stream.next_timeout());
    pair.a.stream.on_timeout(*pair.a.stream.next_timeout());
    EXPECT_EQ(pair.a.stream.llp_action(), unsaid ? LlpAction::kReset : LlpAction::kClose);
    pair.a.drain();
    ASSERT_EQ(pair.a.completions.size(), 1u);
    EXPECT_EQ(pair.a.completions[0].status, unsaid ? WorkStatus::kFlushed : WorkStatus::kSuccess);
  }
}

// A disconnect waits as long as the posted requests make progress, and for nothing else.
TEST(Stream, ProgressAloneHoldsUpADisconnect) {
  StreamConfig config;
  config.close_timeout = std::chrono::seconds(6);
  Pair pair(config, {});
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 8000);
  pair.b.memory.add_simple(2, 0, 0, 8000);
  pair.a.memory.add_simple(3, 0, 0, 8000);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, 1, {{0, 8000, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  pair.b.receive(pair.a.transmit(pair.now), pair.now);
  const auto response = pair.b.transmit(pair.now);
  pair.a.stream.disconnect(pair.now);
  ASSERT_EQ(pair.a.stream.next_timeout(), pair.now + config.close_timeout);
  // Part of the Response counts.
  const TimePoint later = pair.now + std::chrono::seconds(2);
  pair.a.receive(ConstBytes(response).first(4000), later);
  EXPECT_EQ(pair.a.stream.next_timeout(), later + config.close_timeout);
  // Sockets that take nothing and messages of the peer's do not.
  const TimePoint latest = pair.now + std::chrono::seconds(4);
  EXPECT_FALSE(pair.a.stream.wants_tx());
  pair.a.stream.on_tx(0, latest);
  EXPECT_EQ(pair.a.stream.next_timeout(), later + config.close_timeout);
  pair.a.receive(ConstBytes(response).subspan(4000), latest);
  pair.a.drain();
  EXPECT_EQ(ids(pair.a.completions), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(pair.a.completions[0].status, WorkStatus::kSuccess);
  EXPECT_EQ(pair.a.stream.llp_action(), LlpAction::kShutdownWrite);
}

TEST(Stream, WhatIsSentHoldsUpADisconnect) {
  StreamConfig config;
  config.close_timeout = std::chrono::seconds(6);
  Pair pair(config, {});
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 8000);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 1, {{0, 8000, ddp::Stag{1}}}, 2, 0)), PostResult::kOk);
  pair.a.stream.disconnect(pair.now);
  const TimePoint later = pair.now + std::chrono::seconds(5);
  ASSERT_FALSE(pair.a.stream.tx_buffers(pair.emss, 8000, later).empty());
  pair.a.stream.on_tx(100, later);
  EXPECT_EQ(pair.a.stream.next_timeout(), later + config.close_timeout);
  ASSERT_FALSE(pair.a.stream.tx_buffers(pair.emss, 8000, later).empty());
  pair.a.stream.on_tx(0, later + std::chrono::seconds(1));
  EXPECT_EQ(pair.a.stream.next_timeout(), later + config.close_timeout);
}

// Between a rejection and its end, and after any end, nothing is taken any more.
TEST(Stream, NothingIsTakenOnceTheEndHasBegun) {
  Pair pair;
  pair.a.stream.start_initiator({}, pair.a.recvs, pair.now);
  pair.b.stream.start_responder(pair.now);
  EXPECT_EQ(pair.b.stream.post_send(send_wr(1, {})), PostResult::kOk) << "while it starts";
  pair.b.receive(pair.a.transmit(pair.now), pair.now);
  pair.b.drain();
  pair.b.stream.reject({}, pair.now);
  EXPECT_EQ(pair.b.stream.post_send(send_wr(2, {})), PostResult::kNotConnected);
  pair.run();
  EXPECT_EQ(pair.b.stream.post_send(send_wr(3, {})), PostResult::kNotConnected);
  EXPECT_EQ(pair.a.stream.post_send(send_wr(4, {})), PostResult::kNotConnected);
  EXPECT_EQ(ids(pair.b.completions), (std::vector<std::uint64_t>{1}));
}

// A responder whose initiator does not take the Reply gives up in time, and says so.
TEST(Stream, AReplyThatNobodyTakesEndsTheStream) {
  StreamConfig config;
  config.request_timeout = std::chrono::seconds(3);
  Pair pair({}, config);
  pair.a.stream.start_initiator({}, pair.a.recvs, pair.now);
  pair.b.stream.start_responder(pair.now);
  pair.b.receive(pair.a.transmit(pair.now), pair.now);
  pair.b.drain();
  EXPECT_EQ(pair.b.stream.next_timeout(), std::nullopt) << "the ULP has as long as it likes";
  const TimePoint accepted = pair.now + std::chrono::seconds(60);
  pair.b.stream.accept({}, pair.b.recvs, 1, 1, 0, accepted);
  ASSERT_EQ(pair.b.stream.next_timeout(), accepted + config.request_timeout);
  pair.b.stream.on_timeout(accepted + config.request_timeout);
  pair.b.drain();
  ASSERT_EQ(pair.b.closed.size(), 1u);
  EXPECT_EQ(pair.b.closed[0].reason, CloseReason::kStartup);
  EXPECT_NE(pair.b.closed[0].text.find("Reply could not be sent"), std::string::npos) << pair.b.closed[0].text;
}

// An FPDU that arrives in part: its rest has to follow.
struct HalfFpdu {
  explicit HalfFpdu(const StreamConfig& config = {}) : pair(config, config) {
    pair.connect();
    pair.a.memory.add_simple(1, 0, 0, 600);
    pair.b.memory.add_simple(1, 0, 0, 600);
    EXPECT_EQ(pair.a.stream.post_send(send_wr(1, {{0, 600, ddp::Stag{1}}})), PostResult::kOk);
    octets = pair.a.transmit(pair.now);
  }
  // The end of `b` after so much time without an octet; empty while it goes on.
  const Closed* end_after(Duration time) {
    pair.now += time;
    if (pair.b.stream.next_timeout() && *pair.b.stream.next_timeout() <= pair.now) pair.b.stream.on_timeout(pair.now);
    pair.b.drain();
    return pair.b.closed.empty() ? nullptr : &pair.b.closed[0];
  }
  Pair pair;
  std::vector<std::uint8_t> octets;
};

TEST(Stream, AnFpduThatStopsInTheMiddleEndsTheStreamInTime) {
  for (const std::size_t len : {std::size_t{1}, std::size_t{3}, std::size_t{40}, std::size_t{500}}) {
    HalfFpdu half;
    half.pair.b.receive(ConstBytes(half.octets).first(len), half.pair.now);
    EXPECT_EQ(half.end_after(std::chrono::seconds(30) - std::chrono::nanoseconds(1)), nullptr) << len;
    const Closed* end = half.end_after(std::chrono::nanoseconds(1));
    ASSERT_NE(end, nullptr) << len;
    EXPECT_EQ(end->reason, CloseReason::kLlp);
    EXPECT_NE(end->text.find("sent " + std::to_string(len) + " bytes of an FPDU, and nothing more for 30 s"),
              std::string::npos)
        << end->text;
  }
}

TEST(Stream, AnFpduThatGoesOnHasItsTimeFromItsLastOctet) {
  HalfFpdu half;
  half.pair.b.recvs.post(1, {{0, 600, ddp::Stag{1}}});
  for (std::size_t at = 0; at + 1 < half.octets.size(); at += 20) {
    half.pair.b.receive(ConstBytes(half.octets).subspan(at, std::min<std::size_t>(20, half.octets.size() - 1 - at)),
                        half.pair.now);
    EXPECT_EQ(half.end_after(std::chrono::seconds(29)), nullptr) << at;
  }
  half.pair.b.receive(ConstBytes(half.octets).last(1), half.pair.now);
  EXPECT_EQ(half.end_after(std::chrono::hours(1)), nullptr) << "nothing is owed between two FPDUs";
}

// No FPDU begins like this: nothing that may follow makes it one, however slowly it follows.
TEST(Stream, AnFpduThatStopsInTheMiddleAndBeginsWithNoHeaderEndsTheStreamSoon) {
  for (const auto& [at, octet] : {std::pair<std::size_t, std::uint8_t>{2, 0x40}, {2, 0x43}, {3, 0x03}, {3, 0xc3}}) {
    HalfFpdu half;
    half.octets.at(at) = octet;
    half.pair.b.receive(ConstBytes(half.octets).first(4), half.pair.now);
    EXPECT_EQ(half.end_after(std::chrono::milliseconds(600)), nullptr);
    half.pair.b.receive(ConstBytes(half.octets).subspan(4, 96), half.pair.now);
    EXPECT_EQ(half.end_after(std::chrono::milliseconds(400) - std::chrono::nanoseconds(1)), nullptr);
    half.pair.now += std::chrono::nanoseconds(1);
    half.pair.b.stream.on_timeout(half.pair.now);
    const auto failure = half.pair.b.stream.failure();
    ASSERT_TRUE(failure) << at;
    EXPECT_EQ(failure->reason, CloseReason::kTerminateSent);
    EXPECT_NE(
        failure->text.find("sent 100 bytes of an FPDU, and not all of it within 1 s; they do not begin with a header"),
        std::string::npos)
        << failure->text;
    EXPECT_FALSE(half.pair.b.transmit(half.pair.now).empty()) << "a Terminate";
  }
  // The same octets, but whole: the rules for FPDUs judge them.
  HalfFpdu whole;
  whole.octets.at(2) = 0x40;
  whole.pair.b.receive(whole.octets, whole.pair.now);
  const auto failure = whole.pair.b.stream.failure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->terminate, to_terminate(mpa::Error::kCrc));
}

TEST(Stream, AbortFlushesAndResets) {
  Pair pair;
  pair.connect();
  ASSERT_EQ(pair.a.stream.post_send(send_wr(1, {})), PostResult::kOk);
  pair.a.stream.abort(pair.now);
  EXPECT_EQ(pair.a.stream.llp_action(), LlpAction::kReset);
  EXPECT_FALSE(pair.a.stream.wants_tx());
  EXPECT_EQ(pair.a.stream.post_send(send_wr(2, {})), PostResult::kNotConnected);
  pair.run();
  EXPECT_EQ(ids(pair.a.completions), (std::vector<std::uint64_t>{1}));
  ASSERT_EQ(pair.a.closed.size(), 1u);
  ASSERT_EQ(pair.b.closed.size(), 1u);
  EXPECT_EQ(pair.b.closed[0].reason, CloseReason::kLlp);
  EXPECT_EQ(pair.a.stream.llp_action(), LlpAction::kNone);
}

TEST(Stream, FinInsideAnFpduOrMessageIsNoOrderlyEnd) {
  for (const int where : {0, 1, 2}) {
    Pair pair;
    pair.connect();
    pair.a.memory.add_simple(1, 0, 0, 3000);
    pair.b.memory.add_simple(2, 0, 0, 3000);
    ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 1, {{0, 3000, ddp::Stag{1}}}, 2, 0)),
              PostResult::kOk);
    auto octets = pair.a.transmit(pair.now, 1460);
    if (where == 1) octets.pop_back();
    if (where == 2) octets.resize(1460);  // one whole FPDU, but not the message
    pair.b.receive(octets, pair.now);
    pair.b.stream.on_rx_eof(pair.now);
    pair.b.drain();
    ASSERT_EQ(pair.b.closed.size(), 1u);
    EXPECT_EQ(pair.b.closed[0].reason, where == 0 ? CloseReason::kGraceful : CloseReason::kLlp);
  }
}

}  // namespace
}  // namespace weft::rdmap
