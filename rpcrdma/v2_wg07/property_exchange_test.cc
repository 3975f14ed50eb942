#include "rpcrdma/v2_wg07/property_exchange.h"

#include <gtest/gtest.h>

#include <variant>

#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_wg07/properties.h"

namespace weft::rpcrdma::v2_wg07 {
namespace {

using testing::emit;
using testing::load_v2_vector;
using testing::Octets;
using testing::parse;

const Properties kOwn{
    .send_size = 8192, .receive_size = 16384, .segment_count = 128, .reverse = ReverseSupport::kContinued};

template <typename Body>
Octets message_of(const Properties& properties, std::uint32_t xid = 9) {
  return emit(Header{.xid = xid, .body = Body{make_propset(properties, kProperties)}});
}

Header parsed(const Octets& octets) {
  Header header;
  EXPECT_EQ(parse(octets, header), HeaderError::kNone);
  return header;
}

Properties told_by(const Octets& octets) {
  Properties properties = kProperties.defaults;
  const Header header = parsed(octets);
  EXPECT_TRUE(std::holds_alternative<ConnpropFinal>(header.body));
  if (const auto* body = std::get_if<ConnpropFinal>(&header.body)) apply(body->props, kProperties, properties);
  return properties;
}

// The error that refuses the message. Its XID is the message's.
std::optional<Err> refused(Exchange& exchange, const Octets& octets) {
  EXPECT_TRUE(exchange.is_mine(octets));
  const auto before = exchange.peer();
  const auto taken = exchange.take(octets);
  EXPECT_EQ(exchange.peer(), before);
  EXPECT_FALSE(taken.changed);
  EXPECT_STRNE(taken.fault, "");
  if (taken.answer.empty()) return {};
  const Header header = parsed(taken.answer);
  xdr::XdrReader in(octets);
  std::uint32_t xid = 0;
  EXPECT_TRUE(in.u32(xid));
  EXPECT_EQ(header.xid, xid);
  const Error* error = std::get_if<Error>(&header.body);
  return error != nullptr ? std::optional(error->err) : std::nullopt;
}

TEST(Wg07Exchange, EachEndTellsItsPropertiesOnce) {
  RecordProperty("proves", "W2-6.3.4-1");
  Exchange client(kOwn), server(Properties{.receive_size = 65536});
  const Octets opening = client.open();
  EXPECT_EQ(told_by(opening), kOwn);
  EXPECT_LE(opening.size(), 4096u);
  EXPECT_TRUE(client.open().empty());

  ASSERT_TRUE(server.is_mine(opening));
  const auto taken = server.take(opening);
  EXPECT_TRUE(taken.changed);
  EXPECT_EQ(server.peer(), kOwn);
  EXPECT_EQ(told_by(taken.answer), server.own());

  const auto end = client.take(taken.answer);
  EXPECT_TRUE(end.changed);
  EXPECT_TRUE(end.answer.empty());
  EXPECT_EQ(client.peer(), server.own());
}

TEST(Wg07Exchange, SeveralMessagesMakeOneSet) {
  RecordProperty("proves", "W2-6.3.3-1 W2-C.5-1");
  Exchange server({});
  ASSERT_TRUE(server.is_mine(load_v2_vector("W11").octets));
  const auto middle = server.take(load_v2_vector("W11").octets);
  EXPECT_TRUE(middle.answer.empty());
  EXPECT_FALSE(middle.changed);
  EXPECT_FALSE(server.peer());
  v2::Propval size{.which = 2, .data = {0, 0, 0x20, 0}};
  const auto taken = server.take(emit(Header{.body = ConnpropFinal{{size}}}));
  EXPECT_TRUE(taken.changed);
  ASSERT_TRUE(server.peer());
  EXPECT_EQ(server.peer()->receive_size, 8192u);
  EXPECT_TRUE(server.peer()->host_auth) << "of the first message";
}

// Any number of messages, each with as much as it can hold: one value of each property is kept.
TEST(Wg07Exchange, ManyMessagesAreHeldAsOneSet) {
  constexpr std::size_t kMaterial = 4000;
  Exchange server({});
  for (std::uint32_t i = 0; i <= 1000; ++i) {
    Properties told{.receive_size = i, .host_auth = Octets(kMaterial, static_cast<std::uint8_t>(i))};
    const auto taken = server.take(message_of<ConnpropMiddle>(told));
    ASSERT_TRUE(taken.answer.empty());
    ASSERT_STREQ(taken.fault, "");
    ASSERT_TRUE(server.is_between());
  }
  EXPECT_FALSE(server.peer());
  EXPECT_TRUE(server.take(emit(Header{.body = ConnpropFinal{}})).changed);
  EXPECT_FALSE(server.is_between());
  EXPECT_EQ(server.peer()->receive_size, 1000u);
  EXPECT_EQ(server.peer()->host_auth, Octets(kMaterial, 1000 & 0xff));
}

TEST(Wg07Exchange, NothingElseStandsBetweenThem) {
  RecordProperty("proves", "W2-6.3.3-3");
  Exchange server({});
  const Octets call = load_v2_vector("W01").octets;
  EXPECT_FALSE(server.is_mine(call));
  server.take(message_of<ConnpropMiddle>(kOwn));
  EXPECT_EQ(refused(server, call), Err::kInvalCont);
  EXPECT_FALSE(server.is_mine(emit(Header{.body = Grant{}})));
  EXPECT_FALSE(server.is_mine(emit(Header{.body = Error{.err = Err::kSystem}})));
  EXPECT_TRUE(server.take(message_of<ConnpropFinal>(kOwn)).changed);
  EXPECT_FALSE(server.is_mine(call));
}

TEST(Wg07Exchange, NothingFollowsTheLastOne) {
  RecordProperty("proves", "W2-6.3.4-2");
  Exchange server({});
  server.take(message_of<ConnpropFinal>(kOwn));
  const Properties other{.receive_size = 1 << 20};
  EXPECT_EQ(refused(server, message_of<ConnpropFinal>(other)), Err::kInvalCont);
  EXPECT_EQ(refused(server, message_of<ConnpropMiddle>(other)), Err::kInvalCont);
  EXPECT_FALSE(server.is_mine(load_v2_vector("W01").octets));
}

TEST(Wg07Exchange, AMalformedValueChangesNothing) {
  RecordProperty("proves", "W2-5.1-3 W2-5.1-4");
  for (const char* id : {"W43", "W44"}) {
    Exchange server({});
    EXPECT_EQ(refused(server, load_v2_vector(id).octets), Err::kBadPropval) << id;
    EXPECT_TRUE(server.take(message_of<ConnpropFinal>(kOwn)).changed) << id << " ended the exchange";
  }
}

// The XDR of rdma_data is judged before its id counts. So roundup that is not zero is a bad value of an unknown
// property, too, as a length beyond the message is.
TEST(Wg07Exchange, AnUnknownPropertyOfBadXdrIsABadValue) {
  RecordProperty("proves", "W2-5.1-3");
  constexpr std::uint32_t kUnknown = 4711;
  const v2::Propset set{{.which = 2, .data = {0, 0, 0x20, 0}}, {.which = kUnknown, .data = {1, 2, 3}}};
  const Octets good = emit(Header{.xid = 9, .body = ConnpropFinal{set}});
  Octets bad_roundup = good, bad_length = good;
  bad_roundup.back() = 1;
  bad_length[bad_length.size() - 5] = 5;
  for (const Octets& bad : {bad_roundup, bad_length}) {
    Exchange server({});
    EXPECT_EQ(refused(server, bad), Err::kBadPropval);
    EXPECT_TRUE(server.take(good).changed);
    EXPECT_EQ(server.peer()->receive_size, 8192u);
  }
}

TEST(Wg07Exchange, EveryCutOfAMessageIsRefused) {
  const Octets whole = message_of<ConnpropFinal>(kOwn);
  for (std::size_t len = 16; len < whole.size(); ++len) {
    Exchange server({});
    EXPECT_TRUE(refused(server, Octets(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(len)))) << len;
  }
}

TEST(Wg07Exchange, UnknownPropertiesArePassedOver) {
  RecordProperty("proves", "W2-5.1-2 W2-5.1-5 W2-6.3.3-2");
  Exchange server({});
  const auto taken = server.take(load_v2_vector("W14").octets);
  EXPECT_TRUE(taken.changed);
  EXPECT_EQ(server.peer()->receive_size, 4096u);
  EXPECT_EQ(told_by(taken.answer), server.own()) << "no error";
}

}  // namespace
}  // namespace weft::rpcrdma::v2_wg07
