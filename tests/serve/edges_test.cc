#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "apps/nfs3/codec.h"
#include "apps/serve/backend/nfs_status.h"
#include "apps/serve/backend/reply_limits.h"
#include "tests/serve/fixture.h"

// Small slips in the backend that other tests miss: fields that no other test checks, and the edges of limits.
namespace weft::serve {
namespace {

using nfs3::Createmode3;
using nfs3::Nfsstat3;
using nfs3::Sattr3;
using nfs3::StableHow;
using testing::ExportTest;
using testing::read_local;
using testing::write_local;

class EdgesTest : public ExportTest {
 protected:
  struct stat local(const std::string& name) {
    struct stat st {};
    EXPECT_EQ(::lstat((dir + "/" + name).c_str(), &st), 0) << name;
    return st;
  }
  // From here on the test runs as a user that owns the export and is not root. Without root nothing changes.
  void become_nobody() {
    ASSERT_EQ(::chmod(temp.path().c_str(), 0755), 0);
    if (::geteuid() != 0) return;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
      ASSERT_EQ(::lchown(entry.path().c_str(), 65534, 65534), 0);
    }
    ASSERT_EQ(::chown(dir.c_str(), 65534, 65534), 0);
    ASSERT_EQ(::seteuid(65534), 0);
  }
  void TearDown() override {
    if (::getuid() == 0) {
      ASSERT_EQ(::seteuid(0), 0);
    }
  }
};

TEST_F(EdgesTest, EveryFieldOfFattr3) {
  write_local(dir + "/file", "12345");
  // Octets in use and size differ, and so do all three times.
  ASSERT_EQ(::truncate((dir + "/file").c_str(), 1 << 20), 0);
  const timespec times[2] = {{.tv_sec = 1000, .tv_nsec = 7}, {.tv_sec = 2000, .tv_nsec = 8}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (dir + "/file").c_str(), times, 0), 0);
  ASSERT_EQ(::link((dir + "/file").c_str(), (dir + "/second").c_str()), 0);
  const struct stat st = local("file");
  const nfs3::Fattr3 attr = backend->getattr({handle("file")}).obj_attributes;
  EXPECT_EQ(attr.type, nfs3::Ftype3::kReg);
  EXPECT_EQ(attr.nlink, 2u);
  EXPECT_EQ(attr.size, std::uint64_t{1} << 20);
  EXPECT_EQ(attr.used, static_cast<std::uint64_t>(st.st_blocks) * 512);
  EXPECT_NE(attr.used, attr.size);
  EXPECT_EQ(attr.atime, (nfs3::Nfstime3{1000, 7}));
  EXPECT_EQ(attr.mtime, (nfs3::Nfstime3{2000, 8}));
  EXPECT_EQ(attr.ctime, to_nfstime3(st.st_ctim));
  EXPECT_EQ(to_nfstime3({.tv_sec = -1, .tv_nsec = 3}).seconds, 0u);
}

TEST_F(EdgesTest, ADeviceHasItsTwoNumbers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes devices";
  if (::mknod((dir + "/dev").c_str(), S_IFCHR | 0600, ::makedev(1, 3)) != 0) {
    GTEST_SKIP() << "no devices can be made here";
  }
  const nfs3::Fattr3 attr = backend->getattr({handle("dev")}).obj_attributes;
  EXPECT_EQ(attr.type, nfs3::Ftype3::kChr);
  EXPECT_EQ(attr.rdev.specdata1, 1u);
  EXPECT_EQ(attr.rdev.specdata2, 3u);
}

// For chown(2) it means "leave it as it is".
TEST_F(EdgesTest, NoOwnerAndNoGroupIsMinusOne) {
  write_local(dir + "/file", "");
  Sattr3 attrs;
  attrs.gid = 0xffffffff;
  EXPECT_EQ(backend->setattr({handle("file"), attrs, {}}).status, Nfsstat3::kInval);
  attrs = {};
  attrs.uid = 0xffffffff;
  EXPECT_EQ(backend->setattr({handle("file"), attrs, {}}).status, Nfsstat3::kInval);
}

// To open a FIFO or a device has effects.
TEST_F(EdgesTest, ASizeIsForFilesAlone) {
  int num_opened = 0;
  calls.lies_in_memory = [&](int) { return ++num_opened, false; };
  start();
  ASSERT_EQ(::mkfifo((dir + "/fifo").c_str(), 0600), 0);
  Sattr3 attrs;
  attrs.size = 0;
  EXPECT_EQ(backend->setattr({handle("fifo"), attrs, {}}).status, Nfsstat3::kInval);
  EXPECT_EQ(num_opened, 0);
}

