// Errors of RPC-over-RDMA that contradict the messages that they answer, and errors that do not.
#include "apps/dissect/error_rules.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "apps/dissect/testing/rpc2.h"

namespace weft::apps::dissect {
namespace {

namespace cel05 = rpcrdma::v2_cel05;
namespace wg07 = rpcrdma::v2_wg07;
namespace v1 = rpcrdma::v1;
using rpcrdma::v2::ErrorArm;
using testing::Cel05;
using testing::cel05_message;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Octets;
using testing::read_args;
using testing::read_chunk;
using testing::reply_chunk;
using testing::rpc_call;
using testing::Talk;
using testing::Wg07;
using testing::wg07_message;
using testing::Wire;
using testing::write_chunk;

constexpr std::uint32_t kNull = 0, kRead = 6;

void set_word(Octets& message, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) message[at + i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}

// A message with another word in its header.
Octets with(Octets message, std::size_t at, std::uint32_t value) {
  set_word(message, at, value);
  return message;
}
constexpr std::size_t kVersionAt = 4, kTypeAt = 12;

// ---- version 1

Octets err_vers(std::uint32_t xid, std::uint32_t version, std::uint32_t low, std::uint32_t high) {
  v1::Header header;
  header.xid = xid;
  header.vers = version;
  header.credit = Talk::kCredits;
  header.proc = v1::Proc::kError;
  header.err = v1::Err::kVers;
  header.vers_low = low;
  header.vers_high = high;
  return testing::message(header, {});
}
Octets err_chunk(std::uint32_t xid, std::uint32_t version = 1) {
  v1::Header header;
  header.xid = xid;
  header.vers = version;
  header.credit = Talk::kCredits;
  header.proc = v1::Proc::kError;
  return testing::message(header, {});
}
Octets call_of_version(std::uint32_t xid, std::uint32_t version) {
  v1::Header header;
  header.xid = xid;
  header.vers = version;
  header.credit = Talk::kCredits;
  return testing::message(header, rpc_call(xid, kNull, {}));
}

// A connection of version 1 that is settled: one Call has its Reply.
struct Version1 : ::testing::Test {
  Version1() {
    talk.wire.open();
    talk.call(1);
    talk.reply(1);
  }
  std::vector<std::string> answered_by(const Octets& error) {
    talk.call(2);
    talk.send(Wire::kServer, error);
    return talk.told.findings;
  }
  Talk talk;
};

// The verdict on the last error.
std::optional<Verdict> verdict(const Talk& talk) {
  return talk.told.facts.back().verdict;
}

// A NULL fits every Send, and has nothing that can be refused.
TEST_F(Version1, ANullWithoutChunksIsNotRefused) {
  EXPECT_THAT(answered_by(err_chunk(2)), ElementsAre("R1-5.5.2-01"));
  EXPECT_EQ(verdict(talk), Verdict::kRefuted);
}
// The results of RPCSEC_GSS in the place of a NULL have a token of any length (RFC 2203 section 5.2.3.1).
TEST_F(Version1, ANullThatSetsUpASecurityContextMayBeRefused) {
  Octets credential;
  rpcrdma::xdr::XdrWriter of_credential(credential);
  for (const std::uint32_t word : {1u, 1u, 0u, 1u, 0u}) of_credential.u32(word);  // version 1, INIT
  v1::Header header;
  header.xid = 2;
  header.credit = Talk::kCredits;
  Octets rpc;
  rpcrdma::xdr::XdrWriter out(rpc);
  rpcrdma::emit_call(out, {2, 100003, 3, kNull, {6, credential}, {}});
  out.opaque(testing::pattern(400));
  talk.send(Wire::kClient, testing::message(header, rpc));
  talk.send(Wire::kServer, err_chunk(2));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  EXPECT_EQ(verdict(talk), Verdict::kUnseen);
}
TEST_F(Version1, AReplyChunkOfANullMayBeRefused) {
  talk.call(2, kNull, reply_chunk(5, 4096));
  talk.send(Wire::kServer, err_chunk(2));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  EXPECT_EQ(verdict(talk), Verdict::kUnseen);
}
TEST_F(Version1, AnErrorOfACallWithChunksIsNotToBeSeen) {
  talk.call(2, kRead, write_chunk(5, 4096), read_args());
  talk.send(Wire::kServer, err_chunk(2));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  EXPECT_EQ(verdict(talk), Verdict::kUnseen);
}
TEST_F(Version1, AnErrorOfAFaultyCallIsConfirmed) {
  Octets call = call_of_version(2, 1);
  set_word(call, 16, 2);  // no boolean
  talk.send(Wire::kClient, call);
  talk.told.findings.clear();
  talk.send(Wire::kServer, err_chunk(2));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  EXPECT_EQ(verdict(talk), Verdict::kConfirmed);
}
TEST_F(Version1, AVersionErrorIsConfirmedByTheVersion) {
  talk.send(Wire::kClient, call_of_version(7, 3));
  talk.send(Wire::kServer, err_vers(7, 3, 1, 1));
  EXPECT_EQ(verdict(talk), Verdict::kConfirmed);
}
TEST_F(Version1, AnErrorHasTheXidOfARequest) {
  EXPECT_THAT(answered_by(err_chunk(3)), ElementsAre("R1-5.5-04"));
}
// An answer may come twice, and a Call may have its answer already.
TEST_F(Version1, AnErrorForACallWithAReplyIsNotJudged) {
  EXPECT_THAT(answered_by(err_chunk(1)), IsEmpty());
}
TEST_F(Version1, AnErrorHasTheVersionOfItsCall) {
  EXPECT_THAT(answered_by(err_chunk(2, 2)), ElementsAre("R1-5.5-05"));
}
TEST_F(Version1, TheVersionThatIsInUseIsNotRefused) {
  EXPECT_THAT(answered_by(err_vers(2, 1, 2, 3)), ElementsAre("R1-5.5.1-01"));
}
TEST_F(Version1, AVersionThatIsSupportedIsNotRefused) {
  EXPECT_THAT(answered_by(err_vers(2, 1, 1, 1)), ElementsAre("R1-5.5.1-01"));
}
TEST_F(Version1, AnErrorMayAnswerAMessageOfAnotherVersion) {
  talk.send(Wire::kClient, call_of_version(7, 3));
  talk.told.findings.clear();
  talk.send(Wire::kServer, err_vers(7, 3, 1, 1));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}
TEST_F(Version1, AnotherVersionIsRefusedAsSuch) {
  talk.send(Wire::kClient, call_of_version(7, 3));
  talk.told.findings.clear();
  talk.send(Wire::kServer, err_chunk(7, 3));
  EXPECT_THAT(talk.told.findings, ElementsAre("R1-5.5.1-01"));
}
// A peer may refuse each message of an XID.
TEST_F(Version1, AnErrorMayComeForEachMessageOfAnXid) {
  for (int i = 0; i < 2; ++i) talk.send(Wire::kClient, call_of_version(7, 3));
  talk.told.findings.clear();
  for (int i = 0; i < 2; ++i) talk.send(Wire::kServer, err_vers(7, 3, 1, 1));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}
// Either message may be the one that the error answers.
TEST_F(Version1, OneXidOfTwoMessagesIsNotJudged) {
  talk.send(Wire::kClient, call_of_version(2, 3));
  talk.told.findings.clear();
  EXPECT_THAT(answered_by(err_chunk(2, 3)), IsEmpty());
}
TEST_F(Version1, BehindAGapNothingIsJudged) {
  talk.lose(Wire::kClient, call_of_version(9, 1));
  talk.wire.on_segment(talk.wire.segment(Wire::kServer, {}));
  EXPECT_THAT(answered_by(err_vers(9, 1, 1, 1)), IsEmpty());
}

// ---- the first messages: the server may be of any version

TEST(FirstErrors, AServerOfVersion1RefusesVersion2) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Wg07::call(1));
  talk.send(Wire::kServer, err_vers(1, 2, 1, 1));
  talk.call(1);
  talk.reply(1);
  EXPECT_THAT(talk.told.findings, IsEmpty());
}
TEST(FirstErrors, AServerOfVersion2DoesNotRefuseIt) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Wg07::call(1));
  talk.send(Wire::kServer, err_vers(1, 2, 1, 2));
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-4.3.2-1"));
}
TEST(FirstErrors, TheFirstMessageMayBeUnreadable) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, call_of_version(7, 3));
  talk.send(Wire::kServer, err_vers(7, 3, 1, 1));
  talk.call(8);
  talk.reply(8);
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

