#include "apps/dissect/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace weft::apps::dissect {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct OutputFileTest : ::testing::Test {
  OutputFileTest() { EXPECT_NE(::mkdtemp(folder.data()), nullptr); }
  ~OutputFileTest() override { fs::remove_all(folder); }

  std::string at(const std::string& name) const { return folder + "/" + name; }
  static std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }

  std::string folder = "/tmp/weft-output-XXXXXX";
};

TEST_F(OutputFileTest, AppearsWhole) {
  auto file = OutputFile::open(at("page"), at("capture"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::fputs("new", file->stream());
  EXPECT_FALSE(fs::exists(at("page")));
  EXPECT_TRUE(file->commit().ok());
  EXPECT_EQ(content(at("page")), "new");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(OutputFileTest, WithoutCommitNothingIsLeft) {
  std::ofstream(at("page")) << "old";
  {
    auto file = OutputFile::open(at("page"), at("capture"));
    ASSERT_TRUE(file.ok()) << file.status();
    std::fputs("new", file->stream());
  }
  EXPECT_EQ(content(at("page")), "old");
  EXPECT_EQ(num_files(), 1u);
}

// weft dissect --html u.pcap - < u.pcap
TEST_F(OutputFileTest, TheCaptureOnStandardInputStays) {
  std::ofstream(at("capture")) << "packets";
  const int before = ::dup(STDIN_FILENO);
  const int capture = ::open(at("capture").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(capture, STDIN_FILENO), STDIN_FILENO);
  const auto file = OutputFile::open(at("capture"), "-");
  if (before >= 0) ::dup2(before, STDIN_FILENO);
  ::close(before);
  ::close(capture);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("is the capture itself"));
  EXPECT_EQ(content(at("capture")), "packets");
}

TEST_F(OutputFileTest, ReplacesAFileAndKeepsItsPermissionsAndLinks) {
  std::ofstream(at("page")) << "old";
  ASSERT_EQ(::chmod(at("page").c_str(), 0640), 0);
  fs::create_symlink("page", at("link"));
  auto file = OutputFile::open(at("link"), at("capture"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::fputs("new", file->stream());
  EXPECT_TRUE(file->commit().ok());
  EXPECT_EQ(content(at("page")), "new");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(fs::status(at("page")).permissions(), fs::perms(0640));
}

// A link may lead to the next folder, where the page is to be.
TEST_F(OutputFileTest, WritesTheFileThatALinkNamesAndThatIsNotThereYet) {
  fs::create_directory(at("below"));
  fs::create_symlink("below/second", at("first"));
  fs::create_symlink("page", at("below/second"));
  auto file = OutputFile::open(at("first"), at("capture"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::fputs("new", file->stream());
  EXPECT_TRUE(file->commit().ok());
  EXPECT_EQ(content(at("below/page")), "new");
  EXPECT_TRUE(fs::is_symlink(at("first")));
  EXPECT_TRUE(fs::is_symlink(at("below/second")));
}

TEST_F(OutputFileTest, RefusesLinksThatLeadNowhere) {
  fs::create_symlink("none/page", at("to-no-folder"));
  EXPECT_THAT(std::string(OutputFile::open(at("to-no-folder"), at("capture")).status().message()),
              HasSubstr("No such file"));
  fs::create_symlink("circle", at("circle"));
  EXPECT_THAT(std::string(OutputFile::open(at("circle"), at("capture")).status().message()),
              HasSubstr("Too many levels of symbolic links"));
  EXPECT_TRUE(fs::is_symlink(at("circle")));
}

TEST_F(OutputFileTest, RefusesTheCaptureAndFolders) {
  std::ofstream(at("capture")) << "packets";
  fs::create_hard_link(at("capture"), at("other-name"));
  EXPECT_THAT(std::string(OutputFile::open(at("other-name"), at("capture")).status().message()),
              HasSubstr("is the capture itself"));
  EXPECT_THAT(std::string(OutputFile::open(folder, at("capture")).status().message()), HasSubstr("Is a directory"));
  EXPECT_THAT(std::string(OutputFile::open(at("none/page"), at("capture")).status().message()),
              HasSubstr("No such file"));
  EXPECT_EQ(content(at("capture")), "packets");
}

TEST_F(OutputFileTest, SaysThatTheDiskIsFull) {
  auto file = OutputFile::open("/dev/full", at("capture"));
  ASSERT_TRUE(file.ok()) << file.status();
  std::fputs("new", file->stream());
  EXPECT_THAT(std::string(file->commit().message()), HasSubstr("/dev/full: No space left"));
}

}  // namespace
}  // namespace weft::apps::dissect
