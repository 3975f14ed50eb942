// Which Calls and Replies go in several messages, and which by chunks.
#include "rpcrdma/call_form.h"

#include <gmock/gmock.h>

#include "rpcrdma/framing.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::SizeIs;

constexpr std::size_t kRpcHeader = 40;    // of a Call without a credential
constexpr std::size_t kReplyHeader = 24;  // without a verifier

struct CallFormTest : ::testing::Test {
  CallFormTest() {
    const Profile& profile = profile_of(Protocol::k2Wg07);
    rules.call_lengths = profile.call_lengths;
    rules.reply_lengths = profile.reply_lengths;
    rules.part_header_len = profile.framing->middle_header_len;
    rules.chunk_terms = profile.default_chunks;
    rules.max_continued_call = rules.max_continued_reply = {};
    set_threshold(4096);
  }
  void set_threshold(std::size_t len) { rules.call_threshold = rules.reply_threshold = len; }
  // Octets of a Payload stream that two messages take. Headers of wg07 have multiples of four octets.
  std::size_t two_calls() const { return 2 * rules.call_threshold - rules.part_header_len - rules.call_lengths.empty; }
  std::size_t two_replies() const {
    return 2 * rules.reply_threshold - rules.part_header_len - rules.reply_lengths.empty;
  }

  // The form of a Call whose Payload stream has so many octets.
  CallForm form_of(std::size_t payload) {
    const Octets args(payload - kRpcHeader);
    CallSpec spec;
    spec.args = args;
    return choose_call_form(spec, {}, {}, rules, head);
  }
  // The chunks for a Reply of at most so many octets, of which `item` have room of their own.
  ReplyOffer offer_for(std::size_t payload, std::size_t item = 0) {
    Octets room(item);
    CallSpec spec;
    spec.max_results = payload - kReplyHeader - item;
    if (item != 0) spec.result_items = MutBytes(room);
    return choose_reply_offer(spec, 0, rules);
  }

  CallRules rules;
  Octets head;
};

TEST_F(CallFormTest, ACallOfTwoMessagesGoesInParts) {
  for (const std::size_t threshold : {1024u, 2048u, 4096u}) {
    set_threshold(threshold);
    EXPECT_TRUE(form_of(two_calls()).continued) << threshold;
    EXPECT_TRUE(form_of(two_calls() + 4).external) << threshold;
    EXPECT_FALSE(form_of(threshold - rules.call_lengths.empty).continued) << "one message";
  }
}

TEST_F(CallFormTest, PartsHaveAtMostEightKibibytes) {
  set_threshold(6000);
  EXPECT_TRUE(form_of(8192).continued);
  EXPECT_TRUE(form_of(8196).external);
  EXPECT_EQ(offer_for(8192).reply_chunk_len, 0u);
  EXPECT_EQ(offer_for(8196).reply_chunk_len, 8196u);
}

// The chunk lists for the Reply stand in the last message.
TEST_F(CallFormTest, ChunksForTheReplyTakeTheirPlaceInTheLastMessage) {
  const Octets args(two_calls() - kRpcHeader);
  CallSpec spec;
  spec.args = args;
  EXPECT_TRUE(choose_call_form(spec, {}, {}, rules, head).continued);
  const ReplyOffer offer{.reply_chunk_len = 20000};
  EXPECT_TRUE(choose_call_form(spec, {}, offer, rules, head).external);
  const std::size_t list = rules.call_lengths.reply_chunk + rules.call_lengths.segment;
  spec.args = ConstBytes(args).first(args.size() - list);
  EXPECT_TRUE(choose_call_form(spec, {}, offer, rules, head).continued);
}

TEST_F(CallFormTest, AReplyOfTwoMessagesNeedsNoChunk) {
  for (const std::size_t threshold : {1024u, 2048u, 4096u}) {
    set_threshold(threshold);
    EXPECT_EQ(offer_for(two_replies()).reply_chunk_len, 0u) << threshold;
    EXPECT_EQ(offer_for(two_replies() + 4).reply_chunk_len, two_replies() + 4) << threshold;
  }
}

// A copy out of the messages would cost more than the Write chunk.
TEST_F(CallFormTest, ResultsWithRoomOfTheirOwnComeByWriteChunk) {
  const ReplyOffer offer = offer_for(4096 + 100, 4096);
  EXPECT_EQ(offer.num_writes, 1u);
  EXPECT_EQ(offer.reply_chunk_len, 0u);
  EXPECT_EQ(offer_for(2048 + 100, 2048).num_writes, 0u) << "one message";
  // The rest may need two messages beside the Write chunk.
  const ReplyOffer both = offer_for(6000 + 4096, 4096);
  EXPECT_EQ(both.num_writes, 1u);
  EXPECT_EQ(both.reply_chunk_len, 0u);
}

