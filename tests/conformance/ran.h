#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

// Which protocols a test ran. scripts/conformance counts a test for a row of rpcrdma2, rpcrdma2-wg or nfsulb2 only if
// messages of the row's protocol were seen in it. Code that sees messages says so here: taps in the verbs API, and the
// helpers of the codecs' tests. A test itself does not.
namespace weft::conformance {

// ran: a message of this protocol ("2-cel05", "2-wg07") was seen in the current test. In the thread of the test.
inline void ran(std::string_view protocol) {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return;
  std::string all;
  for (int i = 0; i < test->result()->test_property_count(); ++i) {
    const ::testing::TestProperty& property = test->result()->GetTestProperty(i);
    if (property.key() == std::string_view("ran")) all = property.value();
  }
  if ((" " + all + " ").find(" " + std::string(protocol) + " ") != std::string::npos) return;
  ::testing::Test::RecordProperty("ran", all.empty() ? std::string(protocol) : all + " " + std::string(protocol));
}

}  // namespace weft::conformance
