// A connection with Calls of every form under way, and one thing that goes wrong at one place, for every place: each
// Call ends once, nothing stays reachable and nothing stays taken.
#include <algorithm>
#include <set>

#include "rpcrdma/testing/forms.h"

namespace weft::rpcrdma::testing {
namespace {

constexpr std::size_t kThreshold = 1024;

// A Call, and its service's answer.
struct Asked {
  CallStatus status;  // where nothing goes wrong
  std::uint32_t procedure = 0;
  Message args;
  Message answer;
  std::vector<std::size_t> rooms = {};
  std::size_t max_results = 0;
  bool held = false;  // answered when nothing else is left to do
};

Message plain_message(std::size_t len) {
  return Message().word(1).opaque(pattern(len)).word(2).opaque(pattern(3)).word(4);
}

Message failed_operations(std::size_t num, const Octets& item) {
  std::vector<const Octets*> all(num, nullptr);
  all.push_back(&item);
  return many_message(all);
}

std::vector<Asked> asked_in_every_form() {
  static const Octets a = pattern(2999, 1);
  static const Octets b = pattern(501, 2);
  const Message none = many_message({});
  std::vector<Asked> all;
  all.push_back({CallStatus::kSuccess, 0, {}, {}});
  all.push_back({CallStatus::kSuccess, kPlain, plain_message(100), plain_message(200), {}, 300});
  all.push_back({CallStatus::kSuccess, kPair, pair_message(pattern(4001), pattern(5)), {}});
  all.push_back({CallStatus::kSuccess, kPair, pair_message(pattern(4001), pattern(5002)), {}, {}, 0, true});
  all.push_back({CallStatus::kSuccess, kPlain, plain_message(3000), {}});
  all.push_back({CallStatus::kSuccess, kMany, failed_operations(300, a), none, {}, 4});
  all.push_back({CallStatus::kSuccess, kMany, none, many_message({&a, &b}), {3000, 600}, 20, true});
  all.push_back({CallStatus::kSuccess, kMany, none, many_message({nullptr}), {3000}, 20});
  all.push_back({CallStatus::kSuccess, kPlain, plain_message(10), plain_message(3000), {}, 3100});
  all.push_back({CallStatus::kSuccess, kPlain, plain_message(2000), plain_message(2001), {}, 2100});
  all.push_back(
      {CallStatus::kTransportError, kPlain, plain_message(0), plain_message(3000), {}, 100});  // bounded wrongly
  all.push_back({CallStatus::kSuccess, kTable, table_message(200), table_message(3), {}, 60});
  return all;
}

struct FaultsTest : ::testing::Test {
  struct Ending {
    int times = 0;
    CallStatus status = CallStatus::kLocalError;
    bool is_right = false;  // the results match the answer
  };

  ~FaultsTest() override {
    held.clear();
    responder.reset();
    requester.reset();
  }

  void open(ResponderEnd::Options options = {.credits = 4,
                                             .inline_threshold = kThreshold,
                                             .reply_threshold = kThreshold},
            std::size_t receives_of = kThreshold) {
    held.clear();
    responder.reset();
    requester.reset();
    ASSERT_EQ(memory.size(), 0u) << "registrations are left";
    memory.faults = {};
    closed = false;
    responder = std::make_unique<ResponderEnd>(memory, options);
    requester = std::make_unique<RequesterEnd>(
        memory,
        RequesterEnd::Options{.credits = 4,
                              .inline_threshold = receives_of,
                              .call_threshold = kThreshold,
                              .reply_threshold = kThreshold,
                              .chunks = {.max_read_chunks = 2, .max_write_chunks = 2, .long_calls_with_items = true}});
    FakeQp::connect(requester->qp, responder->qp);
    responder->service.answer = [this](ServedCall& served) {
      if (never_answer) return;
      if (all.at(served.xid).held) {
        held.push_back(served.id);
      } else {
        answer(served.id, served.xid);
      }
    };
    memory.faults = {};
  }
  void answer(ServedCallId id, std::uint32_t xid) {
    responder->responder->reply(id, reply_with(all.at(xid).answer, responder->pool));
  }
  void answer_held() {
    for (; !held.empty(); held.pop_back()) {
      const auto at = std::ranges::find(responder->service.calls, held.back(), &ServedCall::id);
      if (at != responder->service.calls.end()) answer(held.back(), at->xid);
    }
  }
  void ask();
  void close();
  void run();
  void check_ends();
  std::size_t turn() {
    std::size_t num = requester->pump();
    if (!closed) num += responder->pump();
    requester->requester->on_time(now);
    if (!closed) responder->responder->on_time(now);
    return num;
  }

