#include "apps/common/printable.h"

#include <gtest/gtest.h>

#include <random>

namespace weft::apps {
namespace {

TEST(Printable, OrdinaryTextOfAnyScriptStaysAsItIs) {
  for (const char* text : {"", "report.pdf", "a b\\c", "gr\xc3\xbc\xc3\x9f", "\xe6\x97\xa5\xe6\x9c\xac",
                           "\xd7\xa2\xd7\x91", "\xf0\x9f\x98\x80", "\xc2\xa0"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EveryControlOctetIsEscaped) {
  for (int c = 0; c < 0x100; ++c) {
    if (c >= 0x20 && c < 0x7f) continue;
    // Alone, 0x80 and above are no UTF-8; 0x80 to 0x9f are the C1 controls of terminals with 8 bits.
    const std::string text = std::string("a") + static_cast<char>(c) + "b";
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped), "a\\x%02xb", c);
    EXPECT_EQ(printable(text), escaped);
  }
  EXPECT_EQ(printable(std::string_view("\x1b]0;owned\x07", 10)), "\\x1b]0;owned\\x07");
  EXPECT_EQ(printable("two\nlines\r\n"), "two\\x0alines\\x0d\\x0a");
}

TEST(Printable, EveryControlCharacterBeyondAsciiIsEscaped) {
  EXPECT_EQ(printable("\xc2\x80|\xc2\x9b|\xc2\x9f"), "\\u0080|\\u009b|\\u009f");
  EXPECT_EQ(printable("\xd8\x9c"), "\\u061c");
  EXPECT_EQ(printable("\xe2\x80\x8e|\xe2\x80\x8f"), "\\u200e|\\u200f");
  EXPECT_EQ(printable("\xe2\x80\xa8|\xe2\x80\xa9"), "\\u2028|\\u2029");
  EXPECT_EQ(printable("\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae"),
            "\\u202a\\u202b\\u202c\\u202d\\u202e");
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9"), "\\u2066\\u2067\\u2068\\u2069");
  // Their neighbours are characters.
  for (const char* text : {"\xe2\x80\x8d", "\xe2\x80\x90", "\xe2\x80\xaf", "\xe2\x81\xa5", "\xe2\x81\xaa"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WhatIsNoUtf8IsEscapedOctetByOctet) {
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");                          // an overlong C1 control
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");                 // another
  EXPECT_EQ(printable("\xc1\x81"), "\\xc1\\x81");                          // an overlong 'A'
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");                 // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");        // beyond U+10FFFF
  EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");                          // cut short
  EXPECT_EQ(printable("\xe2\x80\x1b[31m"), "\\xe2\\x80\\x1b[31m");         // a control in the place of the third octet
  EXPECT_EQ(printable("\xf0\x9f\x98\xc2\x9b"), "\\xf0\\x9f\\x98\\u009b");  // a control behind a sequence cut short
}

TEST(Printable, NothingOfAnyTextDrivesATerminal) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  // Octets that make up controls, whole and torn.
  const std::string alphabet("\x00\x1b\x7f\x80\x8e\x9b\x9c\xa6\xa9\xae\xc2\xd8\xe2\xe0\xf0\xff[A", 18);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto len = random() % 12; len > 0; --len) text += alphabet[random() % alphabet.size()];
    for (const std::string& shown : {printable(text), printable_tail(text, random() % 12)}) {
      for (std::string_view rest = shown; !rest.empty();) {
        const CodePoint front = front_code_point(rest);
        ASSERT_TRUE(front.well_formed && !is_control(front.value)) << ::testing::PrintToString(text);
        rest.remove_prefix(front.len);
      }
      ASSERT_EQ(printable(shown), shown);
    }
  }
}

TEST(Printable, ATailBeginsWithACharacter) {
  EXPECT_EQ(printable_tail("short", 5), "short");
  EXPECT_EQ(printable_tail("a long name", 4), "...name");
  EXPECT_EQ(printable_tail("\xe6\x97\xa5\xe6\x9c\xac", 4), "...\xe6\x9c\xac");
  EXPECT_EQ(printable_tail("12\x1b", 2), "...2\\x1b");
}

}  // namespace
}  // namespace weft::apps
