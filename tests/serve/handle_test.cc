#include "apps/serve/export/handle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>

#include "tests/serve/fixture.h"

namespace weft::serve {
namespace {

using nfs3::NfsFh3;
using nfs3::Nfsstat3;
using testing::ExportTest;

constexpr HandleKey kKey = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
constexpr FileKey kFile = {.dev = 7, .ino = 0x0102030405060708, .btime_ns = 1'700'000'000'123'456'789};

TEST(HandleCodec, SaysWhatWentIn) {
  auto codec = *HandleCodec::create(kKey, 42);
  NfsFh3 handle = codec->make(kFile);
  EXPECT_EQ(handle.len, HandleCodec::kHandleLen);
  Outcome<FileKey> key = codec->parse(handle);
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key.value(), kFile);
  EXPECT_EQ(codec->make(kFile), handle);
}

TEST(HandleCodec, EveryFlippedBitIsRefused) {
  auto codec = *HandleCodec::create(kKey, 42);
  const NfsFh3 good = codec->make(kFile);
  for (std::size_t bit = 0; bit < 8 * good.len; ++bit) {
    NfsFh3 bad = good;
    bad.data[bit / 8] = static_cast<std::uint8_t>(bad.data[bit / 8] ^ 1u << bit % 8);
    Outcome<FileKey> key = codec->parse(bad);
    ASSERT_FALSE(key.ok()) << "bit " << bit;
    EXPECT_EQ(key.error(), Errno{EBADMSG}) << "bit " << bit;
  }
}

TEST(HandleCodec, EveryOtherLengthIsRefused) {
  auto codec = *HandleCodec::create(kKey, 42);
  const NfsFh3 good = codec->make(kFile);
  for (std::uint32_t len = 0; len <= nfs3::kMaxFh; ++len) {
    NfsFh3 bad = good;
    bad.len = len;
    EXPECT_EQ(codec->parse(bad).ok(), len == good.len) << len;
  }
}

TEST(HandleCodec, AnotherKeyIsForgeryAnotherExportIsStale) {
  HandleKey other_key = kKey;
  other_key[15] ^= 1;
  const NfsFh3 handle = (*HandleCodec::create(kKey, 42))->make(kFile);
  EXPECT_EQ((*HandleCodec::create(other_key, 42))->parse(handle).error(), Errno{EBADMSG});
  EXPECT_EQ((*HandleCodec::create(kKey, 43))->parse(handle).error(), Errno{ESTALE});
}

TEST_F(ExportTest, ForgedHandlesAreBadForEveryProcedure) {
  testing::write_local(dir + "/file", "text");
  NfsFh3 bad = handle("file");
  bad.data[20] ^= 1;
  const NfsFh3 good = root();
  std::vector<std::uint8_t> into(8192);
  const Nfsstat3 want = Nfsstat3::kBadhandle;
  EXPECT_EQ(backend->getattr({bad}).status, want);
  EXPECT_EQ(backend->setattr({.object = bad, .new_attributes = {}, .guard = {}}).status, want);
  EXPECT_EQ(backend->lookup({{bad, "x"}}).status, want);
  EXPECT_EQ(backend->access({bad, 63}).status, want);
  EXPECT_EQ(backend->readlink({bad}, into).status, want);
  EXPECT_EQ(backend->read({bad, 0, 10}, into).status, want);
  EXPECT_EQ(write(bad, 0, "x").status, want);
  EXPECT_EQ(create(bad, "x").status, want);
  EXPECT_EQ(backend->mkdir({{bad, "x"}, {}}).status, want);
  EXPECT_EQ(backend->symlink({{bad, "x"}, {}, {}}, into).status, want);
  EXPECT_EQ(backend->mknod({{bad, "x"}, nfs3::Ftype3::kFifo, {}, {}}).status, want);
  EXPECT_EQ(backend->remove({{bad, "x"}}).status, want);
  EXPECT_EQ(backend->rmdir({{bad, "x"}}).status, want);
  EXPECT_EQ(backend->rename({{bad, "x"}, {good, "y"}}).status, want);
  EXPECT_EQ(backend->rename({{good, "x"}, {bad, "y"}}).status, want);
  EXPECT_EQ(backend->link({bad, {good, "x"}}).status, want);
  EXPECT_EQ(backend->link({good, {bad, "x"}}).status, want);
  EXPECT_EQ(backend->readdir({bad, 0, {}, 4096}).status, want);
  EXPECT_EQ(backend->readdirplus({bad, 0, {}, 4096, 8192}).status, want);
  EXPECT_EQ(backend->fsstat({bad}).status, want);
  EXPECT_EQ(backend->fsinfo({bad}).status, want);
  EXPECT_EQ(backend->pathconf({bad}).status, want);
  EXPECT_EQ(backend->commit({bad, 0, 0}).status, want);
}

TEST_F(ExportTest, TheKeyIsPrivateAndStays) {
  struct stat st {};
  ASSERT_EQ(::stat((tree_config.state_dir + "/handle-key").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600u);
  EXPECT_EQ(st.st_size, 16);
  ASSERT_EQ(::stat(tree_config.state_dir.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0700u);
  const NfsFh3 before = root();
  start();
  EXPECT_EQ(root(), before);
}

TEST_F(ExportTest, AStateDirectoryThatOthersMayWriteIsRefused) {
  ::chmod(tree_config.state_dir.c_str(), 0777);
  tree.reset();
  EXPECT_EQ(Tree::open(tree_config).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(ExportTest, ItsParentsAreMadeForTheServerAlone) {
  tree_config.state_dir = temp / "local/share/state";
  start();
  for (const char* name : {"local", "local/share", "local/share/state"}) {
    struct stat st {};
    ASSERT_EQ(::stat((temp / name).c_str(), &st), 0) << name;
    EXPECT_EQ(st.st_mode & 07777, 0700u) << name;
  }
}

// A handle that one server gave out is good for the others.
TEST_F(ExportTest, ServersThatStartAtOnceHaveOneKey) {
  constexpr int kServers = 4;
  for (int round = 0; round < 20; ++round) {
    const std::string state = temp / ("keys" + std::to_string(round));
    ASSERT_EQ(::mkdir(state.c_str(), 0700), 0);
    int start_pipe[2], keys_pipe[2];
    ASSERT_EQ(::pipe(start_pipe), 0);
    ASSERT_EQ(::pipe(keys_pipe), 0);
    Fd start_reader(start_pipe[0]), start_writer(start_pipe[1]), keys_reader(keys_pipe[0]), keys_writer(keys_pipe[1]);
    std::vector<pid_t> servers;
    for (int i = 0; i < kServers; ++i) {
      const pid_t pid = ::fork();
      ASSERT_GE(pid, 0);
      if (pid != 0) {
        servers.push_back(pid);
        continue;
      }
      start_writer.reset();
      char ignored = 0;
      (void)!::read(start_reader.get(), &ignored, 1);  // until every server may start
      const Fd dir_fd(::open(state.c_str(), O_RDONLY | O_DIRECTORY));
      const auto key = load_handle_key(dir_fd.get(), "state");
      ::_exit(key.ok() && ::write(keys_writer.get(), key->data(), key->size()) == ssize_t{sizeof(HandleKey)} ? 0 : 1);
    }
    start_writer.reset();
    keys_writer.reset();
    for (const pid_t pid : servers) {
      int status = -1;
      ASSERT_EQ(::waitpid(pid, &status, 0), pid);
      EXPECT_EQ(status, 0) << "round " << round;
    }
    std::set<HandleKey> keys;
    HandleKey key{};
    while (::read(keys_reader.get(), key.data(), key.size()) == ssize_t{sizeof(HandleKey)}) keys.insert(key);
    EXPECT_EQ(keys.size(), 1u) << "round " << round;
  }
}

TEST_F(ExportTest, TwoServersDoNotShareAnIndex) {
  auto second = Tree::open(tree_config);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists) << second.status();
}

TEST_F(ExportTest, AStateDirectoryWithinTheExportIsNotServed) {
  tree_config.state_dir = dir + "/state";
  start();
  EXPECT_EQ(lookup(root(), "state").status, Nfsstat3::kAcces);
  EXPECT_EQ(create(root(), "other").status, Nfsstat3::kOk);
}

TEST_F(ExportTest, TheStateDirectoryItselfIsNotExported) {
  tree.reset();
  ASSERT_EQ(::symlink(tree_config.state_dir.c_str(), (temp / "link").c_str()), 0);
  for (const std::string& name : {tree_config.state_dir, temp / "link", tree_config.state_dir + "/../state"}) {
    tree_config.directory = name;
    EXPECT_EQ(Tree::open(tree_config).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

}  // namespace
}  // namespace weft::serve
