#include "rpcrdma/v2/properties.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "rpcrdma/testing/v2_vectors.h"
#include "rpcrdma/v2_cel05/header.h"
#include "rpcrdma/v2_cel05/properties.h"
#include "rpcrdma/v2_wg07/header.h"
#include "rpcrdma/v2_wg07/properties.h"

namespace weft::rpcrdma::v2 {
namespace {

using testing::load_v2_vector;
using testing::Octets;
using testing::put_word;

const PropertyTable& cel05() {
  return v2_cel05::kProperties;
}

const PropertyTable& wg07() {
  return v2_wg07::kProperties;
}

Propset start_of(const std::string& id) {
  v2_cel05::Header header;
  EXPECT_EQ(testing::parse(load_v2_vector(id).octets, header), HeaderError::kNone);
  return std::get<v2_cel05::Connprop>(header.body).start;
}

template <typename Connprop>
Propset props_of(const std::string& id) {
  v2_wg07::Header header;
  EXPECT_EQ(testing::parse(load_v2_vector(id).octets, header), HeaderError::kNone);
  return std::get<Connprop>(header.body).props;
}

Propval word(std::uint32_t which, std::uint32_t value) {
  Propval property{.which = which, .data = Octets(4)};
  put_word(property.data, 0, value);
  return property;
}

// The properties of a message with this set. On an error `properties` stay as they are.
HeaderError receive(const Propset& set, const PropertyTable& table, Properties& properties) {
  HeaderError error = HeaderError::kNone;
  Propset received;
  if (&table == &cel05()) {
    v2_cel05::Header header;
    error = testing::parse(testing::emit(v2_cel05::Header{.body = v2_cel05::Connprop{.start = set}}), header);
    if (const auto* body = std::get_if<v2_cel05::Connprop>(&header.body)) received = body->start;
  } else {
    v2_wg07::Header header;
    error = testing::parse(testing::emit(v2_wg07::Header{.body = v2_wg07::ConnpropFinal{set}}), header);
    if (const auto* body = std::get_if<v2_wg07::ConnpropFinal>(&header.body)) received = body->props;
  }
  EXPECT_EQ(received, set);
  EXPECT_EQ(apply(received, table, properties), error);
  return error;
}

Properties applied(const Propset& set, const PropertyTable& table) {
  Properties properties = table.defaults;
  EXPECT_EQ(receive(set, table, properties), HeaderError::kNone);
  return properties;
}

TEST(Properties, DefaultsAreThoseOfEachDraft) {
  EXPECT_EQ(cel05().defaults, (Properties{.receive_size = 4096, .reverse = ReverseSupport::kInline}));
  EXPECT_EQ(wg07().defaults, (Properties{.send_size = 4096,
                                         .receive_size = 4096,
                                         .segment_size = 1048576,
                                         .segment_count = 16,
                                         .reverse = ReverseSupport::kNone}));
}

TEST(Properties, KnownOnesAreAppliedAndUnknownOnesSkipped) {
  RecordProperty("proves",
                 "R2-6.1.1-7 R2-6.2-1 R2-6.3.1-8 W2-5.1-5 W2-5.2-1 W2-5.2-2 W2-5.2-5 W2-5.2-6 W2-5.2.5-1 W2-6.3.3-2");
  EXPECT_EQ(applied(start_of("S43"), cel05()), (Properties{.receive_size = 8192, .reverse = ReverseSupport::kGeneral}));
  EXPECT_EQ(applied(start_of("S45"), cel05()), (Properties{.receive_size = 16384, .reverse = ReverseSupport::kInline}));
  EXPECT_EQ(applied(props_of<v2_wg07::ConnpropFinal>("W12"), wg07()),
            (Properties{.send_size = 8192,
                        .receive_size = 8192,
                        .segment_size = 1 << 20,
                        .segment_count = 32,
                        .reverse = ReverseSupport::kContinued}));
  EXPECT_EQ(applied(props_of<v2_wg07::ConnpropFinal>("W14"), wg07()), wg07().defaults);
  const Properties host = applied(props_of<v2_wg07::ConnpropMiddle>("W11"), wg07());
  ASSERT_TRUE(host.host_auth.has_value());
  EXPECT_EQ(std::string(host.host_auth->begin(), host.host_auth->end()), "host-auth-material-0123456789abcdefgh");
  EXPECT_EQ(applied({word(5, 3)}, wg07()).reverse, ReverseSupport::kGeneral);
  Properties properties;
  EXPECT_EQ(apply({word(5, 4)}, wg07(), properties), HeaderError::kPropertyValue);
}

TEST(Properties, AnEmptyValueIsTheDefault) {
  RecordProperty("proves", "R2-6.1.1-3 W2-5.1-2");
  Properties raised{.receive_size = 8192};
  ASSERT_EQ(apply(start_of("S44"), cel05(), raised), HeaderError::kNone);
  EXPECT_EQ(raised.receive_size, 4096u);
  for (const PropertyTable* table : {&cel05(), &wg07()}) {
    Properties properties{.send_size = 1,
                          .receive_size = 2,
                          .segment_size = 3,
                          .segment_count = 4,
                          .reverse = ReverseSupport::kGeneral,
                          .host_auth = Octets{5}};
    Propset all;
    for (std::uint32_t which = 1; which <= 6; ++which) all.push_back({.which = which});
    ASSERT_EQ(receive(all, *table, properties), HeaderError::kNone);
    EXPECT_EQ(properties.receive_size, 4096u);
    EXPECT_EQ(properties.reverse, table->defaults.reverse);
    EXPECT_EQ(properties == table->defaults, table == &wg07());
  }
}

TEST(Properties, OrderDoesNotMatterAndTheLaterOfTwoStands) {
  RecordProperty("proves", "R2-6.1.1-8 W2-5.1-6");
  Propset permuted = props_of<v2_wg07::ConnpropFinal>("W12");
  std::ranges::reverse(permuted);
  EXPECT_EQ(applied(permuted, wg07()), applied(props_of<v2_wg07::ConnpropFinal>("W12"), wg07()));
  EXPECT_EQ(applied({word(2, 2), word(1, 8192)}, cel05()), applied({word(1, 8192), word(2, 2)}, cel05()));
  EXPECT_EQ(applied({word(1, 8192), word(1, 16384)}, cel05()).receive_size, 16384u);
}

TEST(Properties, AMalformedValueChangesNothing) {
  RecordProperty("proves", "W2-7.2.2-1");
  const Propset bad[] = {
      {word(2, 8192), {.which = 4, .data = {0, 0, 16}}},          // W43: three octets
      {word(2, 8192), {.which = 3, .data = Octets(8)}},           // more than a word
      {word(2, 8192), word(5, 4)},                                // no such level
      {word(2, 8192), {.which = 6, .data = {0, 0, 0, 5, 1, 2}}},  // an opaque that ends beyond the value
      {word(2, 8192), {.which = 6, .data = {0, 0, 0, 0, 0, 0, 0, 0}}},
      {word(2, 8192), {.which = 6, .data = {0, 0, 0, 1, 7, 0, 0, 1}}},  // roundup
  };
  for (const Propset& set : bad) {
    Properties properties = wg07().defaults;
    EXPECT_EQ(receive(set, wg07(), properties), HeaderError::kPropertyValue);
    EXPECT_EQ(properties, wg07().defaults);
  }
  Properties properties = cel05().defaults;
  EXPECT_EQ(apply({word(2, 3)}, cel05(), properties), HeaderError::kPropertyValue);
  EXPECT_EQ(apply({{.which = 1, .data = {0x20, 0}}}, cel05(), properties), HeaderError::kPropertyValue);
}

TEST(Properties, SubsetsSelectByPosition) {
  RecordProperty("proves", "R2-6.1.1-9 R2-6.1.1-10");
  v2_cel05::Header header;
  ASSERT_EQ(testing::parse(load_v2_vector("S49").octets, header), HeaderError::kNone);
  const auto& resprop = std::get<v2_cel05::Resprop>(header.body);
  for (std::size_t position = 0; position < 100; ++position) {
    EXPECT_EQ(resprop.done.contains(position), position == 33) << position;
    EXPECT_EQ(resprop.rejected.contains(position), position == 0 || position == 31) << position;
  }
  for (const char* id : {"S47", "S50"}) {
    ASSERT_EQ(testing::parse(load_v2_vector(id).octets, header), HeaderError::kNone);
    const auto& same = std::get<v2_cel05::Resprop>(header.body);
    for (std::size_t position = 0; position < 100; ++position) {
      EXPECT_EQ(same.done.contains(position), position == 0) << id << " " << position;
      EXPECT_EQ(same.rejected.contains(position), position == 1) << id << " " << position;
    }
  }
  Propsubset made;
  made.insert(33);
  EXPECT_EQ(made, (Propsubset{{0, 2}}));
}

TEST(Properties, CountsAreBoundedBeforeAnythingIsAllocated) {
  for (const std::uint32_t count : {2u, 0x10000000u, 0xffffffffu}) {
    Octets octets(12);
    put_word(octets, 0, count);
    xdr::XdrReader set_in(octets);
    Propset set;
    EXPECT_EQ(parse_propset(set_in, set), HeaderError::kCount);
    EXPECT_EQ(set.capacity(), 0u);
    octets.resize(8);
    xdr::XdrReader subset_in(octets);
    Propsubset subset;
    EXPECT_EQ(parse_propsubset(subset_in, subset), HeaderError::kCount);
    EXPECT_EQ(subset.words.capacity(), 0u);
  }
}

TEST(Properties, AMessageHasABoundedNumber) {
  for (const std::uint32_t count : {512u, 513u}) {
    Octets octets(4 + 8 * count);
    put_word(octets, 0, count);
    xdr::XdrReader in(octets);
    Propset set;
    EXPECT_EQ(parse_propset(in, set), count == 512 ? HeaderError::kNone : HeaderError::kCount);
  }
}

TEST(Properties, WhatIsToldIsReadBack) {
  RecordProperty("proves", "R2-6.2.2-1");
  const Properties told{.send_size = 1,
                        .receive_size = 2,
                        .segment_size = 3,
                        .segment_count = 4,
                        .reverse = ReverseSupport::kContinued,
                        .host_auth = Octets{5, 6, 7}};
  EXPECT_EQ(applied(make_propset(told, wg07()), wg07()), told);
  const Propset of_cel05 = make_propset(told, cel05());
  EXPECT_EQ(of_cel05, (Propset{word(1, 2), word(2, 1)}));  // no Continuation there: INLINE
  EXPECT_EQ(make_propset(wg07().defaults, wg07()).size(), 5u);
  for (const ReverseSupport reverse : {ReverseSupport::kNone, ReverseSupport::kInline, ReverseSupport::kGeneral}) {
    EXPECT_EQ(applied(make_propset({.reverse = reverse}, cel05()), cel05()).reverse, reverse);
  }
}

}  // namespace
}  // namespace weft::rpcrdma::v2
