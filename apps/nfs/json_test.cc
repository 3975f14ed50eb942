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

TEST(Json, OnlyUtf8LeavesIt) {
  const std::string good = "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80";
  EXPECT_EQ(utf8(good), good);
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(utf8("\xff"), bad);
  EXPECT_EQ(utf8("a\xc3"), "a" + bad);
  EXPECT_EQ(utf8("\xc0\xaf"), bad + bad);            // overlong
  EXPECT_EQ(utf8("\xed\xa0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(utf8("\xf4\x90\x80\x80"), bad + bad + bad + bad);
}

TEST(Printable, ControlCharactersAreShown) {
  EXPECT_EQ(printable("a\x1b[31m\n\tb"), "a?[31m??b");
}

}  // namespace
}  // namespace weft::nfs
