#include <sys/stat.h>
#include <unistd.h>

#include "tests/serve/fixture.h"

// LOOKUP, REMOVE, RMDIR, RENAME, LINK.
namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using testing::ExportTest;
using testing::read_local;
using testing::write_local;

class NamesTest : public ExportTest {
 protected:
  NamesTest() {
    ::mkdir((dir + "/a").c_str(), 0755);
    ::mkdir((dir + "/b").c_str(), 0755);
    write_local(dir + "/a/file", "text");
    a = handle("a");
    b = handle("b");
  }
  bool exists(const std::string& name) const { return ::access((dir + "/" + name).c_str(), F_OK) == 0; }
  Nfsstat3 rename(const NfsFh3& from, const std::string& name, const NfsFh3& to, const std::string& new_name) {
    return backend->rename({{from, name}, {to, new_name}}).status;
  }
  NfsFh3 a, b;
};

TEST_F(NamesTest, Lookup) {
  nfs3::LookupRes res = lookup(a, "file");
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.obj_attributes->size, 4u);
  EXPECT_EQ(res.dir_attributes->type, nfs3::Ftype3::kDir);
  EXPECT_EQ(res.object, lookup(a, "file").object);
  res = lookup(a, "none");
  EXPECT_EQ(res.status, Nfsstat3::kNoent);
  EXPECT_TRUE(res.dir_attributes.has_value());
  EXPECT_EQ(lookup(handle("a/file"), "x").status, Nfsstat3::kNotdir);
}

TEST_F(NamesTest, NamesAreOctets) {
  const std::string name = "\xff\xfe \n\t*?";
  ASSERT_EQ(create(a, name).status, Nfsstat3::kOk);
  EXPECT_EQ(lookup(a, name).status, Nfsstat3::kOk);
  EXPECT_EQ(backend->remove({{a, name}}).status, Nfsstat3::kOk);
}

TEST_F(NamesTest, RemoveAndRmdir) {
  EXPECT_EQ(backend->remove({{root(), "a"}}).status, Nfsstat3::kIsdir);
  EXPECT_EQ(backend->rmdir({{root(), "a"}}).status, Nfsstat3::kNotempty);
  EXPECT_EQ(backend->rmdir({{a, "file"}}).status, Nfsstat3::kNotdir);
  EXPECT_EQ(backend->remove({{a, "none"}}).status, Nfsstat3::kNoent);
  nfs3::WccRes res = backend->remove({{a, "file"}});
  EXPECT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_TRUE(res.wcc.before && res.wcc.after);
  EXPECT_NE(res.wcc.before->ctime, res.wcc.after->ctime);
  EXPECT_EQ(backend->rmdir({{root(), "a"}}).status, Nfsstat3::kOk);
  EXPECT_FALSE(exists("a"));
}

TEST_F(NamesTest, RenameMovesAndReplaces) {
  write_local(dir + "/b/target", "old");
  ASSERT_EQ(rename(a, "file", b, "target"), Nfsstat3::kOk);
  EXPECT_FALSE(exists("a/file"));
  EXPECT_EQ(read_local(dir + "/b/target"), "text");
  ASSERT_EQ(rename(b, "target", b, "again"), Nfsstat3::kOk);
  EXPECT_EQ(read_local(dir + "/b/again"), "text");
}

TEST_F(NamesTest, RenameWhatDoesNotFit) {
  EXPECT_EQ(rename(a, "none", b, "x"), Nfsstat3::kNoent);
  EXPECT_EQ(rename(a, "file", root(), "b"), Nfsstat3::kExist);  // a file over a directory
  EXPECT_EQ(rename(root(), "b", a, "file"), Nfsstat3::kExist);  // and the other way round
  EXPECT_EQ(rename(root(), "b", root(), "a"), Nfsstat3::kNotempty);
  EXPECT_EQ(rename(root(), "a", a, "itself"), Nfsstat3::kInval);
  EXPECT_TRUE(exists("a/file"));
  EXPECT_TRUE(exists("b"));
}

TEST_F(NamesTest, RenameBetweenHardLinksDoesNothing) {
  ASSERT_EQ(::link((dir + "/a/file").c_str(), (dir + "/b/link").c_str()), 0);
  EXPECT_EQ(rename(a, "file", b, "link"), Nfsstat3::kOk);
  EXPECT_TRUE(exists("a/file"));
  EXPECT_TRUE(exists("b/link"));
}

TEST_F(NamesTest, Link) {
  const NfsFh3 file = handle("a/file");
  nfs3::LinkRes res = backend->link({file, {b, "link"}});
  ASSERT_EQ(res.status, Nfsstat3::kOk);
  EXPECT_EQ(res.file_attributes->nlink, 2u);
  EXPECT_EQ(lookup(b, "link").object, file);
  EXPECT_EQ(backend->link({file, {b, "link"}}).status, Nfsstat3::kExist);
  EXPECT_EQ(backend->link({a, {b, "dir"}}).status, Nfsstat3::kInval);
  EXPECT_EQ(backend->link({file, {file, "x"}}).status, Nfsstat3::kNotdir);
  // LINK links a symbolic link itself, not its target.
  ASSERT_EQ(::symlink("file", (dir + "/a/symlink").c_str()), 0);
  ASSERT_EQ(backend->link({handle("a/symlink"), {b, "copy"}}).status, Nfsstat3::kOk);
  EXPECT_EQ(lookup(b, "copy").obj_attributes->type, nfs3::Ftype3::kLnk);
}

TEST_F(NamesTest, ADirectoryOverAnEmptyDirectory) {
  ASSERT_EQ(rename(root(), "a", root(), "b"), Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(b), Nfsstat3::kStale);
  EXPECT_EQ(handle("b"), a);
  EXPECT_EQ(lookup(a, "file").status, Nfsstat3::kOk);
}

}  // namespace
}  // namespace weft::serve
