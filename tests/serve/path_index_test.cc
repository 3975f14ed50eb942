#include "apps/serve/export/path_index.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/serve/fixture.h"

namespace weft::serve {
namespace {

using testing::TempDir;

constexpr FileKey key_of(std::uint64_t n) {
  return {.dev = 0, .ino = n, .btime_ns = static_cast<std::int64_t>(n) * 10};
}
constexpr FileKey kRoot = key_of(1);

class PathIndexTest : public ::testing::Test {
 protected:
  PathIndexTest() : state(::open(temp.path().c_str(), O_RDONLY | O_DIRECTORY)) {}

  std::unique_ptr<IndexLog> log() { return std::move(*IndexLog::open(state.get(), "index", "state")); }
  std::string file() const { return temp / "index"; }
  static std::string path(PathIndex& index, std::uint64_t n) {
    auto paths = index.paths(key_of(n));
    return paths.empty() ? "-" : paths.front().path;
  }

  TempDir temp;
  Fd state;
};

TEST_F(PathIndexTest, PutsPathsTogether) {
  PathIndex index(kRoot, 100, nullptr);
  index.learn(key_of(2), kRoot, "a");
  index.learn(key_of(3), key_of(2), "b");
  index.learn(key_of(4), key_of(3), "c");
  EXPECT_EQ(path(index, 4), "a/b/c");
  index.learn(key_of(3), kRoot, "moved");
  EXPECT_EQ(path(index, 4), "moved/c");
  EXPECT_EQ(path(index, 9), "-");
}

TEST_F(PathIndexTest, ARingOfStaleEntriesEnds) {
  PathIndex index(kRoot, 100, nullptr);
  index.learn(key_of(2), key_of(3), "a");
  index.learn(key_of(3), key_of(2), "b");
  EXPECT_EQ(path(index, 2), "-");
}

TEST_F(PathIndexTest, SurvivesARestartAndIsCompacted) {
  {
    PathIndex index(kRoot, 100, log());
    index.learn(key_of(2), kRoot, "dir");
    for (int i = 0; i < 50; ++i) index.learn(key_of(3), key_of(2), "name" + std::to_string(i));
    index.learn(key_of(4), key_of(2), "gone");
    index.forget(key_of(4));
    index.learn(key_of(5), key_of(2), "x");
    index.learn(key_of(5), key_of(2), "y");
    index.forget_name(key_of(5), key_of(2), "y");
  }
  auto before = std::filesystem::file_size(file());
  PathIndex index(kRoot, 100, log());
  EXPECT_EQ(path(index, 3), "dir/name49");
  EXPECT_EQ(path(index, 4), "-");
  EXPECT_EQ(path(index, 5), "dir/x");
  EXPECT_LT(std::filesystem::file_size(file()), before / 4);
}

TEST_F(PathIndexTest, EveryTornTailLosesTheTailOnly) {
  {
    PathIndex index(kRoot, 100, log());
    index.learn(key_of(2), kRoot, "first");
    index.learn(key_of(3), kRoot, "second");
  }
  const std::string whole = testing::read_local(file());
  for (std::size_t len = 0; len <= whole.size(); ++len) {
    testing::write_local(file(), whole.substr(0, len));
    {
      PathIndex index(kRoot, 100, log());
      EXPECT_EQ(path(index, 3), len == whole.size() ? "second" : "-") << len;
      index.learn(key_of(7), kRoot, "later");
    }
    PathIndex index(kRoot, 100, log());
    EXPECT_EQ(path(index, 7), "later") << len;
  }
}

TEST_F(PathIndexTest, WhatWasReadBackIsThereAfterEveryFurtherRestart) {
  std::uintmax_t size = 0;
  for (std::uint64_t start = 0; start < 4; ++start) {
    PathIndex index(kRoot, 100, log());
    for (std::uint64_t n = 0; n < start; ++n) EXPECT_EQ(path(index, 10 + n), "name" + std::to_string(n)) << start;
    index.learn(key_of(10 + start), kRoot, "name" + std::to_string(start));
    EXPECT_GT(std::filesystem::file_size(file()), size) << start;
    size = std::filesystem::file_size(file());
  }
}

TEST_F(PathIndexTest, ADamagedRecordEndsTheReading) {
  {
    PathIndex index(kRoot, 100, log());
    index.learn(key_of(2), kRoot, "first");
    index.learn(key_of(3), kRoot, "second");
  }
  std::string octets = testing::read_local(file());
  octets[octets.size() - 2] ^= 1;
  testing::write_local(file(), octets);
  PathIndex index(kRoot, 100, log());
  EXPECT_EQ(path(index, 2), "first");
  EXPECT_EQ(path(index, 3), "-");
}

TEST_F(PathIndexTest, IsBounded) {
  PathIndex index(kRoot, 100, log());
  for (std::uint64_t n = 2; n < 1002; ++n) {
    index.learn(key_of(n), kRoot, "f" + std::to_string(n));
    EXPECT_EQ(path(index, 2), "f2");  // asked for all the time, so it stays
  }
  EXPECT_EQ(index.num_files(), 100u);
  EXPECT_EQ(path(index, 1001), "f1001");
  EXPECT_EQ(path(index, 3), "-");
}

TEST_F(PathIndexTest, LookingUpHardLinksInTurnWritesNothing) {
  PathIndex index(kRoot, 100, log());
  index.learn(key_of(2), kRoot, "a");
  index.learn(key_of(2), kRoot, "b");
  auto size = std::filesystem::file_size(file());
  for (int i = 0; i < 10; ++i) {
    const std::string name = i % 2 == 0 ? "a" : "b";
    index.learn(key_of(2), kRoot, name);
    EXPECT_EQ(path(index, 2), name) << "the name that was seen last is tried first";
  }
  EXPECT_EQ(std::filesystem::file_size(file()), size);
  EXPECT_EQ(index.paths(key_of(2)).size(), 2u);
}

}  // namespace
}  // namespace weft::serve
