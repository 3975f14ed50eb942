#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "rpcrdma/testing/forms.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

// ResultRoomTest: what a caller asked to have in its room is there, by whatever way it came.
struct ResultRoomTest : FormsTest {
  static constexpr std::uint8_t kUntouched = 0xa5;

  // One Call whose results are `all`; each has room for `slack` octets more, in buffers of 700 octets.
  void expect_all_in_their_rooms(const std::vector<Octets>& all, std::size_t slack) {
    std::vector<const Octets*> pointers;
    for (const Octets& one : all) pointers.push_back(&one);
    const Message message = many_message(pointers);
    answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
    std::vector<Octets> memory;
    for (const Octets& one : all) memory.emplace_back(one.size() + slack, kUntouched);
    std::vector<std::vector<MutBytes>> parts(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t at = 0; at < memory[i].size(); at += 700) {
        parts[i].push_back(MutBytes(memory[i]).subspan(at, std::min<std::size_t>(700, memory[i].size() - at)));
      }
    }
    const std::vector<ScatteredBytes> rooms(parts.begin(), parts.end());
    CallSpec spec = spec_of(kMany, no_operations());
    spec.result_items = rooms;
    spec.max_results = 4 + 8 * all.size();
    const Outcome outcome = call(spec);
    ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
    ASSERT_EQ(outcome.item_lens.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool has_room = !memory[i].empty();
      EXPECT_EQ(outcome.item_lens[i], has_room ? std::optional<std::size_t>(all[i].size()) : std::nullopt) << i;
      Octets wanted = all[i];
      wanted.resize(memory[i].size(), kUntouched);
      EXPECT_EQ(memory[i], wanted) << i;
    }
    EXPECT_EQ(outcome.results, message.without);
  }
};

TEST_F(ResultRoomTest, ResultsAreInTheirRoomsInEachForm) {
  std::uint64_t write_chunks = 0, reply_chunks = 0, without = 0;
  for (const std::size_t threshold : {1024u, 16384u}) {
    for (const std::size_t max_write_chunks : {0u, 1u, 2u}) {
      for (const bool both : {false, true}) {
        for (const std::size_t first : {0u, 1u, 3u, 100u, 3001u}) {
          for (const std::size_t second : {0u, 4u, 702u, 5002u}) {
            for (const std::size_t slack : {0u, 50u}) {
              SCOPED_TRACE(::testing::Message() << threshold << ' ' << max_write_chunks << ' ' << both << ' ' << first
                                                << ' ' << second << ' ' << slack);
              open({.max_write_chunks = max_write_chunks, .write_list_with_reply_chunk = both}, threshold);
              expect_all_in_their_rooms({pattern(first, 1), pattern(second, 2)}, slack);
              const RequesterCounters& counters = requester->requester->counters();
              write_chunks += counters.write_chunks;
              reply_chunks += counters.reply_chunks;
              without += counters.write_chunks + counters.reply_chunks == 0 ? 1 : 0;
            }
          }
        }
      }
    }
  }
  // The sizes above have led to each of the forms.
  EXPECT_GT(write_chunks, 0u);
  EXPECT_GT(reply_chunks, 0u);
  EXPECT_GT(without, 0u);
}

TEST_F(ResultRoomTest, AResultWithoutRoomStaysAmongTheResults) {
  open();
  const Octets a = pattern(33, 1), b = pattern(44, 2), c = pattern(55, 3);
  const Message message = many_message({&a, &b, &c});
  answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
  Octets room_a(40), room_c(55);
  const std::vector<ScatteredBytes> rooms{MutBytes(room_a), {}, MutBytes(room_c)};
  CallSpec spec = spec_of(kMany, no_operations());
  spec.result_items = rooms;
  spec.max_results = 100;
  const Outcome outcome = call(spec);
  ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_THAT(outcome.item_lens, ElementsAre(Optional(33u), std::nullopt, Optional(55u)));
  EXPECT_EQ(Octets(room_a.begin(), room_a.begin() + 33), a);
  EXPECT_EQ(Octets(room_c.begin(), room_c.begin() + 55), c);
  Message kept;  // the same with `b` as octets that stay
  kept.word(3).word(0).item(a).word(0).opaque(b).word(0).item(c);
  EXPECT_EQ(outcome.results, kept.without);
  EXPECT_THAT(outcome.message, ::testing::SizeIs(24 + message.whole.size())) << "the message is as it came";
}

