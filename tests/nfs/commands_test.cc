// `weft nfs` with a server that behaves.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "apps/nfs/runner.h"
#include "tests/nfs/world.h"

namespace weft::nfs::testing {
namespace {

using Names = std::vector<std::string>;

class Commands : public World {};

// The number behind a key in JSON; the largest number for none.
std::uint64_t number_in(const std::string& json, const std::string& key) {
  const std::string quoted = "\"" + key + "\":";
  const std::size_t at = json.find(quoted);
  return at == std::string::npos ? ~std::uint64_t{0} : std::stoull(json.substr(at + quoted.size()));
}

TEST_F(Commands, LsShowsWhatIsThere) {
  write_file(exported("b"), {1});
  write_file(exported(".hidden"), {});
  std::filesystem::create_directory(exported("a"));
  write_file(exported("a/inner"), noise(3));
  std::filesystem::create_symlink("b", exported("link"));
  EXPECT_EQ(weft({"nfs", "ls", url("")}).out, "a\nb\nlink\n");
  EXPECT_EQ(weft({"nfs", "ls", "-a", url("")}).out, ".hidden\na\nb\nlink\n");
  EXPECT_EQ(weft({"nfs", "ls", "-r", url("")}).out, "a\na/inner\nb\nlink\n");
  EXPECT_EQ(weft({"nfs", "ls", url("b")}).out, "b\n");
  const Ran longer = weft({"nfs", "ls", "-l", url("")});
  EXPECT_NE(longer.out.find("\nlrwxrwxrwx "), std::string::npos) << longer.out;
  EXPECT_NE(longer.out.find(" link -> b\n"), std::string::npos) << longer.out;
  const Ran json = weft({"nfs", "ls", "--json", url("a")});
  EXPECT_EQ(number_in(json.out, "octets"), 3u) << json.out;
  EXPECT_EQ(json.status, 0);
}

TEST_F(Commands, LsOfADirectoryThatNeedsManyReplies) {
  Names names;
  for (int i = 0; i < 1500; ++i)
    names.push_back("a-name-that-takes-some-room-in-a-listing-" + std::to_string(10000 + i));
  for (const std::string& name : names) write_file(exported(name), {});
  std::string expected;
  for (const std::string& name : names) expected += name + "\n";
  EXPECT_EQ(weft({"nfs", "ls", url("")}).out, expected);
}

TEST_F(Commands, StatOfALinkAndOfItsTarget) {
  write_file(exported("file"), noise(7));
  std::filesystem::create_symlink("file", exported("link"));
  EXPECT_NE(weft({"nfs", "stat", url("link")}).out.find("type: symlink"), std::string::npos);
  const Ran target = weft({"nfs", "stat", "-L", "--json", url("link")});
  EXPECT_NE(target.out.find("\"type\":\"file\""), std::string::npos) << target.out;
  EXPECT_EQ(number_in(target.out, "octets"), 7u);
}

TEST_F(Commands, NamesArePercentEncoded) {
  const std::string name = "100% s\xc3\xbcre? #1\n\x01";
  write_file(exported(name), {'h', 'i'});
  EXPECT_EQ(weft({"nfs", "cat", url("100%25%20s%C3%BCre%3F%20%231%0A%01")}).out, "hi");
  EXPECT_EQ(weft({"nfs", "get", url("100%25%20s%C3%BCre%3F%20%231%0A%01"), local_dir()}).status, 0);
  EXPECT_EQ(names_in(local_dir()), Names{name});
  EXPECT_EQ(weft({"nfs", "cat", url("100%")}).status, 2);
}

TEST_F(Commands, GetAndPutOfManySizes) {
  for (const std::size_t len : {0u, 1u, 3u, 4095u, 4096u, 65535u, 65536u, 65537u, 131072u, 700001u}) {
    const Octets octets = noise(len, static_cast<std::uint32_t>(len));
    write_file(local("up"), octets);
    Ran put = weft({"nfs", "put", "-j", "3", "--io-size", "65536", local("up"), url("file")});
    ASSERT_EQ(put.status, 0) << put.err;
    EXPECT_EQ(read_file(exported("file")), octets) << len;
    Ran get = weft({"nfs", "get", "-j", "3", "--io-size", "65536", url("file"), local("down")});
    ASSERT_EQ(get.status, 0) << get.err;
    EXPECT_EQ(read_file(local("down")), octets) << len;
  }
  EXPECT_EQ(names_in(export_dir()), Names{"file"});
  EXPECT_EQ(names_in(local_dir()), (Names{"down", "up"}));
}

// Numbers of file systems take all 64 bits; a number of JSON would lose the last digits in many readers.
TEST_F(Commands, StatTellsTheFileSystemWithAllItsDigits) {
  write_file(exported("file"), {1});
  interposer.hook = [this](rpcrdma::ServedCall& call) {
    if (!is(call, nfs3::Proc::kLookup)) return false;
    nfs3::LookupRes res = backend->lookup(args_of<nfs3::DiropArgs>(call));
    res.obj_attributes->fsid = 0xfedcba9876543211;
    interposer.answer(call, res);
    return true;
  };
  const Ran json = weft({"nfs", "stat", "--json", url("file")});
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_NE(json.out.find(R"("fsid":"18364758544493064721")"), std::string::npos) << json.out;
  const Ran text = weft({"nfs", "stat", url("file")});
  EXPECT_NE(text.out.find("of file system 0xfedcba9876543211\n"), std::string::npos) << text.out;
}

TEST_F(Commands, BulkGoesByChunkAndSmallDataInline) {
  write_file(exported("small"), noise(100));
  write_file(exported("large"), noise(300000));
  const Ran small = weft({"nfs", "get", "--json", "--stats", url("small"), local("s")});
  EXPECT_EQ(number_in(small.out, "rdma_writes_received"), 0u) << small.out;
  const Ran large = weft({"nfs", "get", "--json", "--stats", url("large"), local("l")});
  EXPECT_GE(number_in(large.out, "rdma_writes_received"), 1u) << large.out;
  EXPECT_EQ(number_in(large.out, "rdma_write_octets_received"), 300000u);
  const Ran put_small = weft({"nfs", "put", "--json", "--stats", local("s"), url("s")});
  EXPECT_EQ(number_in(put_small.out, "rdma_reads_served"), 0u) << put_small.out;
  const Ran put_large = weft({"nfs", "put", "--json", "--stats", local("l"), url("l")});
  EXPECT_GE(number_in(put_large.out, "rdma_reads_served"), 1u) << put_large.out;
  EXPECT_EQ(number_in(put_large.out, "rdma_read_octets_served"), 300000u);
}

TEST_F(Commands, ModesArePutAndGot) {
  write_file(local("script"), {'#'});
  ASSERT_EQ(chmod(local("script").c_str(), 0750), 0);
  ASSERT_EQ(weft({"nfs", "put", "-p", local("script"), url("")}).status, 0);
  struct stat there {
  }, here{};
  ASSERT_EQ(stat(exported("script").c_str(), &there), 0);
  ASSERT_EQ(stat(local("script").c_str(), &here), 0);
  EXPECT_EQ(there.st_mode & 07777, 0750u);
  EXPECT_EQ(there.st_mtim.tv_sec, here.st_mtim.tv_sec);
  ASSERT_EQ(weft({"nfs", "get", "-p", url("script"), local("back")}).status, 0);
  ASSERT_EQ(stat(local("back").c_str(), &here), 0);
  EXPECT_EQ(here.st_mode & 0700, 0700u);
  EXPECT_EQ(here.st_mtim.tv_nsec, there.st_mtim.tv_nsec);
}

TEST_F(Commands, TreesComeBack) {
  std::filesystem::create_directories(local("tree/sub/deep"));
  write_file(local("tree/one"), noise(10));
  write_file(local("tree/sub/two"), noise(200000));
  write_file(local("tree/sub/deep/empty"), {});
  std::filesystem::create_symlink("../one", local("tree/sub/link"));
  ASSERT_EQ(weft({"nfs", "put", "-r", local("tree"), url("")}).status, 0);
  EXPECT_EQ(read_file(exported("tree/sub/two")), noise(200000));
  EXPECT_EQ(std::filesystem::read_symlink(exported("tree/sub/link")), "../one");
  for (int round = 0; round < 2; ++round) {  // the second time over existing files
    const Ran get = weft({"nfs", "get", "-r", url("tree"), round == 0 ? local("back") : local_dir()});
    ASSERT_EQ(get.status, 0) << get.err;
  }
  EXPECT_EQ(read_file(local("back/sub/two")), noise(200000));
  EXPECT_EQ(std::filesystem::read_symlink(local("back/sub/link")), "../one");
  EXPECT_TRUE(exists(local("back/sub/deep/empty")));
  EXPECT_EQ(weft({"nfs", "get", url("tree"), local("x")}).status, 1);  // without -r
  EXPECT_FALSE(exists(local("x")));
}

TEST_F(Commands, ALinkThatCannotReplaceADirectoryLeavesNothingBehind) {
  std::filesystem::create_directories(exported("tree"));
  std::filesystem::create_symlink("elsewhere", exported("tree/name"));
  std::filesystem::create_directories(local("back/tree/name"));
  write_file(local("back/tree/name/kept"), noise(10));
  const Ran get = weft({"nfs", "get", "-r", url("tree"), local("back")});
  EXPECT_EQ(get.status, 1);
  EXPECT_EQ(names_in(local("back/tree")), std::vector<std::string>{"name"});
  EXPECT_EQ(read_file(local("back/tree/name/kept")), noise(10));
}

TEST_F(Commands, GetToDevNullAndToAFullDevice) {
  write_file(exported("file"), noise(5000));
  EXPECT_EQ(weft({"nfs", "get", url("file"), "/dev/null"}).status, 0);
  const Ran full = weft({"nfs", "get", url("file"), "/dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_EQ(full.err, "weft: cannot write /dev/full: No space left on device\n");
  EXPECT_TRUE(exists("/dev/full"));
}

// One line, and the second file is not tried any more.
TEST_F(Commands, CatToAFullDeviceSaysSoAndEnds) {
  write_file(exported("file"), noise(5000));
  NfsOptions options;
  options.names = {url("file"), url("file")};
  apps::GlobalOptions globals = client_options();
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  int status = -1;
  ::testing::internal::CaptureStderr();
  {
    const StdoutTo device(full);
    Runner runner(globals, options);
    run_cat(runner);
    status = runner.finish();
  }
  close(full);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "weft: cannot write to standard output: No space left on device\n");
  EXPECT_EQ(status, 1);
}

TEST_F(Commands, WhatIsMissingIsSaidInOneLine) {
  for (const char* command : {"ls", "stat", "cat", "get", "rm"}) {
    const Ran ran = weft({"nfs", command, url("nowhere/file")});
    EXPECT_EQ(ran.status, 1) << command;
    // rm misses the directory before the name.
    const std::string missing = command == std::string("rm") ? "nowhere/" : "nowhere/file";
    EXPECT_EQ(ran.err, "weft: " + url(missing) + ": no such file or directory\n");
  }
  EXPECT_TRUE(names_in(local_dir()).empty());
  const Ran ran = weft({"nfs", "put", local("nothing"), url("x")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.err, "weft: " + local("nothing") + ": No such file or directory\n");
}

TEST_F(Commands, UsageErrorsAreTwo) {
  EXPECT_EQ(weft({"nfs", "get"}).status, 2);
  EXPECT_EQ(weft({"nfs", "ls", "/tmp"}).status, 2);
  EXPECT_EQ(weft({"nfs", "get", url("a"), url("b")}).status, 2);
  EXPECT_EQ(weft({"nfs", "put", url("a"), url("b")}).status, 2);
  EXPECT_EQ(weft({"nfs", "get", "-j", "0", url("a")}).status, 2);
  EXPECT_EQ(weft({"nfs", "mv", url("a"), "nfs+rdma://elsewhere/b"}).status, 2);
}

TEST_F(Commands, MkdirRmMvLn) {
  EXPECT_EQ(weft({"nfs", "mkdir", url("a/b")}).status, 1);
  EXPECT_EQ(weft({"nfs", "mkdir", "-p", url("a/b/c")}).status, 0);
  EXPECT_EQ(weft({"nfs", "mkdir", "-p", url("a/b/c")}).status, 0);
  EXPECT_EQ(weft({"nfs", "mkdir", url("a")}).status, 1);
  write_file(exported("file"), {1});
  EXPECT_EQ(weft({"nfs", "ln", url("file"), url("a")}).status, 0);
  EXPECT_EQ(std::filesystem::hard_link_count(exported("a/file")), 2u);
  EXPECT_EQ(weft({"nfs", "ln", "-s", "../file", url("a/sym")}).status, 0);
  EXPECT_EQ(std::filesystem::read_symlink(exported("a/sym")), "../file");
  EXPECT_EQ(weft({"nfs", "mv", url("file"), url("a/b/c/")}).status, 0);
  EXPECT_EQ(weft({"nfs", "mv", url("a/b/c/file"), url("renamed")}).status, 0);
  EXPECT_TRUE(exists(exported("renamed")));
  EXPECT_EQ(weft({"nfs", "rm", url("a")}).status, 1);
  EXPECT_TRUE(exists(exported("a/b/c")));
  EXPECT_EQ(weft({"nfs", "rm", "-r", url("a")}).status, 0);
  EXPECT_FALSE(exists(exported("a")));
  EXPECT_EQ(weft({"nfs", "rm", "-f", url("a")}).status, 0);
  EXPECT_EQ(weft({"nfs", "rm", "-r", url("")}).status, 2);
  EXPECT_TRUE(exists(exported("renamed")));
}

TEST_F(Commands, RmNeverFollowsSymbolicLinks) {
  std::filesystem::create_directory(exported("keep"));
  write_file(exported("keep/file"), {1});
  std::filesystem::create_directory(exported("dir"));
  std::filesystem::create_symlink("../keep", exported("dir/link"));
  std::filesystem::create_symlink("keep", exported("link"));
  EXPECT_EQ(weft({"nfs", "rm", "-r", url("dir")}).status, 0);
  EXPECT_EQ(weft({"nfs", "rm", "-r", url("link")}).status, 0);
  EXPECT_FALSE(exists(exported("link")));
  EXPECT_TRUE(exists(exported("keep/file")));
  EXPECT_FALSE(exists(exported("dir")));
}

TEST_F(Commands, SymbolicLinksAreFollowedWithinTheExport) {
  std::filesystem::create_directories(exported("real/deep"));
  write_file(exported("real/deep/file"), {'f'});
  std::filesystem::create_symlink("real", exported("relative"));
  std::filesystem::create_symlink("/real/deep", exported("absolute"));
  std::filesystem::create_symlink("../../../../real/deep/file", exported("real/up"));
  std::filesystem::create_symlink("loop", exported("loop"));
  for (const char* path : {"relative/deep/file", "absolute/file", "real/up"}) {
    EXPECT_EQ(weft({"nfs", "cat", url(path)}).out, "f") << path;
  }
  const Ran loop = weft({"nfs", "cat", url("loop")});
  EXPECT_EQ(loop.status, 1);
  EXPECT_NE(loop.err.find("symbolic links"), std::string::npos);
}

TEST_F(Commands, PutReplacesTheNameNotWhatItPointsTo) {
  write_file(exported("victim"), {'v'});
  std::filesystem::create_symlink("victim", exported("name"));
  write_file(local("new"), {'n'});
  ASSERT_EQ(weft({"nfs", "put", local("new"), url("name")}).status, 0);
  EXPECT_EQ(text_of(read_file(exported("victim"))), "v");
  EXPECT_EQ(text_of(read_file(exported("name"))), "n");
}

TEST_F(Commands, GetReplacesOnlyWhenComplete) {
  write_file(local("target"), {'o', 'l', 'd'});
  EXPECT_EQ(weft({"nfs", "get", url("missing"), local("target")}).status, 1);
  EXPECT_EQ(text_of(read_file(local("target"))), "old");
  write_file(exported("file"), {'n', 'e', 'w'});
  EXPECT_EQ(weft({"nfs", "get", url("file"), local("target")}).status, 0);
  EXPECT_EQ(text_of(read_file(local("target"))), "new");
}

TEST_F(Commands, GetWritesThroughNoDanglingLink) {
  write_file(exported("file"), {'n', 'e', 'w'});
  std::filesystem::create_directory(exported("tree"));
  std::filesystem::create_symlink("missing", local("link"));
  for (const std::vector<std::string>& words : {std::vector<std::string>{"nfs", "get", url("file"), local("link")},
                                                {"nfs", "get", "-r", url("tree"), local("link")}}) {
    const Ran ran = weft(words);
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.err.find(local("link") + ": not written through a symbolic link whose target is missing"),
              std::string::npos)
        << ran.err;
    EXPECT_EQ(names_in(local_dir()), std::vector<std::string>{"link"});
    EXPECT_TRUE(std::filesystem::is_symlink(local("link")));
  }
}

TEST_F(Commands, RefusedMountAndAbsentServer) {
  stop_server();
  const Ran ran = weft({"nfs", "ls", "nfs+rdma://127.0.0.1:1/?mountport=1"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_NE(ran.err.find("MOUNT"), std::string::npos);
}

}  // namespace
}  // namespace weft::nfs::testing
