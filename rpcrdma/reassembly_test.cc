#include "rpcrdma/reassembly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_wg07/header.h"

namespace weft::rpcrdma {
namespace {

using testing::Octets;
using Part = Reassembly::Part;
using Kind = Part::Kind;
using Direction = Part::Direction;
using Sequence = Reassembly::Sequence;
using Verdict = Reassembly::Verdict;

constexpr std::uint32_t kXid = 0x00c0fff2, kOtherXid = 0x00c0ffee;
constexpr std::size_t kMaxOctets = 1000;
constexpr TimePoint kStart{std::chrono::hours(1)};

// Octets that begin with this XID and go on with numbers.
Octets octets_of(std::uint32_t xid, std::size_t len) {
  Octets octets(len);
  for (std::size_t i = 4; i < len; ++i) octets[i] = static_cast<std::uint8_t>(i);
  testing::put_word(octets, 0, xid);
  return octets;
}

// A message of the draft as a Reassembly sees it.
struct ToPart {
  Part part;
  Part operator()(const v2_wg07::CallMiddle& body) {
    part.announced = body.remaining;
    return with(Kind::kMiddle, Direction::kCall);
  }
  Part operator()(const v2_wg07::CallInline&) { return with(Kind::kInline, Direction::kCall); }
  Part operator()(const v2_wg07::CallExternal&) { return with(Kind::kExternal, Direction::kCall); }
  Part operator()(const v2_wg07::ReplyMiddle&) { return with(Kind::kMiddle, Direction::kReply); }
  Part operator()(const v2_wg07::ReplyInline&) { return with(Kind::kInline, Direction::kReply); }
  Part operator()(const v2_wg07::ReplyExternal&) { return with(Kind::kExternal, Direction::kReply); }
  Part operator()(const v2_wg07::Grant&) { return with(Kind::kExempt, Direction::kCall); }
  Part operator()(const v2_wg07::Error&) { return with(Kind::kExempt, Direction::kReply); }
  template <v2_wg07::Htype kType>
  Part operator()(const v2_wg07::Connprop<kType>&) {
    return with(Kind::kOther, Direction::kCall);
  }
  Part with(Kind kind, Direction direction) {
    part.kind = kind;
    part.direction = direction;
    return part;
  }
};

class ReassemblyTest : public ::testing::Test {
 protected:
  ReassemblyTest() : reassembly_(make()) {}
  ~ReassemblyTest() override {
    reassembly_.reset();
    EXPECT_EQ(held(), 0u);
  }

  std::unique_ptr<Reassembly> make() {
    const auto take = [this](Direction, Lease& lease, std::size_t least, std::size_t most) {
      if (is_short_) return false;
      if (!lease) lease = client_.lease();
      return lease.resize(lease.amount() + (takes_all_ ? most : least)) == Ledger::Verdict::kFits;
    };
    return std::make_unique<Reassembly>(limits_, Reassembly::Share{take, [this] { return is_wanted_; }});
  }

  Verdict send(Kind kind, Direction direction, std::uint32_t xid, ConstBytes payload) {
    return reassembly_->on_message({kind, direction, xid, payload}, now_);
  }
  Verdict call_part(Kind kind, std::uint32_t xid, ConstBytes payload = {}) {
    return send(kind, Direction::kCall, xid, payload);
  }
  Verdict reply_part(Kind kind, std::uint32_t xid, ConstBytes payload = {}) {
    return send(kind, Direction::kReply, xid, payload);
  }
  Verdict first(std::uint32_t xid = kXid, std::size_t len = 40) {
    return call_part(Kind::kMiddle, xid, octets_of(xid, len));
  }
  // A message of the vector file, or octets like one.
  Verdict message(ConstBytes octets) {
    v2_wg07::Header header;
    ConstBytes payload;
    EXPECT_EQ(testing::parse(octets, header, payload), v2::HeaderError::kNone);
    ToPart to_part{{.xid = header.xid, .payload = payload}};
    return reassembly_->on_message(std::visit(to_part, header.body), now_);
  }
  Verdict vector(const char* id) { return message(testing::load_v2_vector(id).octets); }
  // take gives the share back, as a user does that is done with the message.
  Octets take() {
    Reassembly::Joined message = reassembly_->take_message();
    EXPECT_EQ(held(), message.octets.capacity());
    return std::move(message.octets);
  }
  void expect_nothing_held() {
    EXPECT_EQ(held(), 0u);
    EXPECT_EQ(reassembly_->memory(), 0u);
    EXPECT_FALSE(reassembly_->next_timeout().has_value());
  }

