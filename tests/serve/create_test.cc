#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

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

TEST_F(CreateTest, AnOwnerThatMayNotBeGivenIsLeftAsItIs) {
  Sattr3 attrs;
  attrs.mode = 0640;
  attrs.uid = ::geteuid() + 12345;
  attrs.gid = ::getegid() + 12345;
  const auto expect_made = [&](const nfs3::NewObjectRes& res) {
    ASSERT_EQ(res.status, Nfsstat3::kOk);
    EXPECT_EQ(res.obj_attributes->uid, ::geteuid());
    EXPECT_EQ(res.obj_attributes->gid, ::getegid());
    EXPECT_EQ(res.obj_attributes->mode, 0640u);
  };
  testing::run_without({CAP_CHOWN}, [&] {
    expect_made(create(root(), "f", Createmode3::kGuarded, attrs));
    expect_made(backend->mkdir({{root(), "d"}, attrs}));
    expect_made(backend->mknod({{root(), "p"}, nfs3::Ftype3::kFifo, attrs, {}}));
    nfs3::SymlinkArgs link;
    link.where = {root(), "l"};
    link.symlink_attributes.uid = attrs.uid;
    static constexpr std::uint8_t kTarget[] = {'x'};
    EXPECT_EQ(backend->symlink(link, kTarget).status, Nfsstat3::kOk);
    // SETATTR is asked for just that, and says that it cannot be done.
    Sattr3 owner;
    owner.uid = attrs.uid;
    EXPECT_EQ(backend->setattr({handle("f"), owner, {}}).status, Nfsstat3::kPerm);
  });
}

class SetIdTest : public CreateTest {
 protected:
  mode_t mode_of(const std::string& name) {
    struct stat st {};
    EXPECT_EQ(::stat((dir + "/" + name).c_str(), &st), 0) << name;
    return st.st_mode & 07777;
  }
  static Sattr3 with_mode(std::uint32_t mode) {
    Sattr3 out;
    out.mode = mode;
    return out;
  }
  // A local user's own.
  nfs3::NfsFh3 make_set_id(const std::string& name, mode_t mode = 06755) {
    write_local(dir + "/" + name, "content");
    EXPECT_EQ(::chmod((dir + "/" + name).c_str(), mode), 0);
    return handle(name);
  }
};

TEST_F(SetIdTest, ClientsSetNoSetIdBits) {
  EXPECT_EQ(create(root(), "f", Createmode3::kUnchecked, with_mode(06755)).obj_attributes->mode, 0755u);
  EXPECT_EQ(create(root(), "g", Createmode3::kGuarded, with_mode(04711)).obj_attributes->mode, 0711u);
  EXPECT_EQ(backend->mknod({{root(), "p"}, nfs3::Ftype3::kFifo, with_mode(06666), {}}).obj_attributes->mode, 0666u);
  const nfs3::WccRes set = backend->setattr({handle("f"), with_mode(06750), {}});
  EXPECT_EQ(set.status, Nfsstat3::kOk);
  EXPECT_EQ(set.wcc.after->mode, 0750u);
  EXPECT_EQ(mode_of("f"), 0750u);
  // A directory's hand the group down.
  EXPECT_EQ(backend->mkdir({{root(), "d"}, with_mode(02775)}).obj_attributes->mode, 02775u);
  EXPECT_EQ(backend->setattr({handle("d"), with_mode(03770), {}}).wcc.after->mode, 03770u);
}

TEST_F(SetIdTest, OnRequestTheyDo) {
  config.set_id_files = true;
  start();
  EXPECT_EQ(create(root(), "f", Createmode3::kUnchecked, with_mode(06755)).obj_attributes->mode, 06755u);
  EXPECT_EQ(backend->setattr({handle("f"), with_mode(04750), {}}).wcc.after->mode, 04750u);
}

// As Linux's server: a program with another content runs as nobody but its user.
TEST_F(SetIdTest, OnRequestAChangeOfTheContentOrTheOwnerClearsThemToo) {
  config.set_id_files = true;
  start();
  const nfs3::NfsFh3 file = *create(root(), "f", Createmode3::kUnchecked, with_mode(04777)).obj;
  EXPECT_EQ(mode_of("f"), 04777u);
  const nfs3::WriteRes written = write(file, 0, "other");
  ASSERT_EQ(written.status, Nfsstat3::kOk);
  EXPECT_EQ(written.file_wcc.after->mode, 0777u);
  EXPECT_EQ(mode_of("f"), 0777u);
  ASSERT_EQ(backend->setattr({file, with_mode(06755), {}}).wcc.after->mode, 06755u);
  Sattr3 cut;
  cut.size = 2;
  EXPECT_EQ(backend->setattr({file, cut, {}}).wcc.after->mode, 0755u);
  ASSERT_EQ(backend->setattr({file, with_mode(06755), {}}).wcc.after->mode, 06755u);
  Sattr3 given;
  given.uid = ::geteuid();
  given.gid = ::getegid();
  EXPECT_EQ(backend->setattr({file, given, {}}).wcc.after->mode, 0755u);
  given.mode = 04755;
  EXPECT_EQ(backend->setattr({file, given, {}}).wcc.after->mode, 04755u) << "the mode comes after the owner";
  given.size = 5;
  EXPECT_EQ(create(root(), "new", Createmode3::kUnchecked, given).obj_attributes->mode, 04755u);
}

