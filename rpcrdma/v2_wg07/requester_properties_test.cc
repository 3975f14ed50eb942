// Transport properties at a requester of wg07 (draft-ietf-nfsv4-rpcrdma-version-two-07 section 5).
#include <gmock/gmock.h>

#include "rpcrdma/testing/wg07_requester.h"
#include "rpcrdma/v2_wg07/properties.h"

namespace weft::rpcrdma::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

constexpr std::size_t kMiB = 1 << 20;

// The defaults hold until the properties of the server have come.
TEST_F(Wg07RequesterTest, SegmentsAreAsLongAndAsManyAsThePeerTakes) {
  RecordProperty("proves", "W2-5.2-3");
  open({.chunks = {.max_segments = 64}});
  end->link->exchange_properties({}, {});
  call_of({});
  answer(xid_of(0));
  outcomes.clear();
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  (void)message(1).body<wg07::ConnpropFinal>();

  end->qp.sent.clear();
  call_with_pieces(1, 5 * kMiB / 2);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  const auto lists = message(0).body<wg07::CallInline>().lists;
  ASSERT_THAT(lists.read_list, SizeIs(3));
  for (const ReadSegment& one : lists.read_list) EXPECT_LE(one.target.length, kMiB);
  EXPECT_EQ(lists.read_list[1].target.offset, lists.read_list[0].target.offset + kMiB);
  answer(xid_of(0));

  end->qp.sent.clear();
  call_with_pieces(17, 4000);
  ASSERT_THAT(end->qp.sent, SizeIs(1)) << "a question first";
  EXPECT_TRUE(message(0).body<wg07::CallInline>().lists.read_list.empty());
  const Properties peer{.segment_size = 8 * kMiB, .segment_count = 17};
  deliver(wg07_octets(0, kManyCredits, wg07::ConnpropFinal{make_propset(peer, wg07::kProperties)}));
  answer(xid_of(0));
  ASSERT_THAT(end->qp.sent, SizeIs(2));
  EXPECT_THAT(message(1).body<wg07::CallInline>().lists.read_list, SizeIs(17));

  end->qp.sent.clear();
  outcomes.clear();
  call_with_pieces(18, 4000);
  run();
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes.back().status, CallStatus::kLocalError);
  EXPECT_THAT(outcomes.back().text, HasSubstr("more segments than the peer takes"));
  EXPECT_THAT(end->qp.sent, SizeIs(0));
  call_with_pieces(1, 5 * kMiB / 2);
  EXPECT_THAT(message(0).body<wg07::CallInline>().lists.read_list, SizeIs(1));
}

TEST_F(Wg07RequesterTest, APeerThatTellsNothingIsAskedOnce) {
  open({.chunks = {.max_segments = 64}});
  end->link->exchange_properties({}, {});
  call_of({});
  answer(xid_of(0));
  outcomes.clear();
  end->qp.sent.clear();
  call_with_pieces(17, 4000);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  answer(xid_of(0));
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kLocalError);
  EXPECT_THAT(end->qp.sent, SizeIs(1));
}

// Properties of the peer, which have not come, would change nothing.
TEST_F(Wg07RequesterTest, AfterAllCallsWereRefusedNoneWaitsForProperties) {
  open();
  end->link->exchange_properties({}, {});
  call_of({});
  answer(xid_of(0));
  outcomes.clear();
  end->qp.sent.clear();
  call_of({});
  deliver(wg07_octets(xid_of(0), kManyCredits, wg07::Error{.err = wg07::Err::kInvalHtype}));
  ASSERT_THAT(outcomes, SizeIs(1));
  call_of({});
  run();
  ASSERT_THAT(outcomes, SizeIs(2));
  EXPECT_EQ(outcomes[1].status, CallStatus::kLocalError);
  EXPECT_THAT(end->qp.sent, SizeIs(1));
}

TEST_F(Wg07RequesterTest, ThresholdsFollowTheProperties) {
  RecordProperty("proves", "W2-4.2.2-1 W2-5.2.2-1");
  open({.inline_threshold = 16384});
  end->link->exchange_properties({.send_size = 16384, .receive_size = 16384}, {});
  call_of({});
  answer(xid_of(0));
  const Properties peer{.send_size = 8192, .receive_size = 12288};
  deliver(wg07_octets(0, kManyCredits, wg07::ConnpropFinal{make_propset(peer, wg07::kProperties)}));
  end->qp.sent.clear();
  call_of(pattern(11000));
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_GT(sent(0).size(), 11000u);
  call_of(pattern(13000));
  EXPECT_THAT(end->qp.sent, SizeIs(3));
  for (const Octets& one : end->qp.sent) EXPECT_LE(one.size(), 12288u);
}

// Nothing but properties may come before their last message, so Replies are refused, too. Nothing else waits for it.
TEST_F(Wg07RequesterTest, PropertiesWithoutALastMessageCostTheRepliesAlone) {
  RecordProperty("proves", "W2-6.3.3-3");
  open();
  end->link->exchange_properties({}, {});
  settle();
  call_of({});
  const std::uint32_t xid = xid_of(0);
  for (int i = 0; i < 300; ++i) deliver(wg07_octets(0, kManyCredits, wg07::ConnpropMiddle{}));
  end->qp.sent.clear();
  answer(xid);
  ASSERT_THAT(end->qp.sent, SizeIs(1));
  EXPECT_EQ(message(0).body<wg07::Error>().err, wg07::Err::kInvalCont);
  EXPECT_THAT(outcomes, SizeIs(0));
  run(1000);
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kTimeout);
  deliver(wg07_octets(0, kManyCredits, wg07::ConnpropFinal{}), 1000);
  outcomes.clear();
  end->qp.sent.clear();
  call_of({});
  answer(xid_of(0));
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].status, CallStatus::kSuccess);
}

// A peer's word can be any number.
TEST_F(Wg07RequesterTest, PropertiesThatCannotBeTrueDoNoHarm) {
  for (const std::uint32_t word : {0u, 1u, 1023u, 0xffffffffu}) {
    open();
    end->link->exchange_properties({}, {});
    call_of({});
    answer(xid_of(0));
    const Properties peer{.send_size = word, .receive_size = word, .segment_size = word, .segment_count = word};
    deliver(wg07_octets(0, kManyCredits, wg07::ConnpropFinal{make_propset(peer, wg07::kProperties)}));
    end->qp.sent.clear();
    call_of(pattern(900));
    ASSERT_THAT(end->qp.sent, SizeIs(1)) << word;
    EXPECT_GT(message(0).payload.size(), 900u) << "every end takes 1024 octets";
    call_of(pattern(3000));
    call_with_pieces(1, 100000);
    for (const Octets& one : end->qp.sent) EXPECT_THAT(one, SizeIs(Le(4096u))) << word;
    EXPECT_FALSE(end->endpoint->failure()) << word;
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
