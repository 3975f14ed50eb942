#include "apps/serve/export/dir_listing.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <set>

#include "tests/serve/fixture.h"

namespace weft::serve {
namespace {

using testing::TempDir;
using testing::write_local;
using Places = DirListing::Places;

constexpr SipHashKey kKey = {.k0 = 0x0706050403020100, .k1 = 0x0f0e0d0c0b0a0908};

// From the appendix of the paper on SipHash and its reference implementation: the octets 00, 01, 02 and so on.
TEST(SipHash, TheVectorsOfItsAuthors) {
  std::string input;
  const std::map<std::size_t, std::uint64_t> kVectors = {{0, 0x726fdb47dd0e0e31},
                                                         {1, 0x74f839c593dc67fd},
                                                         {7, 0xab0200f58b01d137},
                                                         {8, 0x93f5f5799a932462},
                                                         {15, 0xa129ca6149be45e5}};
  for (std::size_t len = 0; len <= 15; ++len, input += static_cast<char>(len - 1)) {
    if (const auto at = kVectors.find(len); at != kVectors.end()) {
      EXPECT_EQ(siphash(kKey, input), at->second) << len;
    }
  }
}

class DirListingTest : public ::testing::Test {
 protected:
  static constexpr DirListing::Limits kLimits = {.room = 600, .entry_cost = 24};
  static constexpr int kNum = 500;

  DirListingTest() {
    for (int i = 0; i < kNum; ++i) write_local(temp / name(i), "");
  }
  static std::string name(int i) {
    return "name-" + std::to_string(i) + std::string(static_cast<std::size_t>(i % 30), 'x');
  }
  Fd open() const { return Fd(::open(temp.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }
  // The entries that a reply of kLimits.room octets would hold, from a cookie on.
  std::vector<DirEntry> page(std::uint64_t cookie, bool& eof, const SipHashKey& key = kKey) {
    std::vector<DirEntry> out;
    auto listing = DirListing::start(open(), Places::kByName, cookie, key, kLimits);
    EXPECT_TRUE(listing.ok());
    std::size_t used = 0;
    DirEntry entry;
    for (;;) {
      const Outcome<bool> more = (*listing)->next(entry);
      EXPECT_TRUE(more.ok());
      eof = !more.value();
      used += kLimits.entry_cost + entry.name.size();
      if (eof || used > kLimits.room) return out;
      out.push_back(entry);
    }
  }
  TempDir temp;
};

TEST_F(DirListingTest, ByNameEveryEntryComesOnceWhateverGoes) {
  std::map<std::string, int> seen;
  std::uint64_t cookie = 0;
  for (bool eof = false; !eof;) {
    const std::vector<DirEntry> entries = page(cookie, eof);
    ASSERT_TRUE(eof || !entries.empty());
    for (const DirEntry& entry : entries) {
      EXPECT_GT(entry.cookie, cookie);
      cookie = entry.cookie;
      ++seen[entry.name];
      ::unlink((temp / entry.name).c_str());
    }
  }
  EXPECT_EQ(seen.size(), kNum + 2u);
  for (const auto& [entry, times] : seen) EXPECT_EQ(times, 1) << entry;
}

TEST_F(DirListingTest, ByNameAPageIsAsFullAsItCanBe) {
  bool eof = false;
  std::size_t used = 0;
  for (const DirEntry& entry : page(0, eof)) used += kLimits.entry_cost + entry.name.size();
  EXPECT_FALSE(eof);
  EXPECT_GT(used, kLimits.room - kLimits.entry_cost - 40);
}

TEST_F(DirListingTest, ByNameDotsComeFirstAndCookiesArePositive) {
  bool eof = false;
  const std::vector<DirEntry> entries = page(0, eof);
  ASSERT_GT(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, ".");
  EXPECT_EQ(entries[1].name, "..");
  for (const DirEntry& entry : entries) EXPECT_LE(entry.cookie, static_cast<std::uint64_t>(INT64_MAX));
  // The order is the key's secret.
  EXPECT_NE(page(0, eof, {.k0 = 1, .k1 = 2})[2].name, entries[2].name);
  page(INT64_MAX, eof);
  EXPECT_TRUE(eof);
}

TEST_F(DirListingTest, NegativeCookiesAreNone) {
  for (const Places places : {Places::kByName, Places::kFilesystem}) {
    const auto listing = DirListing::start(open(), places, std::uint64_t{1} << 63, kKey, kLimits);
    ASSERT_FALSE(listing.ok());
    EXPECT_EQ(listing.error(), Errno{EBADE});
  }
}

}  // namespace
}  // namespace weft::serve
