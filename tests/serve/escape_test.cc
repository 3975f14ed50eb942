#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/serve/fixture.h"

// Attempts to reach files outside of the export.
namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using testing::ExportTest;
using testing::read_local;
using testing::write_local;

class EscapeTest : public ExportTest {
 protected:
  EscapeTest() {
    outside = temp / "outside";
    ::mkdir(outside.c_str(), 0755);
    write_local(outside + "/secret", "secret");
    ::mkdir((dir + "/sub").c_str(), 0755);
    write_local(dir + "/sub/file", "inside");
  }
  std::string outside;
};

TEST_F(EscapeTest, DotDotEndsAtTheRoot) {
  EXPECT_EQ(lookup(root(), "..").object, root());
  EXPECT_EQ(lookup(root(), ".").object, root());
  EXPECT_EQ(lookup(handle("sub"), "..").object, root());
  EXPECT_EQ(lookup(handle("sub"), "..").obj_attributes->fileid, tree->root().stat.ino);
}

// Only a kernel without the call is told to be too old; a directory that may not be searched is another matter.
TEST(Openat2Fault, NamesTheCauseThatTheErrorHas) {
  const auto names = [](int error, const char* part) { return openat2_fault(error).find(part) != std::string::npos; };
  EXPECT_TRUE(names(ENOSYS, "Linux 5.6"));
  for (const int error : {EACCES, EPERM, EMFILE}) EXPECT_FALSE(names(error, "Linux 5.6")) << openat2_fault(error);
  EXPECT_TRUE(names(EACCES, "may not search the directory"));
  EXPECT_TRUE(names(EPERM, "container"));
  EXPECT_TRUE(names(EMFILE, "Too many open files"));
}

TEST_F(EscapeTest, NamesAreOneComponent) {
  const std::string with_nul("sub\0x", 5);
  for (const std::string& name : {std::string("../outside"), std::string("sub/file"), std::string("/etc"),
                                  std::string("/"), std::string(""), std::string("sub/.."), with_nul}) {
    EXPECT_EQ(lookup(root(), name).status, Nfsstat3::kAcces) << name;
    EXPECT_EQ(create(root(), name).status, Nfsstat3::kAcces) << name;
    EXPECT_EQ(backend->mkdir({{root(), name}, {}}).status, Nfsstat3::kAcces) << name;
    EXPECT_EQ(backend->remove({{root(), name}}).status, Nfsstat3::kAcces) << name;
    EXPECT_EQ(backend->rmdir({{root(), name}}).status, Nfsstat3::kAcces) << name;
    EXPECT_EQ(backend->rename({{handle("sub"), "file"}, {root(), name}}).status, Nfsstat3::kAcces) << name;
    EXPECT_EQ(backend->rename({{root(), name}, {handle("sub"), "y"}}).status, Nfsstat3::kAcces) << name;
    EXPECT_EQ(backend->link({handle("sub/file"), {root(), name}}).status, Nfsstat3::kAcces) << name;
    EXPECT_EQ(backend->mknod({{root(), name}, nfs3::Ftype3::kFifo, {}, {}}).status, Nfsstat3::kAcces) << name;
  }
  EXPECT_EQ(lookup(root(), std::string(256, 'x')).status, Nfsstat3::kNametoolong);
  EXPECT_EQ(create(root(), std::string(256, 'x')).status, Nfsstat3::kNametoolong);
  EXPECT_EQ(create(root(), std::string(255, 'x')).status, Nfsstat3::kOk);
}

