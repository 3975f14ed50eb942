#include "apps/perf/peers.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verbs-shim/api/log_budget.h"
#include "verbs-shim/soft/device.h"

namespace weft::apps::perf {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using verbs::CmEventType;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMiB = std::size_t{1} << 20;

sockaddr_storage ipv4(const char* host) {
  sockaddr_storage storage{};
  auto* addr = reinterpret_cast<sockaddr_in*>(&storage);
  addr->sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, host, &addr->sin_addr), 1);
  return storage;
}

// A client that says its Hello, and then nothing.
class Newcomer {
 public:
  Newcomer(verbs::Device& device, const char* source, const sockaddr_storage& to, std::vector<std::uint8_t> hello)
      : hello_(std::move(hello)),
        pd_(std::move(device.alloc_pd().value())),
        answer_mr_(std::move(pd_->reg_mr(answer_.data(), answer_.size(), verbs::Access::kLocalWrite).value())),
        cq_(std::move(device.create_cq(16, nullptr).value())),
        channel_(std::move(device.create_event_channel().value())),
        id_(std::move(channel_->create_id().value())) {
    EXPECT_TRUE(id_->bind_addr(ipv4(source)).ok());
    EXPECT_TRUE(id_->resolve_addr(to, std::chrono::seconds(5)).ok());
  }

  void take_events() {
    while (std::optional<verbs::CmEvent> event = channel_->get_event()) {
      switch (event->type) {
        case CmEventType::kAddrResolved: EXPECT_TRUE(id_->resolve_route(std::chrono::seconds(5)).ok()); break;
        case CmEventType::kRouteResolved: connect(); break;
        default: last_ = event->type; break;
      }
    }
  }
  // Moves something: the client's end, which is an empty Send.
  void send() {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(answer_.data()), kTotalsLen, answer_mr_->lkey()};
    EXPECT_TRUE(qp_->post_recv({.sg_list = {&sge, 1}}).ok());
    EXPECT_TRUE(qp_->post_send({}).ok());
  }
  int num_completed() {
    verbs::Wc wc[4];
    num_completed_ += cq_->poll(wc);
    return num_completed_;
  }
  // Accepted, rejected or, later, ended.
  std::optional<CmEventType> last() const { return last_; }

 private:
  void connect() {
    verbs::QpInitAttr attr;
    attr.send_cq = attr.recv_cq = cq_.get();
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 4;
    qp_ = std::move(id_->create_qp(*pd_, attr).value());
    EXPECT_TRUE(id_->connect({.private_data = hello_}).ok());
  }

  std::vector<std::uint8_t> hello_;
  std::vector<std::uint8_t> answer_ = std::vector<std::uint8_t>(kTotalsLen);
  int num_completed_ = 0;
  std::unique_ptr<verbs::Pd> pd_;
  std::unique_ptr<verbs::Mr> answer_mr_;
  std::unique_ptr<verbs::Cq> cq_;
  std::unique_ptr<verbs::CmChannel> channel_;
  std::unique_ptr<verbs::CmId> id_;
  std::unique_ptr<verbs::Qp> qp_;
  std::optional<CmEventType> last_;
};

std::vector<std::uint8_t> hello_of(std::uint64_t size) {
  const auto octets = emit_hello({.op = Op::kWrite, .size = size});
  return {octets.begin(), octets.end()};
}

