// Whole trees: get -r, put -r and rm -r.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "apps/nfs/tree_work.h"
#include "tests/nfs/world.h"

namespace weft::nfs::testing {
namespace {

using nfs3::Nfsstat3;
using nfs3::Proc;
using rpcrdma::ServedCall;
using Names = std::vector<std::string>;

struct stat stat_of(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(lstat(path.c_str(), &found), 0) << path;
  return found;
}

std::uint32_t mode_of(const std::string& path) {
  return stat_of(path).st_mode & 07777;
}

void set_times(const std::string& path, time_t seconds, long nanoseconds) {
  const timespec times[2] = {{seconds - 7, 0}, {seconds, nanoseconds}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0) << path;
}

constexpr time_t kIn1960 = -315'619'200, kIn2200 = 7'258'118'400;

class Trees : public World {
 protected:
  // Umask 022 on every machine.
  Trees() : umask_(umask(022)) {}
  ~Trees() override { umask(umask_); }

  static std::string file_name(int i) { return "file-" + std::to_string(1000 + i); }
  // The octets of file_name(i).
  static Octets contents(int i) {
    const auto seed = static_cast<std::uint32_t>(i);
    return noise(100 + seed, seed);
  }
  static void make_files(const std::string& dir, int num) {
    std::filesystem::create_directory(dir);
    for (int i = 0; i < num; ++i) write_file(dir + "/" + file_name(i), contents(i));
  }
  static void expect_files(const std::string& dir, int num) {
    EXPECT_EQ(names_in(dir).size(), static_cast<std::size_t>(num));
    for (int i = 0; i < num; ++i) EXPECT_EQ(read_file(dir + "/" + file_name(i)), contents(i)) << i;
  }
  // Holds Calls of `proc` back until `num` of them are there: the command ends only where it has that many under way.
  void hold_until(Proc proc, std::size_t num) {
    interposer.hook = [this, proc, num, held = std::make_shared<std::vector<ServedCall>>()](ServedCall& call) {
      if (!is(call, proc) || held == nullptr || held->size() >= num) return false;
      held->push_back(std::move(call));
      if (held->size() < num) return true;
      std::vector<ServedCall> all = std::exchange(*held, std::vector<ServedCall>(num));
      for (ServedCall& one : all) interposer.inner->on_call(std::move(one));
      return true;
    };
  }

