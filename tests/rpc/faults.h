#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rpcrdma/testing/forms.h"
#include "rpcrdma/testing/protocol_under_test.h"

// A connection with Calls of every form under way, for tests in which something goes wrong. WEFT_RPCRDMA names the
// protocol.
namespace weft::rpcrdma::testing {

inline constexpr std::size_t kThreshold = 1024;

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

inline Message plain_message(std::size_t len) {
  return Message().word(1).opaque(pattern(len)).word(2).opaque(pattern(3)).word(4);
}

inline Message failed_operations(std::size_t num, const Octets& item) {
  std::vector<const Octets*> all(num, nullptr);
  all.push_back(&item);
  return many_message(all);
}

inline std::vector<Asked> asked_in_every_form() {
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
  // Bounded wrongly: without a chunk it comes in parts, or not at all.
  all.push_back({has_continuation() ? CallStatus::kSuccess : CallStatus::kTransportError,
                 kPlain,
                 plain_message(0),
                 plain_message(3000),
                 {},
                 100});
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
    options.protocols = {protocol_under_test()};
    responder = std::make_unique<ResponderEnd>(memory, options);
    ChunkUse chunks{.max_read_chunks = 2, .max_write_chunks = 2, .long_calls_with_items = true};
    // Some of the Calls and Replies in several messages, all others by chunks.
    if (has_continuation()) {
      chunks.max_continued_call = 3500;
      chunks.max_continued_reply = 2500;
    }
    requester = std::make_unique<RequesterEnd>(memory, RequesterEnd::Options{.credits = 4,
                                                                             .inline_threshold = receives_of,
                                                                             .call_threshold = kThreshold,
                                                                             .reply_threshold = kThreshold,
                                                                             .chunks = chunks,
                                                                             .protocol = protocol_under_test()});
    calls_passed = replies_passed = 0;
    if (!spoil) FakeQp::connect(requester->qp, responder->qp);
    responder->service.answer = [this](ServedCall& served) {
      if (never_answer || served.xid >= all.size()) return;  // a spoiled Call may have any XID
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
  // Without a connection the messages of either end reach the other one through `spoil`.
  void pass_messages() {
    pass(requester->qp, calls_passed, responder->qp);
    pass(responder->qp, replies_passed, requester->qp);
  }
  void pass(FakeQp& from, std::size_t& passed, FakeQp& to) {
    for (; passed < from.sent.size() && !to.broken(); ++passed) (void)to.inject(spoil(from.sent[passed]));
  }
  void ask();
  void close();
  void run();
  void check_ends();
  std::size_t turn() {
    if (spoil && !closed) pass_messages();
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
  std::function<Octets(const Octets&)> spoil;
  std::size_t calls_passed = 0, replies_passed = 0;
};

// All at once; the XID says which.
inline void FaultsTest::ask() {
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
inline void FaultsTest::close() {
  requester->qp.break_connection();
  responder->qp.break_connection();
  turn();
  closed = true;
  held.clear();
  EXPECT_TRUE(requester->qp.broken() && responder->qp.broken());
  responder->service.calls.clear();
  responder->responder.reset();
  requester->requester->on_closed("cut");
  requester->requester->on_time(now);
}

inline void FaultsTest::run() {
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

inline void FaultsTest::check_ends() {
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(endings[i].times, 1) << "Call " << i;
    if (endings[i].status == CallStatus::kSuccess && !spoil) {
      EXPECT_TRUE(endings[i].is_right) << "Call " << i;
    }
  }
  EXPECT_EQ(requester->requester->num_outstanding(), 0u);
  EXPECT_EQ(memory.num_remote(), 0u);
  responder->service.calls.clear();
  responder->responder.reset();
  responder->link.reset();  // the parts of a Call that did not come whole
  EXPECT_EQ(responder->budget.used(), 0u);
  EXPECT_EQ(responder->pool.in_use(), 0u);
}

}  // namespace weft::rpcrdma::testing
