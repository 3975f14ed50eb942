#include "apps/common/trace_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/option_words.h"

namespace weft::apps {
namespace {

using ::testing::HasSubstr;

struct Parsed {
  TraceOptions options;
  std::string error;
};

Parsed parse(std::vector<std::string> words) {
  Parsed parsed;
  CLI::App root;
  add_trace_options(root, parsed.options);
  std::ranges::reverse(words);
  try {
    root.parse(words);
    check_trace_options(parsed.options);
  } catch (const CLI::Error& error) {
    parsed.error = error.what();
  }
  return parsed;
}

TEST(TraceOptions, WithoutALimitTheFrontOfEachFrameIsKept) {
  const auto config = trace_config(parse({"--trace", "x.pcapng"}).options);
  EXPECT_EQ(config.path, "x.pcapng");
  EXPECT_EQ(config.max_file, 0u);
  EXPECT_EQ(config.num_files, 0u);
  EXPECT_EQ(config.tagged_len, 256u);
  EXPECT_EQ(config.tagged_more_len, 32u);
  EXPECT_EQ(config.other_len, 4608u);
}

// The file cannot grow beyond its limit, so it may keep more of each frame.
TEST(TraceOptions, WithALimitMoreIsKept) {
  const auto parsed = parse({"--trace", "x.pcapng", "--trace-limit", "100M", "--trace-ring", "8"});
  EXPECT_EQ(parsed.error, "");
  const auto config = trace_config(parsed.options);
  EXPECT_EQ(config.max_file, 100u << 20);
  EXPECT_EQ(config.num_files, 8u);
  EXPECT_EQ(config.tagged_len, 9216u);
  EXPECT_EQ(config.tagged_more_len, 9216u);
  EXPECT_EQ(config.other_len, 9216u);
}

TEST(TraceOptions, ALengthHoldsForAllFrames) {
  for (const std::string& len : {std::string("0"), std::string("96"), std::string("65535")}) {
    const auto parsed = parse({"--trace", "x.pcapng", "--trace-limit", "1G", "--trace-snaplen", len});
    EXPECT_EQ(parsed.error, "");
    const auto config = trace_config(parsed.options);
    EXPECT_EQ(std::to_string(config.tagged_len), len);
    EXPECT_EQ(std::to_string(config.tagged_more_len), len);
    EXPECT_EQ(std::to_string(config.other_len), len);
  }
}

TEST(TraceOptions, WhatCannotBeKeptIsRefused) {
  using Words = std::vector<std::string>;
  for (const auto& [words, fault] : std::vector<std::pair<Words, std::string>>{
           {{"--trace-limit", "100M"}, "--trace-limit needs --trace"},
           {{"--trace-snaplen", "0"}, "--trace-snaplen needs --trace"},
           {{"--trace", "x", "--trace-ring", "2"}, "--trace-ring needs --trace-limit"},
           {{"--trace", "x", "--trace-limit", "100M", "--trace-ring", "1"}, "--trace-ring"},
           {{"--trace", "x", "--trace-limit", "100M", "--trace-ring", "1001"}, "--trace-ring"},
           {{"--trace", "x", "--trace-limit", "131071"}, "at least 128K"},
           {{"--trace", "x", "--trace-limit", "100"}, "at least 128K"},
           {{"--trace", "x", "--trace-limit", "-1"}, "at least 128K"},
           {{"--trace", "x", "--trace-limit", "100MB"}, "at least 128K"},
           {{"--trace", "x", "--trace-snaplen", "65536"}, "--trace-snaplen"},
           {{"--trace", "-"}, "standard output has the results"},
       }) {
    EXPECT_THAT(parse(words).error, HasSubstr(fault)) << words[0];
  }
}

TEST(TraceOptions, SizesHaveUnitsOf1024) {
  EXPECT_EQ(parse_size("131072"), 131072u);
  EXPECT_EQ(parse_size("128K"), 131072u);
  EXPECT_EQ(parse_size("3M"), 3u << 20);
  EXPECT_EQ(parse_size("17179869183G"), std::uint64_t{17179869183} << 30);
  for (const char* text : {"", "K", "1k", "1.5M", "+1M", " 1M", "1T", "17179869184G", "18446744073709551616"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

TEST(TraceOptions, TheCommentOfACutPacketNamesTheOption) {
  EXPECT_THAT(in_options(verbs::kTraceCutNote), HasSubstr("--trace-snaplen 0 keeps all"));
}

}  // namespace
}  // namespace weft::apps
