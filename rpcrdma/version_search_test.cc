#include "rpcrdma/version_search.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rpcrdma/profiles.h"

namespace weft::rpcrdma::testing {
namespace {

using Kind = Negotiation::Step::Kind;
using Next = VersionSearch::Next;

constexpr VersionRange kNamed{2, 2};

struct Unanswered {
  Kind end;
  Protocol asked;
  bool is_newer;
  Next next;
};

Next end_unanswered(VersionSearch& search, const Unanswered& one) {
  return search.on_unanswered({.kind = one.end}, profile_of(one.asked), one.is_newer);
}

TEST(VersionSearch, AConnectionEndsBeforeAnAnswer) {
  const Unanswered cases[] = {
      {Kind::kLastResort, Protocol::k2Wg07, false, Next::kVersion1},
      {Kind::kLastResort, Protocol::k2Wg07, true, Next::kAskAgain},
      {Kind::kUnanswered, Protocol::k2Cel05, true, Next::kAskAgain},
      {Kind::kUnanswered, Protocol::k2Cel05, false, Next::kPolicy},
      {Kind::kLastResort, Protocol::k1, true, Next::kVersion1},  // newer ones were refused, or come later
      {Kind::kFailed, Protocol::k2Wg07, true, Next::kPolicy},
      {Kind::kFailed, Protocol::k1, false, Next::kPolicy},
  };
  for (const Unanswered& one : cases) {
    SCOPED_TRACE(::testing::Message() << int(one.end) << " " << protocol_str(one.asked) << " " << one.is_newer);
    VersionSearch search;
    EXPECT_EQ(end_unanswered(search, one), one.next);
    EXPECT_EQ(search.is_last_resort(), one.next == Next::kVersion1);
    EXPECT_EQ(search.is_unanswered(), one.next == Next::kPolicy && one.end != Kind::kFailed);
  }
}

TEST(VersionSearch, TheQuestionIsRepeatedOnceUntilAnAnswer) {
  const Unanswered silence{Kind::kLastResort, Protocol::k2Wg07, false, Next::kPolicy};
  VersionSearch search;
  for (int i = 0; i < 2; ++i) {
    search.on_answer(Protocol::k2Wg07);
    EXPECT_EQ(end_unanswered(search, silence), Next::kAskAgain);
    for (int j = 0; j < 3; ++j) {
      EXPECT_EQ(end_unanswered(search, silence), Next::kVersion1);
      search.on_end();
      EXPECT_FALSE(search.is_last_resort());
    }
  }
  search.on_answer(Protocol::k1);
  EXPECT_EQ(end_unanswered(search, silence), Next::kVersion1) << "it spoke no newer version";
}

TEST(VersionSearch, TheServerTurnsTheClientBackOnceUntilAnAnswer) {
  const Unanswered silence{Kind::kLastResort, Protocol::k2Wg07, false, Next::kPolicy};
  VersionSearch search;
  for (int i = 0; i < 2; ++i) {
    search.on_answer(Protocol::k2Wg07);
    EXPECT_EQ(end_unanswered(search, silence), Next::kAskAgain);
    EXPECT_EQ(end_unanswered(search, silence), Next::kVersion1);
    EXPECT_TRUE(search.is_last_resort());
    search.turn_back(kNamed);
    EXPECT_FALSE(search.is_last_resort());
    ASSERT_TRUE(search.range());
    EXPECT_EQ(search.range()->low, kNamed.low);
    EXPECT_EQ(end_unanswered(search, silence), Next::kAskAgain) << "it named a newer version";
    EXPECT_EQ(end_unanswered(search, silence), Next::kPolicy) << "version 1 was refused";
    EXPECT_FALSE(search.is_last_resort());
    EXPECT_TRUE(search.is_unanswered());
    search.on_answer(Protocol::k1);
    EXPECT_FALSE(search.range());
  }
}

}  // namespace
}  // namespace weft::rpcrdma::testing
