#include "apps/common/option_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpa/startup_fault.h"
#include "rdmap/diagnosis.h"
#include "verbs-shim/api/explain.h"

namespace weft::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OptionWords, FieldsBecomeOptions) {
  EXPECT_EQ(in_options(""), "");
  EXPECT_EQ(in_options("SoftConfig::mpa_revision 1; SoftConfig::peer siw (SoftConfig::mpa_revision 0)"),
            "--mpa-rev 1; --peer siw (--mpa-rev 0)");
  EXPECT_EQ(in_options("without SoftConfig::markers"), "without --markers");
  EXPECT_EQ(in_options("another SoftConfig::max_silent"), "another SoftConfig::max_silent");
}

// The program has an option for each advice of the libraries.
TEST(OptionWords, NoFieldIsLeftInWhatTheLibrariesAdvise) {
  const auto none_left = Not(HasSubstr("Config::"));
  for (const verbs::WcHint& hint : verbs::wc_hints()) EXPECT_THAT(in_options(hint.advice), none_left);
  for (const rdmap::DiagnosisRow& row : rdmap::diagnosis_rows()) {
    EXPECT_THAT(in_options(row.if_received), none_left);
    EXPECT_THAT(in_options(row.if_sent), none_left);
  }
  for (const mpa::StartupHint& hint : mpa::startup_hints()) {
    EXPECT_THAT(in_options(hint.initiator_advice), none_left);
    EXPECT_THAT(in_options(hint.responder_advice), none_left);
  }
}

}  // namespace
}  // namespace weft::apps
