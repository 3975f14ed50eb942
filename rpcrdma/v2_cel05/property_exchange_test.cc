#include "rpcrdma/v2_cel05/property_exchange.h"

#include <gtest/gtest.h>

#include <utility>
#include <variant>

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
  RecordProperty("proves", "R2-6.2-3 R2-6.3.2-3 R2-6.3.3-2 R2-6.3.3-4 R2-6.3.3-8 R2-6.3.3-9");
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

TEST(Cel05Exchange, AnAnswerWithoutARequestIsDropped) {
  Exchange server(kOwn);
  tell(server, {word(kReceiveSize, 8192)}, 0);
  for (const char* id : {"S47", "S48"}) {
    const auto taken = server.take(load_v2_vector(id).octets);
    EXPECT_TRUE(taken.answer.empty()) << id;
    EXPECT_FALSE(taken.changed) << id;
  }
  EXPECT_EQ(server.peer()->receive_size, 8192u);
}

TEST(Cel05Exchange, MalformedSetsAreRefusedAndChangeNothing) {
  RecordProperty("proves", "R2-6.1.1-4 R2-6.1.1-5 R2-6.1.1-6");
  for (const char* id : {"S77", "S78", "S79"}) {
    Exchange server(kOwn);
    EXPECT_EQ(answer_of<Error>(server, load_v2_vector(id).octets).err, Err::kBadXdr) << id;
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

TEST(Cel05Exchange, RpcMessagesAreNotItsOwn) {
  const Exchange server(kOwn);
  for (const char* id : {"S01", "S02", "S06", "S21", "S40"})
    EXPECT_FALSE(server.is_mine(load_v2_vector(id).octets)) << id;
}

}  // namespace
}  // namespace weft::rpcrdma::v2_cel05
