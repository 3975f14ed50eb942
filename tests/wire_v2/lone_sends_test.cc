#include "tests/wire_v2/lone_sends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/wire_v2/fields.h"
#include "tests/wire_v2/tables.h"
#include "tests/wire_v2/talk.h"

namespace weft::wire_v2 {
namespace {

using testing::Eq;
using testing::Optional;
using testing::StartsWith;

struct WireV2LoneSends : testing::TestWithParam<Profile> {
  Bytes probe(Profile profile) const {
    Bytes octets = encode(Talk(profile).call(kClient, kXid));
    Bytes program = word(0);
    std::copy(program.begin(), program.end(), octets.end() - 28);
    return octets;
  }

  const Profile other = GetParam() == Profile::kCel05 ? Profile::kWg07 : Profile::kCel05;
  Talk talk{GetParam()};
  Talk other_talk{other};
  LoneSends sends;
};

TEST_P(WireV2LoneSends, AMalformedSendIsNamed) {
  EXPECT_THAT(sends.judge(3, encode(talk.call(kClient, kXid))), Eq(std::nullopt));
  Message malformed = talk.reply(kServer, kXid);
  malformed.type = 3;
  EXPECT_THAT(sends.judge(3, encode(malformed)),
              Optional(StartsWith(GetParam() == Profile::kCel05 ? "R2-7.2.4-4: " : "W2-6.1-4: ")));
  EXPECT_NE(sends.judge(4, encode(malformed)), std::nullopt) << "in neither draft";
  EXPECT_EQ(sends.num_judged(), 3u);
}

TEST_P(WireV2LoneSends, AnEndKeepsToItsDraft) {
  EXPECT_THAT(sends.judge(3, encode(talk.call(kClient, kXid))), Eq(std::nullopt));
  EXPECT_NE(sends.judge(3, encode(other_talk.call(kClient, kXid))), std::nullopt);
  EXPECT_THAT(sends.judge(4, encode(other_talk.call(kClient, kXid))), Eq(std::nullopt)) << "another end";
}

TEST_P(WireV2LoneSends, AProbeMayBeOfAnotherDraft) {
  EXPECT_THAT(sends.judge(3, probe(GetParam())), Eq(std::nullopt));
  EXPECT_THAT(sends.judge(3, probe(other)), Eq(std::nullopt));
  EXPECT_THAT(sends.judge(3, encode(other_talk.call(kClient, kXid))), Eq(std::nullopt));
  EXPECT_NE(sends.judge(3, encode(talk.call(kClient, kXid))), std::nullopt);
}

TEST_P(WireV2LoneSends, VersionOneIsNotJudged) {
  Bytes call = encode(talk.call(kClient, kXid));
  call[7] = 1;
  call.resize(12);
  EXPECT_THAT(sends.judge(3, call), Eq(std::nullopt));
  EXPECT_EQ(sends.num_judged(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Drafts, WireV2LoneSends, testing::Values(Profile::kCel05, Profile::kWg07),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace weft::wire_v2
