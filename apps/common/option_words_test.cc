#include "apps/common/option_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "mpa/startup_fault.h"
#include "rdmap/diagnosis.h"
#include "verbs-shim/api/explain.h"
#include "verbs-shim/soft/connect_words.h"

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
  EXPECT_EQ(in_options("this client takes no Calls; one with ClientConfig::reverse_programs does"),
            "this client takes no Calls; weft gateway does");
}

TEST(OptionWords, ProgramsAndPortsAreTheProgramsOwnWords) {
  const mpa::StartupHint& foreign = mpa::startup_hint(mpa::StartupFault::kForeign);
  EXPECT_EQ(in_options(foreign.initiator_advice),
            "another port: NFS over RDMA is 20049 (not 2049), rping and weft ping 7174; on a Linux NFS server 'echo "
            "rdma 20049 > /proc/fs/nfsd/portlist'");
  EXPECT_THAT(in_options(foreign.responder_advice), HasSubstr("the mount option proto=rdma;"));
  const std::string refused = verbs::soft::connect_error({}, ECONNREFUSED).message;
  EXPECT_THAT(in_options(refused), HasSubstr("the address and port of the listener's 'ready' line; on a Linux NFS "
                                             "server 'echo rdma 20049 > /proc/fs/nfsd/portlist'; with a hardware"));
  for (const mpa::StartupHint& hint : mpa::startup_hints()) {
    for (const std::string_view advice : {hint.initiator_advice, hint.responder_advice}) {
      for (const char* program : {"weft", "nfsd", "mount option", "NFS over RDMA"}) {
        EXPECT_THAT(std::string(advice), Not(HasSubstr(program)));
      }
    }
  }
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
