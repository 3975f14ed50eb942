#include "apps/common/setup.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "apps/common/command.h"

namespace weft::apps {
namespace {

TEST(Logging, WhatAPeerChoseDrivesNoTerminal) {
  ::testing::internal::CaptureStderr();
  set_up_logging("info");
  spdlog::info("client {} gone", "\x1b[2J\xc2\x9b\xe2\x80\xae\xff\nready");
  spdlog::default_logger()->flush();
  const std::string err = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(err.ends_with(" client \\x1b[2J\\u009b\\u202e\\xff\\x0aready gone\n")) << err;
}

// Lines of devices and engines contain text that a peer chose, too.
TEST(Logging, WhatAPeerChoseDrivesNoTerminalFromBelow) {
  ::testing::internal::CaptureStderr();
  set_up_logging("info");
  const verbs::Log log = program_log();
  EXPECT_FALSE(log.wants(verbs::LogLevel::kDebug));
  ASSERT_TRUE(log.wants(verbs::LogLevel::kInfo));
  log.sink(verbs::LogLevel::kWarn, "client {} ends: \x1b[2J\xc2\x9b\xe2\x80\xae\xff\nready");
  spdlog::default_logger()->flush();
  const std::string err = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(err.ends_with(" client {} ends: \\x1b[2J\\u009b\\u202e\\xff\\x0aready\n")) << err;
}

TEST(Messages, WhatAPeerChoseDrivesNoTerminal) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(fail("a\x1b[2J"), kExitFailed);
  EXPECT_EQ(fail(absl::UnknownError("b\xc2\x9b")), kExitFailed);
  warn("c\xe2\x80\xae");
  EXPECT_EQ(usage_error("d\xff\n"), kExitUsage);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "weft: a\\x1b[2J\nweft: b\\u009b\nweft: c\\u202e\nweft: d\\xff\\x0a\n");
}

}  // namespace
}  // namespace weft::apps
