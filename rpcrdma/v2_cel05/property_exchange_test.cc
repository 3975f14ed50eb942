#include "rpcrdma/v2_cel05/property_exchange.h"

#include <gtest/gtest.h>

#include <utility>
#include <variant>
#include <vector>

#include "rpcrdma/terms.h"
#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_cel05/properties.h"

namespace weft::rpcrdma::v2_cel05 {
namespace {

using testing::emit;
using testing::load_v2_vector;
using testing::Octets;
using testing::parse;

const Properties kOwn{.receive_size = 16384, .reverse = ReverseSupport::kGeneral};
constexpr std::uint32_t kReceiveSize = 1, kReverse = 2;

v2::Propval word(std::uint32_t which, std::uint32_t value) {
  v2::Propval property{.which = which, .data = Octets(4)};
  testing::put_word(property.data, 0, value);
  return property;
}

template <typename Body>
Body answer_of(Exchange& exchange, const Octets& octets) {
  EXPECT_TRUE(exchange.is_mine(octets));
  const auto taken = exchange.take(octets);
  Header header, asked;
  EXPECT_EQ(parse(taken.answer, header), HeaderError::kNone);
  (void)parse(octets, asked);
  EXPECT_EQ(header.xid, asked.xid);
  EXPECT_TRUE(std::holds_alternative<Body>(header.body));
  return std::holds_alternative<Body>(header.body) ? std::get<Body>(header.body) : Body{};
}

// A client's properties as `set`, those at `nochg` for good.
void tell(Exchange& server, v2::Propset set, std::uint32_t nochg) {
  server.take(emit(Header{.body = Connprop{std::move(set), {{nochg}}}}));
}

TEST(Cel05Exchange, TheServerAnswersTheFirstSetWithItsOwn) {
  RecordProperty("proves", "R2-6.3.1-2 R2-6.3.1-9");
  Exchange client(kOwn), server(Properties{.receive_size = 65536, .reverse = ReverseSupport::kInline});
  const Octets opening = client.open();
  EXPECT_LE(opening.size(), 1024u);
  EXPECT_TRUE(client.open().empty());
  Header header;
  ASSERT_EQ(parse(opening, header), HeaderError::kNone);
  const auto& told = std::get<Connprop>(header.body);
  EXPECT_EQ(told.start, (v2::Propset{word(kReceiveSize, 16384), word(kReverse, 2)}));
  EXPECT_TRUE(told.nochg.contains(0) && told.nochg.contains(1));

  const auto taken = server.take(opening);
  EXPECT_TRUE(taken.changed);
  EXPECT_EQ(server.peer()->receive_size, 16384u);
  EXPECT_EQ(server.peer()->reverse, ReverseSupport::kGeneral);
  const auto end = client.take(taken.answer);
  EXPECT_TRUE(end.answer.empty());
  EXPECT_EQ(client.peer()->receive_size, 65536u);
  EXPECT_TRUE(server.take(opening).answer.empty()) << "the second one";
}

TEST(Cel05Exchange, NoChangeIsMadeOnRequest) {
  RecordProperty("proves", "R2-6.2-3 R2-6.3.2-3 R2-6.3.3-2 R2-6.3.3-4 R2-6.3.3-6 R2-6.3.3-8 R2-6.3.3-9");
  Exchange server(kOwn);
  v2::Propset want{word(kReceiveSize, 65536), word(99, 1)};
  want.resize(40, word(99, 2));
  const auto answer = answer_of<Resprop>(server, emit(Header{.xid = 0xcafe0004, .body = Reqprop{want}}));
  for (std::size_t position = 0; position < 64; ++position) {
    EXPECT_FALSE(answer.done.contains(position));
    EXPECT_EQ(answer.rejected.contains(position), position < want.size()) << position;
  }
  EXPECT_TRUE(answer.other.empty());
  EXPECT_EQ(server.own(), kOwn);
}

TEST(Cel05Exchange, ThePeerChangesWhatItCalledChangeable) {
  RecordProperty("proves", "R2-6.3.4-1 R2-6.1.1-11 R2-6.3.1-6");
  Exchange server(kOwn);
  tell(server, {word(kReceiveSize, 8192), word(kReverse, 1)}, 0b10);
  auto taken = server.take(emit(Header{.body = Updprop{{word(kReverse, 2)}}}));
  EXPECT_FALSE(taken.changed);
  EXPECT_STRNE(taken.fault, "");
  taken = server.take(emit(Header{.body = Updprop{{word(kReverse, 2), word(kReceiveSize, 65536)}}}));
  EXPECT_TRUE(taken.changed);
  EXPECT_EQ(server.peer()->receive_size, 65536u);
  EXPECT_EQ(server.peer()->reverse, ReverseSupport::kInline);

  Exchange other(kOwn);
  tell(other, {word(kReverse, 1)}, 0);
  taken = other.take(emit(Header{.body = Updprop{{word(kReceiveSize, 65536)}}}));
  EXPECT_FALSE(taken.changed) << "the peer left it out before";
  EXPECT_TRUE(taken.answer.empty());
}

TEST(Cel05Exchange, AnUpdateBeforeTheFirstSetIsPassedOver) {
  Exchange server(kOwn);
  const auto taken = server.take(load_v2_vector("S51").octets);
  EXPECT_TRUE(taken.answer.empty());
  EXPECT_FALSE(server.peer());
}

// This end asks for no change, so each property in rdma_other is one that was not requested.
TEST(Cel05Exchange, AnAnswerWithoutARequestIsDropped) {
  RecordProperty("proves", "R2-6.3.3-7");
  Exchange server(kOwn);
  tell(server, {word(kReceiveSize, 8192), word(kReverse, 1)}, 0);
  const Octets both = emit(Header{.body = Resprop{.done = {{1}}, .other = {word(kReverse, 2), word(kReceiveSize, 1)}}});
  for (const Octets& octets : {load_v2_vector("S47").octets, load_v2_vector("S48").octets, both}) {
    const auto taken = server.take(octets);
    EXPECT_TRUE(taken.answer.empty());
    EXPECT_FALSE(taken.changed);
  }
  EXPECT_EQ(server.peer()->receive_size, 8192u);
  EXPECT_EQ(server.peer()->reverse, ReverseSupport::kInline);
}

TEST(Cel05Exchange, BitsBehindTheLastPropertyMeanNothing) {
  RecordProperty("proves", "R2-6.1.1-12");
  Exchange server(kOwn);
  const auto taken =
      server.take(emit(Header{.body = Connprop{{word(kReceiveSize, 8192)}, {{0xffffffff, 0xffffffff}}}}));
  EXPECT_TRUE(taken.changed);
  EXPECT_STREQ(taken.fault, "");
  EXPECT_EQ(server.peer()->receive_size, 8192u);
}

// The Link writes one line for a fault.
TEST(Cel05Exchange, TheLaterOfTwoValuesStandsAndIsNoted) {
  RecordProperty("proves", "R2-6.1.1-13");
  Exchange server(kOwn);
  auto taken = server.take(emit(Header{.body = Connprop{{word(kReceiveSize, 8192), word(kReceiveSize, 16384)}, {}}}));
  EXPECT_TRUE(taken.changed);
  EXPECT_STREQ(taken.fault, "it names a property twice");
  EXPECT_EQ(server.peer()->receive_size, 16384u);
  taken = server.take(emit(Header{.body = Updprop{{word(kReceiveSize, 1), word(kReceiveSize, 8192)}}}));
  EXPECT_STREQ(taken.fault, "it names a property twice");
  EXPECT_EQ(server.peer()->receive_size, 8192u);
}

TEST(Cel05Exchange, TheBasicPropertiesAreKnownAndNoOthers) {
  RecordProperty("proves", "R2-6.1.2-1 R2-6.4.2-2");
  ASSERT_EQ(kProperties.ids.size(), 2u);
  EXPECT_EQ(kProperties.ids[0].which, kReceiveSize);
  EXPECT_EQ(kProperties.ids[1].which, kReverse);
  Header header;
  ASSERT_EQ(parse(Exchange(kOwn).open(), header), HeaderError::kNone);
  for (const v2::Propval& told : std::get<Connprop>(header.body).start) EXPECT_LT(told.which, 0xffffff00u);
}

// The types of all answers to these messages.
std::vector<Proc> answers_to(Exchange& exchange, const std::vector<Octets>& messages) {
  std::vector<Proc> types;
  for (const Octets& octets : messages) {
    EXPECT_TRUE(exchange.is_mine(octets));
    const auto answer = exchange.take(octets).answer;
    if (answer.empty()) continue;
    Header header;
    EXPECT_EQ(parse(answer, header), HeaderError::kNone);
    types.push_back(std::visit([](const auto& body) { return body.kProc; }, header.body));
  }
  return types;
}

// It tells its own properties once, each of them for good, and rejects what the peer asks for. Nothing else is an
// answer, and no answer asks or changes.
TEST(Cel05Exchange, NoChangeIsMadeUnaskedAndNoneIsAskedFor) {
  RecordProperty("proves", "R2-6.1.3-1 R2-6.2-5 R2-6.3-4 R2-6.3.1-4 R2-6.3.1-7");
  const std::vector<Octets> messages = {
      emit(Header{.body = Connprop{{word(kReceiveSize, 8192)}, {{1}}}}),
      emit(Header{.body = Connprop{{word(kReverse, 2)}, {}}}),
      emit(Header{.body = Updprop{{word(kReverse, 0)}}}),
      emit(Header{.xid = 9, .body = Reqprop{{word(kReceiveSize, 1024), word(kReverse, 0)}}}),
      emit(Header{.xid = 9, .body = Resprop{.done = {{1}}}}),
  };
  Exchange server(kOwn);
  EXPECT_EQ(answers_to(server, messages), (std::vector{Proc::kConnprop, Proc::kResprop}));
  Exchange client(kOwn);
  EXPECT_FALSE(client.open().empty());
  EXPECT_EQ(answers_to(client, messages), (std::vector{Proc::kResprop}));
  EXPECT_EQ(server.own(), kOwn);
  EXPECT_EQ(client.own(), kOwn);
}

TEST(Cel05Exchange, MalformedSetsAreRefusedAndChangeNothing) {
  RecordProperty("proves", "R2-6.1.1-4 R2-6.1.1-5 R2-6.1.1-6");
  for (const char* id : {"S77", "S78", "S79"}) {
    Exchange server(kOwn);
    EXPECT_EQ(answer_of<Error>(server, load_v2_vector(id).octets).err, Err::kBadXdr) << id;
    EXPECT_STREQ(server.take(load_v2_vector(id).octets).fault, header_error_str(HeaderError::kPropertyValue)) << id;
    EXPECT_FALSE(server.peer()) << id;
  }
}

TEST(Cel05Exchange, UnknownPropertiesArePassedOver) {
  RecordProperty("proves", "R2-6.1.1-7 R2-6.3.1-8 R2-6.4.1-1 R2-6.4.2-1");
  Exchange server(kOwn);
  const auto taken = server.take(load_v2_vector("S45").octets);
  EXPECT_TRUE(taken.changed);
  EXPECT_EQ(server.peer()->receive_size, 16384u);
  Header answer;
  EXPECT_EQ(parse(taken.answer, answer), HeaderError::kNone);
  EXPECT_TRUE(std::holds_alternative<Connprop>(answer.body)) << "no error";
}

// An end whose peer has told Receives of 8192 octets and no reverse direction, both of which may change.
struct Cel05Asking : ::testing::Test {
  Cel05Asking() { tell(end, {word(kReceiveSize, 8192), word(kReverse, 0)}, 0); }