  Reassembly::Limits limits_{.max_octets = kMaxOctets, .max_parts = 20, .max_time = std::chrono::seconds(10)};
  std::size_t held() const { return ledger_.held(); }

  bool is_short_ = false;
  bool takes_all_ = true;  // with the first part
  bool is_wanted_ = false;
  Ledger ledger_{{}};
  Ledger::Client client_ = ledger_.enter("192.0.2.1");
  TimePoint now_ = kStart;
  std::unique_ptr<Reassembly> reassembly_;
};

TEST_F(ReassemblyTest, JoinsThePartsOfACall) {
  EXPECT_EQ(vector("W08a"), Verdict::kTaken);
  EXPECT_EQ(vector("W08b"), Verdict::kTaken);
  EXPECT_EQ(vector("W08c"), Verdict::kWhole);
  const Octets message = take();
  ASSERT_EQ(message.size(), 100u);
  EXPECT_EQ(message[40], 0x00);
  EXPECT_EQ(message[99], 0x3b);
  expect_nothing_held();
}

TEST_F(ReassemblyTest, JoinsThePartsOfAReply) {
  EXPECT_EQ(vector("W09a"), Verdict::kTaken);
  EXPECT_EQ(vector("W09b"), Verdict::kWhole);
  EXPECT_FALSE(take().empty());
}

TEST_F(ReassemblyTest, LetsWholeMessagesPass) {
  for (const char* id : {"W01", "W02", "W06", "W07", "W10", "W12", "W24"}) {
    EXPECT_EQ(vector(id), Verdict::kAlone) << id;
    expect_nothing_held();
  }
}

TEST_F(ReassemblyTest, PartsAreCopied) {
  Octets receive = octets_of(kXid, 40);
  ASSERT_EQ(call_part(Kind::kMiddle, kXid, receive), Verdict::kTaken);
  receive.assign(40, 0xa5);
  ASSERT_EQ(call_part(Kind::kInline, kXid, receive), Verdict::kWhole);
  Octets expected = octets_of(kXid, 40);
  expected.insert(expected.end(), receive.begin(), receive.end());
  EXPECT_EQ(take(), expected);
}

TEST_F(ReassemblyTest, JoinsAMebibyteOfPartsThatFillTheirReceives) {
  constexpr std::size_t kPart = 4076, kMebibyte = 1048576;
  limits_ = {};
  reassembly_ = make();
  const Octets whole = octets_of(kXid, kMebibyte);
  std::size_t at = 0;
  for (; whole.size() - at > kPart; at += kPart) {
    ASSERT_EQ(call_part(Kind::kMiddle, kXid, ConstBytes(whole).subspan(at, kPart)), Verdict::kTaken);
  }
  ASSERT_EQ(call_part(Kind::kInline, kXid, ConstBytes(whole).subspan(at)), Verdict::kWhole);
  EXPECT_EQ(take(), whole);
}

TEST_F(ReassemblyTest, OneSequenceAfterTheOther) {
  for (std::uint32_t xid = 1; xid < 50; ++xid) {
    ASSERT_EQ(first(xid), Verdict::kTaken);
    ASSERT_EQ(call_part(Kind::kInline, xid, Octets(xid)), Verdict::kWhole);
    ASSERT_EQ(take().size(), 40 + xid);
    expect_nothing_held();
  }
}

TEST_F(ReassemblyTest, AMessageThatNobodyTakesGoesWithTheNext) {
  ASSERT_EQ(first(), Verdict::kTaken);
  ASSERT_EQ(call_part(Kind::kInline, kXid, Octets(4)), Verdict::kWhole);
  EXPECT_EQ(call_part(Kind::kInline, kOtherXid), Verdict::kAlone);
  expect_nothing_held();
}

TEST_F(ReassemblyTest, GrantAndErrorMayStandAnywhere) {
  RecordProperty("proves", "W2-6.3.6-3");
  EXPECT_EQ(vector("W08a"), Verdict::kTaken);
  EXPECT_EQ(vector("W10"), Verdict::kAlone);
  EXPECT_EQ(vector("W24"), Verdict::kAlone);
  EXPECT_EQ(call_part(Kind::kExempt, kXid), Verdict::kAlone);
  EXPECT_EQ(vector("W08b"), Verdict::kTaken);
  EXPECT_EQ(vector("W08c"), Verdict::kWhole);
  EXPECT_EQ(take().size(), 100u);
}

TEST_F(ReassemblyTest, OtherMessagesInsideASequenceAreRefusedAndItGoesOn) {
  RecordProperty("proves", "W2-6.3.6-3 W2-6.3.6-4 W2-6.3.9-2");
  for (const char* id : {"W01", "W02", "W06", "W07", "W09a", "W12"}) {
    EXPECT_EQ(vector("W08a"), Verdict::kTaken);
    EXPECT_EQ(vector(id), Verdict::kInvalCont) << id;
    EXPECT_EQ(vector("W08b"), Verdict::kTaken);
    EXPECT_EQ(vector("W08c"), Verdict::kWhole);
    EXPECT_EQ(take().size(), 100u);
  }
  reassembly_ = make();
  for (const char* id : {"W01", "W02", "W06", "W08a", "W12", "W32"}) {
    EXPECT_EQ(vector("W09a"), Verdict::kTaken);
    EXPECT_EQ(vector(id), Verdict::kInvalCont) << id;
    EXPECT_EQ(vector("W09b"), Verdict::kWhole);
    take();
  }
}

// The message names the sequence that it breaks, so the sequence is over.
TEST_F(ReassemblyTest, AMessageWithChunksUnderTheXidOfASequenceEndsIt) {
  RecordProperty("proves", "W2-6.3.6-3 W2-6.3.9-2");
  const std::pair<const char*, const char*> breaks[] = {{"W08a", "W06"}, {"W09a", "W07"}};
  for (const auto& [first_part, with_chunks] : breaks) {
    Octets same_xid = testing::load_v2_vector(with_chunks).octets;
    const Octets part = testing::load_v2_vector(first_part).octets;
    std::copy_n(part.begin(), 4, same_xid.begin());
    ASSERT_EQ(message(part), Verdict::kTaken);
    EXPECT_EQ(message(same_xid), Verdict::kInvalCont);
    EXPECT_EQ(message(part), Verdict::kDiscard);
    expect_nothing_held();
  }
}

// The XIDs of the two directions have nothing to do with each other.
TEST_F(ReassemblyTest, AReplyWithTheXidOfACallIsAnotherMessage) {
  ASSERT_EQ(first(), Verdict::kTaken);
  EXPECT_EQ(reply_part(Kind::kInline, kXid, octets_of(kXid, 40)), Verdict::kInvalCont);
  EXPECT_EQ(reply_part(Kind::kMiddle, kXid, octets_of(kXid, 40)), Verdict::kInvalCont);
  EXPECT_EQ(call_part(Kind::kInline, kXid), Verdict::kWhole);
}

// The rest of an interleaved message is never taken for a message of its own.
TEST_F(ReassemblyTest, TheRestOfARefusedMessageIsDiscarded) {
  ASSERT_EQ(first(), Verdict::kTaken);
  EXPECT_EQ(first(kOtherXid), Verdict::kInvalCont);
  EXPECT_EQ(call_part(Kind::kMiddle, kOtherXid, Octets(40)), Verdict::kDiscard);
  EXPECT_EQ(call_part(Kind::kInline, kXid), Verdict::kWhole);
  EXPECT_EQ(call_part(Kind::kMiddle, kOtherXid, octets_of(kOtherXid, 40)), Verdict::kDiscard);
  EXPECT_EQ(call_part(Kind::kInline, kOtherXid, Octets(40)), Verdict::kDiscard);
  expect_nothing_held();
  EXPECT_EQ(first(kOtherXid), Verdict::kTaken);  // that is another RPC
}

// An error that names the XID of the sequence ends it at the peer.
TEST_F(ReassemblyTest, ARefusedMessageOfTheSameXidEndsTheSequence) {
  ASSERT_EQ(first(), Verdict::kTaken);
  EXPECT_EQ(call_part(Kind::kExternal, kXid), Verdict::kInvalCont);
  expect_nothing_held();
  EXPECT_EQ(call_part(Kind::kMiddle, kXid, octets_of(kXid, 40)), Verdict::kDiscard);
  EXPECT_EQ(call_part(Kind::kExempt, kXid), Verdict::kAlone);
  EXPECT_EQ(call_part(Kind::kOther, kXid), Verdict::kAlone);
  EXPECT_EQ(call_part(Kind::kInline, kXid, Octets(40)), Verdict::kDiscard);
  EXPECT_EQ(first(), Verdict::kTaken);
}

TEST_F(ReassemblyTest, AnExternalMessageIsTheLastOfARefusedXid) {
  reassembly_->refuse(Direction::kCall, kXid);
  EXPECT_EQ(call_part(Kind::kExternal, kXid), Verdict::kDiscard);
  EXPECT_EQ(call_part(Kind::kExternal, kXid), Verdict::kAlone);
}

TEST_F(ReassemblyTest, TheUserRefusesAMessage) {
  ASSERT_EQ(first(), Verdict::kTaken);
  reassembly_->refuse(Direction::kReply, kXid);
  reassembly_->refuse(Direction::kCall, kOtherXid);
  EXPECT_EQ(held(), kMaxOctets);
  reassembly_->refuse(Direction::kCall, kXid);
  expect_nothing_held();
  EXPECT_EQ(call_part(Kind::kInline, kXid), Verdict::kDiscard);
  EXPECT_EQ(first(kOtherXid), Verdict::kTaken);
}

TEST_F(ReassemblyTest, TheFirstPartBeginsWithItsXid) {
  for (const Octets& payload : {octets_of(kOtherXid, 40), Octets(3), Octets()}) {
    EXPECT_EQ(call_part(Kind::kMiddle, kXid, payload), Verdict::kBadXdr);
    expect_nothing_held();
    EXPECT_EQ(call_part(Kind::kInline, kXid), Verdict::kDiscard);
  }
}

TEST_F(ReassemblyTest, AMessageMayHaveAsManyOctetsAsTheLimit) {
  ASSERT_EQ(first(kXid, 600), Verdict::kTaken);
  ASSERT_EQ(call_part(Kind::kInline, kXid, Octets(400)), Verdict::kWhole);
  EXPECT_EQ(take().size(), kMaxOctets);
}

TEST_F(ReassemblyTest, AMessageThatIsTooLongIsRefused) {
  ASSERT_EQ(first(kXid, 600), Verdict::kTaken);
  EXPECT_EQ(call_part(Kind::kMiddle, kXid, Octets(401)), Verdict::kTooLong);
  expect_nothing_held();
  EXPECT_EQ(call_part(Kind::kMiddle, kXid, octets_of(kXid, 40)), Verdict::kDiscard);
  EXPECT_EQ(call_part(Kind::kInline, kXid), Verdict::kDiscard);
  // One that is too long in its only or its last part has no rest.
  EXPECT_EQ(first(kXid, kMaxOctets + 1), Verdict::kTooLong);
  EXPECT_EQ(call_part(Kind::kInline, kXid), Verdict::kDiscard);
  ASSERT_EQ(first(kXid, 600), Verdict::kTaken);
  EXPECT_EQ(call_part(Kind::kInline, kXid, Octets(401)), Verdict::kTooLong);
  EXPECT_EQ(first(), Verdict::kTaken);
}

// Four octets a message: the memory stays small, and the number of messages ends it.
TEST_F(ReassemblyTest, ADripEnds) {
  ASSERT_EQ(first(kXid, 4), Verdict::kTaken);
  for (std::uint32_t i = 1; i < limits_.max_parts; ++i) {
    ASSERT_EQ(call_part(Kind::kMiddle, kXid, Octets(4)), Verdict::kTaken);
    EXPECT_LE(reassembly_->memory(), 2 * 4 * (i + 1));
  }
  EXPECT_EQ(call_part(Kind::kMiddle, kXid, Octets(4)), Verdict::kTooLong);
  expect_nothing_held();
}

// The peer announces as much as an RPC message may have, or nothing: neither counts.
TEST_F(ReassemblyTest, AnnouncedOctetsReserveNothing) {
  RecordProperty("proves", "W2-6.3.6-2 W2-11.1-1");
  constexpr std::size_t kRemainingAt = 16;
  for (const std::uint32_t remaining : {std::uint32_t{kMaxOctets} - 40, 0u}) {
    Octets begin = testing::load_v2_vector("W08a").octets;
    testing::put_word(begin, kRemainingAt, remaining);
    EXPECT_EQ(message(begin), Verdict::kTaken);
    EXPECT_EQ(reassembly_->memory(), 2 * 40u) << "room for as much again";
    EXPECT_EQ(held(), kMaxOctets);
    EXPECT_EQ(vector("W08b"), Verdict::kTaken);
    EXPECT_EQ(vector("W08c"), Verdict::kWhole);
    EXPECT_EQ(take().size(), 100u);
  }
}

// Nothing more has to arrive before it is refused.
TEST_F(ReassemblyTest, AnRpcMessageThatIsAnnouncedAsTooLongIsRefusedAtOnce) {
  const auto announce = [this](std::size_t announced, std::size_t max_octets) {
    const Octets begin = octets_of(kXid, 40);
    return reassembly_->on_message({.kind = Kind::kMiddle,
                                    .direction = Direction::kCall,
                                    .xid = kXid,
                                    .payload = begin,
                                    .max_octets = max_octets,
                                    .announced = announced},
                                   now_);
  };
  for (const std::size_t announced : {kMaxOctets - 39, std::size_t{0xffffffff}, SIZE_MAX}) {
    EXPECT_EQ(announce(announced, SIZE_MAX), Verdict::kTooLong) << announced;
    expect_nothing_held();
    EXPECT_EQ(call_part(Kind::kMiddle, kXid, Octets(40)), Verdict::kDiscard) << "the rest";
    EXPECT_EQ(call_part(Kind::kInline, kXid, Octets(40)), Verdict::kDiscard);
  }
  EXPECT_EQ(announce(461, 500), Verdict::kTooLong) << "the limit of this RPC message";
  EXPECT_EQ(call_part(Kind::kInline, kXid, Octets(40)), Verdict::kDiscard);
  EXPECT_EQ(announce(460, 500), Verdict::kTaken);
  EXPECT_EQ(call_part(Kind::kMiddle, kXid, Octets(40)), Verdict::kTaken) << "a later part says nothing";
  EXPECT_EQ(announce(kMaxOctets, SIZE_MAX), Verdict::kTooLong) << "or too much";
}

TEST_F(ReassemblyTest, MemoryGrowsWithTheOctetsAndNeverBeyondTheLimit) {
  limits_.max_parts = 2000;
  reassembly_ = make();
  ASSERT_EQ(first(kXid, 4), Verdict::kTaken);
  for (std::size_t len = 5; len <= kMaxOctets; ++len) {
    ASSERT_EQ(call_part(Kind::kMiddle, kXid, Octets(1)), Verdict::kTaken);
    ASSERT_LE(reassembly_->memory(), std::min(2 * len, kMaxOctets));
  }
}

// Also one that sends a part every now and then.
TEST_F(ReassemblyTest, ASequenceHasItsTimeFromTheFirstPart) {
  EXPECT_FALSE(reassembly_->next_timeout().has_value());
  ASSERT_EQ(first(), Verdict::kTaken);
  for (int i = 0; i < 9; ++i) {
    now_ += std::chrono::seconds(1);
    EXPECT_EQ(reassembly_->next_timeout(), kStart + limits_.max_time);
    EXPECT_FALSE(reassembly_->on_time(now_).has_value());
    ASSERT_EQ(call_part(Kind::kMiddle, kXid, Octets(4)), Verdict::kTaken);
  }
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(reassembly_->on_time(now_), (Sequence{Direction::kCall, kXid}));
  expect_nothing_held();
  EXPECT_FALSE(reassembly_->on_time(now_).has_value());
  EXPECT_EQ(call_part(Kind::kMiddle, kXid, octets_of(kXid, 40)), Verdict::kDiscard);
  EXPECT_EQ(call_part(Kind::kInline, kXid), Verdict::kDiscard);
}

TEST_F(ReassemblyTest, AWholeMessageHasNoDeadline) {
  ASSERT_EQ(first(), Verdict::kTaken);
  ASSERT_EQ(call_part(Kind::kInline, kXid), Verdict::kWhole);
  EXPECT_FALSE(reassembly_->on_time(kStart + std::chrono::hours(1)).has_value());
  EXPECT_EQ(take().size(), 40u);
}

TEST_F(ReassemblyTest, ASequenceWithoutAShareDoesNotBegin) {
  is_short_ = true;
  EXPECT_EQ(first(), Verdict::kShort);
  expect_nothing_held();
  EXPECT_EQ(call_part(Kind::kInline, kOtherXid), Verdict::kAlone);
  is_short_ = false;
  EXPECT_EQ(first(), Verdict::kTaken);
  // The share was taken for all parts.
  is_short_ = true;
  EXPECT_EQ(call_part(Kind::kMiddle, kXid, Octets(900)), Verdict::kTaken);
  EXPECT_EQ(call_part(Kind::kInline, kXid), Verdict::kWhole);
}

TEST_F(ReassemblyTest, TheShareGrowsWithTheOctets) {
  takes_all_ = false;
  ASSERT_EQ(first(kXid, 4), Verdict::kTaken);
  for (std::size_t len = 8; len <= 80; len += 4) {
    ASSERT_EQ(call_part(Kind::kMiddle, kXid, Octets(4)), Verdict::kTaken);
    ASSERT_EQ(held(), reassembly_->memory());
    ASSERT_LE(held(), 2 * len);
  }
}

// The part that waits is offered again. The sequence keeps what it has.
TEST_F(ReassemblyTest, ASequenceWaitsInItsMiddleForMoreOfTheShare) {
  takes_all_ = false;
  ASSERT_EQ(first(), Verdict::kTaken);
  is_short_ = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(call_part(Kind::kMiddle, kXid, Octets(100)), Verdict::kShort);
    EXPECT_EQ(held(), 2 * 40u);
  }
  is_short_ = false;
  EXPECT_EQ(call_part(Kind::kMiddle, kXid, Octets(100)), Verdict::kTaken);
  is_short_ = true;
  EXPECT_EQ(call_part(Kind::kInline, kXid, Octets(200)), Verdict::kShort);
  is_short_ = false;
  EXPECT_EQ(call_part(Kind::kInline, kXid, Octets(200)), Verdict::kWhole);
  EXPECT_EQ(take().size(), 340u);
}

TEST_F(ReassemblyTest, APeerThatPausesWhileOthersWaitIsRefused) {
  const Duration grace = limits_.while_others_wait.grace;
  ASSERT_EQ(first(), Verdict::kTaken);
  now_ += 2 * grace;
  EXPECT_FALSE(reassembly_->on_time(now_).has_value()) << "nobody waits";
  is_wanted_ = true;
  EXPECT_LE(reassembly_->next_timeout(), now_) << "its time has to begin";
  EXPECT_FALSE(reassembly_->on_time(now_).has_value());
  EXPECT_EQ(reassembly_->next_timeout(), now_ + grace);
  now_ += grace;
  EXPECT_EQ(reassembly_->on_time(now_), (Sequence{Direction::kCall, kXid}));
  expect_nothing_held();
  EXPECT_EQ(call_part(Kind::kInline, kXid), Verdict::kDiscard);
}

// It holds 1,000 octets, and each of them earns a thousandth of the time.
TEST_F(ReassemblyTest, APeerEarnsTimeByItsParts) {
  limits_.max_parts = 1000;
  for (const auto& [pause, is_late] : {std::pair(39, false), std::pair(80, true)}) {
    reassembly_ = make();
    is_wanted_ = true;
    ASSERT_EQ(first(kXid, 4), Verdict::kTaken);
    std::optional<Sequence> late;
    for (int i = 0; i < 200 && !late; ++i) {
      now_ += std::chrono::milliseconds(pause);
      late = reassembly_->on_time(now_);
      if (!late) {
        ASSERT_EQ(call_part(Kind::kMiddle, kXid, Octets(4)), Verdict::kTaken);
      }
    }
    EXPECT_EQ(late.has_value(), is_late) << pause << " ms";
  }
}

// The peer has sent its part: this end makes it wait, for as long as it may.
TEST_F(ReassemblyTest, APeerWhosePartWaitsDoesNotPause) {
  takes_all_ = false;
  is_wanted_ = true;
  ASSERT_EQ(first(), Verdict::kTaken);
  is_short_ = true;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(call_part(Kind::kMiddle, kXid, Octets(100)), Verdict::kShort);
    now_ += limits_.max_time;
    EXPECT_FALSE(reassembly_->on_time(now_).has_value());
    EXPECT_FALSE(reassembly_->next_timeout().has_value()) << "that is the owner's to judge";
  }
  is_short_ = false;
  EXPECT_EQ(call_part(Kind::kMiddle, kXid, Octets(100)), Verdict::kTaken);
  is_wanted_ = false;
  EXPECT_EQ(reassembly_->next_timeout(), now_ + limits_.max_time);
}

