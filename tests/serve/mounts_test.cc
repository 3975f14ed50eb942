#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/serve/mount_space.h"

// Filesystems mounted beneath the exported directory.
namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using testing::read_local;
using testing::write_local;

class MountsTest : public testing::MountTest {
 protected:
  // A directory with a file and a subdirectory, and something mounted over a second one.
  bool prepare(bool is_bind) {
    at = dir + "/mounted";
    write_local(dir + "/file", "text");
    ::mkdir(at.c_str(), 0755);
    write_local(at + "/covered", "covered");
    covered_dir = handle("mounted");
    covered = handle("mounted/covered");
    if (is_bind) {
      ::mkdir((temp / "outside").c_str(), 0755);
      if (!bind(temp / "outside", at)) return false;
    } else if (!mount_tmpfs(at)) {
      return false;
    }
    ::mkdir((at + "/sub").c_str(), 0755);
    write_local(at + "/sub/secret", "secret");
    return true;
  }
  void expect_out_of_bounds() {
    EXPECT_EQ(lookup(root(), "mounted").status, Nfsstat3::kAcces);
    EXPECT_EQ(tree->open_path("mounted/sub/secret").error(), Errno{EACCES});
    // Files below the mount point are covered, not gone. No search goes there.
    EXPECT_EQ(getattr_status(covered_dir), Nfsstat3::kStale);
    EXPECT_EQ(read(covered), "!NFS3ERR_STALE");
    EXPECT_EQ(create(covered_dir, "new").status, Nfsstat3::kStale);
    EXPECT_EQ(tree->num_searches(), 0u);
    EXPECT_EQ(backend->rmdir({{root(), "mounted"}}).status, Nfsstat3::kAcces);
    EXPECT_EQ(backend->rename({{root(), "mounted"}, {root(), "moved"}}).status, Nfsstat3::kAcces);
    EXPECT_EQ(backend->rename({{root(), "file"}, {root(), "mounted"}}).status, Nfsstat3::kAcces);
    EXPECT_EQ(create(root(), "mounted").status, Nfsstat3::kAcces);
    EXPECT_EQ(backend->mkdir({{root(), "mounted"}, {}}).status, Nfsstat3::kExist);
    EXPECT_EQ(backend->link({handle("file"), {root(), "mounted"}}).status, Nfsstat3::kExist);
    const nfs3::ReaddirplusRes list = backend->readdirplus({root(), 0, {}, 8192, 8192});
    ASSERT_EQ(list.status, Nfsstat3::kOk);
    bool is_listed = false;
    for (const nfs3::Entryplus3& entry : list.entries) {
      if (entry.name != "mounted") continue;
      is_listed = true;
      EXPECT_FALSE(entry.name_handle || entry.name_attributes);
    }
    EXPECT_TRUE(is_listed);
  }
  std::string at;
  NfsFh3 covered_dir, covered;
};

TEST_F(MountsTest, AreOutOfBounds) {
  ASSERT_TRUE(prepare(false));
  expect_out_of_bounds();
}

TEST_F(MountsTest, BindMountsAreOutOfBoundsToo) {
  ASSERT_TRUE(prepare(true));
  expect_out_of_bounds();
}

TEST_F(MountsTest, WhatWasCoveredIsThereAgainAfterwards) {
  ASSERT_TRUE(prepare(false));
  EXPECT_EQ(read(covered), "!NFS3ERR_STALE");
  unmount(at);
  EXPECT_EQ(read(covered), "covered");
  EXPECT_EQ(lookup(root(), "mounted").object, covered_dir);
}

TEST_F(MountsTest, ASearchPassesOverThem) {
  ASSERT_TRUE(prepare(true));
  write_local(dir + "/moved", "moved");
  const NfsFh3 moved = handle("moved");
  lose_index();
  EXPECT_EQ(read(moved), "moved");
  ASSERT_EQ(::rename((dir + "/moved").c_str(), (at + "/sub/moved").c_str()), -1);  // EXDEV
  // The same file under a name of the other mount: a hard link made where both are one filesystem.
  ASSERT_EQ(::link((dir + "/moved").c_str(), (temp / "outside/linked").c_str()), 0);
  ASSERT_EQ(::unlink((dir + "/moved").c_str()), 0);
  EXPECT_EQ(read(moved), "!NFS3ERR_STALE");
}

TEST_F(MountsTest, HandlesFromATimeWhenTheyWereCrossedAreStale) {
  ASSERT_TRUE(prepare(false));
  tree_config.cross_mounts = true;
  start();
  const NfsFh3 secret = handle("mounted/sub/secret"), mounted = handle("mounted");
  EXPECT_EQ(read(secret), "secret");
  tree_config.cross_mounts = false;
  start();
  EXPECT_EQ(read(secret), "!NFS3ERR_STALE");
  EXPECT_EQ(write(secret, 0, "x").status, Nfsstat3::kStale);
  EXPECT_EQ(create(mounted, "x").status, Nfsstat3::kStale);
  EXPECT_EQ(read_local(at + "/sub/secret"), "secret");
}

