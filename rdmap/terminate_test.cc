#include "rdmap/terminate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

namespace weft::rdmap {
namespace {

using Octets = std::vector<std::uint8_t>;

Octets emit(const TerminateMessage& message) {
  Octets out(kTerminateMaxLen, 0xa5);
  out.resize(emit_terminate(message, out));
  return out;
}

TerminateMessage with_headers(Terminate what, std::uint16_t segment_len, std::uint8_t first_octet, std::size_t ddp_len,
                              bool rdma) {
  TerminateMessage m;
  m.what = what;
  m.segment_len = segment_len;
  std::iota(m.ddp_header.begin(), m.ddp_header.begin() + static_cast<std::ptrdiff_t>(ddp_len), first_octet);
  m.ddp_header_len = ddp_len;
  if (rdma) std::iota(m.rdma_header.begin(), m.rdma_header.end(), std::uint8_t{0x60});
  m.has_rdma_header = rdma;
  return m;
}

TEST(Terminate, ControlBitsAreWhereTheFigureHasThem) {
  EXPECT_EQ(emit({.what = {Layer::kLlp, 0, 2}}), (Octets{0x20, 0x02, 0x00, 0x00}));
  const auto tagged = emit(with_headers({Layer::kDdp, 1, 4}, 0x0102, 0x81, 14, false));
  EXPECT_EQ(tagged.size(), 20u);
  EXPECT_EQ(Octets(tagged.begin(), tagged.begin() + 7), (Octets{0x11, 0x04, 0xc0, 0x00, 0x01, 0x02, 0x81}));
  const auto untagged = emit(with_headers({Layer::kDdp, 2, 5}, 0x0102, 0x41, 18, false));
  EXPECT_EQ(untagged.size(), 24u);
  const auto read = emit(with_headers({Layer::kRdma, 1, 0}, 46, 0x41, 18, true));
  EXPECT_EQ(read.size(), 52u);
  EXPECT_EQ(Octets(read.begin(), read.begin() + 6), (Octets{0x01, 0x00, 0xe0, 0x00, 0x00, 46}));
  EXPECT_EQ(read[24], 0x60);
}

TEST(Terminate, EmitParseRoundTripsAndIgnoresReservedBitsAndTrailer) {
  const TerminateMessage messages[] = {{.what = {Layer::kLlp, 0, 7}},
                                       {.what = {Layer::kDdp, 0, 0}, .segment_len = 9},
                                       with_headers({Layer::kDdp, 1, 3}, 46, 0xc1, 14, false),
                                       with_headers({Layer::kRdma, 2, 6}, 22, 0x41, 18, false),
                                       with_headers({Layer::kRdma, 1, 4}, 46, 0x41, 18, true)};
  for (const TerminateMessage& message : messages) {
    Octets octets = emit(message);
    EXPECT_EQ(parse_terminate(octets), message);
    octets.push_back(0x77);
    octets[3] = 0xff;
    if (message.segment_len) octets[2] = static_cast<std::uint8_t>(octets[2] | 0x1f);
    EXPECT_EQ(parse_terminate(octets), message);
  }
}

TEST(Terminate, EveryTruncationIsSafe) {
  const Octets whole = emit(with_headers({Layer::kRdma, 1, 4}, 46, 0x41, 18, true));
  for (std::size_t len = 0; len < whole.size(); ++len) {
    const Octets cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(len));  // its own allocation: ASan sees
    const auto message = parse_terminate(cut);
    ASSERT_EQ(message.has_value(), len >= 4) << len;
    if (!message) continue;
    EXPECT_EQ(message->what, kReadToWrap);
    EXPECT_EQ(message->segment_len.has_value(), len >= 6) << len;
    EXPECT_EQ(message->ddp_header_len, len >= 24 ? 18u : 0u) << len;
    EXPECT_FALSE(message->has_rdma_header) << len;
  }
}

TEST(Terminate, SiwsOrderIsASecondReading) {
  const auto siw = parse_terminate(Octets{0x21, 0x05, 0x03, 0x00, 0, 4});
  ASSERT_TRUE(siw && siw->siw);
  EXPECT_EQ(siw->what, (Terminate{Layer::kLlp, 1, 5}));
  EXPECT_EQ(*siw->siw, (Terminate{Layer::kDdp, 2, 5}));
  EXPECT_FALSE(parse_terminate(Octets{0x12, 0x05, 0xc3, 0x00})->siw) << "one bit in the right place rules siw out";
  EXPECT_FALSE(parse_terminate(Octets{0x20, 0x02, 0x00, 0x00})->siw) << "without header bits nobody can tell";
}

// The table written out once more, as terminate-codes.tsv has it.
TEST(Terminate, TableHasEveryRegisteredCombination) {
  std::set<std::tuple<int, int, int>> expected = {{0, 0, -1},   {0, 1, 0xff}, {0, 1, 9},
                                                  {0, 2, 0xff}, {1, 0, 0},    {1, 3, -1}};
  for (int code = 0; code <= 4; ++code) expected.insert({0, 1, code}), expected.insert({1, 1, code});
  for (int code = 5; code <= 9; ++code) expected.insert({0, 2, code});
  for (int code = 1; code <= 6; ++code) expected.insert({1, 2, code});
  for (int code = 1; code <= 7; ++code) expected.insert({2, 0, code});
  std::set<std::tuple<int, int, int>> actual;
  std::set<std::string> sentences;
  for (const TerminateRow& row : terminate_rows()) {
    actual.insert({static_cast<int>(row.layer), row.etype, row.any_code ? -1 : row.code});
    sentences.insert(describe({row.layer, row.etype, row.code}));
  }
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(terminate_rows().size(), expected.size());
  EXPECT_EQ(sentences.size(), expected.size()) << "each has a sentence of its own";
  EXPECT_EQ(describe(kUnexpectedOpcode), "RDMAP: remote operation: unexpected opcode (0/2/06)");
  EXPECT_EQ(describe({Layer::kRdma, 0, 0x42}).find("unregistered"), std::string::npos);
  EXPECT_NE(describe({Layer::kLlp, 3, 2}).find("unregistered"), std::string::npos);
  EXPECT_NE(describe({static_cast<Layer>(15), 3, 2}).find("unknown layer"), std::string::npos);
}

TEST(Terminate, LowerLayersAreMapped) {
  EXPECT_EQ(to_terminate(mpa::Error::kCrc), (Terminate{Layer::kLlp, 0, 2}));
  EXPECT_EQ(to_terminate(mpa::Error::kNoMatchingRtr), (Terminate{Layer::kLlp, 0, 7}));
  EXPECT_EQ(to_terminate(ddp::Error::kLocalCatastrophic), (Terminate{Layer::kDdp, 0, 0}));
  EXPECT_EQ(to_terminate(ddp::Error::kToWrap), (Terminate{Layer::kDdp, 1, 3}));
  EXPECT_EQ(to_terminate(ddp::Error::kMessageTooLong), (Terminate{Layer::kDdp, 2, 5}));
  EXPECT_EQ(to_read_terminate(ddp::AccessError::kAccessRights), (Terminate{Layer::kRdma, 1, 2}));
  EXPECT_EQ(to_read_terminate(ddp::AccessError::kNotAssociated), (Terminate{Layer::kRdma, 1, 3}));
  EXPECT_EQ(to_invalidate_terminate(ddp::AccessError::kNotAssociated), (Terminate{Layer::kRdma, 1, 9}));
  EXPECT_EQ(to_invalidate_terminate(ddp::AccessError::kAccessRights), (Terminate{Layer::kRdma, 2, 9}));
}

}  // namespace
}  // namespace weft::rdmap
