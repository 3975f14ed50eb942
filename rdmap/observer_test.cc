// What an Observer hears of a Stream.
#include "rdmap/observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rdmap/testing/pair.h"

namespace weft::rdmap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Pair;
using testing::rdma_wr;
using testing::send_wr;
using Octets = std::vector<std::uint8_t>;

struct Heard : Observer {
  void on_rx(std::span<const MutBytes> buffers, std::size_t n, TimePoint) override { add(received, buffers, n); }
  void on_tx(std::span<const ConstBytes> buffers, std::size_t n, TimePoint) override { add(sent, buffers, n); }
  void on_post(const SendWr& request) override { story.push_back("post " + std::to_string(request.wr_id)); }
  void on_failure(const Closed& why) override {
    story.push_back("failure");
    failures.push_back(why);
  }
  void on_event(const Event& event) override {
    if (const auto* done = std::get_if<Completion>(&event)) {
      story.push_back((done->status == WorkStatus::kSuccess ? "end " : "flush ") + std::to_string(done->wr_id));
    } else if (std::holds_alternative<Established>(event)) {
      story.push_back("established");
    } else if (std::holds_alternative<Closed>(event)) {
      story.push_back("closed");
    }
  }
  template <typename Views>
  static void add(Octets& to, const Views& views, std::size_t n) {
    for (const auto& view : views) {
      const std::size_t len = std::min(n, view.size());
      to.insert(to.end(), view.begin(), view.begin() + static_cast<std::ptrdiff_t>(len));
      n -= len;
    }
  }

  Octets received, sent;
  std::vector<std::string> story;
  std::vector<Closed> failures;
};

StreamConfig watched_by(Heard& heard) {
  StreamConfig config;
  config.observer = &heard;
  return config;
}

TEST(Observer, HearsOctetsRequestsAndTheirEnds) {
  Heard a, b;
  Pair pair(watched_by(a), watched_by(b));
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 100);
  pair.b.memory.add_simple(2, 0, 0, 100);
  pair.b.recvs.post(7, {{0, 100, ddp::Stag{2}}});
  ASSERT_EQ(pair.a.stream.post_send(send_wr(5, {{0, 60, ddp::Stag{1}}})), PostResult::kOk);
  SendWr silent = rdma_wr(SendOp::kRdmaWrite, 6, {{0, 60, ddp::Stag{1}}}, 2, 0);
  silent.signaled = false;
  ASSERT_EQ(pair.a.stream.post_send(silent), PostResult::kOk);
  pair.run();
  EXPECT_THAT(a.story, ElementsAre("established", "post 5", "post 6", "end 5"));
  EXPECT_THAT(b.story, ElementsAre("established", "end 7"));
  EXPECT_EQ(a.sent, b.received);
  EXPECT_EQ(b.sent, a.received);
}

// A request that is refused was not posted.
TEST(Observer, HearsNothingOfRefusedRequests) {
  Heard heard;
  Pair pair(watched_by(heard));
  EXPECT_EQ(pair.a.stream.post_send(send_wr(5, {})), PostResult::kNotConnected);
  pair.connect();
  EXPECT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kAtomic, 6, {}, 1, 0)), PostResult::kInvalid);
  EXPECT_THAT(heard.story, ElementsAre("established"));
}

// The reason comes with the octets at fault, at either end before the requests that it flushes.
TEST(Observer, HearsWhyTheStreamFails) {
  Heard a, b;
  Pair pair(watched_by(a), watched_by(b));
  pair.connect();
  pair.a.memory.add_simple(1, 0, 0, 100);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaWrite, 5, {{0, 60, ddp::Stag{1}}}, 99, 0)), PostResult::kOk);
  ASSERT_EQ(pair.a.stream.post_send(rdma_wr(SendOp::kRdmaRead, 6, {{0, 60, ddp::Stag{1}}}, 99, 0)), PostResult::kOk);
  pair.run();
  EXPECT_THAT(a.story, ElementsAre("established", "post 5", "post 6", "end 5", "failure", "flush 6", "closed"));
  EXPECT_THAT(b.story, ElementsAre("established", "failure", "closed"));
  ASSERT_EQ(a.failures.size(), 1u);
  ASSERT_EQ(b.failures.size(), 1u);
  EXPECT_EQ(a.failures[0].reason, CloseReason::kTerminateReceived);
  EXPECT_EQ(b.failures[0].reason, CloseReason::kTerminateSent);
  EXPECT_EQ(a.failures[0].terminate, to_terminate(ddp::Error::kInvalidStag));
  EXPECT_EQ(b.failures[0].terminate, to_terminate(ddp::Error::kInvalidStag));
  EXPECT_NE(b.failures[0].text, "");
}

// An end in order is no failure.
TEST(Observer, HearsOfAnEndInOrder) {
  Heard a, b;
  Pair pair(watched_by(a), watched_by(b));
  pair.connect();
  pair.a.stream.disconnect(pair.now);
  pair.run();
  EXPECT_THAT(a.failures, IsEmpty());
  EXPECT_THAT(b.failures, IsEmpty());
  EXPECT_EQ(b.story.back(), "closed");
}

}  // namespace
}  // namespace weft::rdmap