 private:
  const mode_t umask_;
};

// NFS version 3 has seconds without a sign, in 32 bits.
TEST_F(Trees, TimesThatTheProtocolCannotHaveAreTheNearestOnes) {
  std::filesystem::create_directories(local("tree/old"));
  write_file(local("tree/early"), {});
  write_file(local("tree/late"), {});
  write_file(local("tree/usual"), {});
  const timespec usual{1'700'000'000, 0};
  const std::pair<const char*, std::array<timespec, 2>> times[] = {
      {"tree/early", {{usual, {kIn1960, 0}}}},
      {"tree/late", {{{kIn2200, 0}, {kIn2200, 0}}}},
      {"tree/old", {{{kIn1960, 0}, usual}}},
      {"tree/usual", {{usual, usual}}},
  };
  for (const auto& [name, both] : times) ASSERT_EQ(utimensat(AT_FDCWD, local(name).c_str(), both.data(), 0), 0);
  const Ran put = weft({"nfs", "put", "-r", "-p", local("tree"), url("")});
  ASSERT_EQ(put.status, 0) << put.err;
  EXPECT_EQ(stat_of(exported("tree/early")).st_mtim.tv_sec, 0);
  EXPECT_EQ(stat_of(exported("tree/late")).st_mtim.tv_sec, time_t{UINT32_MAX});
  EXPECT_EQ(stat_of(exported("tree/usual")).st_mtim.tv_sec, usual.tv_sec);
  const std::string text = "3 entries have a time that NFS version 3 cannot have; the nearest of 1970 to 2106 is set";
  EXPECT_NE(put.err.find(text), std::string::npos) << put.err;
  EXPECT_EQ(std::count(put.err.begin(), put.err.end(), '\n'), 1) << put.err;
}

TEST_F(Trees, ADirectoryOpensOnlyWhenItIsComplete) {
  constexpr std::size_t kFiles = 4;
  Names dirs = {""};  // paths behind the name of the tree
  for (std::size_t i = 0; i < kFiles; ++i) {
    dirs.push_back("/" + std::to_string(i));
    dirs.push_back("/" + std::to_string(i) + "/deep");
    std::filesystem::create_directories(exported("tree" + dirs.back()));
    write_file(exported("tree" + dirs.back() + "/file"), noise(10));
  }
  for (const std::string& dir : dirs) ASSERT_EQ(chmod(exported("tree" + dir).c_str(), 0775), 0);
  // Once all files are asked for, and none is there, the walk has nothing more to do.
  std::vector<ServedCall> held;
  std::vector<std::uint32_t> modes_meanwhile;
  interposer.hook = [&](ServedCall& call) {
    if (!is(call, Proc::kRead) || !modes_meanwhile.empty()) return false;
    held.push_back(std::move(call));
    if (held.size() < kFiles) return true;
    for (const std::string& dir : dirs) modes_meanwhile.push_back(mode_of(local("copy" + dir)));
    for (ServedCall& one : held) interposer.inner->on_call(std::move(one));
    return true;
  };
  const Ran ran = weft({"nfs", "get", "-r", url("tree"), local("copy")});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(modes_meanwhile, std::vector<std::uint32_t>(dirs.size(), 0700u));
  for (const std::string& dir : dirs) EXPECT_EQ(mode_of(local("copy" + dir)), 0755u) << dir;  // less the umask
}

TEST_F(Trees, ADirectoryThatForbidsWritingIsFilledFirst) {
  std::filesystem::create_directories(exported("tree/sub"));
  write_file(exported("tree/sub/file"), noise(10));
  ASSERT_EQ(chmod(exported("tree/sub").c_str(), 0555), 0);
  const Ran get = weft({"nfs", "get", "-r", url("tree"), local("copy")});
  EXPECT_EQ(get.status, 0) << get.err;
  EXPECT_EQ(mode_of(local("copy/sub")), 0555u);
  EXPECT_TRUE(exists(local("copy/sub/file")));
  // Not every user may write there all the same, as root may.
  std::uint32_t mode_meanwhile = 0;
  interposer.hook = [&](ServedCall& call) {
    if (is(call, Proc::kCreate)) mode_meanwhile = mode_of(exported("back/sub"));
    return false;
  };
  const Ran put = weft({"nfs", "put", "-r", local("copy"), url("back")});
  EXPECT_EQ(put.status, 0) << put.err;
  EXPECT_EQ(mode_meanwhile, 0755u);
  EXPECT_EQ(mode_of(exported("back/sub")), 0555u);
  EXPECT_TRUE(exists(exported("back/sub/file")));
  for (const std::string& dir : {exported("tree/sub"), exported("back/sub"), local("copy/sub")}) {
    chmod(dir.c_str(), 0755);  // so that it can be removed
  }
}

TEST_F(Trees, DirectoriesThatAreThereKeepTheirModes) {
  std::filesystem::create_directories(exported("tree/sub"));
  std::filesystem::create_directories(local("tree/sub"));
  ASSERT_EQ(chmod(local("tree/sub").c_str(), 0551), 0);
  ASSERT_EQ(chmod(exported("tree/sub").c_str(), 0710), 0);
  ASSERT_EQ(weft({"nfs", "get", "-r", url("tree"), local_dir()}).status, 0);
  EXPECT_EQ(mode_of(local("tree/sub")), 0551u);
  ASSERT_EQ(weft({"nfs", "put", "-r", local("tree"), url("")}).status, 0);
  EXPECT_EQ(mode_of(exported("tree/sub")), 0710u);
  ASSERT_EQ(weft({"nfs", "get", "-rp", url("tree"), local_dir()}).status, 0);
  EXPECT_EQ(mode_of(local("tree/sub")), 0710u);
}

TEST_F(Trees, PreserveKeepsModesAndTimesBothWays) {
  std::filesystem::create_directories(local("tree/sub"));
  write_file(local("tree/sub/file"), noise(300));
  write_file(local("tree/sub/large"), noise(400000));
  std::filesystem::create_symlink("file", local("tree/sub/link"));
  const std::vector<std::pair<std::string, std::uint32_t>> modes = {
      {"tree/sub/file", 0464}, {"tree/sub/large", 0666}, {"tree/sub", 0770}, {"tree", 0777}};
  set_times(local("tree/sub/link"), 900'000'000, 1);
  time_t seconds = 1'000'000'000;
  for (const auto& [name, mode] : modes) {
    ASSERT_EQ(chmod(local(name).c_str(), mode), 0);
    set_times(local(name), ++seconds, 123456789);
  }
  ASSERT_EQ(weft({"nfs", "put", "-r", "-p", local("tree"), url("")}).status, 0);
  EXPECT_EQ(stat_of(exported("tree/sub/file")).st_atim.tv_sec, 1'000'000'001 - 7);
  const Ran get = weft({"nfs", "get", "-r", "-p", url("tree"), local("back")});
  ASSERT_EQ(get.status, 0) << get.err;
  seconds = 1'000'000'000;
  for (const auto& [name, mode] : modes) {
    ++seconds;
    for (const std::string& path : {exported(name), local("back" + name.substr(4))}) {
      const struct stat found = stat_of(path);
      EXPECT_EQ(found.st_mode & 07777, mode) << path;
      EXPECT_EQ(found.st_mtim.tv_sec, seconds) << path;
      EXPECT_EQ(found.st_mtim.tv_nsec, 123456789) << path;
    }
  }
  EXPECT_EQ(stat_of(local("back/sub/file")).st_atim.tv_sec, 1'000'000'001 - 7);
  EXPECT_EQ(stat_of(local("back/sub/large")).st_atim.tv_sec, 1'000'000'002 - 7);
  EXPECT_EQ(stat_of(exported("tree/sub/link")).st_mtim.tv_sec, 900'000'000);
  EXPECT_EQ(stat_of(local("back/sub/link")).st_mtim.tv_sec, 900'000'000);
}

TEST_F(Trees, SetUserIdBitsAreNotCarried) {
  std::filesystem::create_directory(exported("tree"));
  write_file(exported("tree/tool"), {1});
  ASSERT_EQ(chmod(exported("tree/tool").c_str(), 04755), 0);
  ASSERT_EQ(weft({"nfs", "get", "-rp", url("tree"), local_dir()}).status, 0);
  EXPECT_EQ(mode_of(local("tree/tool")), 0755u);
  ASSERT_EQ(chmod(local("tree/tool").c_str(), 04755), 0);
  // Servers may clear the bits, too; they are not to be asked for them.
  std::uint32_t asked_for = 0;
  interposer.hook = [&](ServedCall& call) {
    if (is(call, Proc::kCreate)) asked_for |= args_of<nfs3::CreateArgs>(call).obj_attributes.mode.value_or(0);
    if (is(call, Proc::kSetattr)) asked_for |= args_of<nfs3::SetattrArgs>(call).new_attributes.mode.value_or(0);
    return false;
  };
  ASSERT_EQ(weft({"nfs", "put", "-rp", local("tree"), url("back")}).status, 0);
  EXPECT_EQ(mode_of(exported("back/tool")), 0755u);
  EXPECT_EQ(asked_for, 0755u);
}

TEST_F(Trees, DirectoriesAreMadeAndRemovedSideBySide) {
  constexpr int kDirs = 6;  // within the credits of a client that was idle
  for (int i = 0; i < kDirs; ++i) make_files(local_dir() + "/" + file_name(i), 3);
  hold_until(Proc::kMkdir, kDirs);  // and the one above them was made before
  std::atomic<int> num_mkdir = 0;
  auto held = interposer.hook;
  interposer.hook = [&, held](ServedCall& call) {
    return is(call, Proc::kMkdir) && num_mkdir++ > 0 ? held(call) : false;
  };
  Ran ran = weft({"nfs", "put", "-r", local_dir(), url("tree")});
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (int i = 0; i < kDirs; ++i) expect_files(exported("tree/" + file_name(i)), 3);
  interposer.hook = nullptr;
  ran = weft({"nfs", "rm", "-r", url("tree")});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(names_in(export_dir()).empty());
}

TEST_F(Trees, FilesAreSentAndRemovedSideBySide) {
  constexpr int kFiles = 6;  // within the credits of a client that was idle
  make_files(local("tree"), kFiles);
  hold_until(Proc::kCommit, kFiles);
  Ran ran = weft({"nfs", "put", "-r", local("tree"), url("")});
  ASSERT_EQ(ran.status, 0) << ran.err;
  expect_files(exported("tree"), kFiles);
  hold_until(Proc::kRemove, kFiles);
  ran = weft({"nfs", "rm", "-r", url("tree")});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(names_in(export_dir()).empty());
}

TEST_F(Trees, FilesAreSentOneAtATimeIfTheUserSaysSo) {
  constexpr int kFiles = 20;
  make_files(local("tree"), kFiles);
  int num_open = 0, most_open = 0;
  interposer.hook = [&](ServedCall& call) {
    if (is(call, Proc::kCreate)) most_open = std::max(most_open, ++num_open);
    if (is(call, Proc::kRename)) --num_open;
    return false;
  };
  const Ran ran = weft({"nfs", "put", "-r", "-j", "1", local("tree"), url("")});
  ASSERT_EQ(ran.status, 0) << ran.err;
  expect_files(exported("tree"), kFiles);
  EXPECT_EQ(most_open, 1);
}

TEST_F(Trees, AFileThatFailsDoesNotKeepTheOthersBack) {
  constexpr int kFiles = 30;
  make_files(exported("tree"), kFiles);
  const nfs3::NfsFh3 bad = backend->lookup({{handle_of("tree"), file_name(7)}}).object;
  interposer.hook = [&, bad](ServedCall& call) {
    if (!is(call, Proc::kRead) || args_of<nfs3::ReadArgs>(call).file != bad) return false;
    interposer.answer(call, nfs3::ReadRes{Nfsstat3::kIo, {}, 0, false, {}});
    return true;
  };
  Ran ran = weft({"nfs", "get", "-r", url("tree"), local("copy")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_NE(ran.err.find(file_name(7) + "?"), std::string::npos) << ran.err;
  EXPECT_EQ(names_in(local("copy")).size(), kFiles - 1u);

  interposer.hook = [&](ServedCall& call) {
    if (!is(call, Proc::kRemove) || args_of<nfs3::DiropArgs>(call).what.name != file_name(7)) return false;
    interposer.answer(call, nfs3::WccRes{Nfsstat3::kAcces, {}});
    return true;
  };
  ran = weft({"nfs", "rm", "-r", url("tree")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_EQ(names_in(exported("tree")), Names{file_name(7)});

  std::filesystem::remove_all(exported("tree"));
  interposer.hook = [&](ServedCall& call) {
    if (!is(call, Proc::kRename) || args_of<nfs3::RenameArgs>(call).to.name != file_name(8)) return false;
    interposer.answer(call, nfs3::RenameRes{Nfsstat3::kNospc, {}, {}});
    return true;
  };
  ran = weft({"nfs", "put", "-r", local("copy"), url("tree")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  // Neither the file nor its temporary name is there.
  EXPECT_EQ(names_in(exported("tree")).size(), kFiles - 2u);
  EXPECT_FALSE(exists(exported("tree/" + file_name(8))));
}

// Nothing ever writes to the pipes: a put that opened one would wait for ever.
TEST_F(Trees, WhatIsNoRegularFileIsSkippedAndSaid) {
  make_files(local("tree"), 2);
  for (const char* name : {"pipe", "tree/pipe"}) ASSERT_EQ(mkfifo(local(name).c_str(), 0600), 0);
  const Ran ran = weft({"nfs", "put", "-r", local("pipe"), local("tree"), url("")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 2) << ran.err;
  for (const char* name : {"pipe", "tree/pipe"}) {
    EXPECT_NE(ran.err.find(local(name) + ": skipped: not a regular file"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(names_in(export_dir()), Names{"tree"});
  expect_files(exported("tree"), 2);
}

TEST_F(Trees, AStopSignalLeavesCompleteFilesAndNoOthers) {
  constexpr int kFiles = 200;
  make_files(local("tree"), kFiles);
  const auto signal_at = [this](Proc proc, int at) {
    interposer.hook = [proc, at, num = 0](ServedCall& call) mutable {
      if (is(call, proc) && ++num == at) kill(getpid(), SIGINT);
      return false;
    };
  };
  const auto expect_whole_files = [](const std::string& dir) {
    const Names names = names_in(dir);
    EXPECT_LT(names.size(), static_cast<std::size_t>(kFiles));
    for (const std::string& name : names) {
      ASSERT_TRUE(name.starts_with("file-")) << name;
      const int i = std::stoi(name.substr(5)) - 1000;
      EXPECT_EQ(read_file(dir + "/" + name), contents(i)) << name;
    }
  };
  signal_at(Proc::kCommit, 20);
  const Ran put = weft({"nfs", "put", "-r", local("tree"), url("")});
  EXPECT_EQ(put.status, 1);
  EXPECT_EQ(std::count(put.err.begin(), put.err.end(), '\n'), 1) << put.err;
  EXPECT_NE(put.err.find("interrupted"), std::string::npos) << put.err;
  expect_whole_files(exported("tree"));

  std::filesystem::remove_all(exported("tree"));
  make_files(exported("tree"), kFiles);
  signal_at(Proc::kRead, 40);
  const Ran get = weft({"nfs", "get", "-r", url("tree"), local("copy")});
  EXPECT_EQ(get.status, 1);
  EXPECT_NE(get.err.find("interrupted"), std::string::npos) << get.err;
  expect_whole_files(local("copy"));
}

TEST_F(Trees, AConnectionThatEndsIsToldOnce) {
  make_files(exported("tree"), 50);
  interposer.hook = [this, num = 0](ServedCall& call) mutable {
    if (!is(call, Proc::kRead) || ++num < 10) return false;
    stop_server();
    return true;
  };
  const Ran ran = weft({"nfs", "get", "-r", url("tree"), local("copy")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

TEST_F(Trees, WhatAServerPassedOverIsRemovedInAnotherWalk) {
  make_files(exported("tree"), 20);
  // The cookies of some filesystems count entries. There the entries behind removed names are passed over.
  std::atomic<int> num_listings = 0;
  const nfs3::NfsFh3 dir = handle_of("tree");
  interposer.hook = [&, dir](ServedCall& call) {
    if (!is(call, Proc::kReaddirplus) || args_of<nfs3::ReaddirplusArgs>(call).dir != dir) return false;
    nfs3::ReaddirplusRes res = backend->readdirplus(args_of<nfs3::ReaddirplusArgs>(call));
    if (++num_listings <= 2) res.entries.resize(res.entries.size() / 2);
    res.eof = true;
    interposer.answer(call, res);
    return true;
  };
  const Ran ran = weft({"nfs", "rm", "-r", url("tree")});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_FALSE(exists(exported("tree")));
  EXPECT_GE(num_listings, 3);
}

TEST_F(Trees, ADirectoryThatStaysNotEmptyIsAnError) {
  make_files(exported("tree"), 5);
  interposer.hook = [this](ServedCall& call) {
    if (!is(call, Proc::kRmdir)) return false;
    interposer.answer(call, nfs3::WccRes{Nfsstat3::kNotempty, {}});
    return true;
  };
  const Ran ran = weft({"nfs", "rm", "-r", url("tree")});
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

TEST_F(Trees, FilesOfEverySizeInOneTree) {
  std::filesystem::create_directory(exported("tree"));
  const std::size_t sizes[] = {0, 1, 4000, 4096, 262143, 262144, 262145, 3000001};
  for (std::size_t len : sizes) write_file(exported("tree/" + std::to_string(len)), noise(len, unsigned(len)));
  for (const char* option : {"-r", "-rp"}) {
    const Ran get = weft({"nfs", "get", option, "--sync", url("tree"), local("copy")});
    ASSERT_EQ(get.status, 0) << get.err;
    const Ran put = weft({"nfs", "put", option, "--sync", local("copy"), url("back")});
    ASSERT_EQ(put.status, 0) << put.err;
    for (std::size_t len : sizes) {
      EXPECT_EQ(read_file(exported("back/" + std::to_string(len))), noise(len, unsigned(len))) << len;
    }
    std::filesystem::remove_all(local("copy"));
    std::filesystem::remove_all(exported("back"));
  }
}

TEST_F(Trees, ReadsAndWritesOfSmallFilesAreNoLongerThanAskedFor) {
  std::filesystem::create_directory(local("tree"));
  const std::size_t sizes[] = {4095, 4096, 4097, 50'000};
  for (std::size_t len : sizes) write_file(local("tree/" + std::to_string(len)), noise(len, unsigned(len)));
  std::uint32_t longest = 0;
  interposer.hook = [&](ServedCall& call) {
    ConstBytes data;
    if (is(call, Proc::kRead)) longest = std::max(longest, args_of<nfs3::ReadArgs>(call).count);
    if (is(call, Proc::kWrite)) longest = std::max(longest, write_args_of(call, data).count);
    return false;
  };
  ASSERT_EQ(weft({"nfs", "put", "-r", "--io-size", "4096", local("tree"), url("")}).status, 0);
  EXPECT_EQ(std::exchange(longest, 0), 4096u);
  ASSERT_EQ(weft({"nfs", "get", "-r", "--io-size", "4096", url("tree"), local("copy")}).status, 0);
  EXPECT_EQ(longest, 4096u);
  for (std::size_t len : sizes) {
    EXPECT_EQ(read_file(local("copy/" + std::to_string(len))), noise(len, unsigned(len))) << len;
  }
}

TEST_F(Trees, SyncWritesWithoutACommit) {
  make_files(local("tree"), 3);
  std::atomic<int> num_unstable = 0, num_commits = 0;
  interposer.hook = [&](ServedCall& call) {
    ConstBytes data;
    if (is(call, Proc::kWrite) && write_args_of(call, data).stable != nfs3::StableHow::kFileSync) ++num_unstable;
    if (is(call, Proc::kCommit)) ++num_commits;
    return false;
  };
  EXPECT_EQ(weft({"nfs", "put", "-r", "--sync", local("tree"), url("")}).status, 0);
  EXPECT_EQ(num_unstable + num_commits, 0);
  EXPECT_EQ(weft({"nfs", "put", "-r", local("tree"), url("again")}).status, 0);
  EXPECT_EQ(num_unstable, 3);
  EXPECT_EQ(num_commits, 3);
}

TEST_F(Trees, AServerThatStartsAnewGetsEachFileAgain) {
  constexpr int kFiles = 20;
  make_files(local("tree"), kFiles);
  std::atomic<int> num_commits = 0;
  std::set<std::array<std::uint8_t, nfs3::kMaxFh>> lost;
  interposer.hook = [&](ServedCall& call) {
    if (!is(call, Proc::kCommit)) return false;
    ++num_commits;
    // Five files lose the first octets written to them.
    if (lost.size() == 5 || !lost.insert(args_of<nfs3::CommitArgs>(call).file.data).second) return false;
    interposer.answer(call, nfs3::CommitRes{Nfsstat3::kOk, {}, {9, 9, 9, 9, 9, 9, 9, 9}});
    return true;
  };
  const Ran ran = weft({"nfs", "put", "-r", local("tree"), url("")});
  EXPECT_EQ(ran.status, 0) << ran.err;
  expect_files(exported("tree"), kFiles);
  EXPECT_EQ(num_commits, kFiles + 5);
}

TEST(TreeProgress, TellsFilesBytesRateAndTheTimeLeft) {
  TreeCounts counts{.files = 100, .octets = 1 << 20, .found_files = 164, .found_octets = 2 << 20};
  EXPECT_EQ(progress_text(counts, 2), "100 of 164+ files, 1.00 MiB, 524.3 kB/s, 50 files/s");
  counts.found_all = true;
  counts.found_files = 1000;
  EXPECT_EQ(progress_text(counts, 2), "100 of 1000 files, 1.00 MiB, 524.3 kB/s, 50 files/s, 18 s left");
  counts.found_octets = 1000 << 20;
  EXPECT_EQ(progress_text(counts, 2), "100 of 1000 files, 1.00 MiB, 524.3 kB/s, 50 files/s, 33 min left");
  counts.found_files = 1000000;
  EXPECT_EQ(progress_text(counts, 2), "100 of 1000000 files, 1.00 MiB, 524.3 kB/s, 50 files/s, 5 h 33 min left");
}

}  // namespace
}  // namespace weft::nfs::testing
