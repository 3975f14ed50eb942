#include "apps/nfs/local_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace weft::nfs {
namespace {

class LocalFileTest : public ::testing::Test {
 protected:
  LocalFileTest() : dir_((std::filesystem::temp_directory_path() / "weft-local-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(dir_.data()), nullptr);
  }
  ~LocalFileTest() override { std::filesystem::remove_all(dir_); }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  std::size_t num_names() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(dir_), {}));
  }
  static void fill(const LocalFile& file, const std::string& text) {
    EXPECT_EQ(write(file.fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string dir_;
};

TEST_F(LocalFileTest, AppearsOnlyWhenCommitted) {
  auto file = LocalFile::open_path(path("name"));
  ASSERT_TRUE(file.ok()) << file.status();
  fill(*file, "text");
  EXPECT_FALSE(std::filesystem::exists(path("name")));
  EXPECT_EQ(num_names(), 1u);
  EXPECT_TRUE(file->commit({.mode = 0644}).ok());
  EXPECT_EQ(content(path("name")), "text");
  EXPECT_EQ(num_names(), 1u);
}

TEST_F(LocalFileTest, LeavesNothingAndTouchesNothingWhenGivenUp) {
  std::ofstream(path("name")) << "old";
  {
    auto file = LocalFile::open_path(path("name"));
    ASSERT_TRUE(file.ok());
    fill(*file, "new");
  }
  EXPECT_EQ(content(path("name")), "old");
  EXPECT_EQ(num_names(), 1u);
}

TEST_F(LocalFileTest, AUsersSymbolicLinkStays) {
  std::filesystem::create_directory(path("elsewhere"));
  std::ofstream(path("elsewhere/real")) << "old";
  std::filesystem::create_symlink("elsewhere/real", path("link"));
  auto file = LocalFile::open_path(path("link"));
  ASSERT_TRUE(file.ok());
  fill(*file, "new");
  ASSERT_TRUE(file->commit({.mode = 0600}).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(content(path("elsewhere/real")), "new");
}

TEST_F(LocalFileTest, ADanglingLinkIsNoTarget) {
  std::filesystem::create_symlink("missing", path("link"));
  std::filesystem::create_symlink("circle", path("circle"));
  for (const auto& [name, why] : {std::pair("link", ": not written through a symbolic link whose target is missing"),
                                  std::pair("circle", ": Too many levels of symbolic links")}) {
    const auto file = LocalFile::open_path(path(name));
    ASSERT_FALSE(file.ok()) << name;
    const std::string text(file.status().message());
    EXPECT_TRUE(text.starts_with(path(name) + why)) << text;
    EXPECT_TRUE(std::filesystem::is_symlink(path(name)));
  }
  EXPECT_EQ(num_names(), 2u);
}

TEST_F(LocalFileTest, ADirectoryIsNoTarget) {
  std::filesystem::create_directory(path("dir"));
  EXPECT_FALSE(LocalFile::open_path(path("dir")).ok());
  EXPECT_FALSE(LocalFile::open_path(path("dir/")).ok());
  const Fd fd(open(dir_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_FALSE(LocalFile::create(fd.get(), "dir", "dir").ok());
  EXPECT_EQ(num_names(), 1u);
}

TEST_F(LocalFileTest, DevicesAreWrittenStraight) {
  auto file = LocalFile::open_path("/dev/null");
  ASSERT_TRUE(file.ok());
  fill(*file, "x");
  EXPECT_TRUE(file->commit({.mode = 0600}).ok());
}

TEST_F(LocalFileTest, MissingDirectoryIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(LocalFile::open_path(path("no/such")).status()));
}

TEST(TemporaryName, FitsAndHidesAndDiffers) {
  EXPECT_EQ(temporary_name("name").find(".name.weft-"), 0u);
  EXPECT_EQ(temporary_name(std::string(255, 'n')).size(), 255u);
  EXPECT_NE(temporary_name("n"), temporary_name("n"));
}

}  // namespace
}  // namespace weft::nfs
