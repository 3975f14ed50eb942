#include "mpa/wire/cursor.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weft {
namespace {

constexpr std::array<std::uint8_t, 15> kOctets = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                                  0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f};

struct Fields {
  std::uint8_t a = 0;
  std::uint16_t b = 0;
  std::uint32_t c = 0;
  std::uint64_t d = 0;
};

// How many of the four fields fit.
int read(ConstBytes octets, Fields& fields) {
  Reader reader(octets);
  if (!reader.u8(fields.a)) return 0;
  if (!reader.u16(fields.b)) return 1;
  if (!reader.u32(fields.c)) return 2;
  if (!reader.u64(fields.d)) return 3;
  EXPECT_TRUE(reader.empty());
  return 4;
}

TEST(Cursor, ReadsBigEndian) {
  Fields fields;
  EXPECT_EQ(read(kOctets, fields), 4);
  EXPECT_EQ(fields.a, 0x01);
  EXPECT_EQ(fields.b, 0x0203);
  EXPECT_EQ(fields.c, 0x04050607u);
  EXPECT_EQ(fields.d, 0x08090a0b0c0d0e0fu);
}

TEST(Cursor, EveryTruncationStopsAtTheFieldThatIsCut) {
  for (std::size_t len = 0; len < kOctets.size(); ++len) {
    Fields fields;
    const int want = len < 1 ? 0 : len < 3 ? 1 : len < 7 ? 2 : 3;
    EXPECT_EQ(read(ConstBytes(kOctets).first(len), fields), want) << len;
  }
}

TEST(Cursor, AFailedReadMovesNothing) {
  Reader reader(ConstBytes(kOctets).first(3));
  std::uint32_t number = 77;
  EXPECT_FALSE(reader.u32(number));
  EXPECT_EQ(number, 77u);
  ConstBytes view;
  EXPECT_FALSE(reader.bytes(4, view));
  EXPECT_FALSE(reader.skip(SIZE_MAX));
  EXPECT_EQ(reader.rest().size(), 3u);
  EXPECT_TRUE(reader.bytes(3, view));
  EXPECT_EQ(view.data(), kOctets.data());
  EXPECT_TRUE(reader.empty());
  EXPECT_TRUE(reader.skip(0));
}

TEST(Cursor, WritesBigEndianAndNothingElse) {
  std::vector<std::uint8_t> out(17, 0xa5);
  Writer writer(MutBytes(out).subspan(1, 15));
  EXPECT_TRUE(writer.u8(0x01) && writer.u16(0x0203) && writer.u32(0x04050607) && writer.u64(0x08090a0b0c0d0e0f));
  EXPECT_EQ(writer.len(), 15u);
  EXPECT_EQ(out.front(), 0xa5);
  EXPECT_EQ(out.back(), 0xa5);
  EXPECT_TRUE(std::equal(kOctets.begin(), kOctets.end(), out.begin() + 1));
}

TEST(Cursor, AWriteThatDoesNotFitWritesNothing) {
  std::array<std::uint8_t, 3> out = {0xa5, 0xa5, 0xa5};
  Writer writer(out);
  EXPECT_FALSE(writer.u32(0));
  EXPECT_FALSE(writer.u64(0));
  EXPECT_FALSE(writer.bytes(ConstBytes(kOctets).first(4)));
  EXPECT_EQ(writer.len(), 0u);
  EXPECT_EQ(out, (std::array<std::uint8_t, 3>{0xa5, 0xa5, 0xa5}));
  EXPECT_TRUE(writer.bytes({}));
  EXPECT_TRUE(writer.bytes(ConstBytes(kOctets).first(3)));
  EXPECT_FALSE(writer.u8(0));
}

}  // namespace
}  // namespace weft
