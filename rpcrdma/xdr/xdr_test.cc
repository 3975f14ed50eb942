#include "rpcrdma/xdr/xdr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::rpcrdma::xdr {
namespace {

using Octets = std::vector<std::uint8_t>;

TEST(XdrWriter, WritesBigEndianWordsAndRoundup) {
  RecordProperty("proves", "R1-3.1.4-01 R1-3.1.4.2-01");
  Octets out{0xa5};
  XdrWriter writer(out);
  writer.u32(0x11110001);
  writer.u64(0x0102030405060708);
  writer.boolean(true);
  const Octets five{1, 2, 3, 4, 5};
  writer.opaque(five);
  writer.string("ab");
  writer.opaque_fixed(ConstBytes(five).first(3));
  EXPECT_EQ(out, (Octets{0xa5, 0x11, 0x11, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8,   0,   0, 0, 1, 0, 0, 0, 5,
                         1,    2,    3,    4, 5, 0, 0, 0, 0, 0, 0, 2, 'a', 'b', 0, 0, 1, 2, 3, 0}));
  EXPECT_EQ(writer.size(), out.size() - 1);
  writer.patch_u32(0, 0x55667788);
  EXPECT_EQ(out[1], 0x55);
  EXPECT_EQ(out[4], 0x88);
}

TEST(XdrReader, ReadsWhatTheWriterWrote) {
  Octets out;
  XdrWriter writer(out);
  writer.i32(-2);
  writer.i64(-3);
  writer.boolean(false);
  writer.string("abcde");
  writer.u32(9);
  XdrReader in(out);
  std::int32_t i32 = 0;
  std::int64_t i64 = 0;
  bool flag = true;
  std::string_view text;
  std::uint32_t last = 0;
  ASSERT_TRUE(in.i32(i32) && in.i64(i64) && in.boolean(flag) && in.string(text, 5) && in.u32(last));
  EXPECT_EQ(i32, -2);
  EXPECT_EQ(i64, -3);
  EXPECT_FALSE(flag);
  EXPECT_EQ(text, "abcde");
  EXPECT_EQ(last, 9u);
  EXPECT_TRUE(in.at_end());
}

// Every truncation of one of each item fails, and a failed read moves nothing.
TEST(XdrReader, FailsAtEveryTruncationAndStaysWhereItWas) {
  Octets out;
  XdrWriter writer(out);
  writer.opaque(Octets{1, 2, 3, 4, 5});
  for (std::size_t len = 0; len < out.size(); ++len) {
    // A copy of its own, so that a read behind its end is seen.
    const Octets cut(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(len));
    XdrReader in{ConstBytes(cut)};
    ConstBytes value;
    EXPECT_FALSE(in.opaque(value)) << len;
    EXPECT_EQ(in.position(), 0u) << len;
    EXPECT_TRUE(value.empty());
  }
}

TEST(XdrWriter, WritesIntoABufferWhatItAppendsToAVector) {
  const auto write = [](XdrWriter out) {
    out.u32(7);
    out.u64(0x0102030405060708);
    out.opaque(Octets{1, 2, 3, 4, 5});
    out.raw(Octets{9, 9});
    out.raw({});
    out.zeros(2);
    out.patch_u32(0, 0xa0b0c0d0);
    return out.size();
  };
  Octets appended{0xee};
  Octets buffer(40, 0xa5);
  EXPECT_EQ(write(XdrWriter(appended)), 28u);
  EXPECT_EQ(write(XdrWriter(MutBytes(buffer))), 28u);
  EXPECT_EQ(Octets(appended.begin() + 1, appended.end()), Octets(buffer.begin(), buffer.begin() + 28));
  EXPECT_EQ(Octets(buffer.begin() + 28, buffer.end()), Octets(12, 0xa5));
}

TEST(XdrReader, BoundsCountsBeforeAnything) {
  const Octets huge{0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4};
  XdrReader in{ConstBytes(huge)};
  ConstBytes value;
  EXPECT_FALSE(in.opaque(value));
  EXPECT_FALSE(in.opaque_fixed(SIZE_MAX, value));
  EXPECT_FALSE(in.opaque_fixed(SIZE_MAX - 2, value));
  EXPECT_FALSE(in.raw(9, value));
  EXPECT_FALSE(in.skip(SIZE_MAX));
  EXPECT_EQ(in.remaining(), 8u);

  const Octets four{0, 0, 0, 4, 1, 2, 3, 4};
  XdrReader limited{ConstBytes(four)};
  EXPECT_FALSE(limited.opaque(value, 3));
  EXPECT_EQ(limited.position(), 0u);
  EXPECT_TRUE(limited.opaque(value, 4));
}

TEST(XdrReader, BooleanIsZeroOrOne) {
  RecordProperty("proves", "R1-5.3-01");
  for (const std::uint8_t last : Octets{0, 1, 2, 0xff}) {
    const Octets word{0, 0, 0, last};
    XdrReader in{ConstBytes(word)};
    bool value = false;
    EXPECT_EQ(in.boolean(value), last < 2);
    EXPECT_EQ(in.position(), last < 2 ? 4u : 0u);
  }
  const Octets high{0x80, 0, 0, 1};
  XdrReader in{ConstBytes(high)};
  bool value = false;
  EXPECT_FALSE(in.boolean(value));
}

TEST(XdrReader, PaddingMustBeThereAndZeroIfAsked) {
  const Octets dirty{0, 0, 0, 1, 7, 0, 0, 9};
  ConstBytes value;
  EXPECT_TRUE(XdrReader(dirty).opaque(value));
  EXPECT_FALSE(XdrReader(dirty, Padding::kZero).opaque(value));
  const Octets clean{0, 0, 0, 1, 7, 0, 0, 0};
  EXPECT_TRUE(XdrReader(clean, Padding::kZero).opaque(value));
  EXPECT_THAT(value, testing::ElementsAre(7));
  const Octets missing{0, 0, 0, 1, 7, 0, 0};
  EXPECT_FALSE(XdrReader(missing).opaque(value));
}

}  // namespace
}  // namespace weft::rpcrdma::xdr