// ---- both drafts

template <typename Draft>
struct DraftErrors : testing::DraftTest<Draft> {
  using Err = std::conditional_t<Draft::kProtocol == rpcrdma::Protocol::k2Wg07, wg07::Err, cel05::Err>;
  static Octets error(std::uint32_t xid, Err err, ErrorArm arm = {}) {
    if constexpr (std::is_same_v<Err, wg07::Err>) {
      return wg07_message(xid, wg07::Error{.err = err, .arm = arm}, {}, 40);
    } else {
      return cel05_message(xid, cel05::Error{.err = err, .arm = arm}, {}, 40);
    }
  }
  DraftErrors() {
    talk.wire.open();
    talk.send(Wire::kClient, Draft::call(1, {}, 0, kNull));
    talk.send(Wire::kServer, Draft::reply(1, {}, 40));
  }
  // The findings of an error that answers a READ with these lists.
  std::vector<std::string> of_read(rpcrdma::ChunkListsView lists, Err err, ErrorArm arm = {}) {
    return of_message(Draft::call(++xid, std::move(lists), 0, kRead, read_args()), err, arm);
  }
  std::vector<std::string> of_message(const Octets& message, Err err, ErrorArm arm = {}) {
    talk.send(Wire::kClient, message);
    talk.told.findings.clear();
    talk.send(Wire::kServer, error(xid, err, arm));
    return talk.told.findings;
  }
  Talk talk;
  std::uint32_t xid = 10;
};
TYPED_TEST_SUITE(DraftErrors, testing::Drafts);