TEST_F(ReassemblyTest, AWholeMessageKeepsOnlyItsPartOfTheShare) {
  ASSERT_EQ(first(), Verdict::kTaken);
  EXPECT_EQ(held(), kMaxOctets);
  ASSERT_EQ(call_part(Kind::kInline, kXid, Octets(8)), Verdict::kWhole);
  EXPECT_EQ(held(), 80u);
}

// The share of a message is held as long as somebody has it.
TEST_F(ReassemblyTest, TheShareOfAMessageComesBackWithIt) {
  for (const bool is_taken : {false, true}) {
    ASSERT_EQ(first(), Verdict::kTaken);
    ASSERT_EQ(call_part(Kind::kInline, kXid, Octets(8)), Verdict::kWhole);
    Lease taken;
    {
      Reassembly::Joined message = reassembly_->take_message();
      EXPECT_EQ(held(), 80u);
      if (is_taken) taken = std::move(message.lease);
    }
    EXPECT_EQ(held(), is_taken ? 80u : 0u);
  }
}

// The receiver of this message takes no more.
TEST_F(ReassemblyTest, AMessageMayHaveALimitOfItsOwn) {
  takes_all_ = false;
  const auto part = [this](Kind kind, std::size_t len, std::size_t max) {
    return reassembly_->on_message({kind, Direction::kReply, kXid, octets_of(kXid, len), max}, now_);
  };
  ASSERT_EQ(part(Kind::kMiddle, 60, 100), Verdict::kTaken);
  EXPECT_EQ(held(), 100u) << "no more than it may have";
  EXPECT_EQ(part(Kind::kInline, 40, 100), Verdict::kWhole);
  EXPECT_EQ(take().size(), 100u);
  ASSERT_EQ(part(Kind::kMiddle, 60, 100), Verdict::kTaken);
  EXPECT_EQ(part(Kind::kMiddle, 44, 100), Verdict::kTooLong);
  EXPECT_EQ(part(Kind::kInline, 40, 100), Verdict::kDiscard);
  expect_nothing_held();
}

