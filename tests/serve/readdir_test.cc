#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>

#include "apps/nfs3/codec.h"
#include "apps/serve/backend/reply_limits.h"
#include "tests/serve/fixture.h"

// READDIR and READDIRPLUS.
namespace weft::serve {
namespace {

using nfs3::Nfsstat3;
using testing::ExportTest;
using testing::write_local;

template <typename Res>
std::size_t results_len(const Res& res) {
  std::vector<std::uint8_t> octets;
  rpcrdma::xdr::XdrWriter writer(octets);
  nfs3::emit(writer, res);
  return octets.size() - 4;  // without the status: the counts leave it out
}

class ReaddirTest : public ExportTest {
 protected:
  void fill(int n) {
    for (int i = 0; i < n; ++i) write_local(dir + "/" + name(i), "");
  }
  static std::string name(int i) {
    return "entry-" + std::to_string(i) + std::string(static_cast<std::size_t>(i % 40), 'x');
  }

  // Reads the whole directory in steps; between them calls `meanwhile`. How often each name was seen.
  std::map<std::string, int> list(std::uint32_t count, const std::function<void(int step)>& meanwhile = {}) {
    std::map<std::string, int> seen;
    nfs3::ReaddirArgs args{.dir = root(), .cookie = 0, .cookieverf = {}, .count = count};
    for (int step = 0; step < 10000; ++step) {
      nfs3::ReaddirRes res = backend->readdir(args);
      EXPECT_EQ(res.status, Nfsstat3::kOk);
      EXPECT_LE(results_len(res), count);
      for (const nfs3::Entry3& entry : res.entries) ++seen[entry.name];
      if (res.eof || res.status != Nfsstat3::kOk) return seen;
      args.cookie = res.entries.back().cookie;
      args.cookieverf = res.cookieverf;
      if (meanwhile) meanwhile(step);
    }
    ADD_FAILURE() << "no end";
    return seen;
  }
};

TEST_F(ReaddirTest, EveryNameOnce) {
  fill(300);
  for (std::uint32_t count : {256u, 700u, 4096u, 1u << 20}) {
    auto seen = list(count);
    EXPECT_EQ(seen.size(), 302u) << count;
    for (const auto& [entry, times] : seen) EXPECT_EQ(times, 1) << entry;
    EXPECT_TRUE(seen.contains(".") && seen.contains(".."));
  }
}

TEST_F(ReaddirTest, CookiesHoldWhileOthersComeAndGo) {
  fill(300);
  int made = 0;
  auto seen = list(512, [&](int step) {
    // Even ones go, some of them where reading has been and some where it will be; new ones come.
    for (int i = step * 6; i < step * 6 + 6 && i < 300; i += 2) ::unlink((dir + "/" + name(299 - i - 1)).c_str());
    write_local(dir + "/made-" + std::to_string(made++), "");
  });
  for (const auto& [entry, times] : seen) EXPECT_EQ(times, 1) << entry;
  for (int i = 0; i < 300; ++i) {
    bool is_there = ::access((dir + "/" + name(i)).c_str(), F_OK) == 0;
    EXPECT_GE(seen[name(i)], is_there ? 1 : 0) << i;
  }
}

TEST_F(ReaddirTest, CookiesHoldWhenTheLastEntrySeenIsRemoved) {
  fill(100);
  std::map<std::string, int> seen;
  nfs3::ReaddirArgs args{.dir = root(), .cookie = 0, .cookieverf = {}, .count = 256};
  for (;;) {
    nfs3::ReaddirRes res = backend->readdir(args);
    ASSERT_EQ(res.status, Nfsstat3::kOk);
    for (const nfs3::Entry3& entry : res.entries) ++seen[entry.name];
    if (res.eof) break;
    for (const nfs3::Entry3& entry : res.entries) ::unlink((dir + "/" + entry.name).c_str());
    args.cookie = res.entries.back().cookie;
    args.cookieverf = res.cookieverf;
  }
  EXPECT_EQ(seen.size(), 102u);
  for (const auto& [entry, times] : seen) EXPECT_EQ(times, 1) << entry;
}

TEST_F(ReaddirTest, CookiesHoldOverARestart) {
  fill(100);
  auto seen = list(512, [&](int) { start(); });
  EXPECT_EQ(seen.size(), 102u);
  for (const auto& [entry, times] : seen) EXPECT_EQ(times, 1) << entry;
}

TEST_F(ReaddirTest, LimitsAndVerifier) {
  fill(3);
  EXPECT_EQ(backend->readdir({root(), 0, {}, 100}).status, Nfsstat3::kToosmall);
  EXPECT_EQ(backend->readdir({root(), 0, {}, 0}).status, Nfsstat3::kToosmall);
  EXPECT_EQ(backend->readdirplus({root(), 0, {}, 4096, 100}).status, Nfsstat3::kToosmall);
  nfs3::ReaddirRes res = backend->readdir({root(), 0, {}, 4096});
  nfs3::Verf wrong = res.cookieverf;
  wrong[0] ^= 1;
  EXPECT_EQ(backend->readdir({root(), res.entries[0].cookie, wrong, 4096}).status, Nfsstat3::kBadCookie);
  EXPECT_EQ(backend->readdir({root(), UINT64_MAX, res.cookieverf, 4096}).status, Nfsstat3::kBadCookie);
  EXPECT_EQ(backend->readdirplus({root(), UINT64_MAX, res.cookieverf, 4096, 4096}).status, Nfsstat3::kBadCookie);
}

TEST_F(ReaddirTest, AFileIsNoDirectory) {
  fill(1);
  EXPECT_EQ(backend->readdir({handle(name(0)), 0, {}, 4096}).status, Nfsstat3::kNotdir);
  EXPECT_EQ(backend->readdirplus({handle(name(0)), 0, {}, 4096, 4096}).status, Nfsstat3::kNotdir);
}

TEST_F(ReaddirTest, TheRootHidesWhatIsAbove) {
  for (const nfs3::Entry3& entry : backend->readdir({root(), 0, {}, 4096}).entries)
    EXPECT_EQ(entry.fileid, tree->root().stat.ino) << entry.name;
}

TEST_F(ReaddirTest, PlusGivesHandlesAndAttributes) {
  fill(50);
  ::mkdir((dir + "/sub").c_str(), 0755);
  ::symlink("/", (dir + "/link").c_str());
  std::set<std::string> seen;
  nfs3::ReaddirplusArgs args{.dir = root(), .cookie = 0, .cookieverf = {}, .dircount = 1024, .maxcount = 4096};
  for (;;) {
    nfs3::ReaddirplusRes res = backend->readdirplus(args);
    ASSERT_EQ(res.status, Nfsstat3::kOk);
    EXPECT_LE(results_len(res), args.maxcount);
    for (const nfs3::Entryplus3& entry : res.entries) {
      EXPECT_TRUE(seen.insert(entry.name).second) << entry.name;
      if (entry.name == "..") continue;
      ASSERT_TRUE(entry.name_attributes && entry.name_handle) << entry.name;
      EXPECT_EQ(*entry.name_handle, lookup(root(), entry.name).object);
      EXPECT_EQ(entry.name_attributes->fileid, entry.fileid);
    }
    if (res.eof) break;
    args.cookie = res.entries.back().cookie;
    args.cookieverf = res.cookieverf;
  }
  EXPECT_EQ(seen.size(), 54u);
}

// Whatever the client has room for: the lookups of one call keep a worker from others.
TEST_F(ReaddirTest, PlusLooksUpABoundedNumber) {
  fill(1000);
  EXPECT_TRUE(backend->readdir({root(), 0, {}, 1 << 20}).eof);
  std::size_t num_entries = 0, num_calls = 0;
  nfs3::ReaddirplusArgs args{.dir = root(), .cookie = 0, .cookieverf = {}, .dircount = 1 << 20, .maxcount = 1 << 20};
  for (bool eof = false; !eof; ++num_calls) {
    const nfs3::ReaddirplusRes res = backend->readdirplus(args);
    ASSERT_EQ(res.status, Nfsstat3::kOk);
    ASSERT_FALSE(res.entries.empty());
    EXPECT_LE(results_len(res), kMaxListReply);
    num_entries += res.entries.size();
    args.cookie = res.entries.back().cookie;
    args.cookieverf = res.cookieverf;
    eof = res.eof;
  }
  EXPECT_EQ(num_entries, 1002u);
  EXPECT_GT(num_calls, 1u);
}

TEST_F(ReaddirTest, DircountHoldsNames) {
  fill(100);
  nfs3::ReaddirplusRes few = backend->readdirplus({root(), 0, {}, 300, 1 << 20});
  nfs3::ReaddirplusRes many = backend->readdirplus({root(), 0, {}, 1 << 20, 1 << 20});
  ASSERT_EQ(few.status, Nfsstat3::kOk);
  EXPECT_FALSE(few.eof);
  EXPECT_LT(few.entries.size(), 15u);
  EXPECT_TRUE(many.eof);
  EXPECT_EQ(many.entries.size(), 102u);
}

}  // namespace
}  // namespace weft::serve
