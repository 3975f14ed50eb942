// Properties of both sides of version 2, and the Sends that they allow.
#include "apps/dissect/property_rules.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "apps/dissect/testing/rpc2.h"

namespace weft::apps::dissect {
namespace {

namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;
using rpcrdma::v2::Propset;
using rpcrdma::v2::Propsubset;
using rpcrdma::v2::Propval;
using testing::Cel05;
using testing::cel05_message;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Octets;
using testing::pattern;
using testing::rpc_call;
using testing::rpc_reply;
using testing::Talk;
using testing::Wg07;
using testing::wg07_message;
using testing::Wire;

// A property of one word.
Propval word(std::uint32_t which, std::uint32_t value) {
  Propval property{.which = which};
  rpcrdma::xdr::XdrWriter(property.data).u32(value);
  return property;
}
constexpr std::uint32_t kCel05ReceiveSize = 1, kWg07ReceiveSize = 2, kWg07Reverse = 5;

template <typename Draft>
struct DraftProperties : testing::DraftTest<Draft> {
  DraftProperties() {
    talk.wire.open();
    talk.send(Wire::kClient, Draft::call(1));
    talk.send(Wire::kServer, Draft::reply(1));
  }
  // The client's next Call has `len` octets.
  std::vector<std::string> call_of(std::size_t len) {
    const std::size_t rest = Draft::call(2).size();
    talk.told.findings.clear();
    talk.send(Wire::kClient, Draft::call(++xid, {}, 0, 0, pattern(len - rest)));
    return talk.told.findings;
  }
  Octets told_size(std::uint32_t size) const {
    return this->is_wg07() ? wg07_message(9, wg07::ConnpropFinal{.props = {word(kWg07ReceiveSize, size)}})
                           : cel05_message(9, cel05::Connprop{.start = {word(kCel05ReceiveSize, size)}});
  }
  Talk talk;
  std::uint32_t xid = 1;
};
TYPED_TEST_SUITE(DraftProperties, testing::Drafts);

TYPED_TEST(DraftProperties, WithoutPropertiesASendHas4096Octets) {
  EXPECT_THAT(this->call_of(4096), IsEmpty());
  EXPECT_THAT(this->call_of(4100), ElementsAre(this->of("R2-3.3-3", "W2-4.2.2-2")));
}
TYPED_TEST(DraftProperties, APropertyTellsAnotherSize) {
  this->talk.send(Wire::kServer, this->told_size(8192));
  EXPECT_THAT(this->call_of(8192), IsEmpty());
  EXPECT_THAT(this->call_of(8196), ElementsAre(this->of("R2-3.3-3", "W2-4.2.2-2")));
}
TYPED_TEST(DraftProperties, ThePropertyIsTheReceivers) {
  this->talk.send(Wire::kClient, this->told_size(8192));
  EXPECT_THAT(this->call_of(8192), ElementsAre(this->of("R2-3.3-3", "W2-4.2.2-2")));
}
// It may have been a property that the other side understands.
TYPED_TEST(DraftProperties, BehindAMessageThatCannotBeReadNothingIsJudged) {
  Octets broken = this->told_size(8192);
  broken.pop_back();
  this->talk.send(Wire::kServer, broken);
  EXPECT_THAT(this->call_of(8192), IsEmpty());
}

// ---- cel05

struct Requests : ::testing::Test {
  Requests() {
    talk.wire.open();
    talk.send(Wire::kClient, Cel05::call(1));
    talk.send(Wire::kServer, Cel05::reply(1));
    talk.send(Wire::kClient, cel05_message(7, cel05::Reqprop{.want = {word(kCel05ReceiveSize, 8192), word(99, 1)}}));
  }
  std::vector<std::string> answer(std::uint32_t xid, const cel05::Resprop& body) {
    talk.send(Wire::kServer, cel05_message(xid, body));
    return talk.told.findings;
  }
  static Propsubset subset(std::initializer_list<std::size_t> positions) {
    Propsubset subset;
    for (const std::size_t position : positions) subset.insert(position);
    return subset;
  }
  Talk talk;
};

TEST_F(Requests, AnAnswerSaysWhatBecameOfEachProperty) {
  EXPECT_THAT(answer(7, {.done = subset({0}), .rejected = subset({1})}), IsEmpty());
  talk.send(Wire::kClient, cel05_message(8, cel05::Reqprop{.want = {word(kCel05ReceiveSize, 8192)}}));
  EXPECT_THAT(answer(8, {.other = {word(kCel05ReceiveSize, 6144)}}), IsEmpty());
}
// The request is not remembered, and any XID may be its own.
TEST_F(Requests, ARequestForVeryManyPropertiesIsNotJudged) {
  for (const std::size_t num : {PropertyRules::kMaxWanted, PropertyRules::kMaxWanted + 1}) {
    talk.send(Wire::kClient, cel05_message(8, cel05::Reqprop{.want = Propset(num, word(99, 1))}));
    EXPECT_EQ(answer(6, {}).size(), 1u) << num;
  }
}
TEST_F(Requests, AnAnswerHasTheXidOfItsRequest) {
  EXPECT_THAT(answer(8, {.done = subset({0})}), ElementsAre("R2-6.3.3-2"));
}
TEST_F(Requests, ARequestHasOneAnswer) {
  EXPECT_THAT(answer(7, {.done = subset({0})}), IsEmpty());
  EXPECT_THAT(answer(7, {.done = subset({0})}), ElementsAre("R2-6.3.3-2"));
}
TEST_F(Requests, AnAnswerHasNoOtherProperty) {
  EXPECT_THAT(answer(7, {.other = {word(98, 6144)}}), ElementsAre("R2-6.3.3-6"));
}
TEST_F(Requests, APropertyIsInOnePart) {
  EXPECT_THAT(answer(7, {.done = subset({1}), .rejected = subset({1})}), ElementsAre("R2-6.3.3-8"));
}
TEST_F(Requests, APropertyWithAnotherValueIsNotDone) {
  EXPECT_THAT(answer(7, {.done = subset({0}), .other = {word(kCel05ReceiveSize, 6144)}}), ElementsAre("R2-6.3.3-8"));
}
// Positions beyond the request have no meaning.
TEST_F(Requests, BitsBeyondTheRequestAreNotJudged) {
  EXPECT_THAT(answer(7, {.done = subset({5}), .rejected = subset({5})}), IsEmpty());
}
TEST_F(Requests, OneXidOfTwoRequestsIsNotJudged) {
  talk.send(Wire::kClient, cel05_message(7, cel05::Reqprop{.want = {word(98, 1)}}));
  EXPECT_THAT(answer(7, {.other = {word(98, 6144)}}), IsEmpty());
}

// ---- 2-wg07

struct Wg07Properties : ::testing::Test {
  Wg07Properties() {
    talk.wire.open();
    talk.send(Wire::kClient, Wg07::call(1));
    talk.send(Wire::kServer, Wg07::reply(1, {}, 40));
  }
  // The Reply to a Call that offers a Reply chunk comes in parts.
  std::vector<std::string> reply_in_parts(std::size_t reply_chunk_len, std::size_t len) {
    talk.send(Wire::kClient, Wg07::call(2, testing::reply_chunk(5, static_cast<std::uint32_t>(reply_chunk_len))));
    const Octets rpc = rpc_reply(2, pattern(len - rpc_reply(2, {}).size()));
    const std::size_t half = len / 8 * 4;
    talk.send(Wire::kServer, wg07_message(2, wg07::ReplyMiddle{}, ConstBytes(rpc).first(half), 40));
    talk.send(Wire::kServer, wg07_message(2, wg07::ReplyInline{}, ConstBytes(rpc).subspan(half), 40));
    return talk.told.findings;
  }
  Talk talk;
};

TEST_F(Wg07Properties, ALongReplyUsesItsReplyChunk) {
  EXPECT_THAT(reply_in_parts(6000, 6000), ElementsAre("W2-6.6.3-3"));
}
TEST_F(Wg07Properties, AReplyChunkThatIsTooShortIsNotUsed) {
  EXPECT_THAT(reply_in_parts(5996, 6000), IsEmpty());
}
TEST_F(Wg07Properties, AShortReplyMayComeInParts) {
  EXPECT_THAT(reply_in_parts(6000, 4000), IsEmpty());
}

TEST_F(Wg07Properties, ReverseCallsNeedTheProperty) {
  talk.send(Wire::kServer, Wg07::call(50));
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-4.6.3-2"));
  talk.told.findings.clear();
  talk.send(Wire::kClient, wg07_message(9, wg07::ConnpropFinal{.props = {word(kWg07Reverse, 1)}}));
  talk.send(Wire::kServer, Wg07::call(51));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

}  // namespace
}  // namespace weft::apps::dissect