rpcrdma::ChunkListsView two_write_chunks(std::uint32_t first, std::uint32_t second) {
  rpcrdma::ChunkListsView lists;
  lists.write_list = {{{.handle = 5, .length = first}}, {{.handle = 6, .length = second}}};
  return lists;
}

TYPED_TEST(DraftErrors, AnErrorHasTheXidOfARequest) {
  using Err = typename TestFixture::Err;
  this->talk.send(Wire::kServer, this->error(77, Err::kSystem));
  EXPECT_THAT(this->talk.told.findings, ElementsAre(this->of("R1-5.5-04", "W2-7-2")));
}
TYPED_TEST(DraftErrors, AnErrorHasTheVersionOfItsRequest) {
  using Err = typename TestFixture::Err;
  this->talk.send(Wire::kClient, TypeParam::call(2));
  this->talk.send(Wire::kServer, with(this->error(2, Err::kVers, {.vers_low = 1, .vers_high = 1}), kVersionAt, 3));
  EXPECT_THAT(this->talk.told.findings, ElementsAre(this->of("R1-5.5-05", "W2-7-2")));
}
TYPED_TEST(DraftErrors, TheVersionThatIsInUseIsNotRefused) {
  using Err = typename TestFixture::Err;
  EXPECT_THAT(this->of_read({}, Err::kVers, {.vers_low = 1, .vers_high = 1}),
              ElementsAre(this->of("R2-8.2-1", "W2-4.3.2-1")));
}
TYPED_TEST(DraftErrors, ACallThatCanBeReadIsNotMalformed) {
  using Err = typename TestFixture::Err;
  EXPECT_THAT(this->of_read(write_chunk(5, 4096), Err::kBadXdr), ElementsAre(this->of("R2-7.2.4-5", "W2-7.2.1-1")));
  // The octets of the chunk, and their place, are between the ends.
  constexpr std::size_t kProgramFromEnd = 28;
  Octets other_program = TypeParam::call(++this->xid, read_chunk(40));
  set_word(other_program, other_program.size() - kProgramFromEnd, 200000);
  EXPECT_THAT(this->of_message(other_program, Err::kBadXdr), IsEmpty());
  // A Position that is no multiple of four.
  EXPECT_THAT(this->of_read(read_chunk(42), Err::kBadXdr), IsEmpty());
}
TYPED_TEST(DraftErrors, WhatIsRefusedAsMalformedHasNoReply) {
  using Err = typename TestFixture::Err;
  (void)this->of_read(read_chunk(42), Err::kBadXdr);
  this->talk.send(Wire::kServer, TypeParam::reply(this->xid));
  EXPECT_THAT(this->talk.told.findings, ElementsAre(this->of("R2-7.2.4-6", "W2-7.2.1-1")));
  // The Call comes again.
  this->talk.told.findings.clear();
  this->talk.send(Wire::kClient, TypeParam::call(this->xid));
  this->talk.send(Wire::kServer, TypeParam::reply(this->xid));
  EXPECT_THAT(this->talk.told.findings, IsEmpty());
}
TYPED_TEST(DraftErrors, AKnownTypeIsNotRefused) {
  using Err = typename TestFixture::Err;
  const Err err = static_cast<Err>(this->is_wg07() ? 4 : 3);
  EXPECT_THAT(this->of_read({}, err), ElementsAre(this->of("R2-7.2.4-4", "W2-6.1-4")));
}
TYPED_TEST(DraftErrors, AnUnknownTypeIsRefusedAsSuch) {
  using Err = typename TestFixture::Err;
  const Err err = static_cast<Err>(this->is_wg07() ? 4 : 3);
  EXPECT_THAT(this->of_message(with(TypeParam::call(++this->xid), kTypeAt, 77), err), IsEmpty());
  EXPECT_THAT(this->of_message(with(TypeParam::call(++this->xid), kTypeAt, 77), Err::kSystem), IsEmpty());
  EXPECT_THAT(this->of_message(with(TypeParam::call(++this->xid), kTypeAt, 77), Err::kBadXdr),
              ElementsAre(this->of("R2-7.2.4-4", "W2-6.1-4")));
}

