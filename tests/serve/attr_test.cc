#include <sys/stat.h>
#include <unistd.h>

#include "apps/serve/backend/nfs_status.h"
#include "tests/serve/fixture.h"

// GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF.
namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using nfs3::Sattr3;
using testing::ExportTest;
using testing::write_local;

class AttrTest : public ExportTest {
 protected:
  AttrTest() {
    write_local(dir + "/file", "12345");
    ::chmod((dir + "/file").c_str(), 0640);
    file = handle("file");
  }
  struct stat local(const std::string& name) {
    struct stat st {};
    EXPECT_EQ(::lstat((dir + "/" + name).c_str(), &st), 0) << name;
    return st;
  }
  NfsFh3 file;
};

TEST(NfsStatus, NamesWhatTheRfcNames) {
  EXPECT_EQ(to_nfsstat3(Errno{ENOSPC}), Nfsstat3::kNospc);
  EXPECT_EQ(to_nfsstat3(Errno{EDQUOT}), Nfsstat3::kDquot);
  EXPECT_EQ(to_nfsstat3(Errno{EMFILE}), Nfsstat3::kJukebox);
  EXPECT_EQ(to_nfsstat3(Errno{EBADMSG}), Nfsstat3::kBadhandle);
  EXPECT_EQ(to_nfsstat3(Errno{EPIPE}), Nfsstat3::kServerfault);
}

TEST(NfsStatus, TimesOutside32BitsAreClamped) {
  EXPECT_EQ(to_nfstime3({.tv_sec = -5, .tv_nsec = 3}).seconds, 0u);
  EXPECT_EQ(to_nfstime3({.tv_sec = std::int64_t{1} << 33, .tv_nsec = 3}).seconds, 0xffffffffu);
}

TEST_F(AttrTest, GetattrSaysWhatLstatSays) {
  nfs3::GetattrRes res = backend->getattr({file});
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  const struct stat st = local("file");
  const nfs3::Fattr3& attr = res.obj_attributes;
  EXPECT_EQ(attr.type, nfs3::Ftype3::kReg);
  EXPECT_EQ(attr.mode, 0640u);
  EXPECT_EQ(attr.nlink, 1u);
  EXPECT_EQ(attr.uid, st.st_uid);
  EXPECT_EQ(attr.gid, st.st_gid);
  EXPECT_EQ(attr.size, 5u);
  EXPECT_EQ(attr.used, static_cast<std::uint64_t>(st.st_blocks) * 512);
  EXPECT_EQ(attr.fileid, st.st_ino);
  EXPECT_EQ(attr.mtime, to_nfstime3(st.st_mtim));
  EXPECT_EQ(attr.ctime, to_nfstime3(st.st_ctim));
  EXPECT_EQ(backend->getattr({root()}).obj_attributes.type, nfs3::Ftype3::kDir);
  EXPECT_EQ(backend->getattr({root()}).obj_attributes.fsid, attr.fsid);
}