  // It asks for this size and for reverse Calls of every kind. Returns the XID.
  std::uint32_t ask(std::uint32_t size) {
    const auto taken = end.request({.receive_size = size, .reverse = ReverseSupport::kGeneral});
    Header header;
    EXPECT_EQ(parse(taken.answer, header), HeaderError::kNone);
    EXPECT_EQ(std::get<Reqprop>(header.body).want, (v2::Propset{word(kReceiveSize, size), word(kReverse, 2)}));
    EXPECT_EQ(taken.changed, size < 8192);
    return header.xid;
  }
  PropertyExchange::Taken hear(std::uint32_t xid, Body body) {
    const Octets octets = emit(Header{.xid = xid, .body = std::move(body)});
    EXPECT_TRUE(end.is_mine(octets));
    return end.take(octets);
  }
  PropertyExchange::Taken vector(const char* id, std::uint32_t xid) {
    Octets octets = load_v2_vector(id).octets;
    testing::put_word(octets, 0, xid);
    EXPECT_TRUE(end.is_mine(octets)) << id;
    return end.take(octets);
  }
  std::size_t longest_send() const { return terms_of({.send_size = 65536}, *end.peer(), 1024).thresholds.send; }

  Exchange end{kOwn};
};

TEST_F(Cel05Asking, WhatWasDoneIsInForceAndWhatWasRejectedIsNot) {
  RecordProperty("proves", "R2-6.3-3 R2-6.3.2-1 R2-6.3.3-1 R2-6.3.3-3");
  for (const char* id : {"S47", "S50"}) {
    end.take(emit(Header{.body = Updprop{{word(kReceiveSize, 8192)}}}));
    const auto taken = vector(id, ask(16384));
    EXPECT_TRUE(taken.changed) << id;
    EXPECT_STREQ(taken.fault, "");
    EXPECT_TRUE(taken.answer.empty());
    EXPECT_EQ(longest_send(), 16384u);
    EXPECT_EQ(end.peer()->reverse, ReverseSupport::kNone);
  }
}

TEST_F(Cel05Asking, AnotherValueThanTheOneAskedForIsInForce) {
  RecordProperty("proves", "R2-6.3.3-5");
  EXPECT_TRUE(vector("S48", ask(16384)).changed);
  EXPECT_EQ(longest_send(), 12288u);
  EXPECT_EQ(end.peer()->reverse, ReverseSupport::kNone);
}

TEST_F(Cel05Asking, ValuesThatWereNotAskedForAreIgnored) {
  RecordProperty("proves", "R2-6.3.3-7");
  const auto taken = end.request({.receive_size = 16384, .reverse = ReverseSupport::kNone});
  Header header;
  ASSERT_EQ(parse(taken.answer, header), HeaderError::kNone);
  hear(header.xid, Resprop{.done = {{0b1}}, .other = {word(kReverse, 2)}});
  EXPECT_EQ(longest_send(), 16384u);
  EXPECT_EQ(end.peer()->reverse, ReverseSupport::kNone);
}

TEST_F(Cel05Asking, APropertyInNoSetOrInTwoCountsAsRejected) {
  RecordProperty("proves", "R2-6.3.3-10");
  const v2::Propval larger = word(kReceiveSize, 12288);
  const std::vector<Resprop> answers = {
      {},
      {.done = {{0b11}}, .rejected = {{0b11}}},
      {.done = {{0b1}}, .other = {larger}},
      {.rejected = {{0b1}}, .other = {larger}},
      {.other = {larger, word(kReceiveSize, 16384)}},
  };
  for (const Resprop& answer : answers) {
    EXPECT_FALSE(hear(ask(16384), answer).changed);
    EXPECT_EQ(longest_send(), 8192u);
    EXPECT_EQ(end.peer()->reverse, ReverseSupport::kNone);
  }
}

TEST_F(Cel05Asking, ARequestForLessHoldsAtOnceUntilItIsRejected) {
  RecordProperty("proves", "R2-6.2.1-7");
  std::uint32_t xid = ask(4096);
  EXPECT_EQ(longest_send(), 4096u);
  EXPECT_TRUE(hear(xid, Resprop{.rejected = {{0b11}}}).changed);
  EXPECT_EQ(longest_send(), 8192u);
  xid = ask(4096);
  EXPECT_FALSE(hear(xid, Resprop{.done = {{0b1}}, .rejected = {{0b10}}}).changed);
  EXPECT_EQ(longest_send(), 4096u);
}

TEST_F(Cel05Asking, AnUpdateToMoreEndsTheWaitForLess) {
  RecordProperty("proves", "R2-6.2.1-7");
  const std::uint32_t xid = ask(4096);
  EXPECT_FALSE(hear(0, Updprop{{word(kReverse, 1)}}).answer.size());
  EXPECT_EQ(longest_send(), 4096u) << "it says nothing of sizes";
  EXPECT_TRUE(hear(0, Updprop{{word(kReceiveSize, 16384)}}).changed);
  EXPECT_EQ(longest_send(), 16384u);
  hear(xid, Resprop{.rejected = {{0b11}}});
  EXPECT_EQ(longest_send(), 16384u);
}

TEST_F(Cel05Asking, APeerWithoutRequestsIsAskedOnce) {
  RecordProperty("proves", "R2-6.2-4 R2-6.3-2");
  for (const char* id : {"S22", "S30"}) {
    SCOPED_TRACE(id);
    Exchange fresh(kOwn);
    tell(fresh, {word(kReceiveSize, 8192)}, 0);
    const auto asked = fresh.request({.receive_size = 4096});
    ASSERT_FALSE(asked.answer.empty());
    Octets octets = load_v2_vector(id).octets;
    testing::put_word(octets, 0, 77);
    EXPECT_FALSE(fresh.is_mine(octets)) << "of a Call";
    Header header;
    ASSERT_EQ(parse(asked.answer, header), HeaderError::kNone);
    testing::put_word(octets, 0, header.xid);
    ASSERT_TRUE(fresh.is_mine(octets));
    EXPECT_TRUE(fresh.take(octets).changed);
    EXPECT_EQ(fresh.peer()->receive_size, 8192u);
    EXPECT_FALSE(fresh.is_mine(octets));
    EXPECT_TRUE(fresh.request({.receive_size = 4096}).answer.empty());
  }
}

// RDMA2_ERR_BAD_XDR and the others can be the answer to a Call with the same XID.
TEST_F(Cel05Asking, OtherErrorsAreLeftToTheEngines) {
  const std::uint32_t xid = ask(16384);
  EXPECT_FALSE(end.is_mine(emit(Header{.xid = xid, .body = Error{.err = Err::kBadXdr}})));
  EXPECT_FALSE(end.is_mine(emit(Header{.xid = xid, .body = Error{.err = Err::kSystem}})));
}

TEST_F(Cel05Asking, OneRequestWaitsAtATime) {
  RecordProperty("proves", "R2-6.3.3-2");
  const std::uint32_t xid = ask(16384);
  EXPECT_TRUE(end.request({.receive_size = 65536}).answer.empty());
  EXPECT_STRNE(hear(xid + 1, Resprop{.done = {{0b11}}}).fault, "");
  EXPECT_EQ(longest_send(), 8192u) << "another XID";
  EXPECT_STREQ(hear(xid, Resprop{.done = {{0b11}}}).fault, "");
  EXPECT_STRNE(hear(xid, Resprop{.done = {{0b11}}}).fault, "") << "a second answer";
  const auto next = end.request({.receive_size = 65536, .reverse = ReverseSupport::kGeneral});
  Header header;
  ASSERT_EQ(parse(next.answer, header), HeaderError::kNone);
  EXPECT_NE(header.xid, xid);
  EXPECT_TRUE(Exchange(kOwn).request({.receive_size = 65536}).answer.empty()) << "the peer has told nothing yet";
}

TEST_F(Cel05Asking, OnlyWhatWasToldAndMayChangeIsAskedFor) {
  RecordProperty("proves", "R2-6.3.1-4 R2-6.3.1-7");
  const Properties wanted{.receive_size = 4096, .reverse = ReverseSupport::kGeneral};
  const std::pair<v2::Propset, std::uint32_t> sets[] = {{{word(kReceiveSize, 8192), word(kReverse, 0)}, 0b01},
                                                        {{word(kReverse, 0)}, 0}};
  for (const auto& [start, nochg] : sets) {
    Exchange fresh(kOwn);
    tell(fresh, start, nochg);
    const std::uint32_t size = fresh.peer()->receive_size;
    const auto taken = fresh.request(wanted);
    Header header;
    ASSERT_EQ(parse(taken.answer, header), HeaderError::kNone);
    EXPECT_EQ(std::get<Reqprop>(header.body).want, v2::Propset{word(kReverse, 2)});
    EXPECT_FALSE(taken.changed);
    EXPECT_EQ(fresh.peer()->receive_size, size);
  }
  Exchange fresh(kOwn);
  tell(fresh, {word(kReceiveSize, 8192), word(kReverse, 0)}, 0b11);
  EXPECT_TRUE(fresh.request(wanted).answer.empty());
}

TEST_F(Cel05Asking, NothingIsAskedWhereNothingDiffers) {
  EXPECT_TRUE(end.request({.receive_size = 8192, .reverse = ReverseSupport::kNone}).answer.empty());
}

TEST(Cel05Exchange, AnUpdateTellsWhatMayChange) {
  RecordProperty("proves", "R2-6.3.1-4 R2-6.3.4-1");
  Exchange server(kOwn, {kReceiveSize}), client(kOwn);
  Properties longer = kOwn;
  longer.receive_size = 65536;
  EXPECT_TRUE(server.update(longer).empty()) << "nothing was told before";
  client.take(server.open());
  const Octets update = server.update(longer);
  Header header;
  ASSERT_EQ(parse(update, header), HeaderError::kNone);
  EXPECT_EQ(std::get<Updprop>(header.body).now, v2::Propset{word(kReceiveSize, 65536)});
  EXPECT_EQ(server.own(), longer);
  EXPECT_TRUE(client.take(update).changed);
  EXPECT_EQ(client.peer()->receive_size, 65536u);
  EXPECT_TRUE(server.update(longer).empty()) << "nothing changed";
  Properties other = longer;
  other.reverse = ReverseSupport::kNone;
  EXPECT_TRUE(server.update(other).empty()) << "it was told to be constant";
  EXPECT_EQ(server.own(), longer);
}

TEST(Cel05Exchange, NoUpdateMakesReceivesShorter) {
  RecordProperty("proves", "R2-6.2-5 R2-6.2.1-6");
  Exchange server(kOwn, {kReceiveSize}), client(kOwn);
  client.take(server.open());
  Properties longer = kOwn, shorter = kOwn;
  ++longer.receive_size;
  --shorter.receive_size;
  EXPECT_TRUE(server.update(shorter).empty());
  EXPECT_EQ(server.own(), kOwn);
  const Octets update = server.update(longer);
  Header header;
  ASSERT_EQ(parse(update, header), HeaderError::kNone);
  client.take(update);
  EXPECT_TRUE(server.update(kOwn).empty()) << "nor back to what it was";
  EXPECT_EQ(client.peer()->receive_size, longer.receive_size);
}

TEST(Cel05Exchange, RpcMessagesAreNotItsOwn) {
  const Exchange server(kOwn);
  for (const char* id : {"S01", "S02", "S06", "S21", "S40"})
    EXPECT_FALSE(server.is_mine(load_v2_vector(id).octets)) << id;
}

}  // namespace
}  // namespace weft::rpcrdma::v2_cel05