TYPED_TEST(DraftErrors, ALimitOfReadChunksRefusesCallsThatPassIt) {
  using Err = typename TestFixture::Err;
  const auto read = this->of("R2-7.2.4-9", "W2-7.3.1-1");
  EXPECT_THAT(this->of_read(read_chunk(40), Err::kReadChunks, {.max_chunks = 0}), IsEmpty());
  EXPECT_THAT(this->of_read(read_chunk(40), Err::kReadChunks, {.max_chunks = 1}), ElementsAre(read));
  EXPECT_THAT(this->of_read({}, Err::kReadChunks), ElementsAre(read));
}
TYPED_TEST(DraftErrors, ALimitOfWriteChunksOrSegmentsRefusesCallsThatPassIt) {
  using Err = typename TestFixture::Err;
  const auto write = this->of("R2-7.2.4-13", "W2-7.3.2-1"), segments = this->of("R2-7.2.4-16", "W2-7.3.3-1");
  EXPECT_THAT(this->of_read(two_write_chunks(9, 9), Err::kWriteChunks, {.max_chunks = 1}), IsEmpty());
  EXPECT_THAT(this->of_read(two_write_chunks(9, 9), Err::kWriteChunks, {.max_chunks = 2}), ElementsAre(write));
  EXPECT_THAT(this->of_read({}, Err::kWriteChunks), ElementsAre(write));
  EXPECT_THAT(this->of_read(two_write_chunks(9, 9), Err::kSegments, {.max_segments = 1}), IsEmpty());
  EXPECT_THAT(this->of_read(two_write_chunks(9, 9), Err::kSegments, {.max_segments = 2}), ElementsAre(segments));
}

