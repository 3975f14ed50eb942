#include "rdmap/terminate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
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

// Octets of hex digits with blanks anywhere between two octets.
Octets from_hex(std::string_view text) {
  Octets out;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    if (text[i] == ' ') ++i;
    out.push_back(static_cast<std::uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

// The Terminate that siw_send_terminate writes on a little-endian host: control, payload octets, DDP header, RDMA
// header. The RDMA header of a Read is put together from a work request, with the size in the place of an MSN. A failed
// Send with Invalidate has R set, and no header for it.
struct SiwMessage {
  const char* name;
  Terminate meant;
  std::uint16_t segment_len;
  std::size_t ddp_len;
  bool rdma;
  Octets octets;
};
const SiwMessage kSiwMessages[] = {
    {"Read", kReadBaseBounds, 0, 18, true,
     from_hex("10010700 0000 4141 00000000 00000001 00001000 00000000"
              " 00001101 0000000000002000 00001000 00002201 0000000000003000")},
    {"Write", {Layer::kDdp, 1, 1}, 1024, 14, false, from_hex("11010300 0400 c140 00003301 0000000000004000")},
    {"Send", {Layer::kDdp, 2, 2}, 4, 18, false, from_hex("21020300 0004 4143 00000000 00000000 00000005 00000000")},
    {"SendInvalidate", kInvalidateProtection, 4, 18, false,
     from_hex("10090700 0004 4144 00005e01 00000000 00000005 00000000")},
};

TEST(Terminate, SiwsOrderIsASecondReading) {
  for (const SiwMessage& siw : kSiwMessages) {
    SCOPED_TRACE(siw.name);
    const auto message = parse_terminate(siw.octets);
    ASSERT_TRUE(message && message->siw);
    EXPECT_EQ(*message->siw, siw.meant);
    EXPECT_EQ(message->what.layer, static_cast<Layer>(siw.octets[0] >> 4)) << "the RFC's reading stays what it is";
    EXPECT_EQ(message->what.etype, siw.octets[0] & 0x0f);
    EXPECT_EQ(message->segment_len, siw.segment_len);
    const auto headers = siw.octets.begin() + 6;
    const auto behind = headers + static_cast<std::ptrdiff_t>(siw.ddp_len);
    EXPECT_EQ(Octets(message->ddp().begin(), message->ddp().end()), Octets(headers, behind));
    ASSERT_EQ(message->has_rdma_header, siw.rdma);
    if (siw.rdma) {
      EXPECT_TRUE(std::equal(behind, siw.octets.end(), message->rdma_header.begin(), message->rdma_header.end()));
    }
  }
}

TEST(Terminate, SiwsHeadersMayEndAnywhere) {
  for (const SiwMessage& siw : kSiwMessages) {
    for (std::size_t len = kTerminateControlLen; len < siw.octets.size(); ++len) {
      SCOPED_TRACE(std::string(siw.name) + " " + std::to_string(len));
      const Octets cut(siw.octets.begin(), siw.octets.begin() + static_cast<std::ptrdiff_t>(len));
      const auto message = parse_terminate(cut);
      ASSERT_TRUE(message && message->siw);
      EXPECT_EQ(*message->siw, siw.meant);
      EXPECT_EQ(message->segment_len.has_value(), len >= 6);
      EXPECT_EQ(message->ddp_header_len, len >= 6 + siw.ddp_len ? siw.ddp_len : 0u);
      EXPECT_FALSE(message->has_rdma_header);
    }
  }
}

TEST(Terminate, WhatSiwCannotHaveWrittenHasNoSecondReading) {
  const Octets& read = kSiwMessages[0].octets;
  for (unsigned bits = 0; bits < 0x2000; ++bits) {
    if (bits == 0x0300 || bits == 0x0700) continue;
    Octets octets = read;
    octets[2] = static_cast<std::uint8_t>(bits >> 8);
    octets[3] = static_cast<std::uint8_t>(bits);
    const auto message = parse_terminate(octets);
    ASSERT_TRUE(message);
    EXPECT_FALSE(message->siw || message->segment_len || message->has_rdma_header || message->ddp_header_len > 0)
        << bits;
  }
  Octets octets = read;
  octets[2] = 0xc7;  // one bit in the right place rules siw out
  EXPECT_FALSE(parse_terminate(octets)->siw);
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