TEST_F(EscapeTest, DotNamesAreNeverMadeOrRemoved) {
  for (const char* name : {".", ".."}) {
    EXPECT_EQ(create(root(), name).status, Nfsstat3::kExist);
    EXPECT_EQ(backend->mkdir({{root(), name}, {}}).status, Nfsstat3::kExist);
    EXPECT_EQ(backend->remove({{handle("sub"), name}}).status, Nfsstat3::kInval);
    EXPECT_EQ(backend->rename({{handle("sub"), name}, {root(), "y"}}).status, Nfsstat3::kInval);
    EXPECT_EQ(backend->rename({{handle("sub"), "file"}, {root(), name}}).status, Nfsstat3::kInval);
    EXPECT_EQ(backend->link({handle("sub/file"), {root(), name}}).status, Nfsstat3::kExist);
  }
  EXPECT_EQ(backend->rmdir({{handle("sub"), "."}}).status, Nfsstat3::kInval);
  EXPECT_EQ(backend->rmdir({{handle("sub"), ".."}}).status, Nfsstat3::kExist);
}

TEST_F(EscapeTest, SymbolicLinksAreShownAndNeverFollowed) {
  ASSERT_EQ(::symlink(outside.c_str(), (dir + "/absolute").c_str()), 0);
  ASSERT_EQ(::symlink("../outside", (dir + "/relative").c_str()), 0);
  ASSERT_EQ(::symlink("relative", (dir + "/nested").c_str()), 0);
  ASSERT_EQ(::symlink((outside + "/secret").c_str(), (dir + "/file").c_str()), 0);
  ASSERT_EQ(::symlink("/proc/self/root", (dir + "/magic").c_str()), 0);
  for (const char* name : {"absolute", "relative", "nested", "file", "magic"}) {
    nfs3::LookupRes res = lookup(root(), name);
    ASSERT_EQ(res.status, Nfsstat3::kOk) << name;
    EXPECT_EQ(res.obj_attributes->type, nfs3::Ftype3::kLnk) << name;
    EXPECT_EQ(lookup(res.object, "secret").status, Nfsstat3::kNotdir) << name;
    EXPECT_EQ(lookup(res.object, "..").status, Nfsstat3::kNotdir) << name;
    EXPECT_EQ(create(res.object, "new").status, Nfsstat3::kNotdir) << name;
    EXPECT_EQ(backend->readdir({res.object, 0, {}, 4096}).status, Nfsstat3::kNotdir) << name;
    EXPECT_EQ(read(res.object), "!NFS3ERR_INVAL") << name;
    EXPECT_EQ(write(res.object, 0, "x").status, Nfsstat3::kInval) << name;
    nfs3::Sattr3 size;
    size.size = 0;
    EXPECT_EQ(backend->setattr({res.object, size, {}}).status, Nfsstat3::kInval) << name;
    nfs3::Sattr3 mode;
    mode.mode = 0777;
    EXPECT_EQ(backend->setattr({res.object, mode, {}}).status, Nfsstat3::kNotsupp) << name;
    // CREATE does not go through a link to make or cut its target.
    EXPECT_EQ(create(root(), name, nfs3::Createmode3::kUnchecked, size).status, Nfsstat3::kExist) << name;
    EXPECT_EQ(tree->open_path(std::string(name) + "/secret").error(), Errno{ENOTDIR}) << name;
  }
  EXPECT_EQ(read_local(outside + "/secret"), "secret");
  // Removing one removes the link.
  EXPECT_EQ(backend->remove({{root(), "file"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(read_local(outside + "/secret"), "secret");
}

TEST_F(EscapeTest, ADirectoryMovedOutOfTheExportIsOutOfReach) {
  const NfsFh3 sub = handle("sub"), file = handle("sub/file");
  EXPECT_EQ(read(file), "inside");
  ASSERT_EQ(::rename((dir + "/sub").c_str(), (outside + "/sub").c_str()), 0);
  EXPECT_EQ(getattr_status(sub), Nfsstat3::kStale);
  EXPECT_EQ(getattr_status(file), Nfsstat3::kStale);
  EXPECT_EQ(read(file), "!NFS3ERR_STALE");
  EXPECT_EQ(write(file, 0, "x").status, Nfsstat3::kStale);
  EXPECT_EQ(create(sub, "x").status, Nfsstat3::kStale);
  EXPECT_EQ(lookup(sub, "..").status, Nfsstat3::kStale);
}

TEST_F(EscapeTest, ADirectoryReplacedByALinkIsNotFollowed) {
  const NfsFh3 sub = handle("sub"), file = handle("sub/file");
  ASSERT_EQ(::rename((dir + "/sub").c_str(), (dir + "/moved").c_str()), 0);
  ASSERT_EQ(::symlink(outside.c_str(), (dir + "/sub").c_str()), 0);
  write_local(outside + "/file", "outside");
  // Both handles still name the same file, under its new name.
  EXPECT_EQ(read(file), "inside");
  EXPECT_EQ(lookup(sub, "secret").status, Nfsstat3::kNoent);
  EXPECT_EQ(create(sub, "new").status, Nfsstat3::kOk);
  EXPECT_EQ(::access((dir + "/moved/new").c_str(), F_OK), 0);
}

// A link that leads to the very directory that was moved out: the path still ends at the file of the handle, but not
// within the export.
TEST_F(EscapeTest, ALinkToWhatWasMovedOutLeadsNowhere) {
  const NfsFh3 sub = handle("sub"), file = handle("sub/file");
  ASSERT_EQ(read(file), "inside");
  ASSERT_EQ(::rename((dir + "/sub").c_str(), (outside + "/sub").c_str()), 0);
  ASSERT_EQ(::symlink((outside + "/sub").c_str(), (dir + "/sub").c_str()), 0);
  EXPECT_EQ(read(file), "!NFS3ERR_STALE");
  EXPECT_EQ(write(file, 0, "x").status, Nfsstat3::kStale);
  EXPECT_EQ(getattr_status(sub), Nfsstat3::kStale);
  start();
  EXPECT_EQ(read(file), "!NFS3ERR_STALE");
  EXPECT_EQ(read_local(outside + "/sub/file"), "inside");
}

// One thread swaps a directory for a link to the outside and back, as fast as it can, while lookups, reads and
// creations go on below it: they may fail, but never see or touch the outside.
TEST_F(EscapeTest, SwappingADirectoryForALinkDuringLookups) {
  const std::string sub = dir + "/sub", parked = dir + "/parked", link = dir + "/link";
  write_local(outside + "/file", "outside");
  ASSERT_EQ(::symlink(outside.c_str(), link.c_str()), 0);
  const NfsFh3 sub_handle = handle("sub"), file_handle = handle("sub/file");
  std::atomic<bool> stop{false};
  std::atomic<int> swaps{0};
  std::thread swapper([&] {
    while (!stop) {
      ::rename(sub.c_str(), parked.c_str());
      ::rename(link.c_str(), sub.c_str());
      ::rename(sub.c_str(), link.c_str());
      ::rename(parked.c_str(), sub.c_str());
      ++swaps;
    }
  });
  int seen = 0;
  for (int i = 0; i < 400 || swaps < 100; ++i) {
    if (Outcome<Node> node = tree->open_path("sub/file"); node.ok()) {
      ++seen;
      EXPECT_EQ(tree->handle_of(node->key), file_handle);
    }
    std::string text = read(file_handle);
    EXPECT_TRUE(text == "inside" || text.starts_with("!")) << text;
    create(sub_handle, "created");
    backend->remove({{sub_handle, "created"}});
    nfs3::LookupRes res = lookup(root(), "sub");
    if (res.status == Nfsstat3::kOk && res.obj_attributes->type == nfs3::Ftype3::kDir) {
      EXPECT_EQ(res.object, sub_handle);
    }
  }
  stop = true;
  swapper.join();
  EXPECT_GT(seen, 0);
  EXPECT_NE(::access((outside + "/created").c_str(), F_OK), 0);
  EXPECT_EQ(read_local(outside + "/file"), "outside");
}

}  // namespace
}  // namespace weft::serve