TYPED_TEST(DraftErrors, AWriteChunkThatIsTooShortIsThere) {
  using Err = typename TestFixture::Err;
  const auto find = [this](const char* cel05) { return ElementsAre(this->of(cel05, "W2-7.3.4-1")); };
  const auto refuse = [this](rpcrdma::ChunkListsView lists, std::uint32_t chunk, std::uint32_t needed) {
    return this->of_read(std::move(lists), Err::kWriteResource, {.chunk_index = chunk, .length_needed = needed});
  };
  EXPECT_THAT(refuse(write_chunk(5, 400), 1, 401), IsEmpty());
  EXPECT_THAT(refuse(write_chunk(5, 400), 0, 0), IsEmpty());
  EXPECT_THAT(refuse({}, 0, 0), find("R2-7.2.4-17"));
  EXPECT_THAT(refuse(write_chunk(5, 400), 2, 401), find("R2-7.2.4-18"));
  EXPECT_THAT(refuse(write_chunk(5, 400), 1, 400), find("R2-7.2.4-19"));
  EXPECT_THAT(refuse(two_write_chunks(400, 300), 0, 301), IsEmpty());
  EXPECT_THAT(refuse(two_write_chunks(400, 300), 0, 300), find("R2-7.2.4-19"));
}

TYPED_TEST(DraftErrors, AReplyChunkThatIsTooShortIsShorter) {
  using Err = typename TestFixture::Err;
  const auto refuse = [this](rpcrdma::ChunkListsView lists, std::uint32_t needed) {
    return this->of_read(std::move(lists), Err::kReplyResource, {.length_needed = needed});
  };
  EXPECT_THAT(refuse(reply_chunk(5, 4000), 4001), IsEmpty());
  EXPECT_THAT(refuse(reply_chunk(5, 4000), 0), IsEmpty());
  EXPECT_THAT(refuse({}, 4000), IsEmpty());
  EXPECT_THAT(refuse(reply_chunk(5, 4000), 4000), ElementsAre(this->of("R2-7.2.4-22", "W2-7.3.5-1")));
  // A Reply may have no room to return so many segments.
  rpcrdma::ChunkListsView many;
  many.reply_chunk.emplace(33, rpcrdma::Segment{.handle = 5, .length = 4000});
  EXPECT_THAT(refuse(many, 4000), IsEmpty());
}

// Each code with a message that has the fault, one that has not, and one whose octets do not tell.
TYPED_TEST(DraftErrors, EachErrorIsConfirmedRefutedOrNotToBeSeen) {
  using Err = typename TestFixture::Err;
  const auto weigh = [this](const Octets& message, Err err, ErrorArm arm = {}) {
    (void)this->of_message(message, err, arm);
    return verdict(this->talk);
  };
  const auto read = [this](rpcrdma::ChunkListsView lists) {
    return TypeParam::call(++this->xid, std::move(lists), 0, kRead, read_args());
  };
  const Err type = static_cast<Err>(this->is_wg07() ? 4 : 3);
  EXPECT_EQ(weigh(with(TypeParam::call(++this->xid), kVersionAt, 3), Err::kVers, {.vers_low = 1, .vers_high = 2}),
            Verdict::kRefuted);  // the error has version 2
  EXPECT_EQ(weigh(read({}), Err::kVers, {.vers_low = 1, .vers_high = 1}), Verdict::kRefuted);
  EXPECT_EQ(weigh(with(TypeParam::call(++this->xid), kTypeAt, 77), type), Verdict::kConfirmed);
  EXPECT_EQ(weigh(read({}), type), Verdict::kRefuted);
  EXPECT_EQ(weigh(read(read_chunk(42)), Err::kBadXdr), Verdict::kConfirmed);
  EXPECT_EQ(weigh(read(write_chunk(5, 9)), Err::kBadXdr), Verdict::kRefuted);
  EXPECT_EQ(weigh(read(read_chunk(40)), Err::kReadChunks, {.max_chunks = 0}), Verdict::kConfirmed);
  EXPECT_EQ(weigh(read(read_chunk(40)), Err::kReadChunks, {.max_chunks = 1}), Verdict::kRefuted);
  EXPECT_EQ(weigh(read(two_write_chunks(9, 9)), Err::kWriteChunks, {.max_chunks = 1}), Verdict::kConfirmed);
  EXPECT_EQ(weigh(read(two_write_chunks(9, 9)), Err::kWriteChunks, {.max_chunks = 2}), Verdict::kRefuted);
  EXPECT_EQ(weigh(read(two_write_chunks(9, 9)), Err::kSegments, {.max_segments = 1}), Verdict::kConfirmed);
  EXPECT_EQ(weigh(read(two_write_chunks(9, 9)), Err::kSegments, {.max_segments = 2}), Verdict::kRefuted);
  EXPECT_EQ(weigh(read(write_chunk(5, 400)), Err::kWriteResource, {.chunk_index = 1, .length_needed = 401}),
            Verdict::kConfirmed);
  EXPECT_EQ(weigh(read(write_chunk(5, 400)), Err::kWriteResource, {.chunk_index = 1, .length_needed = 400}),
            Verdict::kRefuted);
  EXPECT_EQ(weigh(read(write_chunk(5, 400)), Err::kWriteResource), Verdict::kUnseen);
  EXPECT_EQ(weigh(read(reply_chunk(5, 400)), Err::kReplyResource, {.length_needed = 401}), Verdict::kConfirmed);
  EXPECT_EQ(weigh(read(reply_chunk(5, 400)), Err::kReplyResource, {.length_needed = 400}), Verdict::kRefuted);
  EXPECT_EQ(weigh(read({}), Err::kReplyResource), Verdict::kUnseen);
  EXPECT_EQ(weigh(read({}), Err::kSystem), Verdict::kUnseen);
}