TEST_F(EdgesTest, WhatCannotAllBeSetIsNotSetInPart) {
  write_local(dir + "/file", "12345");
  const mode_t mode = local("file").st_mode;
  Sattr3 attrs;
  attrs.mode = 0604;
  attrs.size = 1;
  attrs.mtime = {nfs3::TimeHow::kSetToClientTime, {1, 1'000'000'000}};
  EXPECT_EQ(backend->setattr({handle("file"), attrs, {}}).status, Nfsstat3::kInval);
  EXPECT_EQ(read_local(dir + "/file"), "12345");
  EXPECT_EQ(local("file").st_mode, mode);
}

TEST_F(EdgesTest, NothingIsRemovedFromADirectoryThatMayNotBeEntered) {
  ::mkdir((dir + "/sub").c_str(), 0755);
  const nfs3::NfsFh3 sub = handle("sub");
  become_nobody();
  ASSERT_EQ(::chmod((dir + "/sub").c_str(), 0600), 0);
  EXPECT_EQ(backend->access({sub, 63}).access, nfs3::kAccessRead | nfs3::kAccessModify | nfs3::kAccessExtend);
  ASSERT_EQ(::chmod((dir + "/sub").c_str(), 0700), 0);
  EXPECT_EQ(backend->access({sub, nfs3::kAccessDelete | nfs3::kAccessLookup}).access,
            nfs3::kAccessDelete | nfs3::kAccessLookup);
}

TEST_F(EdgesTest, DotsAreNoNamesToMakeOrLink) {
  write_local(dir + "/file", "");
  for (const char* name : {".", ".."}) {
    EXPECT_EQ(create(root(), name).status, Nfsstat3::kExist) << name;
    EXPECT_EQ(backend->mkdir({{root(), name}, {}}).status, Nfsstat3::kExist) << name;
    EXPECT_EQ(backend->link({handle("file"), {root(), name}}).status, Nfsstat3::kExist) << name;
  }
  EXPECT_EQ(backend->rmdir({{root(), ".."}}).status, Nfsstat3::kExist);
}

TEST_F(EdgesTest, NothingIsMadeInAFile) {
  write_local(dir + "/file", "");
  const nfs3::NfsFh3 file = handle("file");
  EXPECT_EQ(create(file, "x").status, Nfsstat3::kNotdir);
  EXPECT_EQ(backend->mkdir({{file, "x"}, {}}).status, Nfsstat3::kNotdir);
  EXPECT_EQ(backend->link({file, {file, "x"}}).status, Nfsstat3::kNotdir);
}

// RFC 1813 section 3.3.8: the verifier belongs to a file without octets.
TEST_F(EdgesTest, AnExclusiveFileWithOctetsIsSomebodyElses) {
  const nfs3::Verf verf = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_EQ(create(root(), "f", Createmode3::kExclusive, {}, verf).status, Nfsstat3::kOk);
  const struct stat before = local("f");
  write_local(dir + "/f", "x");
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, (dir + "/f").c_str(), times, 0), 0);
  EXPECT_EQ(create(root(), "f", Createmode3::kExclusive, {}, verf).status, Nfsstat3::kExist);
  ASSERT_EQ(::truncate((dir + "/f").c_str(), 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, (dir + "/f").c_str(), times, 0), 0);
  EXPECT_EQ(create(root(), "f", Createmode3::kExclusive, {}, verf).status, Nfsstat3::kOk);
  // Each half counts.
  for (const std::size_t octet : {std::size_t{3}, std::size_t{7}}) {
    nfs3::Verf other = verf;
    other[octet] ^= 1;
    EXPECT_EQ(create(root(), "f", Createmode3::kExclusive, {}, other).status, Nfsstat3::kExist) << octet;
  }
}