TEST_F(AttrTest, SetattrSetsEachAttribute) {
  Sattr3 attrs;
  attrs.mode = 0604;
  attrs.size = 3;
  attrs.atime = {nfs3::TimeHow::kSetToClientTime, {1000, 5}};
  attrs.mtime = {nfs3::TimeHow::kSetToClientTime, {2000, 6}};
  attrs.uid = ::geteuid();
  attrs.gid = ::getegid();
  nfs3::WccRes res = backend->setattr({file, attrs, {}});
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  const struct stat st = local("file");
  EXPECT_EQ(st.st_mode & 07777, 0604u);
  EXPECT_EQ(st.st_size, 3);
  EXPECT_EQ(st.st_atim.tv_sec, 1000);
  EXPECT_EQ(st.st_mtim.tv_sec, 2000);
  EXPECT_EQ(res.wcc.before->size, 5u);
  EXPECT_EQ(res.wcc.after->size, 3u);
  EXPECT_EQ(res.wcc.after->mode, 0604u);
  Sattr3 now;
  now.mtime.how = nfs3::TimeHow::kSetToServerTime;
  ASSERT_EQ(backend->setattr({file, now, {}}).status, Nfsstat3::kOk);
  EXPECT_GT(local("file").st_mtim.tv_sec, 1'000'000'000);
  EXPECT_EQ(local("file").st_atim.tv_sec, 1000);
}

TEST_F(AttrTest, SetattrExtendsWithZerosAndKnowsItsLimits) {
  Sattr3 attrs;
  attrs.size = 8;
  ASSERT_EQ(backend->setattr({file, attrs, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(read(file), std::string("12345\0\0\0", 8));
  attrs.size = std::uint64_t{1} << 63;
  EXPECT_EQ(backend->setattr({file, attrs, {}}).status, Nfsstat3::kFbig);
  attrs.size = 0;
  EXPECT_EQ(backend->setattr({root(), attrs, {}}).status, Nfsstat3::kIsdir);
  Sattr3 bad;
  bad.atime = {nfs3::TimeHow::kSetToClientTime, {1, 1'000'000'000}};
  EXPECT_EQ(backend->setattr({file, bad, {}}).status, Nfsstat3::kInval);
  bad = {};
  bad.uid = 0xffffffff;
  EXPECT_EQ(backend->setattr({file, bad, {}}).status, Nfsstat3::kInval);
}

TEST_F(AttrTest, SetattrGuardsByCtime) {
  Sattr3 attrs;
  attrs.mode = 0600;
  nfs3::Nfstime3 ctime = backend->getattr({file}).obj_attributes.ctime;
  nfs3::Nfstime3 wrong = ctime;
  ++wrong.nseconds;
  nfs3::WccRes res = backend->setattr({file, attrs, wrong});
  EXPECT_EQ(res.status, Nfsstat3::kNotSync);
  EXPECT_EQ(res.wcc.after->mode, 0640u);
  EXPECT_EQ(backend->setattr({file, attrs, ctime}).status, Nfsstat3::kOk);
}

TEST_F(AttrTest, SetattrWorksOnLinksThemselvesAndOnFifos) {
  ASSERT_EQ(::symlink("file", (dir + "/link").c_str()), 0);
  ASSERT_EQ(::mkfifo((dir + "/fifo").c_str(), 0600), 0);
  Sattr3 times;
  times.mtime = {nfs3::TimeHow::kSetToClientTime, {77, 0}};
  ASSERT_EQ(backend->setattr({handle("link"), times, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(local("link").st_mtim.tv_sec, 77);
  EXPECT_NE(local("file").st_mtim.tv_sec, 77);
  times.mode = 0666;
  ASSERT_EQ(backend->setattr({handle("fifo"), times, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(local("fifo").st_mode & 07777, 0666u);
  EXPECT_EQ(read(handle("fifo")), "!NFS3ERR_INVAL");
}

// As a user that is not root, the server does nothing that is reserved to root.
TEST_F(AttrTest, WhatThisUserMayNotDoIsSaid) {
  ASSERT_EQ(::chmod(temp.path().c_str(), 0755), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(dir.c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chown((dir + "/file").c_str(), 65534, 65534), 0);
    ASSERT_EQ(::seteuid(65534), 0);
  }
  Sattr3 attrs;
  attrs.uid = 0;
  EXPECT_EQ(backend->setattr({file, attrs, {}}).status, Nfsstat3::kPerm);
  attrs.uid = ::geteuid();
  EXPECT_EQ(backend->setattr({file, attrs, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->mknod({{root(), "dev"}, nfs3::Ftype3::kChr, {}, {1, 3}}).status, Nfsstat3::kPerm);
  attrs.uid = 0;
  EXPECT_EQ(create(root(), "theirs", nfs3::Createmode3::kGuarded, attrs).status, Nfsstat3::kOk);
  const nfs3::LookupRes theirs = lookup(root(), "theirs");
  ASSERT_EQ(theirs.status, Nfsstat3::kOk);
  EXPECT_EQ(theirs.obj_attributes->uid, ::geteuid());  // an owner that may not be given stays as it is
  Sattr3 none;
  none.mode = 0;
  ASSERT_EQ(backend->setattr({file, none, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->access({file, 63}).access, 0u);
  EXPECT_EQ(read(file), "!NFS3ERR_ACCES");
  EXPECT_EQ(write(file, 0, "x").status, Nfsstat3::kAcces);
  // The user that made a file read-only can still write it.
  Sattr3 read_only;
  read_only.mode = 0444;
  nfs3::NewObjectRes made = create(root(), "locked", nfs3::Createmode3::kGuarded, read_only);
  ASSERT_EQ(made.status, Nfsstat3::kOk);
  EXPECT_EQ(write(*made.obj, 0, "content").status, Nfsstat3::kOk);
  EXPECT_EQ(read(*made.obj), "content");
  if (::getuid() == 0) {
    ASSERT_EQ(::seteuid(0), 0);
  }
}

TEST_F(AttrTest, AccessKnowsFilesFromDirectories) {
  ::mkdir((dir + "/sub").c_str(), 0755);
  constexpr std::uint32_t kAll = 0x3f;
  nfs3::AccessRes res = backend->access({handle("sub"), kAll});
  EXPECT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.access,
            nfs3::kAccessRead | nfs3::kAccessLookup | nfs3::kAccessModify | nfs3::kAccessExtend | nfs3::kAccessDelete);
  EXPECT_EQ(backend->access({file, kAll}).access, nfs3::kAccessRead | nfs3::kAccessModify | nfs3::kAccessExtend);
  ::chmod((dir + "/file").c_str(), 0755);
  EXPECT_EQ(backend->access({file, nfs3::kAccessExecute}).access, nfs3::kAccessExecute);
}

TEST_F(AttrTest, ReadOnlyRefusesEveryChange) {
  ::mkdir((dir + "/sub").c_str(), 0755);
  config.read_write = false;
  start();
  const Nfsstat3 want = Nfsstat3::kRofs;
  Sattr3 attrs;
  attrs.size = 0;
  const std::uint8_t target[] = {'x'};
  EXPECT_EQ(backend->setattr({file, attrs, {}}).status, want);
  EXPECT_EQ(write(file, 0, "x").status, want);
  EXPECT_EQ(create(root(), "new").status, want);
  EXPECT_EQ(create(root(), "file", nfs3::Createmode3::kUnchecked, attrs).status, want);
  EXPECT_EQ(backend->mkdir({{root(), "new"}, {}}).status, want);
  EXPECT_EQ(backend->symlink({{root(), "new"}, {}, {}}, target).status, want);
  EXPECT_EQ(backend->mknod({{root(), "new"}, nfs3::Ftype3::kFifo, {}, {}}).status, want);
  EXPECT_EQ(backend->remove({{root(), "file"}}).status, want);
  EXPECT_EQ(backend->rmdir({{root(), "sub"}}).status, want);
  EXPECT_EQ(backend->rename({{root(), "file"}, {root(), "new"}}).status, want);
  EXPECT_EQ(backend->link({file, {root(), "new"}}).status, want);
  EXPECT_EQ(backend->commit({file, 0, 0}).status, want);
  EXPECT_EQ(backend->access({file, 63}).access, nfs3::kAccessRead);
  EXPECT_EQ(read(file), "12345");
}

TEST_F(AttrTest, FsstatFsinfoPathconf) {
  nfs3::FsstatRes stat = backend->fsstat({file});
  ASSERT_EQ(stat.status, Nfsstat3::kOk);
  EXPECT_GT(stat.tbytes, 0u);
  EXPECT_GE(stat.fbytes, stat.abytes);
  nfs3::FsinfoRes info = backend->fsinfo({root()});
  ASSERT_EQ(info.status, Nfsstat3::kOk);
  EXPECT_EQ(info.rtmax, 1u << 20);
  EXPECT_EQ(info.wtmax, 1u << 20);
  EXPECT_EQ(info.maxfilesize, std::uint64_t{INT64_MAX});
  nfs3::PathconfRes conf = backend->pathconf({root()});
  ASSERT_EQ(conf.status, Nfsstat3::kOk);
  EXPECT_EQ(conf.name_max, 255u);
  EXPECT_TRUE(conf.no_trunc);
  EXPECT_GT(conf.linkmax, 1u);
}

}  // namespace
}  // namespace weft::serve