TEST_F(ReassemblyTest, ALimitRisesAndNeverFalls) {
  takes_all_ = false;
  const auto part = [this](Kind kind, std::size_t len, std::size_t max) {
    return reassembly_->on_message({kind, Direction::kReply, kXid, octets_of(kXid, len), max}, now_);
  };
  ASSERT_EQ(part(Kind::kMiddle, 60, 100), Verdict::kTaken);
  EXPECT_EQ(part(Kind::kMiddle, 44, 150), Verdict::kTaken);
  EXPECT_EQ(part(Kind::kMiddle, 40, 100), Verdict::kTaken) << "144 octets";
  EXPECT_EQ(part(Kind::kMiddle, 8, 100), Verdict::kTooLong);
  EXPECT_EQ(part(Kind::kInline, 4, 100), Verdict::kDiscard);
  expect_nothing_held();
  ASSERT_EQ(part(Kind::kMiddle, 60, 100), Verdict::kTaken);
  EXPECT_EQ(part(Kind::kInline, 44, 100), Verdict::kTooLong) << "the limit of another message";
}

TEST_F(ReassemblyTest, NoMessageBeginsWhileItIsBarred) {
  const auto part = [this](Kind kind, std::uint32_t xid, bool is_barred) {
    return reassembly_->on_message({kind, Direction::kCall, xid, octets_of(xid, 40), SIZE_MAX, is_barred}, now_);
  };
  EXPECT_EQ(part(Kind::kMiddle, kXid, true), Verdict::kInvalCont);
  EXPECT_EQ(part(Kind::kMiddle, kXid, true), Verdict::kDiscard);
  EXPECT_EQ(part(Kind::kInline, kXid, true), Verdict::kDiscard);
  EXPECT_EQ(part(Kind::kInline, kOtherXid, true), Verdict::kAlone) << "for others to refuse";
  expect_nothing_held();
}

// A peer that mixes the parts of many messages: one sequence is held, and none of the others is delivered.
TEST_F(ReassemblyTest, MixedXidsHoldOneSequence) {
  for (std::uint32_t xid = 1; xid < 1000; ++xid) {
    const Verdict verdict = first(xid);
    ASSERT_EQ(verdict, xid == 1 ? Verdict::kTaken : Verdict::kInvalCont);
    ASSERT_EQ(held(), kMaxOctets);
    ASSERT_EQ(reassembly_->memory(), 2 * 40u);
  }
  ASSERT_EQ(call_part(Kind::kInline, 1), Verdict::kWhole);
  EXPECT_EQ(take().size(), 40u);
  // The remaining parts of the forgotten messages do not begin with an XID.
  EXPECT_EQ(call_part(Kind::kMiddle, 500, Octets(40)), Verdict::kBadXdr);
  expect_nothing_held();
}

}  // namespace
}  // namespace weft::rpcrdma
