#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>

#include "tests/serve/fixture.h"

// The server's answers about itself and its filesystem, field by field, and that it keeps to them. Also the system
// calls of DiskCalls without a test in their place.
namespace weft::serve {
namespace {

using nfs3::Nfsstat3;
using testing::ExportTest;
using testing::read_local;
using testing::write_local;

class FactsTest : public ExportTest {
 protected:
  FactsTest() {
    // Nothing is the same as anything else.
    config.rtmax = 20480;
    config.wtmax = 12288;
    start();
    write_local(dir + "/file", std::string(50000, 'x'));
    file = handle("file");
  }
  nfs3::NfsFh3 file;
};

TEST_F(FactsTest, EveryFieldOfFsinfo) {
  const nfs3::FsinfoRes res = backend->fsinfo({file});
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  ASSERT_TRUE(res.obj_attributes);
  EXPECT_EQ(res.obj_attributes->size, 50000u);
  EXPECT_EQ(res.rtmax, 20480u);
  EXPECT_EQ(res.rtpref, 20480u);
  EXPECT_EQ(res.rtmult, 4096u);
  EXPECT_EQ(res.wtmax, 12288u);
  EXPECT_EQ(res.wtpref, 12288u);
  EXPECT_EQ(res.wtmult, 4096u);
  EXPECT_EQ(res.dtpref, 65536u);
  EXPECT_EQ(res.maxfilesize, static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()));
  EXPECT_EQ(res.time_delta.seconds, 0u);
  EXPECT_EQ(res.time_delta.nseconds, 1u);
  // RFC 1813 section 3.3.19: FSF3_LINK, FSF3_SYMLINK, FSF3_HOMOGENEOUS, FSF3_CANSETTIME.
  EXPECT_EQ(res.properties, 0x1u | 0x2u | 0x8u | 0x10u);
}

TEST_F(FactsTest, AReadAndAWriteMoveNoMoreThanFsinfoSays) {
  const nfs3::FsinfoRes res = backend->fsinfo({file});
  std::vector<std::uint8_t> into(40000);
  const nfs3::ReadRes got = backend->read({.file = file, .offset = 0, .count = 40000}, into);
  EXPECT_EQ(got.count, res.rtmax);
  EXPECT_FALSE(got.eof);
  const nfs3::WriteRes put = write(file, 0, std::string(40000, 'y'));
  ASSERT_EQ(put.status, Nfsstat3::kOk);
  EXPECT_EQ(put.count, res.wtmax);
  const std::string now = read_local(dir + "/file");
  EXPECT_EQ(now.substr(0, res.wtmax), std::string(res.wtmax, 'y'));
  EXPECT_EQ(now.substr(res.wtmax), std::string(50000 - res.wtmax, 'x'));
  // The same on the thread that does not wait.
  const auto got_now = backend->read_now({.file = file, .offset = 0, .count = 40000}, into);
  if (got_now) {
    EXPECT_EQ(got_now->count, res.rtmax);
  }
  const std::string more(40000, 'z');
  nfs3::WriteArgs args;
  args.file = file;
  args.count = 40000;
  const auto put_now = backend->write_now(args, {reinterpret_cast<const std::uint8_t*>(more.data()), more.size()});
  if (put_now) {
    EXPECT_EQ(put_now->count, res.wtmax);
    EXPECT_EQ(read_local(dir + "/file").substr(res.wtmax), std::string(50000 - res.wtmax, 'x'));
  }
}

TEST_F(FactsTest, EveryFieldOfPathconf) {
  const nfs3::PathconfRes res = backend->pathconf({file});
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  ASSERT_TRUE(res.obj_attributes);
  EXPECT_EQ(res.obj_attributes->size, 50000u);
  const long links = ::pathconf((dir + "/file").c_str(), _PC_LINK_MAX);
  EXPECT_EQ(res.linkmax, links > 0 ? static_cast<std::uint32_t>(std::min<long>(links, 0x7fffffff)) : 32000u);
  EXPECT_EQ(res.name_max, 255u);
  EXPECT_TRUE(res.no_trunc);
  EXPECT_TRUE(res.chown_restricted);
  EXPECT_FALSE(res.case_insensitive);
  EXPECT_TRUE(res.case_preserving);
  // It keeps to it: a name of that length is taken whole, one octet more is refused and not cut, case counts.
  EXPECT_EQ(create(root(), std::string(255, 'n')).status, Nfsstat3::kOk);
  EXPECT_EQ(create(root(), std::string(256, 'n')).status, Nfsstat3::kNametoolong);
  EXPECT_EQ(create(root(), "FILE", nfs3::Createmode3::kGuarded).status, Nfsstat3::kOk);
  EXPECT_EQ(lookup(root(), "File").status, Nfsstat3::kNoent);
}

TEST_F(FactsTest, EveryFieldOfFsstat) {
  struct statvfs fs {};
  ASSERT_EQ(::statvfs(dir.c_str(), &fs), 0);
  const nfs3::FsstatRes res = backend->fsstat({file});
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  ASSERT_TRUE(res.obj_attributes);
  EXPECT_EQ(res.obj_attributes->size, 50000u);
  EXPECT_EQ(res.tbytes, std::uint64_t{fs.f_blocks} * fs.f_frsize);
  EXPECT_EQ(res.tfiles, fs.f_files);
  // The free space may change while the tests run. The order of the numbers may not.
  EXPECT_LE(res.abytes, res.fbytes);
  EXPECT_LE(res.fbytes, res.tbytes);
  EXPECT_LE(res.afiles, res.ffiles);
  EXPECT_LE(res.ffiles, res.tfiles);
  EXPECT_EQ(res.fbytes % fs.f_frsize, 0u);
  EXPECT_EQ(res.fbytes > 0, fs.f_bfree > 0);
  EXPECT_EQ(res.abytes > 0, fs.f_bavail > 0);
}

TEST_F(FactsTest, AHandleThatNamesNothingGetsNoFacts) {
  ASSERT_EQ(::unlink((dir + "/file").c_str()), 0);
  EXPECT_EQ(backend->fsinfo({file}).status, Nfsstat3::kStale);
  EXPECT_EQ(backend->pathconf({file}).status, Nfsstat3::kStale);
  EXPECT_EQ(backend->fsstat({file}).status, Nfsstat3::kStale);
}

// /proc/self/mem can be read and written at an offset, which is an address, but knows no RWF_NOWAIT: so the flag shows.
TEST(DiskCallsTest, NowaitIsAskedOfTheSystem) {
  Fd fd(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  ASSERT_GE(fd.get(), 0);
  volatile char octet = 'a';
  const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(&octet));
  const DiskCalls calls;
  char got = 0;
  ASSERT_EQ(calls.pread(fd.get(), &got, 1, at), 1);
  EXPECT_EQ(got, 'a');
  ASSERT_EQ(calls.pwrite(fd.get(), "b", 1, at), 1);
  EXPECT_EQ(octet, 'b');
  errno = 0;
  EXPECT_EQ(calls.pread_nowait(fd.get(), &got, 1, at), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  errno = 0;
  EXPECT_EQ(calls.pwrite_nowait(fd.get(), "c", 1, at), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(octet, 'b');
}

TEST_F(FactsTest, NowaitReadsAndWritesTheOctetsAtTheOffset) {
  write_local(dir + "/octets", "0123456789");
  Fd fd(::open((dir + "/octets").c_str(), O_RDWR | O_CLOEXEC));
  char into[4] = {};
  const ssize_t got = pread_nowait(fd.get(), into, 4, 3);
  if (got < 0) {
    EXPECT_TRUE(errno == EAGAIN || errno == EOPNOTSUPP) << errno;
  } else {
    EXPECT_EQ(std::string(into, static_cast<std::size_t>(got)),
              std::string("3456").substr(0, static_cast<std::size_t>(got)));
  }
  const ssize_t put = pwrite_nowait(fd.get(), "abc", 3, 5);
  if (put < 0) {
    EXPECT_TRUE(errno == EAGAIN || errno == EOPNOTSUPP) << errno;
  } else {
    EXPECT_EQ(read_local(dir + "/octets"), std::string("01234abc89").replace(5, 3, "abc", 3));
  }
}

TEST(DiskCallsTest, MemoryIsToldFromDevices) {
  const DiskCalls calls;
  struct Place {
    const char* path;
    bool in_memory;
  };
  for (const Place& place : {Place{"/proc/self/comm", false}, Place{"/dev/shm", true}}) {
    Fd fd(::open(place.path, O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) continue;  // a machine without it
    struct statvfs fs {};
    ASSERT_EQ(::fstatvfs(fd.get(), &fs), 0);
    EXPECT_EQ(calls.lies_in_memory(fd.get()), place.in_memory) << place.path;
  }
  EXPECT_FALSE(calls.lies_in_memory(-1));
}

}  // namespace
}  // namespace weft::serve