TEST_F(MountsTest, AreCrossedOnRequest) {
  ASSERT_TRUE(prepare(false));
  tree_config.cross_mounts = true;
  start();
  const nfs3::LookupRes mounted = lookup(root(), "mounted");
  ASSERT_EQ(mounted.status, Nfsstat3::kOk);
  EXPECT_NE(mounted.obj_attributes->fsid, mounted.dir_attributes->fsid);
  EXPECT_EQ(read(handle("mounted/sub/secret")), "secret");
  EXPECT_EQ(write(handle("mounted/sub/secret"), 0, "S").status, Nfsstat3::kOk);
  EXPECT_EQ(lookup(mounted.object, "..").object, root());
  EXPECT_EQ(backend->rename({{root(), "file"}, {mounted.object, "file"}}).status, Nfsstat3::kXdev);
  EXPECT_EQ(backend->link({handle("file"), {mounted.object, "file"}}).status, Nfsstat3::kXdev);
}

TEST_F(MountsTest, TheStateDirectoryIsOutOfBoundsWhereverItIsMounted) {
  ASSERT_TRUE(bind(tree_config.state_dir, dir + "/other"));
  tree_config.cross_mounts = true;
  start();
  EXPECT_EQ(lookup(root(), "other").status, Nfsstat3::kAcces);
  stop();
  tree_config.directory = dir + "/other";
  EXPECT_EQ(Tree::open(tree_config).status().code(), absl::StatusCode::kInvalidArgument);
}

// An export on overlayfs, as in every container: `lower` is the image.
class OverlayTest : public testing::MountTest {
 protected:
  // Mounts the layers and serves the whole. The layers are on a tmpfs, for overlayfs takes none from another overlayfs.
  // num_full: files in the directory "full".
  bool serve(int num_full = 0) { return mount_tmpfs(temp / "layers") && serve_layers(num_full); }
  bool serve_layers(int num_full = 0) {
    stop();
    const std::string layers = temp / "layers", lower = layers + "/lower";
    for (const char* name : {"", "/a", "/a/b", "/full"}) ::mkdir((lower + name).c_str(), 0755);
    for (const char* name : {"/a/b/file", "/a/other", "/linked"}) write_local(lower + name, "lower");
    for (int i = 0; i < num_full; ++i) write_local(lower + "/full/" + std::to_string(i), "");
    dir = tree_config.directory = temp / "merged";
    if (!mount_overlay(lower, layers + "/upper", dir)) return false;
    start();
    return true;
  }
  static ino_t inode_of(const std::string& path) {
    struct stat st {};
    EXPECT_EQ(::stat(path.c_str(), &st), 0);
    return st.st_ino;
  }
};

