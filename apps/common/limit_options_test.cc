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

TEST(LimitOptions, WhatMakesNoSenseIsRefused) {
  for (const char* line : {"--max-connections 0", "--max-connections 65537", "--max-connections-per-address 0",
                           "--max-buffered 15", "--max-buffered 1048577", "--max-buffered -1", "--max-buffered x"}) {
    EXPECT_THROW(parse(line), CLI::ParseError) << line;
  }
}

}  // namespace
}  // namespace weft::apps