  FakeMemory memory;
  TimePoint now = at(0);
  const std::vector<Asked> all = asked_in_every_form();
  std::unique_ptr<ResponderEnd> responder;
  std::unique_ptr<RequesterEnd> requester;
  std::vector<ServedCallId> held;
  std::vector<Ending> endings;
  std::vector<std::vector<ArgumentItem>> items;
  std::vector<std::vector<Octets>> rooms;
  std::vector<std::vector<ScatteredBytes>> scattered;
  bool closed = false;
  bool never_answer = false;
};

// All at once; the XID says which.
void FaultsTest::ask() {
  endings.assign(all.size(), {});
  items.assign(all.size(), {});
  rooms.assign(all.size(), {});
  scattered.assign(all.size(), {});
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Asked& one = all[i];
    items[i] = items_of(one.args);
    for (const std::size_t len : one.rooms) rooms[i].emplace_back(len);
    for (Octets& room : rooms[i]) scattered[i].emplace_back(MutBytes(room));
    CallSpec spec = spec_of(one.procedure, one.args.without);
    spec.items = items[i];
    spec.result_items = scattered[i];
    spec.max_results = one.max_results;
    spec.xid = static_cast<std::uint32_t>(i);
    const auto called = requester->requester->call(spec, [this, i](const Reply& reply) {
      ++endings[i].times;
      endings[i].status = reply.status;
      const Message& answer = all[i].answer;
      endings[i].is_right = copy_of(reply.results) == (rooms[i].empty() ? answer.whole : answer.without);
      for (std::size_t item = 0; item < answer.items.size() && item < rooms[i].size(); ++item) {
        const Octets& octets = answer.items[item].octets;
        endings[i].is_right &= reply.item_lens.size() > item && reply.item_lens[item] == octets.size() &&
                               std::equal(octets.begin(), octets.end(), rooms[i][item].begin());
      }
    });
    ASSERT_TRUE(called.ok()) << called.error().message;
  }
}

// The owners' part when a connection has failed at either end.
void FaultsTest::close() {
  requester->qp.break_connection();
  turn();
  closed = true;
  held.clear();
  EXPECT_TRUE(requester->qp.broken() && responder->qp.broken());
  responder->service.calls.clear();
  responder->responder.reset();
  requester->requester->on_closed("cut");
  requester->requester->on_time(now);
}

void FaultsTest::run() {
  for (int lapses = 0; lapses < 3;) {
    const bool idle = turn() == 0;
    if (!closed && (requester->endpoint->failure() || responder->endpoint->failure())) close();
    if (!idle) continue;
    if (!closed && !held.empty()) {
      answer_held();
      continue;
    }
    if (requester->requester->num_outstanding() == 0) break;
    // A Call that waits for an impossible event waits no longer than its timeout.
    ++lapses;
    now += std::chrono::seconds(2);
  }
}

void FaultsTest::check_ends() {
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(endings[i].times, 1) << "Call " << i;
    if (endings[i].status == CallStatus::kSuccess) {
      EXPECT_TRUE(endings[i].is_right) << "Call " << i;
    }
  }
  EXPECT_EQ(requester->requester->num_outstanding(), 0u);
  EXPECT_EQ(memory.num_remote(), 0u);
  responder->service.calls.clear();
  responder->responder.reset();
  EXPECT_EQ(responder->budget.used, 0u);
  EXPECT_EQ(responder->pool.in_use(), 0u);
}

