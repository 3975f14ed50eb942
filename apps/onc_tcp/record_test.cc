#include "apps/onc_tcp/record.h"

#include <gtest/gtest.h>

#include <numeric>

namespace weft::onc_tcp {
namespace {

using Octets = std::vector<std::uint8_t>;
using Outcome = RecordReader::Outcome;

Octets counted(std::size_t len, std::uint8_t first = 0) {
  Octets octets(len);
  std::iota(octets.begin(), octets.end(), first);
  return octets;
}

void put_fragment(Octets& out, std::uint32_t mark, const Octets& octets) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(mark >> shift));
  out.insert(out.end(), octets.begin(), octets.end());
}

TEST(Record, EmitsOneLastFragment) {
  Octets out = {0xa5};
  emit_record(Octets{1, 2, 3}, out);
  EXPECT_EQ(out, (Octets{0xa5, 0x80, 0, 0, 3, 1, 2, 3}));
}

TEST(Record, ReadsFragmentsCutAnywhere) {
  Octets stream;
  put_fragment(stream, 3, counted(3));
  put_fragment(stream, 0, {});
  put_fragment(stream, kLastFragment | 2, counted(2, 3));
  put_fragment(stream, kLastFragment | 1, counted(1, 9));
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    RecordReader reader(64);
    std::vector<Octets> records;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      ConstBytes input = ConstBytes(stream).subspan(at, std::min(step, stream.size() - at));
      while (reader.next(input) == Outcome::kRecord) records.push_back(reader.record());
      EXPECT_TRUE(input.empty());
    }
    ASSERT_EQ(records.size(), 2u) << "step " << step;
    EXPECT_EQ(records[0], counted(5));
    EXPECT_EQ(records[1], counted(1, 9));
  }
}

TEST(Record, EmptyRecordIsARecord) {
  Octets stream;
  put_fragment(stream, kLastFragment, {});
  RecordReader reader(0);
  ConstBytes input = stream;
  EXPECT_EQ(reader.next(input), Outcome::kRecord);
  EXPECT_TRUE(reader.record().empty());
}

TEST(Record, BoundIsExactAndOverallTheFragments) {
  Octets stream;
  put_fragment(stream, 6, counted(6));
  put_fragment(stream, kLastFragment | 4, counted(4));
  RecordReader fits(10);
  ConstBytes input = stream;
  EXPECT_EQ(fits.next(input), Outcome::kRecord);
  RecordReader too_small(9);
  input = stream;
  EXPECT_EQ(too_small.next(input), Outcome::kTooLong);
  EXPECT_EQ(too_small.next(input), Outcome::kTooLong);  // for ever
}

TEST(Record, HugeMarkIsRefusedBeforeAnyOctetOfIt) {
  Octets stream;
  put_fragment(stream, 0x7fffffff, {});
  RecordReader reader(1 << 20);
  ConstBytes input = stream;
  EXPECT_EQ(reader.next(input), Outcome::kTooLong);
}

TEST(Record, EndlessEmptyFragmentsEnd) {
  Octets stream;
  for (std::size_t i = 0; i <= kMaxFragments; ++i) put_fragment(stream, 0, {});
  RecordReader reader(16);
  ConstBytes input = stream;
  EXPECT_EQ(reader.next(input), Outcome::kTooLong);
}

}  // namespace
}  // namespace weft::onc_tcp
