#include <sys/stat.h>
#include <unistd.h>

#include "tests/serve/fixture.h"

// CREATE, MKDIR, SYMLINK, MKNOD, READLINK.
namespace weft::serve {
namespace {

using nfs3::Createmode3;
using nfs3::Nfsstat3;
using nfs3::Sattr3;
using testing::ExportTest;
using testing::read_local;
using testing::write_local;

constexpr nfs3::Verf kVerf = {0xde, 0xad, 0xbe, 0xef, 0x01, 0x02, 0x03, 0x04};

class CreateTest : public ExportTest {
 protected:
  nfs3::NewObjectRes symlink(const std::string& name, const std::string& target) {
    nfs3::SymlinkArgs args;
    args.where = {root(), name};
    args.symlink_attributes.mode = 0777;
    return backend->symlink(args, {reinterpret_cast<const std::uint8_t*>(target.data()), target.size()});
  }
};

TEST_F(CreateTest, UncheckedMakesOrTakesTheFile) {
  Sattr3 attrs;
  attrs.mode = 0600;
  nfs3::NewObjectRes res = create(root(), "f", Createmode3::kUnchecked, attrs);
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.obj_attributes->mode, 0600u);
  EXPECT_EQ(*res.obj, handle("f"));
  EXPECT_NE(res.dir_wcc.before->ctime, res.dir_wcc.after->ctime);
  write_local(dir + "/f", "content");
  EXPECT_EQ(create(root(), "f").status, Nfsstat3::kOk);
  EXPECT_EQ(read_local(dir + "/f"), "content");
  attrs.size = 2;
  attrs.mode = 0777;  // not for a file that was there
  res = create(root(), "f", Createmode3::kUnchecked, attrs);
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(read_local(dir + "/f"), "co");
  EXPECT_EQ(res.obj_attributes->mode, 0600u);
}

TEST_F(CreateTest, TheProcessUmaskDoesNotCount) {
  const mode_t old = ::umask(0077);
  Sattr3 attrs;
  attrs.mode = 0666;
  EXPECT_EQ(create(root(), "f", Createmode3::kGuarded, attrs).obj_attributes->mode, 0666u);
  attrs.mode = 0777;
  EXPECT_EQ(backend->mkdir({{root(), "d"}, attrs}).obj_attributes->mode, 0777u);
  ::umask(old);
}

TEST_F(CreateTest, GuardedInsistsOnNew) {
  EXPECT_EQ(create(root(), "f", Createmode3::kGuarded).status, Nfsstat3::kOk);
  nfs3::NewObjectRes res = create(root(), "f", Createmode3::kGuarded);
  EXPECT_EQ(res.status, Nfsstat3::kExist);
  EXPECT_TRUE(res.dir_wcc.after.has_value());
}

TEST_F(CreateTest, ExclusiveKnowsItsRetransmission) {
  nfs3::NewObjectRes first = create(root(), "f", Createmode3::kExclusive, {}, kVerf);
  ASSERT_EQ(first.status, Nfsstat3::kOk);
  nfs3::NewObjectRes again = create(root(), "f", Createmode3::kExclusive, {}, kVerf);
  ASSERT_EQ(again.status, Nfsstat3::kOk);
  EXPECT_EQ(*again.obj, *first.obj);
  start();
  EXPECT_EQ(create(root(), "f", Createmode3::kExclusive, {}, kVerf).status, Nfsstat3::kOk);
  nfs3::Verf other = kVerf;
  other[7] ^= 1;
  EXPECT_EQ(create(root(), "f", Createmode3::kExclusive, {}, other).status, Nfsstat3::kExist);
  // Once the client has set the times, nothing is left of the verifier.
  Sattr3 times;
  times.atime.how = times.mtime.how = nfs3::TimeHow::kSetToServerTime;
  ASSERT_EQ(backend->setattr({*first.obj, times, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(create(root(), "f", Createmode3::kExclusive, {}, kVerf).status, Nfsstat3::kExist);
}

TEST_F(CreateTest, OverSomethingElseExists) {
  ASSERT_EQ(backend->mkdir({{root(), "d"}, {}}).status, Nfsstat3::kOk);
  for (auto mode : {Createmode3::kUnchecked, Createmode3::kGuarded, Createmode3::kExclusive})
    EXPECT_EQ(create(root(), "d", mode).status, Nfsstat3::kExist);
}

TEST_F(CreateTest, BadAttributesLeaveNothingBehind) {
  Sattr3 attrs;
  attrs.mtime = {nfs3::TimeHow::kSetToClientTime, {1, 2'000'000'000}};
  EXPECT_EQ(create(root(), "f", Createmode3::kGuarded, attrs).status, Nfsstat3::kInval);
  EXPECT_EQ(backend->mkdir({{root(), "d"}, attrs}).status, Nfsstat3::kInval);
  EXPECT_EQ(backend->mknod({{root(), "p"}, nfs3::Ftype3::kFifo, attrs, {}}).status, Nfsstat3::kInval);
  for (const char* name : {"f", "d", "p"}) EXPECT_EQ(lookup(root(), name).status, Nfsstat3::kNoent) << name;
}

TEST_F(CreateTest, CreateWithASize) {
  Sattr3 attrs;
  attrs.size = 10;
  nfs3::NewObjectRes res = create(root(), "f", Createmode3::kUnchecked, attrs);
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.obj_attributes->size, 10u);
}

TEST_F(CreateTest, Mkdir) {
  Sattr3 attrs;
  attrs.mode = 0700;
  nfs3::NewObjectRes res = backend->mkdir({{root(), "d"}, attrs});
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.obj_attributes->type, nfs3::Ftype3::kDir);
  EXPECT_EQ(res.obj_attributes->mode, 0700u);
  EXPECT_EQ(backend->mkdir({{root(), "d"}, attrs}).status, Nfsstat3::kExist);
  EXPECT_EQ(create(*res.obj, "inside").status, Nfsstat3::kOk);
}

TEST_F(CreateTest, SymlinkAndReadlink) {
  nfs3::NewObjectRes res = symlink("l", "/somewhere/else");
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.obj_attributes->type, nfs3::Ftype3::kLnk);
  std::vector<std::uint8_t> into(nfs3::kMaxPath);
  nfs3::ReadlinkRes link = backend->readlink({*res.obj}, into);
  ASSERT_EQ(link.status, Nfsstat3::kOk);
  EXPECT_EQ(std::string(into.begin(), into.begin() + link.data.len), "/somewhere/else");
  EXPECT_EQ(symlink("l", "x").status, Nfsstat3::kExist);
  EXPECT_EQ(symlink("m", std::string("a\0b", 3)).status, Nfsstat3::kInval);
  EXPECT_EQ(symlink("m", "").status, Nfsstat3::kInval);
  EXPECT_EQ(symlink("m", std::string(4096, 'x')).status, Nfsstat3::kNametoolong);
  EXPECT_EQ(symlink("m", std::string(4095, 'x')).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->readlink({handle("m")}, into).data.len, 4095u);
  EXPECT_EQ(backend->readlink({root()}, into).status, Nfsstat3::kInval);
}

TEST_F(CreateTest, Mknod) {
  Sattr3 attrs;
  attrs.mode = 0620;
  nfs3::NewObjectRes fifo = backend->mknod({{root(), "p"}, nfs3::Ftype3::kFifo, attrs, {}});
  ASSERT_EQ(fifo.status, Nfsstat3::kOk);
  EXPECT_EQ(fifo.obj_attributes->type, nfs3::Ftype3::kFifo);
  EXPECT_EQ(fifo.obj_attributes->mode, 0620u);
  nfs3::NewObjectRes sock = backend->mknod({{root(), "s"}, nfs3::Ftype3::kSock, attrs, {}});
  ASSERT_EQ(sock.status, Nfsstat3::kOk);
  EXPECT_EQ(sock.obj_attributes->type, nfs3::Ftype3::kSock);
  for (auto type : {nfs3::Ftype3::kReg, nfs3::Ftype3::kDir, nfs3::Ftype3::kLnk})
    EXPECT_EQ(backend->mknod({{root(), "x"}, type, attrs, {}}).status, Nfsstat3::kBadtype);
}

}  // namespace
}  // namespace weft::serve