TEST_F(FaultsTest, NothingGoesWrongUnlessItIsMadeTo) {
  open();
  ask();
  run();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(endings[i].status, all[i].status) << "Call " << i;
    EXPECT_EQ(endings[i].is_right, all[i].status == CallStatus::kSuccess) << "Call " << i;
  }
  EXPECT_FALSE(closed);
  check_ends();
  // Each form occurred.
  const RequesterCounters& asked = requester->requester->counters();
  EXPECT_EQ(asked.calls_sent, all.size());
  EXPECT_GE(asked.read_chunks, 4u);
  EXPECT_GE(asked.long_calls, 3u);
  EXPECT_GE(asked.write_chunks, 3u);
  EXPECT_GE(asked.reply_chunks, 2u);
}

TEST_F(FaultsTest, TheConnectionIsCutBeforeAnyRequest) {
  open();
  ask();
  run();
  const std::size_t num_posts = memory.faults.posts;
  ASSERT_GT(num_posts, 30u);
  for (std::size_t n = 1; n <= num_posts; ++n) {
    for (const bool late : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "request " << n << (late ? ", completions late" : ""));
      ASSERT_NO_FATAL_FAILURE(open());
      memory.faults.cut_at = n;
      requester->qp.hold_completions = responder->qp.hold_completions = late;
      ask();
      for (int i = 0; late && i < 200; ++i) {
        turn();
        requester->qp.release();
        responder->qp.release();
      }
      run();
      EXPECT_TRUE(closed || late);
      EXPECT_EQ(closed, requester->qp.broken());
      std::size_t num_cut = 0;
      for (const Ending& ending : endings) num_cut += ending.status == CallStatus::kDisconnected ? 1 : 0;
      if (closed) {
        EXPECT_GE(num_cut, 1u);
      }
      check_ends();
      if (HasFailure()) return;
    }
  }
}

TEST_F(FaultsTest, AnyRequestCannotBePosted) {
  open();
  ask();
  run();
  const std::size_t num_posts = memory.faults.posts;
  for (std::size_t n = 1; n <= num_posts; ++n) {
    SCOPED_TRACE(::testing::Message() << "request " << n);
    ASSERT_NO_FATAL_FAILURE(open());
    memory.faults.fail_post_at = n;
    ask();
    run();
    EXPECT_TRUE(closed);
    check_ends();
    if (HasFailure()) return;
  }
}

TEST_F(FaultsTest, AnyRegistrationFails) {
  open();
  ask();
  run();
  const std::size_t num_registrations = memory.faults.registrations;
  ASSERT_GT(num_registrations, 15u);
  for (std::size_t n = 1; n <= num_registrations; ++n) {
    for (const bool for_good : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "registration " << n << (for_good ? " and all after it" : ""));
      ASSERT_NO_FATAL_FAILURE(open());
      memory.faults.fail_registration_at = n;
      memory.faults.and_all_later_ones = for_good;
      ask();
      run();
      // A failed registration costs one Call at most, unless a Reply needs it and then cannot be sent.
      std::size_t num_other = 0;
      for (std::size_t i = 0; i < all.size(); ++i) num_other += endings[i].status == all[i].status ? 0 : 1;
      if (!for_good && !closed) {
        EXPECT_LE(num_other, 1u);
      }
      check_ends();
      if (HasFailure()) return;
    }
  }
}

TEST_F(FaultsTest, NoCreditIsEverGivenBack) {
  open();
  never_answer = true;
  ask();
  run();
  for (const Ending& ending : endings) {
    EXPECT_TRUE(ending.status == CallStatus::kTimeout || ending.status == CallStatus::kDisconnected);
  }
  // A peer that is silent about all that it granted is given up.
  EXPECT_TRUE(closed);
  EXPECT_EQ(requester->qp.num_sends, 1u);
  check_ends();
}

TEST_F(FaultsTest, ReceivesThatAreTooSmall) {
  // The responder has been told of larger Receives than there are.
  open({.credits = 4, .inline_threshold = 4096, .reply_threshold = 4096}, kThreshold);
  ask();
  run();
  EXPECT_TRUE(closed);
  std::set<CallStatus> statuses;
  for (const Ending& ending : endings) statuses.insert(ending.status);
  EXPECT_TRUE(statuses.contains(CallStatus::kDisconnected));
  check_ends();
}

}  // namespace
}  // namespace weft::rpcrdma::testing