struct PeersTest : ::testing::Test {
  PeersTest() {
    config.places = {.all = 8, .per_group = 6, .memory = 64 * kMiB, .memory_per_group = 48 * kMiB};
    config.log.sink = [this](verbs::LogLevel, std::string_view line) { lines.emplace_back(line); };
  }
  void listen() { peers = std::move(Peers::listen(*server, ipv4("127.0.0.1"), progress, config).value()); }
  Newcomer& come(const char* source, std::vector<std::uint8_t> hello) {
    return newcomers.emplace_back(*client, source, peers->local_addr(), std::move(hello));
  }
  // Without turns_without_events the listener has a turn only where something came for it.
  void run_until(const std::function<bool()>& done, bool turns_without_events = true) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (!done()) {
      ASSERT_LT(Clock::now(), deadline);
      client->process(Clock::now());
      for (Newcomer& newcomer : newcomers) newcomer.take_events();
      const bool has_come = server->process(Clock::now()) != 0;
      if (!has_come && !turns_without_events) continue;
      has_more = peers->on_turn(now);
      ++num_turns;
    }
  }
  CmEventType outcome_of(const Newcomer& newcomer) {
    run_until([&] { return newcomer.last().has_value(); });
    return newcomer.last().value_or(CmEventType::kDeviceRemoval);
  }

  std::unique_ptr<verbs::Device> server = std::move(verbs::open_soft_device({}).value());
  std::unique_ptr<verbs::Device> client = std::move(verbs::open_soft_device({}).value());
  Progress progress{ProgressMode::kSpin, nullptr};
  PeersConfig config;
  std::vector<std::string> lines;
  std::unique_ptr<Peers> peers;
  std::list<Newcomer> newcomers;
  TimePoint now = Clock::now();
  bool has_more = false;
  int num_turns = 0;
};

TEST_F(PeersTest, WhileMemoryIsMadeReadyOthersAreServed) {
  config.memory_per_turn = kMiB;
  listen();
  const Newcomer& large = come("127.0.0.9", hello_of(32 * kMiB));
  run_until([&] { return !peers->empty(); }, false);
  EXPECT_TRUE(has_more) << "no event would tell of the rest";
  const Newcomer& small = come("127.0.0.8", hello_of(4096));
  run_until([&] { return small.last().has_value(); }, false);
  EXPECT_EQ(small.last(), CmEventType::kEstablished);
  EXPECT_EQ(large.last(), std::nullopt);
  EXPECT_EQ(peers->num_accepted(), 1u);
  EXPECT_EQ(outcome_of(large), CmEventType::kEstablished);
  EXPECT_GE(num_turns, 32);
  EXPECT_FALSE(has_more);
}

TEST_F(PeersTest, WhileMemoryIsGivenBackOthersAreServed) {
  config.memory_per_turn = kMiB;
  listen();
  EXPECT_EQ(outcome_of(come("127.0.0.9", hello_of(32 * kMiB))), CmEventType::kEstablished);
  EXPECT_EQ(peers->memory(), 32 * kMiB);
  newcomers.clear();
  run_until([&] { return peers->empty(); }, false);
  EXPECT_TRUE(has_more) << "no event would tell of the rest";
  EXPECT_GE(peers->memory(), 31 * kMiB);
  const Newcomer& small = come("127.0.0.8", hello_of(4096));
  run_until([&] { return small.last().has_value(); }, false);
  EXPECT_EQ(small.last(), CmEventType::kEstablished);
  EXPECT_GT(peers->memory(), kMiB);
  num_turns = 0;
  const std::size_t left = peers->memory() / kMiB;
  run_until([&] { return !has_more; });
  EXPECT_GE(num_turns, left);
  EXPECT_EQ(peers->memory(), 4096u);
}

// A client may take memory at once that another one has left. It is not ready before the other's is given back.
TEST_F(PeersTest, MemoryThatMustStillBeGivenBackCounts) {
  config.memory_per_turn = kMiB;
  listen();
  come("127.0.0.8", hello_of(16 * kMiB));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(outcome_of(come("127.0.0.9", hello_of(48 * kMiB))), CmEventType::kEstablished);
    newcomers.pop_back();
    run_until([&] {
      EXPECT_LE(peers->memory(), config.places.memory);
      return peers->num_accepted() == 1;
    });
  }
}

TEST_F(PeersTest, AClientThatGoesBeforeItsMemoryIsReadyIsForgotten) {
  config.memory_per_turn = 1;
  listen();
  come("127.0.0.9", hello_of(32 * kMiB));
  run_until([&] { return !peers->empty(); }, false);
  newcomers.clear();
  run_until([&] { return peers->empty(); });
}