TEST_F(ResultRoomTest, AResultThatIsMissingHasTheLengthZero) {
  open();
  const Octets b = pattern(44, 2);
  const Message message = many_message({nullptr, &b});
  answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
  Octets room_a(40, kUntouched), room_b(44), room_c(40, kUntouched);
  const std::vector<ScatteredBytes> rooms{MutBytes(room_a), MutBytes(room_b), MutBytes(room_c)};
  CallSpec spec = spec_of(kMany, no_operations());
  spec.result_items = rooms;
  spec.max_results = 100;
  const Outcome outcome = call(spec);
  ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_THAT(outcome.item_lens, ElementsAre(Optional(0u), Optional(44u), Optional(0u)));
  EXPECT_EQ(room_b, b);
  EXPECT_EQ(room_a, Octets(40, kUntouched));
}

TEST_F(ResultRoomTest, AResultThatIsLongerThanItsRoomEndsItsCallAlone) {
  for (const std::size_t len : {101u, 900u}) {
    open({}, 16384);
    const Octets data = pattern(len);
    const Message message = many_message({&data});
    answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
    Octets memory(200, kUntouched);
    CallSpec spec = spec_of(kMany, no_operations());
    spec.result_items = MutBytes(memory).first(100);
    spec.max_results = 2000;
    Outcome outcome = call(spec);
    EXPECT_EQ(outcome.status, CallStatus::kBadReply);
    EXPECT_EQ(outcome.text,
              "a result has " + std::to_string(len) + " bytes, and its room in CallSpec::result_items has 100");
    EXPECT_THAT(outcome.item_lens, IsEmpty());
    EXPECT_THAT(outcome.results, IsEmpty());
    EXPECT_EQ(memory, Octets(200, kUntouched));
    EXPECT_EQ(call(spec_of(0)).status, CallStatus::kSuccess) << "the connection goes on";
  }
}

TEST_F(ResultRoomTest, ResultsThatDoNotDecodeEndTheirCall) {
  open();
  answer_with([&](ServedCall&) {
    ServedReply reply;
    reply.results = pattern(32);
    return reply;
  });
  Octets room(100, kUntouched);
  CallSpec spec = spec_of(kMany, no_operations());
  spec.result_items = room;
  spec.max_results = 100;
  const Outcome outcome = call(spec);
  EXPECT_EQ(outcome.status, CallStatus::kBadReply);
  EXPECT_EQ(outcome.text, "the results do not decode");
  EXPECT_EQ(room, Octets(100, kUntouched));
}

TEST_F(ResultRoomTest, AGatewayGetsInlineResultsWhereTheyStand) {
  open();
  const Octets data = pattern(44);
  const Message message = many_message({&data});
  answer_with([&](ServedCall&) { return reply_with(message, responder->pool); });
  Octets room(100, kUntouched);
  CallSpec spec = spec_of(kMany, no_operations());
  spec.result_items = room;
  spec.max_results = 100;
  spec.leaves_inline_results = true;
  const Outcome outcome = call(spec);
  ASSERT_EQ(outcome.status, CallStatus::kSuccess) << outcome.text;
  EXPECT_THAT(outcome.item_lens, ElementsAre(std::nullopt));
  EXPECT_EQ(outcome.results, message.whole);
  EXPECT_EQ(room, Octets(100, kUntouched));
}

TEST_F(ResultRoomTest, ABindingThatFindsNoResultsHasNoneWithRoom) {
  open();
  Octets room(100);
  CallSpec spec = call_of(plain_binding(), 1);
  spec.result_items = room;
  const auto called = requester->requester->call(spec, nullptr);
  ASSERT_FALSE(called.ok());
  EXPECT_THAT(called.error().message, HasSubstr("Binding::walk_results"));
}

}  // namespace
}  // namespace weft::rpcrdma::testing
