#include "apps/common/limit_options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

namespace weft::apps {
namespace {

LimitOptions parse(const std::string& line) {
  CLI::App app;
  LimitOptions options;
  add_limit_options(app, options);
  app.parse(line, false);
  return options;
}

TEST(LimitOptions, WithoutThemThereAreDefaults) {
  const LimitOptions none = parse("");
  EXPECT_FALSE(none.max_connections);
  EXPECT_EQ(none.connections_per_address(1024), 1024u);
  EXPECT_FALSE(none.max_buffered || none.max_buffered_per_address);
}

TEST(LimitOptions, WhatIsGivenCounts) {
  const LimitOptions some =
      parse("--max-connections 100 --max-connections-per-address 7 --max-buffered 64 --max-buffered-per-address 16");
  EXPECT_EQ(some.max_connections, 100u);
  EXPECT_EQ(some.connections_per_address(100), 7u);
  EXPECT_EQ(some.max_buffered, std::size_t{64} << 20);
  EXPECT_EQ(some.max_buffered_per_address, std::size_t{16} << 20);
  EXPECT_EQ(parse("--max-connections-per-address 200").connections_per_address(100), 100u);
}

TEST(LimitOptions, OneAddressHasNoMoreThanAllTogether) {
  for (const char* line : {"", "--max-connections 100 --max-connections-per-address 100",
                           "--max-connections-per-address 1024", "--max-buffered 64 --max-buffered-per-address 64",
                           "--max-buffered-per-address 256", "--max-connections 10", "--max-buffered 16"}) {
    EXPECT_EQ(limits_fault(parse(line)), "") << line;
  }
  EXPECT_EQ(
      limits_fault(parse("--max-connections 100 --max-connections-per-address 101")),
      "--max-connections-per-address 101 is more than all clients together may have: 100 connections. Try: at most "
      "100, or --max-connections 101");
  EXPECT_EQ(limits_fault(parse("--max-buffered 64 --max-buffered-per-address 65")),
            "--max-buffered-per-address 65 is more than all clients together may have: 64 MiB. Try: at most 64, or "
            "--max-buffered 65");
  // Against the defaults.
  for (const char* line : {"--max-connections-per-address 1025", "--max-buffered-per-address 257"}) {
    EXPECT_NE(limits_fault(parse(line)), "") << line;
  }
}

TEST(LimitOptions, WhatMakesNoSenseIsRefused) {
  for (const char* line : {"--max-connections 0", "--max-connections 65537", "--max-connections-per-address 0",
                           "--max-buffered 15", "--max-buffered 1048577", "--max-buffered -1", "--max-buffered x"}) {
    EXPECT_THROW(parse(line), CLI::ParseError) << line;
  }
}

}  // namespace
}  // namespace weft::apps
