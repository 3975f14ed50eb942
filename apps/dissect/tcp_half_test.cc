#include "apps/dissect/tcp_half.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weft::apps::dissect {
namespace {

using ::testing::ElementsAre;
using Octets = std::vector<std::uint8_t>;

struct Text final : TcpHalf::Sink {
  std::string octets;
  std::vector<std::uint64_t> missing;
  void on_octets(ConstBytes view, const Arrival&) override { octets.append(view.begin(), view.end()); }
  void on_missing(std::uint64_t len, const Arrival&) override {
    octets += '_';
    missing.push_back(len);
  }
};

struct TcpHalfTest : ::testing::Test {
  void segment(std::uint32_t seq, const std::string& text, std::size_t wire_len = 0) {
    half.on_segment({.seq = seq,
                     .payload = {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()},
                     .payload_len = std::max(wire_len, text.size())},
                    text_of);
  }

  HeldOctets held;
  TcpHalf half{held};
  Text text_of;
};

TEST_F(TcpHalfTest, SegmentsInOrderPass) {
  half.on_segment({.seq = 99, .syn = true}, text_of);
  segment(100, "abc");
  segment(103, "def");
  EXPECT_EQ(text_of.octets, "abcdef");
  EXPECT_TRUE(half.saw_start());
}

TEST_F(TcpHalfTest, WhatComesTwicePassesOnce) {
  segment(100, "abc");
  segment(100, "abc");
  segment(101, "bcd");
  segment(100, "ab");
  EXPECT_EQ(text_of.octets, "abcd");
  EXPECT_EQ(half.counters().retransmitted, 2u);
  EXPECT_FALSE(half.saw_start());
}

TEST_F(TcpHalfTest, EarlySegmentsWait) {
  segment(100, "ab");
  segment(106, "gh");
  segment(104, "ef");
  segment(105, "fgh");
  EXPECT_EQ(text_of.octets, "ab");
  EXPECT_GT(held.now, 0u);
  segment(102, "cd");
  EXPECT_EQ(text_of.octets, "abcdefgh");
  EXPECT_EQ(held.now, 0u);
  EXPECT_EQ(half.counters().out_of_order, 3u);
}

TEST_F(TcpHalfTest, SequenceNumbersWrap) {
  segment(0xfffffffe, "ab");
  segment(2, "ef");
  segment(0, "cd");
  EXPECT_EQ(text_of.octets, "abcdef");
}

TEST_F(TcpHalfTest, AHoleThatThePeerAcknowledgedIsPassed) {
  segment(100, "ab");
  half.on_ack(104);
  segment(104, "ef");
  EXPECT_EQ(text_of.octets, "ab_ef");
  EXPECT_THAT(text_of.missing, ElementsAre(2));
  EXPECT_EQ(half.counters().lost, 2u);
}

// The acknowledgment of older octets says nothing of the hole.
TEST_F(TcpHalfTest, AHoleThatThePeerDidNotAcknowledgeMayStillBeFilled) {
  segment(100, "ab");
  half.on_ack(103);
  segment(104, "ef");
  EXPECT_EQ(text_of.octets, "ab");
  segment(102, "cd");
  EXPECT_EQ(text_of.octets, "abcdef");
}

// A packet can come again, or behind a later one.
TEST_F(TcpHalfTest, AnOldAcknowledgmentThatComesAgainTakesNothingBack) {
  half.begin(100);
  segment(100, "ab");
  half.on_ack(104);
  half.on_ack(100);
  EXPECT_FALSE(half.is_unacknowledged());
  segment(104, "ef");
  EXPECT_EQ(text_of.octets, "ab_ef");
}

// A window has at most 2^30 octets: a segment that is further back is ahead.
TEST_F(TcpHalfTest, AHoleCanHaveMoreThan2GiB) {
  for (const std::uint32_t hole : {1500000000u, 2500000000u, 3200000000u}) {
    TcpHalf one(held);
    Text sink;
    const auto put = [&](std::uint32_t seq) {
      const Octets octets = {'a', 'b'};
      one.on_segment({.seq = seq, .payload = octets, .payload_len = octets.size()}, sink);
    };
    put(100);
    put(102 + hole);
    one.on_ack(104 + hole);
    put(104 + hole);
    EXPECT_EQ(sink.octets, "ab_abab");
    EXPECT_THAT(sink.missing, ElementsAre(hole));
    EXPECT_EQ(one.counters().retransmitted, 0u);
  }
}

TEST_F(TcpHalfTest, OctetsThatTheCaptureCutAreMissing) {
  segment(100, "ab", 10);
  segment(110, "kl");
  EXPECT_EQ(text_of.octets, "ab_kl");
  EXPECT_THAT(text_of.missing, ElementsAre(8));
  EXPECT_EQ(half.counters().cut, 8u);
}

TEST_F(TcpHalfTest, TheEndOfTheCapturePassesEveryHole) {
  segment(100, "ab");
  segment(110, "kl");
  segment(120, "uv");
  half.finish(text_of);
  EXPECT_EQ(text_of.octets, "ab_kl_uv");
  EXPECT_THAT(text_of.missing, ElementsAre(8, 8));
}

TEST_F(TcpHalfTest, HeldOctetsAreBounded) {
  segment(0, "x");
  const std::string piece(60000, 'y');
  for (std::uint32_t i = 0; i < 1000; ++i) {
    segment(2 + i * 60001, piece);
    ASSERT_LE(held.now, HeldOctets::kMaxOfHalf + 2 * piece.size());
  }
  EXPECT_FALSE(text_of.missing.empty());
}

// One octet each: what stands beside the octets counts, too.
TEST_F(TcpHalfTest, TinySegmentsAreBounded) {
  segment(0, "x");
  for (std::uint32_t i = 0; i < 100000; ++i) segment(2 + 2 * i, "y");
  EXPECT_LE(held.now, HeldOctets::kMaxOfHalf + 1000);
  EXPECT_FALSE(text_of.missing.empty());
}

TEST_F(TcpHalfTest, HalvesShareABound) {
  std::vector<std::unique_ptr<TcpHalf>> halves;
  Text sink;
  const std::string piece(60000, 'y');
  for (int i = 0; i < 60; ++i) {
    TcpHalf& one = *halves.emplace_back(std::make_unique<TcpHalf>(held));
    const auto put = [&](std::uint32_t seq) {
      one.on_segment({.seq = seq,
                      .payload = {reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size()},
                      .payload_len = piece.size()},
                     sink);
    };
    put(0);
    for (std::uint32_t n = 1; n < 60; ++n) put(n * 70000);
    ASSERT_LE(held.now, HeldOctets::kMax + 2 * piece.size());
  }
  halves.clear();
  EXPECT_EQ(held.now, 0u);
}

}  // namespace
}  // namespace weft::apps::dissect