TEST_F(PeersTest, OneAddressLeavesMemoryToOthers) {
  config.memory_per_turn = 64 * kMiB;
  listen();
  EXPECT_EQ(outcome_of(come("127.0.0.9", hello_of(32 * kMiB))), CmEventType::kEstablished);
  EXPECT_EQ(outcome_of(come("127.0.0.9", hello_of(17 * kMiB))), CmEventType::kRejected);
  EXPECT_EQ(outcome_of(come("127.0.0.9", hello_of(16 * kMiB))), CmEventType::kEstablished);
  EXPECT_EQ(outcome_of(come("127.0.0.8", hello_of(16 * kMiB))), CmEventType::kEstablished);
  EXPECT_EQ(peers->num_accepted(), 3u);
}

// No place and no memory is free, and no address has more than its share.
TEST_F(PeersTest, TwoAddressesLeaveMemoryToAThird) {
  listen();
  const Newcomer& first = come("127.0.0.9", hello_of(16 * kMiB));
  EXPECT_EQ(outcome_of(first), CmEventType::kEstablished);
  EXPECT_EQ(outcome_of(come("127.0.0.9", hello_of(32 * kMiB))), CmEventType::kEstablished);
  EXPECT_EQ(outcome_of(come("127.0.0.8", hello_of(16 * kMiB))), CmEventType::kEstablished);
  EXPECT_EQ(outcome_of(come("127.0.0.7", hello_of(16 * kMiB))), CmEventType::kEstablished);
  EXPECT_EQ(peers->num_accepted(), 3u);
  run_until([&] { return first.last() == CmEventType::kDisconnected; });
}

// A flood of strangers costs no more log lines than the budget has.
TEST_F(PeersTest, AFloodOfStrangersIsTurnedAwayWithFewLines) {
  listen();
  const Newcomer& served = come("127.0.0.8", hello_of(4096));
  EXPECT_EQ(outcome_of(served), CmEventType::kEstablished);
  lines.clear();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(outcome_of(come("127.0.0.9", {'?'})), CmEventType::kRejected);
    newcomers.pop_back();
  }
  EXPECT_EQ(lines.size(), std::size_t(verbs::LogBudget::kBurst - 1));
  EXPECT_THAT(lines, Each(AllOf(HasSubstr("perf: client 127.0.0.9:"), HasSubstr("turned away: "))));
  now += std::chrono::seconds(1);
  EXPECT_EQ(outcome_of(come("127.0.0.9", {'?'})), CmEventType::kRejected);
  EXPECT_THAT(lines.back(), HasSubstr("(51 lines before this one were withheld)"));
  EXPECT_EQ(served.last(), CmEventType::kEstablished);
}

TEST_F(PeersTest, AClientThatMovesNothingForItsTimeIsGivenUp) {
  config.patience = std::chrono::milliseconds(100);
  listen();
  Newcomer& busy = come("127.0.0.8", hello_of(4096));
  EXPECT_EQ(outcome_of(busy), CmEventType::kEstablished);
  const Newcomer& silent = come("127.0.0.9", hello_of(4096));
  EXPECT_EQ(outcome_of(silent), CmEventType::kEstablished);
  lines.clear();
  peers->end_silent(now);
  EXPECT_EQ(peers->next_look(), now + config.patience);
  now += config.patience - std::chrono::nanoseconds(1);
  peers->end_silent(now);
  EXPECT_EQ(peers->num_accepted(), 2u) << "it looks only at the time that it names";
  busy.send();
  run_until([&] { return busy.num_completed() == 2; });  // the Send, and the listener's answer to it
  now += std::chrono::nanoseconds(1);
  peers->end_silent(now);
  EXPECT_EQ(peers->num_accepted(), 1u);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("perf: client 127.0.0.9:"), HasSubstr("is given up")));
  run_until([&] { return silent.last() == CmEventType::kDisconnected; });
  EXPECT_EQ(busy.last(), CmEventType::kEstablished);
}

// With more patience than that it looks four times a second.
TEST_F(PeersTest, ItLooksForSilentClientsNowAndThen) {
  listen();
  EXPECT_EQ(outcome_of(come("127.0.0.9", hello_of(4096))), CmEventType::kEstablished);
  peers->end_silent(now);
  EXPECT_EQ(peers->next_look(), now + std::chrono::milliseconds(250));
}

}  // namespace
}  // namespace weft::apps::perf
