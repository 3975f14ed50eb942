#include "apps/common/setup.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <chrono>
#include <utility>

#include "apps/common/command.h"
#include "verbs-shim/soft/device.h"

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

// Every level of --log-level, and the lines of devices and engines that it lets through.
TEST(Logging, TheLevelHoldsForDevicesAndEngines) {
  using verbs::LogLevel;
  struct Row {
    const char* level;
    bool debug, info, warn;
  };
  for (const Row& row :
       {Row{"trace", true, true, true}, Row{"debug", true, true, true}, Row{"info", false, true, true},
        Row{"warn", false, false, true}, Row{"error", false, false, false}, Row{"off", false, false, false}}) {
    SCOPED_TRACE(row.level);
    set_up_logging(row.level);
    const verbs::Log log = program_log();
    ::testing::internal::CaptureStderr();
    log.sink(LogLevel::kDebug, "of debug");
    log.sink(LogLevel::kInfo, "of info");
    log.sink(LogLevel::kWarn, "of warn");
    spdlog::default_logger()->flush();
    const std::string err = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(err.find("debug of debug\n") != std::string::npos, row.debug) << err;
    EXPECT_EQ(err.find("info of info\n") != std::string::npos, row.info) << err;
    EXPECT_EQ(err.find("warning of warn\n") != std::string::npos, row.warn) << err;
    EXPECT_EQ(log.wants(LogLevel::kDebug), row.debug);
    EXPECT_EQ(log.wants(LogLevel::kInfo), row.info);
  }
  set_up_logging("info");
}

TEST(SoftDevice, WithoutOptionsItIsTheLibrarys) {
  const verbs::SoftConfig config = soft_config({});
  const verbs::SoftConfig plain;
  EXPECT_EQ(config.mpa_revision, plain.mpa_revision);
  EXPECT_TRUE(config.crc);
  EXPECT_FALSE(config.markers);
  EXPECT_EQ(config.rtr, plain.rtr);
  EXPECT_EQ(config.peer, plain.peer);
  EXPECT_EQ(config.nudge, std::nullopt) << "the peer profile decides";
  EXPECT_EQ(config.ird, plain.ird);
  EXPECT_EQ(config.ord, plain.ord);
  EXPECT_EQ(config.fpdu_limit, 0u);
  EXPECT_FALSE(config.direct_placement || config.port_map.ask || config.port_map.answer);
  EXPECT_EQ(config.num_workers, 0u);
  EXPECT_EQ(config.congestion_control, "");
  EXPECT_EQ(config.connect_timeout, plain.connect_timeout);
  EXPECT_EQ(config.reply_timeout, plain.reply_timeout);
  EXPECT_FALSE(config.admits);
  EXPECT_TRUE(config.log.sink);
}

TEST(SoftDevice, EveryOptionReachesIt) {
  GlobalOptions options;
  options.mpa_revision = 1;
  options.crc = false;
  options.markers = true;
  options.peer = "siw";
  options.nudge = std::chrono::milliseconds(7);
  options.ird = 3;
  options.ord = 5;
  options.fpdu_limit = 1460;
  options.direct_placement = true;
  options.port_map = true;
  options.num_workers = 2;
  const verbs::SoftConfig config = soft_config(options);
  EXPECT_EQ(config.mpa_revision, 1);
  EXPECT_FALSE(config.crc);
  EXPECT_TRUE(config.markers);
  EXPECT_EQ(config.peer, "siw");
  EXPECT_EQ(config.nudge, std::chrono::milliseconds(7));
  EXPECT_EQ(config.ird, 3);
  EXPECT_EQ(config.ord, 5);
  EXPECT_EQ(config.fpdu_limit, 1460u);
  EXPECT_TRUE(config.direct_placement && config.port_map.ask && config.port_map.answer);
  EXPECT_EQ(config.num_workers, 2u);
  using verbs::Rtr;
  for (const auto& [name, rtr] : {std::pair{"none", Rtr::kNone},
                                  {"auto", Rtr::kAuto},
                                  {"send", Rtr::kSend},
                                  {"write", Rtr::kWrite},
                                  {"read", Rtr::kRead}}) {
    options.rtr = name;
    EXPECT_EQ(soft_config(options).rtr, rtr) << name;
  }
}

TEST(SoftDevice, TheCommandsWishesComeAfterTheOptions) {
  using std::chrono::milliseconds;
  const auto nobody = [](const sockaddr_storage&) { return false; };
  const verbs::SoftConfig plain;
  verbs::SoftConfig config =
      soft_config({}, {.congestion_control = "reno", .answer_timeout = milliseconds(20), .admits = nobody});
  EXPECT_EQ(config.congestion_control, "reno");
  EXPECT_EQ(config.connect_timeout, milliseconds(20));
  EXPECT_EQ(config.reply_timeout, milliseconds(20));
  ASSERT_TRUE(config.admits);
  EXPECT_FALSE(config.admits({}));
  GlobalOptions options;
  options.congestion_control = "cubic";
  config = soft_config(options, {.congestion_control = "reno", .answer_timeout = std::chrono::hours(1)});
  EXPECT_EQ(config.congestion_control, "cubic");
  EXPECT_EQ(config.connect_timeout, plain.connect_timeout);
  EXPECT_EQ(config.reply_timeout, plain.reply_timeout);
}

TEST(FileLimit, IsRaisedAsFarAsItGoes) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = before.rlim_max / 2;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(raise_file_limit(), before.rlim_max);
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(raise_file_limit(), before.rlim_max) << "it is there already";
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace weft::apps
