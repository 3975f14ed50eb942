#include "verbs-shim/api/explain.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace weft::verbs {
namespace {

TEST(Explain, EveryStatusHasCauseAndAdviceOnce) {
  std::set<WcStatus> seen;
  for (const WcHint& hint : wc_hints()) {
    EXPECT_TRUE(seen.insert(hint.status).second);
    for (const std::string_view text : {hint.cause, hint.advice}) {
      EXPECT_FALSE(text.empty() || text.ends_with('.')) << text;
      EXPECT_EQ(text.find('\n'), text.npos) << text;
    }
    const std::string line = explain({.status = hint.status});
    EXPECT_TRUE(line.starts_with(wc_status_str(hint.status))) << line;
    EXPECT_NE(line.find(hint.cause), line.npos) << line;
    EXPECT_NE(line.find(hint.advice), line.npos) << line;
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(WcStatus::kRnrRetryExcErr));
  EXPECT_FALSE(seen.contains(WcStatus::kSuccess));
  EXPECT_EQ(explain({}), "success");
}

TEST(Explain, TheDevicesOwnCodeIsShown) {
  EXPECT_NE(explain({.status = WcStatus::kRemOpErr, .vendor_err = 0x1202}).find("Terminate 1/2/02"), std::string::npos);
  EXPECT_NE(explain({.status = WcStatus::kRemAccessErr, .vendor_err = 0x0100}).find("Terminate 0/1/00"),
            std::string::npos);
  const std::string other = explain({.status = WcStatus::kRetryExcErr, .vendor_err = 0x8800ff});
  EXPECT_NE(other.find("(vendor_err 0x008800ff)"), std::string::npos) << other;
  EXPECT_EQ(other.find("Terminate"), std::string::npos) << other;
  const std::string small = explain({.status = WcStatus::kRetryExcErr, .vendor_err = 0x88});
  EXPECT_NE(small.find("(vendor_err 0x0088; from the soft RNIC that is Terminate 0/0/88)"), std::string::npos) << small;
  EXPECT_EQ(explain({.status = WcStatus::kRetryExcErr}).find("vendor_err"), std::string::npos);
}

TEST(Explain, TheConnectionsWordsStandInsteadOfTheTables) {
  EXPECT_EQ(explain({.status = WcStatus::kWrFlushErr}, "received a Terminate"), "received a Terminate");
  EXPECT_EQ(explain({.status = WcStatus::kRemAccessErr, .vendor_err = 0x0100}, "received a Terminate"),
            "remote access error: received a Terminate");
}

}  // namespace
}  // namespace weft::verbs