// An error that arrives before the version is settled may be of the other draft.
TYPED_TEST(DraftErrors, TheCodeOfAFirstAnswerIsNotJudged) {
  using Err = typename TestFixture::Err;
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, TypeParam::call(1));
  talk.send(Wire::kServer, this->error(1, Err::kBadXdr));
  EXPECT_THAT(talk.told.findings, IsEmpty());
}

// ---- NFSv4

template <typename Draft>
Octets nfs4_call(std::uint32_t xid, rpcrdma::ChunkListsView lists) {
  Octets message = Draft::call(xid, std::move(lists), kNull);
  constexpr std::size_t kFromEnd = 24;  // version, procedure, and two empty opaque_auth
  set_word(message, message.size() - kFromEnd, 4);
  return message;
}

TYPED_TEST(DraftErrors, AnNfs4ServerTakesOneWriteChunk) {
  using Err = typename TestFixture::Err;
  this->xid = 20;
  const auto of_nfs4 = [this](rpcrdma::ChunkListsView lists) {
    const Octets call = nfs4_call<TypeParam>(++this->xid, std::move(lists));
    return this->of_message(call, Err::kWriteChunks, {.max_chunks = 0});
  };
  if (this->is_wg07()) {
    EXPECT_THAT(of_nfs4(write_chunk(5, 400)), ElementsAre("U2-5.4.2-2"));
    EXPECT_THAT(of_nfs4(two_write_chunks(400, 400)), IsEmpty());
  } else {
    EXPECT_THAT(of_nfs4(write_chunk(5, 400)), ElementsAre("R2-7.2.4-14"));
  }
}

// ---- cel05

using Cel05Errors = DraftErrors<Cel05>;

TEST_F(Cel05Errors, OptionsAndPropertiesHaveAnErrorOfTheirOwn) {
  const auto option = [this] { return cel05_message(++xid, cel05::Optional{}); };
  const auto properties = [this] { return cel05_message(++xid, cel05::Connprop{}); };
  EXPECT_THAT(of_message(option(), Err::kInvalOption), IsEmpty());
  EXPECT_THAT(of_message(option(), Err::kInvalProc), ElementsAre("R2-5.1-3"));
  EXPECT_THAT(of_message(properties(), Err::kInvalOption), IsEmpty());
  EXPECT_THAT(of_message(properties(), Err::kInvalProc), IsEmpty());
  EXPECT_THAT(of_message(properties(), Err::kReadChunks), ElementsAre("R2-6.3-2"));
  EXPECT_THAT(of_read({}, Err::kInvalOption), ElementsAre("R2-7.2.4-24"));
}