TEST_F(CallFormTest, TheUsersLimitCountsOctetsAlone) {
  rules.max_continued_call = rules.max_continued_reply = 64 << 10;
  EXPECT_TRUE(form_of(65536).continued);
  EXPECT_TRUE(form_of(65540).external);
  EXPECT_EQ(offer_for(65536, 65000).num_writes, 0u);
  EXPECT_EQ(offer_for(65536).reply_chunk_len, 0u);
  EXPECT_EQ(offer_for(65540).reply_chunk_len, 65540u);
  rules.max_continued_call = rules.max_continued_reply = 0;
  EXPECT_TRUE(form_of(5000).external);
  EXPECT_EQ(offer_for(5000).reply_chunk_len, 5000u);
}

// A peer may say that a header has no more than eight segments of 64 KiB.
TEST_F(CallFormTest, BeyondThePeersSegmentsAllGoesInParts) {
  constexpr std::size_t kMiB = 1 << 20, kHeld = 512 << 10, kOthers = 100;
  rules.chunk_terms = {.max_segment = 64 << 10, .max_segments = 8};
  rules.max_unpredictable_reply = kMaxContinued;
  rules.may_replace_chunks = true;
  const auto form_of_item = [this](std::size_t len) {
    const Octets data(len);
    const ArgumentItem item{0, ConstBytes(data)};
    CallSpec spec;
    spec.items = item;
    return choose_call_form(spec, {}, {}, rules, head);
  };
  EXPECT_EQ(form_of_item(kHeld).reduced, 1u);
  EXPECT_TRUE(form_of_item(kMiB).continued);
  EXPECT_NE(form_of_item(2 * kMiB).refusal, "") << "no Call in parts is so long";
  EXPECT_EQ(offer_for(kHeld + kOthers, kHeld).num_writes, 1u);
  EXPECT_EQ(offer_for(kMiB + kOthers, kMiB).num_writes, 0u);
  EXPECT_EQ(offer_for(kMiB).reply_chunk_len, 0u);
  // The user or the peer takes no parts.
  rules.max_continued_call = rules.max_continued_reply = 0;
  EXPECT_NE(form_of_item(kMiB).refusal, "");
  EXPECT_EQ(offer_for(kMiB + kOthers, kMiB).num_writes, 1u);
}

TEST_F(CallFormTest, WithoutChunksACallMayHaveSixteenKibibytes) {
  rules.short_only = true;
  EXPECT_TRUE(form_of(16384).continued);
  EXPECT_NE(form_of(16388).refusal, "");
  rules.max_continued_call = 6000;
  EXPECT_TRUE(form_of(6000).continued);
  EXPECT_NE(form_of(6004).refusal, "");
}

// A chunk costs a round trip more than messages that are all under way at once.
TEST_F(CallFormTest, TheRoundTripAllowsMoreMessages) {
  const std::size_t each = (rules.call_threshold - rules.part_header_len) / 4 * 4;
  for (std::size_t num = 3; num <= 8; ++num) {
    const std::size_t most = two_calls() + (num - 2) * each;
    rules.max_timely_messages = num;
    EXPECT_TRUE(form_of(most).continued) << num;
    EXPECT_TRUE(form_of(most + 4).external) << num;
    rules.max_timely_messages = num - 1;
    EXPECT_TRUE(form_of(most).external) << num;
  }
  rules.max_timely_messages = 1000;
  EXPECT_TRUE(form_of(kMaxTimelyCall).continued);
  EXPECT_TRUE(form_of(kMaxTimelyCall + 4).external);
  rules.max_continued_call = 0;
  EXPECT_TRUE(form_of(9000).external) << "the user's limit goes first";
}

TEST_F(CallFormTest, ItemsOfACallInPartsStayWhereTheyAre) {
  const Octets data = pattern(5001), args = pattern(12);
  const ArgumentItem item{8, ConstBytes(data)};
  CallSpec spec;
  spec.args = args;
  spec.items = item;
  const CallForm form = choose_call_form(spec, {}, {}, rules, head);
  EXPECT_TRUE(form.continued);
  ASSERT_THAT(form.pieces, SizeIs(3));
  EXPECT_EQ(form.pieces[0].octets, nullptr);
  EXPECT_EQ(form.pieces[0].len, kRpcHeader + 8);
  EXPECT_EQ(form.pieces[1].octets, data.data());
  EXPECT_EQ(form.pieces[1].len, data.size());
  EXPECT_EQ(form.pieces[2].offset, kRpcHeader + 8);
  EXPECT_EQ(form.pieces[2].len, 3u + 4u) << "its roundup, and the arguments behind it";
}

}  // namespace
}  // namespace weft::rpcrdma::testing
