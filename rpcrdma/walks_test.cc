// How often a server's engine passes over the octets of one Call and of its Reply.
#include "rpcrdma/testing/forms.h"

namespace weft::rpcrdma::testing {
namespace {

struct Asked {
  int arguments = 0;
  int results = 0;
  int bound = 0;
  int idempotent = 0;
  friend bool operator==(const Asked&, const Asked&) = default;
};

Asked asked;

// The synthetic program's binding, which counts its passes over octets.
Binding counting_binding() {
  Binding binding = synthetic_binding();
  binding.walk_arguments = [](std::uint32_t procedure, ConstBytes args, std::span<const std::size_t> reduced,
                              std::vector<EligibleItem>& items) {
    ++asked.arguments;
    return synthetic_binding().walk_arguments(procedure, args, reduced, items);
  };
  binding.walk_results = [](std::uint32_t procedure, ConstBytes results, std::span<const std::uint32_t> reduced,
                            std::vector<std::optional<EligibleItem>>& items) {
    ++asked.results;
    return synthetic_binding().walk_results(procedure, results, reduced, items);
  };
  binding.bound_reply = [](std::uint32_t, ConstBytes, std::span<const std::size_t>, const ReplyLimits&, ReplyBound&) {
    ++asked.bound;
    return Walked::kWhole;
  };
  binding.is_idempotent = [](std::uint32_t, ConstBytes, std::span<const std::size_t>) {
    ++asked.idempotent;
    return false;
  };
  return binding;
}

// The server has the binding that counts; the client, in the same process, another one.
struct WalksTest : FormsTest {
  Asked asked_by(const Message& args, const Message& results, bool keeps_replies, bool in_slices = false) {
    open({.max_read_chunks = 2, .max_write_chunks = 2}, 1024,
         {.duplicate_requests = keeps_replies ? &duplicate_requests : nullptr});
    for (ServedProgram& program : responder->programs) {
      if (program.binding == &synthetic_binding()) program.binding = &counting;
    }
    answer_with([&](ServedCall&) {
      ServedReply reply = reply_with(results, responder->pool);
      if (in_slices) {
        Buffer buffer = responder->pool.take(reply.results.size());
        std::copy(reply.results.begin(), reply.results.end(), buffer.octets().begin());
        reply.more_results.push_back({buffer.octets(), buffer.lkey()});
        reply.results.clear();
        reply.buffers.push_back(std::move(buffer));
      }
      return reply;
    });
    const auto items = items_of(args);
    std::vector<Octets> rooms;
    for (const Message::Item& item : results.items) rooms.emplace_back(item.octets.size());
    const std::vector<ScatteredBytes> room(rooms.begin(), rooms.end());
    CallSpec spec = spec_of(kPair, args.without);
    spec.items = items;
    spec.result_items = room;
    spec.max_results = 20;
    asked = {};
    const Outcome outcome = call(spec);
    EXPECT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    EXPECT_EQ(seen_args.back(), args.whole);
    for (std::size_t i = 0; i < outcome.item_lens.size(); ++i) EXPECT_EQ(rooms[i], results.items[i].octets);
    return asked;
  }

  Binding counting = counting_binding();
  DuplicateRequestCache duplicate_requests{{}};
  const Message short_pair = pair_message(pattern(5, 1), pattern(7, 2));
  const Message long_pair = pair_message(pattern(2001, 3), pattern(1500, 4));
};

TEST_F(WalksTest, ArgumentsAreWalkedOnceWhereReadChunksBelongToThem) {
  EXPECT_EQ(asked_by(long_pair, short_pair, false), (Asked{.arguments = 1}));
  EXPECT_EQ(num_items.back(), 2u);
  EXPECT_EQ(asked_by(long_pair, short_pair, true), (Asked{.arguments = 1, .idempotent = 1}));
}

TEST_F(WalksTest, ArgumentsThatCameWholeAreTheServicesToDecode) {
  EXPECT_EQ(asked_by(short_pair, short_pair, false), Asked{});
  EXPECT_EQ(asked_by(short_pair, short_pair, true), Asked{.idempotent = 1});
}

TEST_F(WalksTest, ResultsOfAServiceAreNotWalked) {
  for (const bool in_slices : {false, true}) {
    EXPECT_EQ(asked_by(short_pair, long_pair, false, in_slices), Asked{});
    EXPECT_EQ(responder->responder->counters().write_chunks, 2u);
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
