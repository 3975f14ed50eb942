// The message that a Terminate names, held against the messages that the other side has sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/dissect/sent_segments.h"
#include "apps/dissect/testing/court.h"

namespace weft::apps::dissect {
namespace {

using rdmap::Layer;
using rdmap::Opcode;
using rdmap::Terminate;
using testing::Court;
using testing::kStag;
using testing::Octets;
using testing::pattern;
using testing::read_request;
using testing::Wire;
using testing::with;

// The accuser itself named the memory, in its RDMA Read Request.
TEST(Accusation, AnRdmaReadResponseAsTheAccuserAskedForHasTheRightPlace) {
  constexpr std::uint32_t kSink = 0x99, kLen = 100;
  for (const int code : {0x00, 0x01}) {
    const auto verdict_of = [code](std::uint32_t len, bool loses) {
      Court court;
      court.open();
      if (loses) court.lose();
      court.talk.read(kStag, 0, kLen, kSink);
      court.say(testing::tagged(Opcode::kReadResponse, kSink, 0, pattern(len)));
      return court.verdict({Layer::kDdp, 1, static_cast<std::uint8_t>(code)}, true);
    };
    EXPECT_EQ(verdict_of(kLen, false), Verdict::kRefuted);
    EXPECT_EQ(verdict_of(kLen + 4, false), Verdict::kConfirmed);
    EXPECT_EQ(verdict_of(kLen, true), Verdict::kUnseen);
  }
}

// The side sent a message in this place, but another one.
TEST(Accusation, AHeaderThatTheOtherSideHasNotSentAccusesNobody) {
  const Octets read = read_request(1, kStag, 0, 100), written = testing::tagged(Opcode::kWrite, kStag, 8, pattern(40)),
               request = testing::untagged(Opcode::kSend, 1, pattern(40));
  const Terminate read_bounds{Layer::kRdma, 1, 0x01}, bounds{Layer::kDdp, 1, 0x01}, too_long{Layer::kDdp, 2, 0x05};
  const auto verdict_of = [](const Octets& sent, const Octets& named, const Terminate& what, bool loses = false) {
    Court court;
    court.open();
    if (loses) court.lose();
    court.say(sent);
    court.named = named;
    return court.verdict(what, true);
  };
  const auto longer = [](Octets octets) {
    octets.resize(octets.size() + 9000);
    return octets;
  };
  EXPECT_EQ(verdict_of(read, read, read_bounds), Verdict::kUnseen);
  EXPECT_EQ(verdict_of(read, read_request(1, kStag, 0, 999), read_bounds), Verdict::kRefuted);
  EXPECT_EQ(verdict_of(read, read_request(1, kStag, 40, 60), read_bounds), Verdict::kRefuted)
      << "another sink TO is due";
  EXPECT_EQ(verdict_of(read, with(read_request(1, kStag, 40, 60), 18 + 11, 40), read_bounds), Verdict::kUnseen)
      << "the rest of it";
  EXPECT_EQ(verdict_of(written, written, bounds), Verdict::kUnseen);
  EXPECT_EQ(verdict_of(written, with(written, 13, 9), bounds), Verdict::kRefuted) << "TO";
  EXPECT_EQ(verdict_of(written, longer(written), bounds), Verdict::kRefuted);
  EXPECT_EQ(verdict_of(written, longer(written), bounds, true), Verdict::kUnseen);
  EXPECT_EQ(verdict_of(request, longer(request), too_long), Verdict::kRefuted);
  EXPECT_EQ(verdict_of(request, with(request, 17, 40), too_long), Verdict::kRefuted) << "MO";
}

TEST(Accusation, TheSegmentsThatATerminateMayNameAreBounded) {
  for (const std::size_t num : {SentSegments::kMax, SentSegments::kMax + 1}) {
    Court court;
    court.open();
    for (std::size_t i = 0; i < num; ++i) court.write(kStag, 8 * i);
    court.named = testing::tagged(Opcode::kWrite, kStag, 4, pattern(8));
    const bool is_known = num == SentSegments::kMax;
    EXPECT_EQ(court.verdict({Layer::kDdp, 1, 0x01}, true), is_known ? Verdict::kRefuted : Verdict::kUnseen) << num;
  }
}

// The header in the Terminate is that of the first of two equal messages, too.
TEST(Accusation, OfEqualMessagesTheFirstIsNamed) {
  Court court;
  court.open();
  court.write(kStag, UINT64_MAX - 3);
  court.write(kStag, UINT64_MAX - 3);
  EXPECT_EQ(court.verdict({Layer::kDdp, 1, 0x03}, true), Verdict::kConfirmed);
  EXPECT_THAT(court.talk.told.findings, ::testing::Not(::testing::Contains("RDMAP-7.1-05")));
}

// MSN 2 comes before MSN 1, and a right Terminate names MSN 2.
TEST(Accusation, AMessageThatCameOutOfOrderHasCome) {
  Court court;
  court.open();
  court.say(testing::untagged(Opcode::kSend, 2, pattern(8)));
  const Octets second = court.named;
  court.say(testing::untagged(Opcode::kSend, 1, pattern(8)));
  court.named = second;
  EXPECT_EQ(court.verdict({Layer::kDdp, 2, 0x03}, true), Verdict::kConfirmed);
  EXPECT_THAT(court.talk.told.findings, ::testing::Not(::testing::Contains("RDMAP-7.1-03")));
}

// A receiver may place an FPDU, and refuse it, before it has those in front. Here the capture has it, too, behind a
// hole. The server acknowledges only what came before the hole.
struct BehindAHole : ::testing::Test {
  void SetUp() override {
    court.open();
    court.send();
    hole = wire.seq[Wire::kClient];
    wire.lose(Wire::kClient, next_send());
  }
  Octets next_send() { return wire.fpdu(Wire::kClient, testing::untagged(Opcode::kSend, ++court.msn, pattern(8))); }
  std::optional<Verdict> verdict(const Terminate& what, bool has_header) {
    wire.seq[Wire::kClient] = hole;
    return court.verdict(what, has_header);
  }

  Court court;
  Wire& wire = court.talk.wire;
  std::uint32_t hole = 0;
};

TEST_F(BehindAHole, AnFpduMayBeTheRefusedOne) {
  court.write(kStag + 1);
  EXPECT_EQ(verdict({Layer::kDdp, 1, 0x00}, true), Verdict::kUnseen);
  EXPECT_THAT(court.talk.told.findings, ::testing::Not(::testing::Contains("RDMAP-7.1-03")));
}
TEST_F(BehindAHole, ACrcMayBeBad) {
  Octets damaged = next_send();
  damaged.back() ^= 1;
  wire.send(Wire::kClient, damaged);
  EXPECT_EQ(verdict({Layer::kLlp, 0, 0x02}, false), Verdict::kUnseen);
}

}  // namespace
}  // namespace weft::apps::dissect
