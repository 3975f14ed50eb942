#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "tests/serve/fixture.h"

// The files that each procedure makes stable before it answers: RFC 1813 section 4.9, by the inodes that fsync(2) was
// called for.
namespace weft::serve {
namespace {

using nfs3::Nfsstat3;
using testing::ExportTest;
using testing::write_local;

class SyncTest : public ExportTest {
 protected:
  SyncTest() {
    ::mkdir((dir + "/a").c_str(), 0755);
    ::mkdir((dir + "/b").c_str(), 0755);
    write_local(dir + "/a/file", "text");
    config.sync_metadata = true;
    calls.fsync = [this](int fd) {
      struct stat st {};
      EXPECT_EQ(::fstat(fd, &st), 0);
      synced.insert(st.st_ino);
      ++num_syncs;
      return error == 0 || st.st_ino == spared || (only != 0 && st.st_ino != only) ? 0 : (errno = error, -1);
    };
    start();
    a = handle("a");
    b = handle("b");
  }
  ino_t inode(const std::string& path) {
    struct stat st {};
    EXPECT_EQ(::lstat((dir + "/" + path).c_str(), &st), 0) << path;
    return st.st_ino;
  }
  // The inodes synced since the last question.
  std::set<ino_t> last() {
    num_syncs = 0;
    return std::exchange(synced, {});
  }
  using Inodes = std::set<ino_t>;

  nfs3::NfsFh3 a, b;
  std::set<ino_t> synced;
  int num_syncs = 0;
  int error = 0;
  ino_t only = 0;    // the one that fails; 0: all
  ino_t spared = 0;  // one that never fails
};

TEST_F(SyncTest, EachChangeIsStableBeforeItIsAnswered) {
  const ino_t in_a = inode("a"), in_b = inode("b");
  ASSERT_EQ(create(a, "new").status, Nfsstat3::kOk);
  EXPECT_EQ(last(), (Inodes{inode("a/new"), in_a})) << "CREATE";
  ASSERT_EQ(backend->mkdir({{a, "dir"}, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(last(), (Inodes{inode("a/dir"), in_a})) << "MKDIR";
  const std::uint8_t text[] = {'t', 'o'};
  ASSERT_EQ(backend->symlink({{a, "link"}, {}, {}}, text).status, Nfsstat3::kOk);
  EXPECT_EQ(last(), (Inodes{in_a})) << "SYMLINK: there is no descriptor of the link itself";
  ASSERT_EQ(backend->mknod({{a, "fifo"}, nfs3::Ftype3::kFifo, {}, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(last(), (Inodes{in_a})) << "MKNOD";
  ASSERT_EQ(backend->link({handle("a/file"), {b, "second"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(last(), (Inodes{inode("a/file"), in_b})) << "LINK";
  ASSERT_EQ(backend->rename({{a, "new"}, {b, "moved"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(last(), (Inodes{in_a, in_b})) << "RENAME";
  ASSERT_EQ(backend->rename({{b, "moved"}, {b, "again"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(num_syncs, 1) << "one directory, one sync";
  EXPECT_EQ(last(), (Inodes{in_b}));
  ASSERT_EQ(backend->remove({{b, "again"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(last(), (Inodes{in_b})) << "REMOVE";
  ASSERT_EQ(backend->rmdir({{a, "dir"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(last(), (Inodes{in_a})) << "RMDIR";
  nfs3::Sattr3 attrs;
  attrs.mode = 0600;
  ASSERT_EQ(backend->setattr({handle("a/file"), attrs, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(last(), (Inodes{inode("a/file")})) << "SETATTR";
}

TEST_F(SyncTest, WhatFailedChangedNothingAndSyncsNothing) {
  ASSERT_EQ(create(a, "file", nfs3::Createmode3::kGuarded).status, Nfsstat3::kExist);
  EXPECT_EQ(backend->remove({{a, "none"}}).status, Nfsstat3::kNoent);
  EXPECT_EQ(backend->rename({{a, "none"}, {b, "x"}}).status, Nfsstat3::kNoent);
  EXPECT_EQ(backend->link({handle("a/file"), {a, "file"}}).status, Nfsstat3::kExist);
  EXPECT_EQ(last(), Inodes{});
}

// Each place that is synced is one whose failure is told.
TEST_F(SyncTest, AFailureOfAnyOfThemIsTold) {
  error = EIO;
  only = inode("a");
  EXPECT_EQ(create(a, "1").status, Nfsstat3::kIo) << "the directory";
  EXPECT_EQ(backend->rename({{a, "1"}, {b, "1"}}).status, Nfsstat3::kIo) << "where it came from";
  EXPECT_EQ(backend->rename({{b, "1"}, {a, "2"}}).status, Nfsstat3::kIo) << "where it went";
  EXPECT_EQ(backend->link({handle("b"), {a, "3"}}).status, Nfsstat3::kInval);
  EXPECT_EQ(backend->link({handle("a/file"), {a, "3"}}).status, Nfsstat3::kIo);
  EXPECT_EQ(backend->remove({{a, "3"}}).status, Nfsstat3::kIo);
  only = inode("a/file");
  EXPECT_EQ(backend->link({handle("a/file"), {b, "4"}}).status, Nfsstat3::kIo) << "the count of links is the file's";
  nfs3::Sattr3 attrs;
  attrs.mode = 0600;
  EXPECT_EQ(backend->setattr({handle("a/file"), attrs, {}}).status, Nfsstat3::kIo);
  only = 0;
  spared = inode("b");
  EXPECT_EQ(create(b, "5").status, Nfsstat3::kIo) << "the new file";
  error = 0;
  EXPECT_EQ(backend->setattr({handle("a/file"), attrs, {}}).status, Nfsstat3::kOk);
}

// A signal that comes while a disk is slow is no error of the disk's.
TEST_F(SyncTest, AnInterruptedReadOrWriteGoesOn) {
  int num_interrupts = 3;
  calls.pread = [&](int fd, void* data, std::size_t len, off_t offset) -> ssize_t {
    if (num_interrupts-- > 0) return errno = EINTR, -1;
    return ::pread(fd, data, std::min<std::size_t>(len, 2), offset);
  };
  calls.pwrite = [&](int fd, const void* data, std::size_t len, off_t offset) -> ssize_t {
    if (num_interrupts-- > 0) return errno = EINTR, -1;
    return ::pwrite(fd, data, std::min<std::size_t>(len, 2), offset);
  };
  start();
  const nfs3::NfsFh3 file = handle("a/file");
  EXPECT_EQ(read(file), "text");
  num_interrupts = 3;
  const nfs3::WriteRes res = write(file, 0, "other");
  EXPECT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.count, 5u);
  EXPECT_EQ(testing::read_local(dir + "/a/file"), "other");
}

}  // namespace
}  // namespace weft::serve
