#include "apps/nfs/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace weft::nfs {
namespace {

TEST(Json, OneObject) {
  EXPECT_EQ(JsonLine().str(), "{}");
  EXPECT_EQ(JsonLine()
                .add("name", "a\"b\\c\n\x7f")
                .add("octets", std::uint64_t{18446744073709551615u})
                .add("seconds", 0.25)
                .add("eof", true)
                .add("bad", std::numeric_limits<double>::infinity())
                .str(),
            "{\"name\":\"a\\\"b\\\\c\\u000a\\u007f\",\"octets\":18446744073709551615,\"seconds\":0.25,\"eof\":true,"
            "\"bad\":null}");
}

// A reader that keeps numbers as doubles, as jq does, would change the last digits of 64-bit identifiers.
TEST(Json, IdentifiersAreStringsOfAllTheirDigits) {
  EXPECT_EQ(JsonLine().add_id("fsid", 18446744073709551615u).add_id("fileid", 0).str(),
            R"({"fsid":"18446744073709551615","fileid":"0"})");
}

std::string shown(std::string_view text) {
  return JsonLine().add("t", text).str();
}

TEST(Json, OnlyUtf8LeavesIt) {
  const std::string good = "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80";
  EXPECT_EQ(shown(good), "{\"t\":\"" + good + "\"}");
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(shown("\xff"), "{\"t\":\"" + bad + "\"}");
  EXPECT_EQ(shown("a\xc3"), "{\"t\":\"a" + bad + "\"}");
  EXPECT_EQ(shown("\xc0\xaf"), "{\"t\":\"" + bad + bad + "\"}");            // overlong
  EXPECT_EQ(shown("\xed\xa0\x80"), "{\"t\":\"" + bad + bad + bad + "\"}");  // a surrogate
}

TEST(Json, WhatCouldDriveATerminalIsEscaped) {
  EXPECT_EQ(shown("\x1b[31m\n\xc2\x9b\xe2\x80\xae"), R"({"t":"\u001b[31m\u000a\u009b\u202e"})");
}

}  // namespace
}  // namespace weft::nfs
