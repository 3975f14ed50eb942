#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <thread>

#include "tests/serve/fixture.h"

// READ and WRITE on a thread that must not wait.
namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using nfs3::StableHow;
using testing::ExportTest;
using testing::read_local;
using testing::write_local;

class IoNowTest : public ExportTest {
 protected:
  IoNowTest() {
    calls.lies_in_memory = [this](int) { return in_memory; };
    calls.pread_nowait = [this](int fd, void* data, std::size_t len, off_t offset) -> ssize_t {
      if (num_cached == 0) return errno = EAGAIN, -1;
      return ::pread(fd, data, std::min(len, num_cached), offset);
    };
    calls.pwrite_nowait = [this](int fd, const void* data, std::size_t len, off_t offset) -> ssize_t {
      if (num_cached == 0) return errno = EAGAIN, -1;
      return ::pwrite(fd, data, std::min(len, num_cached), offset);
    };
    calls.now = [this] { return now; };
    start();
    file = *create(root(), "file").obj;
    EXPECT_EQ(write(file, 0, "0123456789").status, Nfsstat3::kOk);
    EXPECT_EQ(read(file), "0123456789");
  }

  // The result of READ; nullopt where it would have to wait.
  std::optional<std::string> read_now(std::uint64_t offset = 0, std::uint32_t count = 100) {
    std::vector<std::uint8_t> into(count);
    last_read = backend->read_now({file, offset, count}, into);
    if (!last_read) return std::nullopt;
    EXPECT_EQ(last_read->status, Nfsstat3::kOk);
    return std::string(into.begin(), into.begin() + last_read->count);
  }
  std::optional<nfs3::WriteRes> write_now(std::uint64_t offset, const std::string& text,
                                          StableHow stable = StableHow::kUnstable) {
    const nfs3::WriteArgs args{
        .file = file, .offset = offset, .count = static_cast<std::uint32_t>(text.size()), .stable = stable, .data = {}};
    return backend->write_now(args, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }

  NfsFh3 file;
  std::optional<nfs3::ReadRes> last_read;
  TimePoint now;
  bool in_memory = true;
  std::size_t num_cached = 0;  // octets that the calls without waiting give or take
};

TEST_F(IoNowTest, AFileInMemoryIsReadAndWritten) {
  const auto written = write_now(8, "ab!");
  ASSERT_TRUE(written);
  EXPECT_EQ(written->status, Nfsstat3::kOk);
  EXPECT_EQ(written->count, 3u);
  EXPECT_EQ(written->committed, StableHow::kUnstable);
  EXPECT_EQ(written->verf, backend->commit({file, 0, 0}).verf);
  EXPECT_EQ(written->file_wcc.before->size, 10u);
  EXPECT_EQ(written->file_wcc.after->size, 11u);
  EXPECT_EQ(read_local(dir + "/file"), "01234567ab!");
  EXPECT_EQ(read_now(), "01234567ab!");
  EXPECT_TRUE(last_read->eof);
  EXPECT_EQ(last_read->file_attributes->size, 11u);
  EXPECT_EQ(read_now(0, 4), "0123");
  EXPECT_FALSE(last_read->eof);
  EXPECT_EQ(read_now(UINT64_MAX, 4), "");
  EXPECT_TRUE(last_read->eof);
  EXPECT_FALSE(write_now(INT64_MAX, "x"));
}

TEST_F(IoNowTest, WhatTheCacheHoldsIsReadAndWritten) {
  in_memory = false;
  start();
  ASSERT_EQ(read(file), "0123456789");
  ASSERT_EQ(write(file, 10, "x").status, Nfsstat3::kOk);
  num_cached = 100;
  EXPECT_EQ(read_now(), "0123456789x");
  ASSERT_TRUE(write_now(10, "yz"));
  EXPECT_EQ(read_local(dir + "/file"), "0123456789yz");
}

TEST_F(IoNowTest, WhatADeviceHasIsLeftToAWorker) {
  in_memory = false;
  start();
  ASSERT_EQ(read(file), "0123456789");
  ASSERT_EQ(write(file, 10, "x").status, Nfsstat3::kOk);
  // None of it in memory; then only the beginning, which is not the file's end.
  for (std::size_t cached : {0u, 4u}) {
    num_cached = cached;
    EXPECT_FALSE(read_now()) << cached;
    EXPECT_FALSE(write_now(0, "0123456789")) << cached;
  }
  EXPECT_EQ(read_now(0, 4), "0123");
}

TEST_F(IoNowTest, AFileThatIsNotOpenIsLeftToAWorker) {
  start();
  EXPECT_FALSE(read_now());
  EXPECT_FALSE(write_now(0, "x"));
  ASSERT_EQ(read(file), "0123456789");
  EXPECT_TRUE(read_now());
  EXPECT_FALSE(write_now(0, "x"));
}

TEST_F(IoNowTest, WhatHasToReachTheDiskIsLeftToAWorker) {
  EXPECT_FALSE(write_now(0, "x", StableHow::kDataSync));
  EXPECT_FALSE(write_now(0, "x", StableHow::kFileSync));
  EXPECT_EQ(read_now(), "0123456789");
}

TEST_F(IoNowTest, WhatIsWrittenNowIsCommittedLater) {
  int num_synced = 0;
  calls.fsync = [&](int fd) { return ++num_synced, ::fsync(fd); };
  config.max_open_files = 1;
  start();
  ASSERT_EQ(write(file, 0, "x", StableHow::kFileSync).status, Nfsstat3::kOk);
  ASSERT_EQ(num_synced, 1);
  ASSERT_TRUE(write_now(0, "y"));
  // Another file takes its place among the open ones. Its unsynced octets are synced before it is closed.
  write_local(dir + "/other", "other");
  EXPECT_EQ(read(handle("other")), "other");
  backend->sync_evicted_files();
  EXPECT_EQ(num_synced, 2);
}

TEST_F(IoNowTest, AFileThatMovedIsNotFoundByItsOldPath) {
  ASSERT_TRUE(read_now());
  ASSERT_EQ(::rename((dir + "/file").c_str(), (temp / "outside").c_str()), 0);
  now += Backend::kPathHolds;
  EXPECT_FALSE(read_now());
  EXPECT_FALSE(write_now(0, "x"));
  write_local(dir + "/file", "another");
  EXPECT_FALSE(read_now());
  EXPECT_FALSE(write_now(0, "x"));
  EXPECT_EQ(read_local(dir + "/file"), "another");
  EXPECT_EQ(read_local(temp / "outside"), "0123456789");
  EXPECT_EQ(read(file), "!NFS3ERR_STALE");
}

TEST_F(IoNowTest, AnOpenFileIsTakenForLyingThereForAMoment) {
  ASSERT_TRUE(read_now());
  ASSERT_EQ(::rename((dir + "/file").c_str(), (temp / "outside").c_str()), 0);
  write_local(dir + "/file", "another");
  now += Backend::kPathHolds - std::chrono::nanoseconds(1);
  EXPECT_EQ(read_now(), "0123456789");
  const auto written = write_now(10, "x");
  ASSERT_TRUE(written);
  EXPECT_EQ(written->file_wcc.before->size, 10u);
  EXPECT_EQ(written->file_wcc.after->size, 11u);
  EXPECT_EQ(read_local(dir + "/file"), "another");
  EXPECT_EQ(read_local(temp / "outside"), "0123456789x");
  now += std::chrono::nanoseconds(1);
  EXPECT_FALSE(read_now());
}

TEST_F(IoNowTest, AFileWithoutANameIsGoneAtOnce) {
  ASSERT_TRUE(read_now());
  ASSERT_TRUE(write_now(0, "0"));
  ASSERT_EQ(::unlink((dir + "/file").c_str()), 0);
  EXPECT_FALSE(read_now());
  EXPECT_FALSE(write_now(0, "x"));
  EXPECT_EQ(read(file), "!NFS3ERR_STALE");
}

TEST_F(IoNowTest, AForgedHandleIsLeftToThoseWhoSayWhy) {
  ASSERT_TRUE(read_now());
  file.data[20] ^= 1;
  EXPECT_FALSE(read_now());
}

// A thread that changes the file holds it for the sake of wcc_data, and may be waiting for the disk meanwhile.
TEST_F(IoNowTest, AFileThatAnotherThreadChangesIsNotWaitedFor) {
  bool was_held = false;
  std::function<void()> meanwhile = [&] {
    std::thread other([&] { was_held = !write_now(0, "x"); });
    other.join();
  };
  calls.pwrite = [&](int fd, const void* data, std::size_t len, off_t offset) {
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    return ::pwrite(fd, data, len, offset);
  };
  start();
  ASSERT_EQ(write(file, 0, "z").status, Nfsstat3::kOk);
  EXPECT_TRUE(was_held);
  EXPECT_TRUE(write_now(0, "x"));
}

}  // namespace
}  // namespace weft::serve
