#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "tests/serve/fixture.h"

// The file that a handle names over its life: restarts, renames, removals.
namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using testing::ExportTest;
using testing::write_local;

class HandleLifeTest : public ExportTest {
 protected:
  HandleLifeTest() {
    ::mkdir((dir + "/a").c_str(), 0755);
    ::mkdir((dir + "/a/b").c_str(), 0755);
    ::mkdir((dir + "/other").c_str(), 0755);
    write_local(dir + "/a/b/file", "text");
    file = handle("a/b/file");
    b = handle("a/b");
  }
  void rename_local(const std::string& from, const std::string& to) {
    ASSERT_EQ(::rename((dir + "/" + from).c_str(), (dir + "/" + to).c_str()), 0) << from;
  }
  NfsFh3 file, b;
};

TEST_F(HandleLifeTest, SurvivesARestart) {
  start();
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(tree->num_searches(), 0u);
  EXPECT_EQ(handle("a/b/file"), file);
}

TEST_F(HandleLifeTest, SurvivesARestartThatLostTheIndex) {
  lose_index();
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(tree->num_searches(), 1u);
  // The search taught it the way.
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(getattr_status(b), Nfsstat3::kOk);
  EXPECT_EQ(tree->num_searches(), 1u);
}

TEST_F(HandleLifeTest, SurvivesRenamesThroughTheServer) {
  ASSERT_EQ(backend->rename({{b, "file"}, {handle("other"), "new"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(handle("other/new"), file);
  ASSERT_EQ(backend->rename({{root(), "other"}, {b, "deep"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(read(file), "text");
  start();
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(tree->num_searches(), 0u);
}

TEST_F(HandleLifeTest, SurvivesRenamesBehindTheServersBack) {
  rename_local("a/b/file", "a/b/renamed");
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(tree->num_searches(), 0u);  // it was next door
  rename_local("a/b/renamed", "other/moved");
  EXPECT_EQ(read(file), "text");
  rename_local("other", "a/b/other");
  EXPECT_EQ(read(file), "text");
  rename_local("a", "z");
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(getattr_status(b), Nfsstat3::kOk);
  rename_local("z", "y");
  start();
  EXPECT_EQ(read(file), "text");
}

TEST_F(HandleLifeTest, DirectoriesThatChangePlaces) {
  const NfsFh3 other = handle("other");
  write_local(dir + "/other/o", "o");
  const NfsFh3 o = handle("other/o");
  rename_local("other", "tmp");
  rename_local("a/b", "other");
  rename_local("tmp", "a/b");
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(read(o), "o");
  EXPECT_EQ(lookup(other, "o").object, o);
  EXPECT_EQ(lookup(b, "file").object, file);
  EXPECT_EQ(lookup(b, "..").object, root());
}

TEST_F(HandleLifeTest, ReplacedByRenameIsStaleAndTheNewOneIsNot) {
  write_local(dir + "/a/b/new", "newer");
  const NfsFh3 newer = handle("a/b/new");
  ASSERT_EQ(read(file), "text");  // open now
  ASSERT_EQ(backend->num_open_files(), 1u);
  ASSERT_EQ(backend->rename({{b, "new"}, {b, "file"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->num_open_files(), 0u) << "its space is free at once";
  EXPECT_EQ(read(newer), "newer");
  EXPECT_EQ(read(file), "!NFS3ERR_STALE");
  EXPECT_EQ(handle("a/b/file"), newer);
  EXPECT_EQ(tree->num_searches(), 0u);
}

TEST_F(HandleLifeTest, FilesThatChangePlacesAndOneThatIsReplacedLocally) {
  write_local(dir + "/a/b/second", "other");
  const NfsFh3 second = handle("a/b/second");
  rename_local("a/b/file", "a/b/tmp");
  rename_local("a/b/second", "a/b/file");
  rename_local("a/b/tmp", "a/b/second");
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(read(second), "other");
  // Made while the other is there, so that it has another inode number.
  write_local(dir + "/new", "new");
  rename_local("new", "a/b/second");
  EXPECT_EQ(read(file), "!NFS3ERR_STALE");
  EXPECT_EQ(write(file, 0, "x").status, Nfsstat3::kStale);
  EXPECT_EQ(testing::read_local(dir + "/a/b/second"), "new");
}

TEST_F(HandleLifeTest, RemovedIsStale) {
  ASSERT_EQ(backend->remove({{b, "file"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(file), Nfsstat3::kStale);
  EXPECT_EQ(read(file), "!NFS3ERR_STALE");
  EXPECT_EQ(write(file, 0, "x").status, Nfsstat3::kStale);
  EXPECT_EQ(tree->num_searches(), 0u);  // the server knows: it did it itself
  ASSERT_EQ(backend->rmdir({{handle("a"), "b"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(b), Nfsstat3::kStale);
  EXPECT_EQ(create(b, "x").status, Nfsstat3::kStale);
}

// An open file keeps its space.
TEST_F(HandleLifeTest, RemovedIsClosedAtOnce) {
  ASSERT_EQ(write(file, 0, "more").status, Nfsstat3::kOk);
  ASSERT_EQ(backend->num_open_files(), 1u);
  ASSERT_EQ(backend->link({file, {root(), "second"}}).status, Nfsstat3::kOk);
  ASSERT_EQ(backend->remove({{b, "file"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->num_open_files(), 1u) << "it has a name still";
  ASSERT_EQ(backend->remove({{root(), "second"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->num_open_files(), 0u);
}

TEST_F(HandleLifeTest, WhatWasRemovedIsNotClosedInThePlaceOfAnother) {
  config.max_open_files = 2;
  start();
  create(root(), "0");
  ASSERT_EQ(backend->remove({{root(), "0"}}).status, Nfsstat3::kOk);
  for (const char* name : {"1", "2", "3"}) create(root(), name);
  EXPECT_EQ(backend->num_open_files(), 2u);
}

TEST_F(HandleLifeTest, WhatWasRemovedTakesNoRoomInTheIndex) {
  tree_config.max_indexed_files = 16;
  start();
  ASSERT_EQ(read(file), "text");
  for (std::size_t i = 0; i < tree_config.max_indexed_files; ++i) {
    create(root(), "made");
    ASSERT_EQ(backend->remove({{root(), "made"}}).status, Nfsstat3::kOk);
  }
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(tree->num_searches(), 0u);
}

// The index keeps few names of a file. Names that are gone leave room for names that lead to the file.
TEST_F(HandleLifeTest, NamesThatAreGoneArePushedOutByNone) {
  const auto link = [this](const std::string& name) {
    ASSERT_EQ(backend->link({file, {root(), name}}).status, Nfsstat3::kOk);
  };
  const auto remove = [this](const std::string& name) {
    ASSERT_EQ(backend->remove({{root(), name}}).status, Nfsstat3::kOk);
  };
  const auto rename = [this](const std::string& from, const std::string& to) {
    ASSERT_EQ(backend->rename({{root(), from}, {root(), to}}).status, Nfsstat3::kOk);
  };
  // By RENAME.
  link("0");
  for (std::size_t i = 0; i < PathIndex::kMaxNames; ++i) rename(std::to_string(i), std::to_string(i + 1));
  remove(std::to_string(PathIndex::kMaxNames));
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(tree->num_searches(), 0u);
  // By REMOVE, after which a RENAME brings one more.
  for (std::size_t i = 1; i < PathIndex::kMaxNames; ++i) link(std::to_string(i));
  for (std::size_t i = 2; i < PathIndex::kMaxNames; ++i) remove(std::to_string(i));
  rename("1", "last");
  remove("last");
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(tree->num_searches(), 0u);
}

TEST_F(HandleLifeTest, RemovedBehindTheServersBackIsStaleAfterOneSearch) {
  ASSERT_EQ(read(file), "text");
  ASSERT_EQ(::unlink((dir + "/a/b/file").c_str()), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read(file), "!NFS3ERR_STALE");
  EXPECT_EQ(tree->num_searches(), 1u);
}

TEST_F(HandleLifeTest, AHardLinkIsTheSameHandle) {
  ASSERT_EQ(backend->link({file, {root(), "second"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(handle("second"), file);
  EXPECT_EQ(handle("a/b/file"), file);
  ASSERT_EQ(backend->remove({{b, "file"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(read(file), "text");
  start();
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(tree->num_searches(), 0u);
  ASSERT_EQ(backend->remove({{root(), "second"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(file), Nfsstat3::kStale);
}

TEST_F(HandleLifeTest, AHardLinkMadeLocallyIsFoundWhenTheFirstNameGoes) {
  ASSERT_EQ(::link((dir + "/a/b/file").c_str(), (dir + "/other/link").c_str()), 0);
  ASSERT_EQ(backend->remove({{b, "file"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(read(file), "text");
}

// ext4 and other filesystems give the inode number of a removed file to the next one at once, often within one tick of
// the clock of birth times.
TEST_F(HandleLifeTest, AnInodeNumberUsedAgainIsAnotherFile) {
  int reused = 0;
  for (int i = 0; i < 20; ++i) {
    nfs3::NewObjectRes first = create(root(), "x");
    ASSERT_EQ(first.status, Nfsstat3::kOk);
    const std::int64_t born = tree->key_of(*first.obj).value().btime_ns;
    ASSERT_EQ(backend->remove({{root(), "x"}}).status, Nfsstat3::kOk);
    // Here inode numbers may not come back so soon, but every file born from now on is younger.
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    EXPECT_GT(std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec, born);
    nfs3::NewObjectRes second = create(root(), "x");
    ASSERT_EQ(second.status, Nfsstat3::kOk);
    if (first.obj_attributes->fileid == second.obj_attributes->fileid) ++reused;
    EXPECT_NE(*first.obj, *second.obj);
    EXPECT_EQ(getattr_status(*first.obj), Nfsstat3::kStale);
    EXPECT_EQ(getattr_status(*second.obj), Nfsstat3::kOk);
    ASSERT_EQ(backend->remove({{root(), "x"}}).status, Nfsstat3::kOk);
  }
  RecordProperty("reused", reused);
}

TEST_F(HandleLifeTest, TheExportMayBeRenamedAndHandlesStay) {
  const NfsFh3 at = root();
  ASSERT_EQ(::rename(dir.c_str(), (dir + ".moved").c_str()), 0);
  EXPECT_EQ(getattr_status(at), Nfsstat3::kOk);
  EXPECT_EQ(read(file), "text");
  tree_config.directory = dir + ".moved";
  start();
  EXPECT_EQ(root(), at);
  EXPECT_EQ(read(file), "text");
}

TEST_F(HandleLifeTest, AnExportMadeAnewMakesOldHandlesStale) {
  const NfsFh3 at = root();
  ASSERT_EQ(::rename(dir.c_str(), (dir + ".old").c_str()), 0);
  ASSERT_EQ(::mkdir(dir.c_str(), 0755), 0);
  start();
  EXPECT_EQ(getattr_status(at), Nfsstat3::kStale);
  EXPECT_EQ(getattr_status(file), Nfsstat3::kStale);
}

TEST_F(HandleLifeTest, DeepPathsBeyondPathMax) {
  const std::string name(200, 'n');
  NfsFh3 at = root();
  for (int i = 0; i < 30; ++i) {
    nfs3::NewObjectRes made = backend->mkdir({{at, name}, {}});
    ASSERT_EQ(made.status, Nfsstat3::kOk) << i;
    at = *made.obj;
  }
  nfs3::NewObjectRes made = create(at, "bottom");
  ASSERT_EQ(made.status, Nfsstat3::kOk);
  EXPECT_EQ(write(*made.obj, 0, "deep").status, Nfsstat3::kOk);
  EXPECT_EQ(read(*made.obj), "deep");
  lose_index();
  EXPECT_EQ(read(*made.obj), "deep");
}

TEST_F(HandleLifeTest, ASearchThatIsTooLongSaysLaterNotStale) {
  for (int i = 0; i < 50; ++i) write_local(dir + "/filler" + std::to_string(i), "");
  tree_config.max_search_entries = 10;
  lose_index();
  EXPECT_EQ(getattr_status(file), Nfsstat3::kJukebox);
}

TEST_F(HandleLifeTest, ManyThreadsThatMissFindTheFileTogether) {
  lose_index();
  std::vector<std::thread> threads;
  std::vector<std::string> got(4);
  for (auto& text : got) threads.emplace_back([&] { text = read(file); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : got) EXPECT_TRUE(text == "text" || text == "!NFS3ERR_JUKEBOX") << text;
  EXPECT_EQ(read(file), "text");
  EXPECT_EQ(tree->num_searches(), 1u);
}

// Searching can take minutes: other clients' changes do not wait for it.
TEST_F(HandleLifeTest, NoLockIsHeldDuringASearch) {
  // A second file whose lock is the first one's.
  constexpr std::size_t kNumStripes = 256;
  const std::size_t stripe = FileKeyHash{}(tree->key_of(file).value()) % kNumStripes;
  NfsFh3 other;
  std::string other_name;
  for (int i = 0; other_name.empty(); ++i) {
    other = *create(root(), "other-" + std::to_string(i)).obj;
    if (FileKeyHash{}(tree->key_of(other).value()) % kNumStripes == stripe) other_name = "other-" + std::to_string(i);
  }
  const std::vector<std::function<Nfsstat3()>> changes = {
      [&] {
        return backend->setattr({file, {}, {}}).status;
      },
      [&] { return write(file, 0, "TEXT").status; },
      [&] {
        return backend->link({file, {root(), "second"}}).status;
      },
      [&] { return create(b, "new").status; },
      [&] {
        return backend->remove({{b, "new"}}).status;
      },
      [&] {
        return backend->rename({{b, "file"}, {b, "renamed"}}).status;
      },
  };
  int num_searches = 0, num_free = 0;
  tree_config.on_search = [&] {
    ++num_searches;
    static constexpr std::uint8_t kOctet[] = {'x'};
    const nfs3::WriteArgs args{
        .file = other, .offset = 0, .count = 1, .stable = nfs3::StableHow::kUnstable, .data = {}};
    num_free += backend->write_now(args, kOctet).has_value() ? 1 : 0;
  };
  calls.lies_in_memory = [](int) { return true; };
  for (const auto& change : changes) {
    num_searches = num_free = 0;
    lose_index();
    ASSERT_EQ(lookup(root(), other_name).object, other);
    ASSERT_EQ(write(other, 0, "x").status, Nfsstat3::kOk);  // open now
    EXPECT_EQ(change(), Nfsstat3::kOk);
    EXPECT_GT(num_searches, 0);
    EXPECT_EQ(num_free, num_searches);
  }
}

class DeepTest : public ExportTest {
 protected:
  // Directories "n" one beneath the other, made locally; the deepest has a file.
  void make_deep(std::size_t depth) {
    Fd at(::open(dir.c_str(), O_PATH | O_DIRECTORY));
    for (std::size_t i = 0; i < depth; ++i) {
      ASSERT_EQ(::mkdirat(at.get(), "n", 0755), 0);
      at = Fd(::openat(at.get(), "n", O_PATH | O_DIRECTORY));
    }
    Fd file(::openat(at.get(), "file", O_CREAT | O_WRONLY, 0644));
    ASSERT_TRUE(file);
  }
  // Level by level from above: a removal with a descriptor for each level would run out of them.
  ~DeepTest() override {
    const std::string top = dir + "/n", second = dir + "/n/n", parked = dir + "/parked";
    while (::rename(second.c_str(), parked.c_str()) == 0) {
      std::filesystem::remove_all(top);
      ::rename(parked.c_str(), top.c_str());
    }
  }
  // The deepest directory that can be reached by names.
  NfsFh3 descend(std::size_t& depth, Nfsstat3& end) {
    NfsFh3 at = root();
    for (depth = 0;; ++depth) {
      const nfs3::LookupRes res = lookup(at, "n");
      end = res.status;
      if (res.status != Nfsstat3::kOk) return at;
      at = res.object;
    }
  }
};

TEST_F(DeepTest, DirectoriesDeeperThanThePathsThatAreKeptAreRefused) {
  make_deep(PathIndex::kMaxDepth + 20);
  std::size_t depth = 0;
  Nfsstat3 end = Nfsstat3::kOk;
  const NfsFh3 deepest = descend(depth, end);
  EXPECT_EQ(depth, PathIndex::kMaxDepth);
  EXPECT_EQ(end, Nfsstat3::kNametoolong);
  EXPECT_EQ(create(deepest, "new").status, Nfsstat3::kNametoolong);
  EXPECT_EQ(backend->mkdir({{deepest, "new"}, {}}).status, Nfsstat3::kNametoolong);
  EXPECT_EQ(backend->link({*create(root(), "f").obj, {deepest, "new"}}).status, Nfsstat3::kNametoolong);
  EXPECT_EQ(backend->rename({{root(), "f"}, {deepest, "new"}}).status, Nfsstat3::kNametoolong);
  EXPECT_EQ(getattr_status(deepest), Nfsstat3::kOk);
  const nfs3::ReaddirplusRes list = backend->readdirplus({deepest, 0, {}, 8192, 8192});
  ASSERT_EQ(list.status, Nfsstat3::kOk);
  for (const nfs3::Entryplus3& entry : list.entries) EXPECT_EQ(entry.name_handle.has_value(), entry.name == ".");
  EXPECT_EQ(tree->num_searches(), 0u);
}

TEST_F(DeepTest, WhatIsMovedTooDeepIsStaleWithoutASearch) {
  make_deep(PathIndex::kMaxDepth - 1);
  ASSERT_EQ(backend->mkdir({{root(), "dir"}, {}}).status, Nfsstat3::kOk);
  const NfsFh3 moved = handle("dir"), inside = *create(moved, "file").obj;
  std::size_t depth = 0;
  Nfsstat3 end = Nfsstat3::kOk;
  const NfsFh3 deepest = descend(depth, end);
  ASSERT_EQ(backend->rename({{root(), "dir"}, {deepest, "dir"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(moved), Nfsstat3::kOk);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(getattr_status(inside), Nfsstat3::kStale);
  EXPECT_EQ(tree->num_searches(), 0u);
  // It is there again where it can be named again.
  ASSERT_EQ(backend->rename({{deepest, "dir"}, {root(), "dir"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(inside), Nfsstat3::kOk);
}

}  // namespace
}  // namespace weft::serve
