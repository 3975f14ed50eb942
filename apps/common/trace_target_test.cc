#include "apps/common/trace_target.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace weft::apps {
namespace {

using ::testing::HasSubstr;

struct TraceTarget : ::testing::Test {
  TraceTarget() { EXPECT_NE(::mkdtemp(folder.data()), nullptr); }
  ~TraceTarget() override { std::filesystem::remove_all(folder); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder + "/" + name, std::ios::binary) << content;
    return folder + "/" + name;
  }
  static std::string fault(const std::string& path, const std::vector<std::string>& used = {}) {
    return std::string(check_trace_target(path, used).message());
  }

  std::string folder = "/tmp/weft-trace-XXXXXX";
};

TEST_F(TraceTarget, ACaptureAnEmptyFileAndANewNameAreReplaced) {
  EXPECT_EQ(fault(folder + "/new"), "");
  EXPECT_EQ(fault(file("empty", "")), "");
  EXPECT_EQ(fault(file("pcapng", "\x0a\x0d\x0d\x0a and more")), "");
  EXPECT_EQ(fault(file("pcap", "\xd4\xc3\xb2\xa1 and more")), "");
}

TEST_F(TraceTarget, AnotherFileStays) {
  EXPECT_THAT(fault(file("letter", "Dear all")), HasSubstr("is no capture"));
  EXPECT_THAT(fault(file("short", "ab")), HasSubstr("is no capture"));
}

// weft --trace a.pcapng nfs put a.pcapng URL
TEST_F(TraceTarget, AFileOfTheCommandStays) {
  const std::string capture = file("a.pcapng", "\x0a\x0d\x0d\x0a");
  std::filesystem::create_symlink("a.pcapng", folder + "/link");
  EXPECT_EQ(fault(capture, {"nfs+rdma://server/a.pcapng", folder + "/other"}), "");
  EXPECT_THAT(fault(capture, {folder + "/./a.pcapng"}), HasSubstr("uses this file itself"));
  EXPECT_THAT(fault(folder + "/link", {capture}), HasSubstr("uses this file itself"));
}

// weft --trace a.pcapng nfs get URL a.pcapng: the file comes later, and would replace the trace.
TEST_F(TraceTarget, AFileThatTheCommandMakesStays) {
  EXPECT_THAT(fault(folder + "/new", {folder + "/./new"}), HasSubstr("uses this file itself"));
  EXPECT_EQ(fault(folder + "/new", {folder + "/newer", "-"}), "");
}

// weft --trace a.pcapng nfs get URL - > a.pcapng
TEST_F(TraceTarget, WhatTheShellOpenedForTheCommandStays) {
  const std::string capture = file("a.pcapng", "\x0a\x0d\x0d\x0a");
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    std::fflush(nullptr);
    const int before = ::dup(fd), opened = ::open(capture.c_str(), O_RDWR | O_APPEND);
    ASSERT_GE(before, 0);
    ASSERT_GE(opened, 0);
    ::dup2(opened, fd);
    const std::string named = fault(capture, {"-"}), other = fault(capture, {});
    ::dup2(before, fd);
    ::close(before);
    ::close(opened);
    EXPECT_THAT(named, HasSubstr("uses this file itself"));
    EXPECT_EQ(other, "");
  }
}

// Root can read every file, so root takes another user for it.
TEST_F(TraceTarget, AFileThatCannotBeReadStays) {
  constexpr uid_t kNobody = 65534;
  const uid_t self = ::geteuid();
  const std::string closed = file("closed", "\x0a\x0d\x0d\x0a");
  ASSERT_EQ(::chmod(closed.c_str(), 0), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  ASSERT_TRUE(self != 0 || ::seteuid(kNobody) == 0);
  const std::string text = fault(closed);
  ASSERT_EQ(::seteuid(self), 0);
  EXPECT_THAT(text, HasSubstr("cannot be read (Permission denied)"));
}

// A FIFO without a reader would keep open() waiting.
TEST_F(TraceTarget, AFifoIsNotOpened) {
  const std::string fifo = folder + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(fault(fifo, {fifo}), "");
}

}  // namespace
}  // namespace weft::apps
