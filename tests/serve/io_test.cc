#include <linux/capability.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <utility>

#include "tests/serve/fixture.h"

// READ, WRITE, COMMIT and their promises.
namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using nfs3::StableHow;
using testing::ExportTest;
using testing::read_local;
using testing::write_local;

class IoTest : public ExportTest {
 protected:
  IoTest() {
    calls.fsync = [this](int fd) { return num_fsync++, sync_error == 0 ? ::fsync(fd) : (errno = sync_error, -1); };
    calls.fdatasync = [this](int fd) {
      return num_fdatasync++, sync_error == 0 ? ::fdatasync(fd) : (errno = sync_error, -1);
    };
    start();
    file = *create(root(), "file").obj;
  }
  nfs3::ReadRes read_res(std::uint64_t offset, std::uint32_t count) {
    into.assign(count, 0xa5);
    return backend->read({file, offset, count}, into);
  }
  NfsFh3 file;
  std::vector<std::uint8_t> into;
  int num_fsync = 0, num_fdatasync = 0, sync_error = 0;
};

TEST_F(IoTest, WhatIsWrittenIsRead) {
  nfs3::WriteRes res = write(file, 0, "hello");
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.count, 5u);
  EXPECT_EQ(res.committed, StableHow::kUnstable);
  EXPECT_EQ(res.file_wcc.before->size, 0u);
  EXPECT_EQ(res.file_wcc.after->size, 5u);
  ASSERT_EQ(write(file, 3, "p!").status, Nfsstat3::kOk);
  EXPECT_EQ(read(file), "help!");
  EXPECT_EQ(read_local(dir + "/file"), "help!");
}

TEST_F(IoTest, EofIsExact) {
  write(file, 0, "0123456789");
  nfs3::ReadRes res = read_res(0, 10);
  EXPECT_EQ(res.count, 10u);
  EXPECT_TRUE(res.eof);
  res = read_res(0, 9);
  EXPECT_EQ(res.count, 9u);
  EXPECT_FALSE(res.eof);
  res = read_res(8, 100);
  EXPECT_EQ(res.count, 2u);
  EXPECT_TRUE(res.eof);
  res = read_res(10, 4);
  EXPECT_EQ(res.count, 0u);
  EXPECT_TRUE(res.eof);
  res = read_res(3, 0);
  EXPECT_EQ(res.count, 0u);
  EXPECT_FALSE(res.eof);
  for (std::uint64_t offset : {std::uint64_t{1} << 40, std::uint64_t{INT64_MAX}, std::uint64_t{INT64_MAX} - 3,
                               std::uint64_t{1} << 63, UINT64_MAX}) {
    res = read_res(offset, 8);
    EXPECT_EQ(res.status, Nfsstat3::kOk) << offset;
    EXPECT_EQ(res.count, 0u) << offset;
    EXPECT_TRUE(res.eof) << offset;
  }
}

TEST_F(IoTest, OffsetsBeyond4GiB) {
  const std::uint64_t offset = (std::uint64_t{5} << 30) + 7;
  ASSERT_EQ(write(file, offset, "far").status, Nfsstat3::kOk);
  EXPECT_EQ(read(file, offset, 100), "far");
  EXPECT_EQ(read(file, offset - 2, 3), std::string("\0\0f", 3));
  nfs3::GetattrRes attr = backend->getattr({file});
  EXPECT_EQ(attr.obj_attributes.size, offset + 3);
  EXPECT_LT(attr.obj_attributes.used, 1u << 20);  // a hole
  EXPECT_FALSE(read_res((std::uint64_t{1} << 32) - 4, 8).eof);
}

TEST_F(IoTest, RangesThatOverflowAreTooBig) {
  EXPECT_EQ(write(file, UINT64_MAX, "x").status, Nfsstat3::kFbig);
  EXPECT_EQ(write(file, UINT64_MAX - 1, "xyz").status, Nfsstat3::kFbig);
  EXPECT_EQ(write(file, std::uint64_t{INT64_MAX}, "x").status, Nfsstat3::kFbig);
  EXPECT_EQ(write(file, std::uint64_t{INT64_MAX} - 1, "xy").status, Nfsstat3::kFbig);
  EXPECT_EQ(backend->getattr({file}).obj_attributes.size, 0u);
}