TEST_F(OverlayTest, TheFirstChangeThroughAHandleLeavesItGood) {
  ASSERT_TRUE(serve());
  const NfsFh3 file = handle("a/b/file"), a = handle("a"), b = handle("a/b"), other = handle("a/other");
  ASSERT_EQ(read(file), "lower");
  // Copies the file to the upper layer, and every directory above it.
  ASSERT_EQ(write(file, 0, "UPPER").status, Nfsstat3::kOk);
  EXPECT_EQ(write(file, 0, "Upper").status, Nfsstat3::kOk);
  EXPECT_EQ(read(file), "Upper");
  EXPECT_EQ(backend->commit({file, 0, 0}).status, Nfsstat3::kOk);
  for (const NfsFh3& fh : {file, a, b, other}) EXPECT_EQ(getattr_status(fh), Nfsstat3::kOk);
  // A client that looks again gets the same handles.
  EXPECT_EQ(lookup(root(), "a").object, a);
  EXPECT_EQ(lookup(a, "b").object, b);
  EXPECT_EQ(lookup(b, "file").object, file);
  const NfsFh3 made = *create(b, "made").obj;
  EXPECT_EQ(write(made, 0, "made").status, Nfsstat3::kOk);
  nfs3::Sattr3 mode;
  mode.mode = 0600;
  EXPECT_EQ(backend->setattr({other, mode, {}}).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->rename({{a, "other"}, {root(), "moved"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(read(other), "lower");
  EXPECT_EQ(tree->num_searches(), 0u);
  const NfsFh3 at = root();
  start();
  EXPECT_EQ(root(), at);
  EXPECT_EQ(read(file), "Upper");
  EXPECT_EQ(read(other), "lower");
  EXPECT_EQ(handle("a/b/file"), file);
  EXPECT_EQ(handle("a/b/made"), made);
  EXPECT_EQ(tree->num_searches(), 0u);
}

TEST_F(OverlayTest, SoDoesOneBehindTheServersBack) {
  ASSERT_TRUE(serve());
  const NfsFh3 file = handle("a/b/file"), b = handle("a/b"), at = root();
  write_local(dir + "/a/b/file", "local");
  write_local(dir + "/new", "new");
  EXPECT_EQ(handle("a/b/file"), file);
  EXPECT_EQ(read(file), "local");
  EXPECT_EQ(lookup(b, "file").object, file);
  EXPECT_EQ(root(), at);
}

TEST_F(OverlayTest, ARemovedFileIsStaleWhateverComesAfterIt) {
  ASSERT_TRUE(serve());
  for (int i = 0; i < 5; ++i) {
    const NfsFh3 first = *create(root(), "x").obj;
    ASSERT_EQ(backend->remove({{root(), "x"}}).status, Nfsstat3::kOk);
    const NfsFh3 second = *create(root(), "x").obj;
    EXPECT_NE(first, second);
    EXPECT_EQ(getattr_status(first), Nfsstat3::kStale);
    EXPECT_EQ(getattr_status(second), Nfsstat3::kOk);
    EXPECT_EQ(handle("x"), second);
    ASSERT_EQ(backend->remove({{root(), "x"}}).status, Nfsstat3::kOk);
  }
  // One that another took the place of locally, and one made here in its place.
  const NfsFh3 gone = handle("linked");
  ASSERT_EQ(::unlink((dir + "/linked").c_str()), 0);
  const NfsFh3 made = *create(root(), "linked").obj;
  EXPECT_NE(gone, made);
  EXPECT_EQ(getattr_status(gone), Nfsstat3::kStale);
}

// A file that was removed locally may leave its inode number to the next one, as on ext4; on a tmpfs none comes again.
TEST_F(OverlayTest, AFileIsNotTheOneThatHadItsInodeNumberBefore) {
  struct statfs fs {};
  ASSERT_EQ(::statfs(dir.c_str(), &fs), 0);
  if (fs.f_type == OVERLAYFS_SUPER_MAGIC) GTEST_SKIP() << "overlayfs takes no layers from another overlayfs";
  ::mkdir((temp / "layers").c_str(), 0755);
  ASSERT_TRUE(serve_layers());
  constexpr int kMaxTries = 100;
  bool came_again = false;
  for (int i = 0; i < kMaxTries && !came_again; ++i) {
    const NfsFh3 first = *create(root(), "x").obj;
    const ino_t inode = inode_of(dir + "/x");
    ASSERT_EQ(::unlink((dir + "/x").c_str()), 0);
    backend->sweep_open_files();
    const NfsFh3 second = *create(root(), "x").obj;
    came_again = inode_of(dir + "/x") == inode;
    EXPECT_NE(first, second);
    EXPECT_EQ(handle("x"), second);
    EXPECT_EQ(getattr_status(first), Nfsstat3::kStale);
    EXPECT_EQ(getattr_status(second), Nfsstat3::kOk);
    ASSERT_EQ(backend->remove({{root(), "x"}}).status, Nfsstat3::kOk);
  }
  if (!came_again) GTEST_SKIP() << "no inode number came again on this filesystem";
}

// The root has another birth time after its copy-up.
TEST_F(OverlayTest, WhatWasFoundBeneathARootThatWasCopiedUpIsRemembered) {
  ASSERT_TRUE(serve());
  dir = tree_config.directory = temp / "merged/a";
  start();
  const NfsFh3 made = *create(root(), "made").obj;
  ASSERT_EQ(write(made, 0, "text").status, Nfsstat3::kOk);
  ASSERT_EQ(::mkdir((dir + "/deep").c_str(), 0755), 0);
  ASSERT_EQ(::rename((dir + "/made").c_str(), (dir + "/deep/moved").c_str()), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read(made), "text");
  EXPECT_EQ(tree->num_searches(), 1u);
}

TEST_F(OverlayTest, NoEntryIsPassedOverWhileOthersAreRemoved) {
  constexpr int kMany = 3000;
  ASSERT_TRUE(serve(kMany));
  const NfsFh3 full = handle("full");
  nfs3::ReaddirArgs args{.dir = full, .cookie = 0, .cookieverf = {}, .count = 4096};
  for (;;) {
    const nfs3::ReaddirRes res = backend->readdir(args);
    ASSERT_EQ(res.status, Nfsstat3::kOk);
    for (const nfs3::Entry3& entry : res.entries) {
      if (entry.name != "." && entry.name != "..") {
        EXPECT_EQ(backend->remove({{full, entry.name}}).status, Nfsstat3::kOk) << entry.name;
      }
    }
    if (res.eof) break;
    args.cookie = res.entries.back().cookie;
    args.cookieverf = res.cookieverf;
  }
  EXPECT_EQ(backend->rmdir({{root(), "full"}}).status, Nfsstat3::kOk);
}

}  // namespace
}  // namespace weft::serve