TEST_F(SetIdTest, TheLogNamesAFileThatGetsAModeWithoutThem) {
  std::vector<std::string> lines;
  config.log.sink = [&](verbs::LogLevel level, std::string_view line) {
    EXPECT_EQ(level, verbs::LogLevel::kWarn);
    lines.emplace_back(line);
  };
  calls.now = [] { return TimePoint{}; };
  start();
  create(root(), "f", Createmode3::kUnchecked, with_mode(06755));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], ::testing::AllOf(::testing::HasSubstr("mode 6755 of " + dir + "/f; the mode is 0755"),
                                         ::testing::HasSubstr("BackendConfig::set_id_files")));
  const nfs3::WccRes set = backend->setattr({handle("f"), with_mode(04755), {}});
  EXPECT_EQ(set.wcc.after->mode, 0755u);
  EXPECT_THAT(lines, ::testing::SizeIs(2));
  backend->setattr({handle("f"), with_mode(0755), {}});
  backend->mkdir({{root(), "d"}, with_mode(02775)});
  create(root(), "plain");
  EXPECT_THAT(lines, ::testing::SizeIs(2)) << "nothing was left out";
  for (int i = 0; i < 100; ++i) backend->setattr({handle("f"), with_mode(04755), {}});
  EXPECT_EQ(lines.size(), static_cast<std::size_t>(verbs::LogBudget::kBurst));
}

TEST_F(SetIdTest, BitsThatAreThereStayUntilTheContentOrTheOwnerChanges) {
  const nfs3::NfsFh3 kept = make_set_id("kept");
  EXPECT_EQ(backend->setattr({kept, with_mode(06711), {}}).wcc.after->mode, 06711u);
  EXPECT_EQ(backend->setattr({kept, with_mode(0711), {}}).wcc.after->mode, 0711u);
  EXPECT_EQ(backend->setattr({kept, with_mode(06711), {}}).wcc.after->mode, 0711u);

  const nfs3::NfsFh3 written = make_set_id("written");
  ASSERT_EQ(write(written, 0, "other").status, Nfsstat3::kOk);
  EXPECT_EQ(mode_of("written"), 0755u);
  // The set-group-ID bit without execution is none yet, and would be with it.
  const nfs3::NfsFh3 marked = make_set_id("marked", 02644);
  ASSERT_EQ(write(marked, 0, "other").status, Nfsstat3::kOk);
  EXPECT_EQ(backend->setattr({marked, with_mode(02755), {}}).wcc.after->mode, 0755u);

  Sattr3 cut = with_mode(06755);
  cut.size = 3;
  EXPECT_EQ(backend->setattr({make_set_id("cut"), cut, {}}).wcc.after->mode, 0755u);
  make_set_id("made");
  Sattr3 empty;
  empty.size = 0;
  EXPECT_EQ(create(root(), "made", Createmode3::kUnchecked, empty).status, Nfsstat3::kOk);
  EXPECT_EQ(mode_of("made"), 0755u);
  Sattr3 given = with_mode(06755);
  given.uid = ::geteuid();
  given.gid = ::getegid();
  EXPECT_EQ(backend->setattr({make_set_id("given"), given, {}}).wcc.after->mode, 0755u);
}

TEST_F(SetIdTest, NorWhereTheLoopWrites) {
  calls.lies_in_memory = [](int) { return true; };
  start();
  const nfs3::NfsFh3 file = *create(root(), "f").obj;
  ASSERT_EQ(write(file, 0, "content").status, Nfsstat3::kOk);  // open now
  ASSERT_EQ(::chmod((dir + "/f").c_str(), 06755), 0);
  static constexpr std::uint8_t kOctet[] = {'x'};
  const nfs3::WriteArgs args{.file = file, .offset = 0, .count = 1, .stable = nfs3::StableHow::kUnstable, .data = {}};
  EXPECT_FALSE(backend->write_now(args, kOctet).has_value());
  EXPECT_EQ(backend->write(args, kOctet).status, Nfsstat3::kOk);
  EXPECT_EQ(mode_of("f"), 0755u);
  EXPECT_TRUE(backend->write_now(args, kOctet).has_value());
}

TEST_F(SetIdTest, DevicesAreMadeOnRequestOnly) {
  const nfs3::MknodArgs args{{root(), "null"}, nfs3::Ftype3::kChr, with_mode(0666), {1, 3}};
  const nfs3::MknodArgs disk{{root(), "disk"}, nfs3::Ftype3::kBlk, with_mode(0666), {7, 0}};
  EXPECT_EQ(backend->mknod(args).status, Nfsstat3::kPerm);
  EXPECT_EQ(backend->mknod(disk).status, Nfsstat3::kPerm);
  EXPECT_EQ(lookup(root(), "null").status, Nfsstat3::kNoent);
  config.devices = true;
  start();
  const nfs3::NewObjectRes made = backend->mknod({{root(), "null"}, nfs3::Ftype3::kChr, with_mode(0666), {1, 3}});
  if (made.status == Nfsstat3::kPerm) GTEST_SKIP() << "this user may not make devices";
  ASSERT_EQ(made.status, Nfsstat3::kOk);
  EXPECT_EQ(made.obj_attributes->type, nfs3::Ftype3::kChr);
}

}  // namespace
}  // namespace weft::serve