TEST_F(IoTest, CountsAreHeldToTheMaximum) {
  config.rtmax = config.wtmax = 4096;
  start();
  nfs3::WriteRes res = write(file, 0, std::string(10000, 'x'));
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.count, 4096u);
  ASSERT_EQ(write(file, 4096, std::string(4096, 'y')).status, Nfsstat3::kOk);
  nfs3::ReadRes read = read_res(0, 8192);
  EXPECT_EQ(read.count, 4096u);
  EXPECT_FALSE(read.eof);
}

TEST_F(IoTest, ACountThatIsNotTheDataIsRefused) {
  const std::uint8_t data[] = {1, 2, 3, 4};
  nfs3::WriteArgs args;
  args.file = file;
  for (std::uint32_t count : {0u, 3u, 5u, 0xffffffffu}) {
    args.count = count;
    EXPECT_EQ(backend->write(args, data).status, Nfsstat3::kInval) << count;
  }
}

TEST_F(IoTest, NotOnlyFiles) {
  EXPECT_EQ(read(root()), "!NFS3ERR_ISDIR");
  EXPECT_EQ(write(root(), 0, "x").status, Nfsstat3::kIsdir);
  EXPECT_EQ(backend->commit({root(), 0, 0}).status, Nfsstat3::kIsdir);
}

TEST_F(IoTest, StabilityIsAsAsked) {
  const nfs3::WriteRes unstable = write(file, 0, "a", StableHow::kUnstable);
  EXPECT_EQ(unstable.committed, StableHow::kUnstable);
  EXPECT_EQ(num_fsync + num_fdatasync, 0);
  EXPECT_EQ(write(file, 1, "b", StableHow::kDataSync).committed, StableHow::kDataSync);
  EXPECT_EQ(num_fdatasync, 1);
  EXPECT_EQ(write(file, 2, "c", StableHow::kFileSync).committed, StableHow::kFileSync);
  EXPECT_EQ(num_fsync, 1);
  nfs3::CommitRes commit = backend->commit({file, 0, 0});
  EXPECT_EQ(commit.status, Nfsstat3::kOk);
  EXPECT_EQ(num_fsync, 2);
  EXPECT_EQ(commit.verf, unstable.verf);
}

TEST_F(IoTest, TheVerifierIsNewAtEachStart) {
  const nfs3::Verf before = write(file, 0, "a").verf;
  EXPECT_EQ(before, write(file, 1, "b").verf);
  start();
  EXPECT_NE(before, write(file, 0, "a").verf);
}

TEST_F(IoTest, AFailedSyncBreaksThePromise) {
  const nfs3::Verf before = write(file, 0, "a").verf;
  sync_error = EIO;
  EXPECT_EQ(backend->commit({file, 0, 0}).status, Nfsstat3::kIo);
  sync_error = 0;
  nfs3::CommitRes commit = backend->commit({file, 0, 0});
  EXPECT_EQ(commit.status, Nfsstat3::kOk);
  EXPECT_NE(commit.verf, before);
  sync_error = ENOSPC;
  EXPECT_EQ(write(file, 0, "a", StableHow::kFileSync).status, Nfsstat3::kNospc);
  sync_error = 0;
  EXPECT_NE(write(file, 0, "a").verf, commit.verf);
}

TEST_F(IoTest, AFailureWhileClosingForRoomBreaksThePromiseToo) {
  config.max_open_files = 2;
  start();
  const nfs3::Verf before = write(file, 0, "a").verf;
  sync_error = EIO;
  for (int i = 0; i < 4; ++i) create(root(), "other" + std::to_string(i));
  backend->sync_evicted_files();
  sync_error = 0;
  EXPECT_EQ(num_fsync, 1);
  EXPECT_NE(backend->commit({file, 0, 0}).verf, before);
}

