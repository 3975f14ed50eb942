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
const DiskClient kHonest{1, "192.0.2.1"}, kStranger{2, "192.0.2.2"};

class PathIndexTest : public ::testing::Test {
 protected:
  PathIndexTest() : state(::open(temp.path().c_str(), O_RDONLY | O_DIRECTORY)) {}

  std::unique_ptr<IndexLog> log() { return std::move(*IndexLog::open(state.get(), "index", "state")); }
  std::string file() const { return temp / "index"; }
  static std::string path(PathIndex& index, std::uint64_t n) {
    auto paths = index.paths(key_of(n));
    return paths.empty() ? "-" : paths.front().path;
  }
  // The client names the files from `first` to before `end`, each by its number.
  static void learn_as(const DiskClient& client, PathIndex& index, std::uint64_t first, std::uint64_t end) {
    const ActingFor acting(client);
    for (std::uint64_t n = first; n < end; ++n) index.learn(key_of(n), kRoot, "f" + std::to_string(n));
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

// All that look for a file wait for the thread that has the index. So each record that is appended copies a few files.
// The old log is whole until the new one is.
TEST_F(PathIndexTest, TheLogIsRewrittenInSteps) {
  constexpr std::uint64_t kFiles = 2000;
  const std::string next = file() + ".new";
  const auto size_of_next = [&] { return std::filesystem::exists(next) ? std::filesystem::file_size(next) : 0; };
  PathIndex index(kRoot, 2 * kFiles, log());
  for (std::uint64_t n = 2; n < 2 + kFiles; ++n) index.learn(key_of(n), kRoot, "f" + std::to_string(n));
  std::uint64_t changes = 0;
  const auto change = [&] { index.learn(key_of(2), kRoot, "g" + std::to_string(changes++ % 6)); };
  while (size_of_next() == 0 && changes < 200000) change();
  const auto before = std::filesystem::file_size(file());

  std::size_t steps = 0, size = size_of_next();
  for (; size_of_next() != 0; ++steps) {
    if (steps == 50) {
      index.learn(key_of(9000), kRoot, "learnt meanwhile");
      index.forget(key_of(3));
      index.forget(key_of(kFiles));
      std::filesystem::copy(file(), temp / "cut off");
    }
    change();
    EXPECT_LE(size_of_next(), std::max<std::size_t>(size, 1000) + 8 * 17 * 100);
    size = size_of_next();
  }
  EXPECT_GT(steps, 100u);
  EXPECT_LT(std::filesystem::file_size(file()), before / 10);
  const std::string whole = testing::read_local(file());
  for (const std::string& log : {whole, testing::read_local(temp / "cut off")}) {
    TempDir other;
    testing::write_local(other / "index", log);
    const Fd dir(::open(other.path().c_str(), O_RDONLY | O_DIRECTORY));
    PathIndex read(kRoot, 2 * kFiles, std::move(*IndexLog::open(dir.get(), "index", "state")));
    EXPECT_EQ(read.num_files(), kFiles - 1);
    EXPECT_EQ(path(read, 9000), "learnt meanwhile");
    EXPECT_EQ(path(read, 3), "-");
    EXPECT_EQ(path(read, kFiles), "-");
    EXPECT_EQ(path(read, kFiles - 1), "f" + std::to_string(kFiles - 1));
  }
}

// Then the old one goes on, and the next attempt comes much later.
TEST_F(PathIndexTest, ARewriteThatFailsLosesNothing) {
  const std::string next = file() + ".new";
  {
    PathIndex index(kRoot, 100, log());
    std::filesystem::create_directory(next);
    for (int i = 0; i < 70000; ++i) index.learn(key_of(2), kRoot, "g" + std::to_string(i % 6));
    std::filesystem::remove(next);
    const auto before = std::filesystem::file_size(file());
    index.learn(key_of(3), kRoot, "last");
    EXPECT_GT(std::filesystem::file_size(file()), before) << "no attempt for each record";
  }
  PathIndex index(kRoot, 100, log());
  EXPECT_EQ(path(index, 3), "last");
}

// Whatever fails in the middle of it.
TEST_F(PathIndexTest, ARewriteThatFailsOnTheWayLosesNothing) {
  constexpr std::uint64_t kFiles = 500;
  const std::string next = file() + ".new";
  {
    PathIndex index(kRoot, 2 * kFiles, log());
    for (std::uint64_t n = 2; n < 2 + kFiles; ++n) index.learn(key_of(n), kRoot, "f" + std::to_string(n));
    for (int i = 0; i < 200000 && !std::filesystem::exists(next); ++i)
      index.learn(key_of(2), kRoot, "g" + std::to_string(i % 6));
    ASSERT_TRUE(std::filesystem::exists(next));
    // Its end puts no file there.
    std::filesystem::remove(next);
    for (std::uint64_t n = 1000; n < 1100; ++n) index.learn(key_of(n), kRoot, "f" + std::to_string(n));
  }
  PathIndex index(kRoot, 2 * kFiles, log());
  EXPECT_EQ(index.num_files(), kFiles + 100);
  EXPECT_EQ(path(index, 1099), "f1099");
  EXPECT_EQ(path(index, 501), "f501");
}

// The records of a rewrite are one for each name. They are no reason for the next one.
TEST_F(PathIndexTest, FilesWithManyNamesAreNotRewrittenAgainAndAgain) {
  constexpr std::uint64_t kFiles = 33000;
  {
    PathIndex index(kRoot, 4 * kFiles, log());
    for (std::uint64_t n = 2; n < 2 + kFiles; ++n) {
      for (char c = 'a'; c < 'e'; ++c) index.learn(key_of(n), kRoot, std::string(1, c));
    }
    for (int i = 0; i < 10; ++i) index.learn(key_of(2), kRoot, "g" + std::to_string(i));
  }
  PathIndex index(kRoot, 4 * kFiles, log());  // rewritten now
  index.learn(key_of(3), kRoot, "again");
  EXPECT_FALSE(std::filesystem::exists(file() + ".new"));
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

// Long names count for what they take.
TEST_F(PathIndexTest, LongNamesTakeMorePlaces) {
  PathIndex index(kRoot, 100, nullptr);
  learn_as(kHonest, index, 2, 42);
  learn_as(kStranger, index, 100, 200);
  EXPECT_EQ(index.num_files(), 100u);
  const ActingFor acting(kStranger);
  for (std::uint64_t n = 140; n < 200; ++n) {
    for (char c = 'a'; c < 'e'; ++c) index.learn(key_of(n), kRoot, std::string(250, c));
  }
  EXPECT_LE(index.num_files(), 40u + 60u / 8);
  EXPECT_EQ(path(index, 199), std::string(250, 'd'));
  for (std::uint64_t n = 2; n < 42; ++n) EXPECT_EQ(path(index, n), "f" + std::to_string(n));
}

// The places of a file count for its owner. A name that another client brings replaces older ones.
TEST_F(PathIndexTest, ANameOfAnotherClientTakesNoPlaceOfTheOwner) {
  PathIndex index(kRoot, 100, nullptr);
  learn_as(kHonest, index, 2, 42);
  {
    const ActingFor acting(kStranger);
    for (std::uint64_t n = 2; n < 42; ++n) {
      for (char c = 'a'; c < 'e'; ++c) index.learn(key_of(n), kRoot, std::string(250, c));
    }
  }
  learn_as(kStranger, index, 100, 200);
  EXPECT_EQ(index.num_files(), 100u);
  for (std::uint64_t n = 2; n < 42; ++n) EXPECT_EQ(path(index, n), std::string(250, 'd'));
}

TEST_F(PathIndexTest, ARenameByAnotherClientIsLearnt) {
  PathIndex index(kRoot, 100, nullptr);
  const std::string before(200, 'a'), after(200, 'b');
  {
    const ActingFor acting(kHonest);
    index.learn(key_of(2), kRoot, before);
  }
  const ActingFor acting(kStranger);
  index.learn(key_of(2), kRoot, after);
  index.forget_name(key_of(2), kRoot, before);
  EXPECT_EQ(path(index, 2), after);
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