// ---- 2-wg07

using Wg07Errors = DraftErrors<Wg07>;

TEST_F(Wg07Errors, APropertyIsRefusedInAMessageThatHasOne) {
  EXPECT_THAT(of_read({}, Err::kBadPropval), ElementsAre("W2-7.2.2-1"));
  EXPECT_THAT(of_message(wg07_message(++xid, wg07::ConnpropFinal{}), Err::kBadPropval), IsEmpty());
}
TEST_F(Wg07Errors, PartsAreRefusedInACallThatHasThem) {
  EXPECT_THAT(of_read({}, Err::kInvalCont), ElementsAre("W2-7.1.4-1"));
  const Octets rpc = rpc_call(++xid, kNull, {});
  const auto front = ConstBytes(rpc).first(20), back = ConstBytes(rpc).subspan(20);
  talk.send(Wire::kClient, wg07_message(xid, wg07::CallMiddle{}, front));
  EXPECT_THAT(of_message(wg07_message(xid, wg07::CallInline{}, back), Err::kInvalCont), IsEmpty());
  talk.send(Wire::kServer, Wg07::reply(xid));
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-7.1.4-1"));
}
TEST_F(Wg07Errors, AChangeOfTheVersionIsRefusedAsSuch) {
  EXPECT_THAT(of_read({}, Err::kVersMismatch), ElementsAre("W2-7.1.2-1"));
  const auto of_version1 = [this](Err err, ErrorArm arm) {
    talk.call(++xid);
    talk.told.findings.clear();
    talk.send(Wire::kServer, with(error(xid, err, arm), kVersionAt, 1));
    return talk.told.findings;
  };
  EXPECT_THAT(of_version1(Err::kVersMismatch, {}), IsEmpty());
  EXPECT_THAT(of_version1(Err::kVers, {.vers_low = 2, .vers_high = 2}), IsEmpty());
  EXPECT_THAT(of_version1(Err::kVers, {.vers_low = 1, .vers_high = 2}), ElementsAre("W2-7.1.2-1"));
}
TEST_F(Wg07Errors, AReverseCallWithChunksIsRefusedForThem) {
  constexpr std::uint32_t kReverse = 5;
  talk.send(Wire::kClient, wg07_message(9, wg07::ConnpropFinal{.props = {{.which = kReverse, .data = {0, 0, 0, 3}}}}));
  talk.send(Wire::kServer, Wg07::call(50, write_chunk(5, 400), 0, kRead, read_args()));
  EXPECT_THAT(talk.told.findings, IsEmpty());
  talk.send(Wire::kClient, error(50, Err::kBadXdr));
  EXPECT_THAT(talk.told.findings, ElementsAre("W2-4.6.4-2"));
}

// The client may send message 3 without the server's second message, and message 4 only behind it.
TEST(Wg07Types, ATypeThatIsRefusedDoesNotComeAgain) {
  Talk talk;
  talk.wire.open();
  talk.send(Wire::kClient, Wg07::call(1));
  talk.send(Wire::kServer, Wg07::reply(1, {}, 3));
  const auto part = [&talk](std::uint32_t xid) {
    talk.told.findings.clear();
    talk.send(Wire::kClient, wg07_message(xid, wg07::CallMiddle{}, rpc_call(xid, kNull, {})));
    return talk.told.findings;
  };
  EXPECT_THAT(part(2), IsEmpty());
  talk.send(Wire::kServer, wg07_message(2, wg07::Error{.err = wg07::Err::kInvalHtype}, {}, 9));
  EXPECT_THAT(part(2), Not(Contains("W2-7.1.3-2")));
  EXPECT_THAT(part(2), Contains("W2-7.1.3-2"));
}

}  // namespace
}  // namespace weft::apps::dissect