TEST_F(EdgesTest, AnUncheckedCreateCutsAFileToItsSize) {
  write_local(dir + "/file", "12345");
  EXPECT_EQ(create(root(), "file").status, Nfsstat3::kOk);
  EXPECT_EQ(read_local(dir + "/file"), "12345") << "without a size it stays";
  Sattr3 attrs;
  attrs.size = 2;
  EXPECT_EQ(create(root(), "file", Createmode3::kUnchecked, attrs).status, Nfsstat3::kOk);
  EXPECT_EQ(read_local(dir + "/file"), "12");
  ASSERT_EQ(::mkfifo((dir + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(create(root(), "fifo").status, Nfsstat3::kExist) << "no file";
}

TEST_F(EdgesTest, ADirectoryKeepsTheGroupBitOfItsParent) {
  ASSERT_EQ(::mkdir((dir + "/shared").c_str(), 0755), 0);
  ASSERT_EQ(::chmod((dir + "/shared").c_str(), 02755), 0);
  Sattr3 attrs;
  attrs.mode = 0750;
  ASSERT_EQ(backend->mkdir({{handle("shared"), "sub"}, attrs}).status, Nfsstat3::kOk);
  EXPECT_EQ(local("shared/sub").st_mode & 07777, 02750u);
}

TEST_F(EdgesTest, ALinkLeadsSomewhere) {
  const auto make = [&](const std::string& text) {
    return backend
        ->symlink({.where = {root(), "link"}, .symlink_attributes = {}, .symlink_data = {}},
                  {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()})
        .status;
  };
  EXPECT_EQ(make(""), Nfsstat3::kInval);
  EXPECT_EQ(make(std::string("a\0b", 3)), Nfsstat3::kInval);
  EXPECT_EQ(make("a"), Nfsstat3::kOk);
}

TEST_F(EdgesTest, RemoveAndRmdirKeepToTheirKind) {
  write_local(dir + "/file", "");
  ::mkdir((dir + "/sub").c_str(), 0755);
  EXPECT_EQ(backend->remove({{root(), "sub"}}).status, Nfsstat3::kIsdir);
  EXPECT_EQ(backend->rmdir({{root(), "file"}}).status, Nfsstat3::kNotdir);
  EXPECT_EQ(backend->link({handle("sub"), {root(), "x"}}).status, Nfsstat3::kInval);
}

TEST_F(EdgesTest, AReaddirAtTheEndHasRoomForNothingElse) {
  write_local(dir + "/file", "");
  const nfs3::ReaddirRes all = backend->readdir({root(), 0, {}, 4096});
  ASSERT_TRUE(all.eof);
  const std::uint64_t end = all.entries.back().cookie;
  const std::size_t least = nfs3::readdir_base_len(true);
  const auto at_end = [&](std::size_t count) {
    return backend->readdir({root(), end, all.cookieverf, static_cast<std::uint32_t>(count)});
  };
  EXPECT_EQ(at_end(least).status, Nfsstat3::kOk);
  EXPECT_TRUE(at_end(least).eof);
  EXPECT_EQ(at_end(least - 1).status, Nfsstat3::kToosmall);
  const auto plus_at_end = [&](std::size_t count) {
    return backend->readdirplus({root(), end, all.cookieverf, 4096, static_cast<std::uint32_t>(count)});
  };
  EXPECT_TRUE(plus_at_end(least).eof);
  EXPECT_EQ(plus_at_end(least - 1).status, Nfsstat3::kToosmall);
}

TEST_F(EdgesTest, WhatIsAboveTheRootIsTheRootInBothListings) {
  const nfs3::ReaddirplusRes plus = backend->readdirplus({root(), 0, {}, 4096, 4096});
  ASSERT_EQ(plus.entries.size(), 2u);
  for (const nfs3::Entryplus3& entry : plus.entries) {
    EXPECT_EQ(entry.fileid, tree->root().stat.ino) << entry.name;
    EXPECT_EQ(entry.name_handle.has_value(), entry.name == ".") << entry.name;
  }
}

// To the octet: an entry that fits is there, and with one octet less it is not.
TEST_F(EdgesTest, CountsOfDirectoriesAreHeldToTheOctet) {
  ::mkdir((dir + "/sub").c_str(), 0755);
  for (const char* name : {"a", "bb", "ccc"}) write_local(dir + "/sub/" + name, "");
  const nfs3::NfsFh3 sub = handle("sub");
  const nfs3::ReaddirRes all = backend->readdir({sub, 0, {}, 4096});
  ASSERT_EQ(all.entries.size(), 5u);
  std::size_t count = nfs3::readdir_base_len(true);
  std::size_t plus_count = count;
  for (std::size_t i = 0; i < 3; ++i) {
    count += nfs3::entry_len(all.entries[i].name.size());
    plus_count += nfs3::entryplus_len(all.entries[i].name.size(), true, HandleCodec::kHandleLen);
  }
  const auto words = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  EXPECT_EQ(backend->readdir({sub, 0, {}, words(count)}).entries.size(), 3u);
  EXPECT_EQ(backend->readdir({sub, 0, {}, words(count - 1)}).entries.size(), 2u);
  EXPECT_EQ(backend->readdirplus({sub, 0, {}, 4096, words(plus_count)}).entries.size(), 3u);
  EXPECT_EQ(backend->readdirplus({sub, 0, {}, 4096, words(plus_count - 1)}).entries.size(), 2u);
  // dircount counts names and cookies; one entry there is in any case (RFC 1813 section 3.3.17).
  EXPECT_EQ(backend->readdirplus({sub, 0, {}, 0, 4096}).entries.size(), 1u);
}

// A file whose handle a client has got is found by its path after a restart, without a search of the tree.
TEST_F(EdgesTest, WhatWasMadeIsInTheIndex) {
  ::mkdir((dir + "/sub").c_str(), 0755);
  const nfs3::NfsFh3 sub = handle("sub");
  const nfs3::NfsFh3 made = *create(sub, "made").obj;
  start();
  EXPECT_EQ(getattr_status(made), Nfsstat3::kOk);
  EXPECT_EQ(tree->num_searches(), 0u);
  // The second name is known when the first goes.
  ASSERT_EQ(backend->link({made, {root(), "second"}}).status, Nfsstat3::kOk);
  ASSERT_EQ(backend->remove({{sub, "made"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(made), Nfsstat3::kOk);
  EXPECT_EQ(tree->num_searches(), 0u);
}

// A file whose attributes cannot be set is neither there nor open.
TEST_F(EdgesTest, WhatCouldNotBeMadeWholeIsTakenAway) {
  Sattr3 attrs;
  attrs.mtime = {nfs3::TimeHow::kSetToClientTime, {1, 1'000'000'000}};
  EXPECT_EQ(create(root(), "file", Createmode3::kUnchecked, attrs).status, Nfsstat3::kInval);
  EXPECT_FALSE(std::filesystem::exists(dir + "/file"));
  EXPECT_EQ(backend->num_open_files(), 0u);
  EXPECT_EQ(backend->mkdir({{root(), "sub"}, attrs}).status, Nfsstat3::kInval);
  EXPECT_FALSE(std::filesystem::exists(dir + "/sub"));
}

// A client may ask for four gigabytes.
TEST_F(EdgesTest, AReplyOfADirectoryHasALimitOfItsOwn) {
  ::mkdir((dir + "/big").c_str(), 0755);
  const std::string tail(250, 'x');
  constexpr int kNames = 4200;
  for (int i = 0; i < kNames; ++i) {
    const Fd fd(::open((dir + "/big/" + std::to_string(10000 + i) + tail).c_str(), O_CREAT | O_WRONLY, 0600));
    ASSERT_GE(fd.get(), 0);
  }
  const nfs3::NfsFh3 big = handle("big");
  const auto len = [](const auto& res) {
    std::vector<std::uint8_t> octets;
    rpcrdma::xdr::XdrWriter out(octets);
    nfs3::emit(out, res);
    return octets.size();
  };
  const nfs3::ReaddirRes plain = backend->readdir({big, 0, {}, 0xffffffff});
  EXPECT_FALSE(plain.eof);
  EXPECT_LE(len(plain), kMaxListReply + 4);
  EXPECT_GT(len(plain), kMaxListReply - 600);
  const nfs3::ReaddirplusRes plus = backend->readdirplus({big, 0, {}, 0xffffffff, 0xffffffff});
  EXPECT_FALSE(plus.eof);
  EXPECT_LE(len(plus), kMaxListReply + 4);
  EXPECT_GT(len(plus), kMaxListReply - 1200);
}

// A synced file needs no second sync when it is closed to make room for others.
TEST_F(EdgesTest, AFileThatWasSyncedIsClosedWithoutAnother) {
  int num_synced = 0;
  calls.fsync = [&](int fd) { return ++num_synced, ::fsync(fd); };
  calls.fdatasync = [&](int fd) { return ++num_synced, ::fdatasync(fd); };
  config.max_open_files = 1;
  start();
  write_local(dir + "/one", "1");
  write_local(dir + "/two", "2");
  ASSERT_EQ(write(handle("one"), 0, "x", StableHow::kFileSync).status, Nfsstat3::kOk);
  ASSERT_EQ(num_synced, 1);
  EXPECT_EQ(read(handle("two")), "2");
  EXPECT_EQ(num_synced, 1);
  ASSERT_EQ(write(handle("one"), 0, "y").status, Nfsstat3::kOk);
  EXPECT_EQ(read(handle("two")), "2");
  EXPECT_EQ(num_synced, 1) << "no Call has to wait for this";
  EXPECT_EQ(backend->num_files_waiting(), 1u);
  backend->sync_evicted_files();
  EXPECT_EQ(num_synced, 2) << "this one nobody had synced";
  EXPECT_EQ(backend->num_files_waiting(), 0u);
}

// A file that lost its place before its writes were synced is still open: for further writes, and for COMMIT. It then
// has a place again.
TEST_F(EdgesTest, AFileThatWaitsForItsSyncIsTheSameFile) {
  int num_opened = 0, num_synced = 0;
  calls.lies_in_memory = [&](int) { return ++num_opened, false; };
  calls.fsync = [&](int fd) { return ++num_synced, ::fsync(fd); };
  config.max_open_files = 1;
  start();
  write_local(dir + "/one", "1");
  write_local(dir + "/two", "2");
  const nfs3::NfsFh3 one = handle("one"), two = handle("two");
  ASSERT_EQ(write(one, 0, "x").status, Nfsstat3::kOk);
  EXPECT_EQ(read(two), "2");
  ASSERT_EQ(backend->num_files_waiting(), 1u);
  ASSERT_EQ(num_opened, 2);
  ASSERT_EQ(backend->commit({one, 0, 0}).status, Nfsstat3::kOk);
  EXPECT_EQ(num_synced, 1);
  EXPECT_EQ(num_opened, 2);
  EXPECT_EQ(backend->num_files_waiting(), 0u);

  ASSERT_EQ(write(one, 0, "y").status, Nfsstat3::kOk);
  EXPECT_EQ(read(two), "2");
  ASSERT_EQ(backend->num_files_waiting(), 1u);
  ASSERT_EQ(write(one, 0, "z").status, Nfsstat3::kOk);
  EXPECT_EQ(num_opened, 3) << "the second file was opened again, the first one was not";
  EXPECT_EQ(backend->num_files_waiting(), 0u);
  EXPECT_EQ(backend->num_open_files(), 1u);

  EXPECT_EQ(read(two), "2");
  ASSERT_EQ(backend->num_files_waiting(), 1u);
  ASSERT_EQ(backend->remove({root(), "one"}).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->num_files_waiting(), 0u) << "a removed file needs no sync";
  EXPECT_EQ(num_synced, 1);
}

// A file that is written while it is synced for its place stays open, and is synced again.
TEST_F(EdgesTest, AFileThatIsWrittenDuringTheSyncForItsPlaceIsSyncedAgain) {
  int num_synced = 0;
  nfs3::NfsFh3 one;
  calls.fsync = [&](int fd) {
    if (++num_synced == 1) {
      EXPECT_EQ(write(one, 0, "y").status, Nfsstat3::kOk);
    }
    return ::fsync(fd);
  };
  config.max_open_files = 1;
  start();
  write_local(dir + "/one", "1");
  write_local(dir + "/two", "2");
  one = handle("one");
  const nfs3::NfsFh3 two = handle("two");
  ASSERT_EQ(write(one, 0, "x").status, Nfsstat3::kOk);
  EXPECT_EQ(read(two), "2");
  backend->sync_evicted_files();
  EXPECT_EQ(num_synced, 1);
  EXPECT_EQ(backend->num_open_files(), 1u);
  EXPECT_EQ(read(two), "2");
  EXPECT_EQ(backend->num_files_waiting(), 1u);
  backend->sync_evicted_files();
  EXPECT_EQ(num_synced, 2);
  EXPECT_EQ(backend->num_files_waiting(), 0u);
}

// Another worker does not wait for the same disk.
TEST_F(EdgesTest, OneWorkerAtATimeSyncsAFileThatLostItsPlace) {
  std::size_t num_waiting = 1;
  calls.fsync = [&](int fd) {
    backend->sweep_open_files();
    num_waiting = backend->num_files_waiting();
    return ::fsync(fd);
  };
  config.max_open_files = 1;
  start();
  write_local(dir + "/one", "1");
  write_local(dir + "/two", "2");
  ASSERT_EQ(write(handle("one"), 0, "x").status, Nfsstat3::kOk);
  EXPECT_EQ(read(handle("two")), "2");
  EXPECT_EQ(backend->num_open_files(), 2u);
  backend->sync_evicted_files();
  EXPECT_EQ(num_waiting, 0u);
  EXPECT_EQ(backend->num_open_files(), 1u);
}

// Of two stable kinds the weaker leaves the attributes to a later sync.
TEST_F(EdgesTest, DataSyncAndFileSyncAreTwoCalls) {
  std::string order;
  calls.fsync = [&](int fd) { return order += 'f', ::fsync(fd); };
  calls.fdatasync = [&](int fd) { return order += 'd', ::fdatasync(fd); };
  start();
  write_local(dir + "/file", "");
  const nfs3::NfsFh3 file = handle("file");
  ASSERT_EQ(write(file, 0, "x", StableHow::kDataSync).committed, StableHow::kDataSync);
  ASSERT_EQ(write(file, 0, "x", StableHow::kFileSync).committed, StableHow::kFileSync);
  ASSERT_EQ(write(file, 0, "x").committed, StableHow::kUnstable);
  ASSERT_EQ(backend->commit({file, 0, 0}).status, Nfsstat3::kOk);
  EXPECT_EQ(order, "dff");
}

// Its descriptor for writing may be the only one that there can be.
TEST_F(EdgesTest, AFileThatMayOnlyBeWrittenIsWrittenAndCommitted) {
  write_local(dir + "/drop", "old");
  const nfs3::NfsFh3 drop = handle("drop");
  become_nobody();
  ASSERT_EQ(::chmod((dir + "/drop").c_str(), 0200), 0);
  EXPECT_EQ(backend->commit({drop, 0, 0}).status, Nfsstat3::kOk);
  EXPECT_EQ(write(drop, 0, "new", StableHow::kFileSync).status, Nfsstat3::kOk);
  EXPECT_EQ(read(drop), "!NFS3ERR_ACCES");
  std::vector<std::uint8_t> into(10);
  EXPECT_FALSE(backend->read_now({drop, 0, 10}, into)) << "nor without waiting";
}

// The file that was used last stays open.
TEST_F(EdgesTest, OpenFilesGoInTheOrderOfTheirLastUse) {
  std::string opened;  // descriptors are told of as they are opened
  calls.lies_in_memory = [&](int fd) {
    struct stat st {};
    EXPECT_EQ(::fstat(fd, &st), 0);
    opened += std::to_string(st.st_size);
    return false;
  };
  config.max_open_files = 2;
  start();
  for (const char* text : {"x", "xx", "xxx"}) write_local(dir + "/" + text, text);
  const nfs3::NfsFh3 one = handle("x"), two = handle("xx"), three = handle("xxx");
  for (const nfs3::NfsFh3& file : {one, two, one, three, one, three}) read(file);
  EXPECT_EQ(opened, "123") << "the second went for the third, and the first stayed";
  read(two);
  EXPECT_EQ(opened, "1232");
  read(three);
  EXPECT_EQ(opened, "1232") << "of two, the one that was not used last had gone";
  read(one);
  EXPECT_EQ(opened, "12321");
}

// Written and then opened for reading: one descriptor is for both, and the one that may hold WRITEs stays.
TEST_F(EdgesTest, WhatIsOpenForWritingIsReadThroughTheSame) {
  int num_opened = 0;
  calls.lies_in_memory = [&](int) { return ++num_opened, false; };
  start();
  write_local(dir + "/file", "12345");
  const nfs3::NfsFh3 file = handle("file");
  EXPECT_EQ(write(file, 0, "x").status, Nfsstat3::kOk);
  EXPECT_EQ(read(file), "x2345");
  EXPECT_EQ(write(file, 1, "y").status, Nfsstat3::kOk);
  EXPECT_EQ(num_opened, 1);
  const nfs3::NfsFh3 other = (write_local(dir + "/other", "67890"), handle("other"));
  EXPECT_EQ(read(other), "67890");
  EXPECT_EQ(write(other, 0, "z").status, Nfsstat3::kOk);
  EXPECT_EQ(read(other), "z7890");
  EXPECT_EQ(num_opened, 3) << "for reading, then for both";
}

}  // namespace
}  // namespace weft::serve