TEST_F(IoTest, MetadataIsSynced) {
  config.sync_metadata = true;
  start();
  num_fsync = 0;
  ASSERT_EQ(create(root(), "new").status, Nfsstat3::kOk);
  EXPECT_EQ(num_fsync, 2);  // the file and its directory
  ASSERT_EQ(backend->remove({{root(), "new"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(num_fsync, 3);
  sync_error = EIO;
  EXPECT_EQ(backend->mkdir({{root(), "d"}, {}}).status, Nfsstat3::kIo);
}

TEST_F(IoTest, AFullDiskIsSaidAndShortWritesAreShort) {
  int room = 7;
  calls.pwrite = [&](int fd, const void* data, std::size_t len, off_t offset) -> ssize_t {
    if (room == 0) return errno = ENOSPC, -1;
    len = std::min<std::size_t>(len, static_cast<std::size_t>(room));
    room -= static_cast<int>(len);
    return ::pwrite(fd, data, len, offset);
  };
  start();
  nfs3::WriteRes res = write(file, 0, "0123456789");
  EXPECT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.count, 7u);
  res = write(file, 7, "789");
  EXPECT_EQ(res.status, Nfsstat3::kNospc);
  EXPECT_EQ(res.file_wcc.after->size, 7u);
  EXPECT_EQ(read(file), "0123456");
}

TEST_F(IoTest, AFileSizeLimitIsAnErrorNotTheEnd) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto old = ::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 8192;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  nfs3::WriteRes over = write(file, 8192, "x");
  nfs3::WriteRes across = write(file, 8190, "xyz");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, old);
  EXPECT_EQ(over.status, Nfsstat3::kFbig);
  EXPECT_EQ(across.status, Nfsstat3::kOk);
  EXPECT_EQ(across.count, 2u);
}

TEST_F(IoTest, FewDescriptorsServeManyFiles) {
  const auto num_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  config.max_open_files = 3;
  start();
  const auto before = num_descriptors();
  std::vector<NfsFh3> files;
  for (int i = 0; i < 20; ++i) {
    files.push_back(*create(root(), "f" + std::to_string(i)).obj);
    ASSERT_EQ(write(files.back(), 0, "text" + std::to_string(i)).status, Nfsstat3::kOk);
  }
  EXPECT_EQ(num_descriptors() - before, 4) << "three are open, and one waits for its sync";
  backend->sync_evicted_files();
  EXPECT_EQ(num_descriptors() - before, 3);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(read(files[static_cast<std::size_t>(i)]), "text" + std::to_string(i));
  backend->sync_evicted_files();
  EXPECT_EQ(num_descriptors() - before, 3);
}

// Other clients write while COMMIT syncs. The attributes that a client takes for its own change must not contain
// theirs.
TEST_F(IoTest, CommitFramesNoChangeOfOthers) {
  ASSERT_EQ(write(file, 0, "mine").status, Nfsstat3::kOk);
  calls.fsync = [this](int) { return write(file, 4, " and others'").status == Nfsstat3::kOk ? 0 : -1; };
  start();
  const nfs3::CommitRes res = backend->commit({file, 0, 0});
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_FALSE(res.file_wcc.before.has_value());
  EXPECT_EQ(res.file_wcc.after->size, 16u);
  calls.fsync = [](int) { return errno = EIO, -1; };
  start();
  const nfs3::CommitRes failed = backend->commit({file, 0, 0});
  EXPECT_EQ(failed.status, Nfsstat3::kIo);
  EXPECT_FALSE(failed.file_wcc.before.has_value());
  EXPECT_TRUE(failed.file_wcc.after.has_value());
}

// A change of names changes the file, too, and a CREATE can cut it: they wait for a WRITE that is under way.
TEST_F(IoTest, WriteFramesNoChangeOfNames) {
  ASSERT_EQ(backend->link({file, {root(), "second"}}).status, Nfsstat3::kOk);
  const std::vector<std::function<void()>> changes = {
      [&] {
        backend->remove({{root(), "second"}});
      },
      [&] {
        backend->rename({{root(), "file"}, {root(), "renamed"}});
      },
      [&] {
        nfs3::Sattr3 empty;
        empty.size = 0;
        create(root(), "renamed", nfs3::Createmode3::kUnchecked, empty);
      },
  };
  for (const auto& change : changes) {
    std::future<void> changed;
    calls.pwrite = [&](int fd, const void* data, std::size_t len, off_t offset) {
      changed = std::async(std::launch::async, change);
      // It cannot end before the WRITE does. Where it can, this sees it.
      EXPECT_EQ(changed.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
      return ::pwrite(fd, data, len, offset);
    };
    start();
    const nfs3::Fattr3 before = backend->getattr({file}).obj_attributes;
    const nfs3::WriteRes res = write(file, 0, "0123");
    ASSERT_EQ(res.status, Nfsstat3::kOk);
    EXPECT_EQ(res.file_wcc.before->ctime, before.ctime);
    EXPECT_EQ(res.file_wcc.after->nlink, before.nlink);
    EXPECT_GE(res.file_wcc.after->size, 4u);
    changed.get();
  }
}

TEST_F(IoTest, ADirectoryThatCannotBeSyncedIsNoFailure) {
  calls.fsync = [](int fd) {
    struct stat st {};
    return ::fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? (errno = EINVAL, -1) : 0;
  };
  config.sync_metadata = true;
  start();
  EXPECT_EQ(backend->mkdir({{root(), "d"}, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(create(handle("d"), "f").status, Nfsstat3::kOk);
  EXPECT_EQ(backend->remove({{handle("d"), "f"}}).status, Nfsstat3::kOk);
  calls.fsync = [](int) { return errno = EINVAL, -1; };
  start();
  EXPECT_EQ(create(root(), "g").status, Nfsstat3::kInval);  // a file's sync tells of its content
}

class IdleTest : public IoTest {
 protected:
  void sweep(unsigned times) {
    for (unsigned i = 0; i < times; ++i) backend->sweep_open_files();
  }
  // Whether a local process may execute the file.
  bool runs(const std::string& name) const {
    const std::string path = dir + "/" + name;
    pid_t pid = -1;
    char* const words[] = {const_cast<char*>(path.c_str()), nullptr};
    const int error = ::posix_spawn(&pid, path.c_str(), nullptr, nullptr, words, environ);
    if (error != 0) {
      EXPECT_EQ(error, ETXTBSY);
      return false;
    }
    int status = -1;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return status == 0;
  }
};

TEST_F(IdleTest, AProgramThatWasPutRunsOnceItsDescriptorIsIdle) {
  nfs3::Sattr3 attrs;
  attrs.mode = 0755;
  const NfsFh3 program = *create(root(), "program", nfs3::Createmode3::kGuarded, attrs).obj;
  ASSERT_EQ(write(program, 0, "#!/bin/true\n").status, Nfsstat3::kOk);
  ASSERT_FALSE(runs("program"));
  num_fsync = 0;
  sweep(OpenFiles::kIdleSweeps - 1);
  EXPECT_FALSE(runs("program"));
  ASSERT_EQ(write(program, 0, "#!/bin/true\n").status, Nfsstat3::kOk);  // used: it counts from here
  sweep(OpenFiles::kIdleSweeps - 1);
  EXPECT_FALSE(runs("program"));
  EXPECT_EQ(num_fsync, 0);
  sweep(1);
  EXPECT_TRUE(runs("program"));
  EXPECT_EQ(backend->num_open_files(), 0u);
  EXPECT_GE(num_fsync, 1);  // the unsynced octets
}

TEST_F(IdleTest, ARemovedFileIsClosedAtTheNextSweep) {
  ASSERT_EQ(write(file, 0, "text").status, Nfsstat3::kOk);
  ASSERT_EQ(read(file), "text");
  ASSERT_EQ(::unlink((dir + "/file").c_str()), 0);
  num_fsync = 0;
  sweep(1);
  EXPECT_EQ(backend->num_open_files(), 0u);
  EXPECT_EQ(num_fsync, 0);
  // One that was removed here is closed at once.
  const NfsFh3 other = *create(root(), "other").obj;
  ASSERT_EQ(write(other, 0, "text").status, Nfsstat3::kOk);
  EXPECT_EQ(backend->num_open_files(), 1u);
  ASSERT_EQ(backend->remove({{root(), "other"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->num_open_files(), 0u);
}

TEST_F(IdleTest, AFailureWhileClosingBreaksThePromise) {
  const nfs3::Verf before = write(file, 0, "a").verf;
  sync_error = EIO;
  sweep(OpenFiles::kIdleSweeps);
  sync_error = 0;
  EXPECT_EQ(backend->num_open_files(), 0u);
  EXPECT_NE(backend->commit({file, 0, 0}).verf, before);
}

TEST_F(IdleTest, AFileThatIsInUseStaysOpen) {
  calls.pwrite = [this](int fd, const void* data, std::size_t len, off_t offset) {
    sweep(OpenFiles::kIdleSweeps);
    EXPECT_EQ(backend->num_open_files(), 1u);
    return ::pwrite(fd, data, len, offset);
  };
  start();
  ASSERT_EQ(write(file, 0, "text").status, Nfsstat3::kOk);
  sweep(OpenFiles::kIdleSweeps);
  EXPECT_EQ(backend->num_open_files(), 0u);
}

// A sync may take seconds. Files that lose their place meanwhile close at once.
TEST_F(IdleTest, ASweepHoldsOneFileAtATime) {
  const auto num_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  std::function<void()> during_sync;
  calls.fsync = [&](int fd) {
    if (during_sync) std::exchange(during_sync, nullptr)();
    return ::fsync(fd);
  };
  config.max_open_files = 4;
  start();
  std::vector<NfsFh3> files;
  for (int i = 0; i < 7; ++i) {
    const std::string name = "f" + std::to_string(i);
    write_local(dir + "/" + name, "text");
    files.push_back(handle(name));
  }
  const auto before = num_descriptors();
  ASSERT_EQ(write(file, 0, "text").status, Nfsstat3::kOk);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(read(files[i]), "text");
  sweep(OpenFiles::kIdleSweeps - 1);
  auto num = before;
  during_sync = [&] {
    for (std::size_t i = 3; i < 7; ++i) EXPECT_EQ(read(files[i]), "text");
    num = num_descriptors();
  };
  sweep(1);
  EXPECT_FALSE(during_sync) << "the file that was written was synced";
  EXPECT_EQ(num - before, 5) << "the four that were read last, and the one that is synced";
}

// A file that is read first has two descriptors, one for each purpose.
TEST_F(IdleTest, AReaderBesideAWriterIsCountedByItself) {
  ASSERT_EQ(write(file, 0, "text").status, Nfsstat3::kOk);
  sweep(OpenFiles::kIdleSweeps);
  ASSERT_EQ(backend->num_open_files(), 0u);
  calls.pread = [this](int fd, void* into, std::size_t len, off_t offset) {
    sweep(OpenFiles::kIdleSweeps);
    EXPECT_EQ(backend->num_open_files(), 1u);
    return ::pread(fd, into, len, offset);
  };
  start();
  ASSERT_EQ(read(file), "text");
  ASSERT_EQ(write(file, 0, "Text").status, Nfsstat3::kOk);
  ASSERT_EQ(read(file), "Text");
  EXPECT_EQ(backend->num_open_files(), 1u);
  sweep(OpenFiles::kIdleSweeps);
  EXPECT_EQ(backend->num_open_files(), 0u);
}

// Its creator may write it, as on a local filesystem, and clients write behind their user by half a minute.
TEST_F(IdleTest, AFileThatTheModeForbidsToWriteIsKeptForItsCreator) {
  testing::run_without({CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}, [&] {
    nfs3::Sattr3 attrs;
    attrs.mode = 0444;
    const NfsFh3 protected_file = *create(root(), "protected", nfs3::Createmode3::kGuarded, attrs).obj;
    sweep(OpenFiles::kIdleSweeps + 1);
    ASSERT_EQ(write(protected_file, 0, "first").status, Nfsstat3::kOk);
    sweep(OpenFiles::kIdleSweeps + 1);
    ASSERT_EQ(write(protected_file, 5, "second").status, Nfsstat3::kOk);
    // The committing client has written it all.
    ASSERT_EQ(backend->commit({protected_file, 0, 0}).status, Nfsstat3::kOk);
    sweep(OpenFiles::kIdleSweeps);
    EXPECT_EQ(write(protected_file, 11, "third").status, Nfsstat3::kAcces);
    const NfsFh3 left = *create(root(), "left", nfs3::Createmode3::kGuarded, attrs).obj;
    sweep(OpenFiles::kNeededSweeps);
    EXPECT_EQ(backend->num_open_files(), 0u);
    EXPECT_EQ(write(left, 0, "late").status, Nfsstat3::kAcces);
  });
}

}  // namespace
}  // namespace weft::serve
