#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/serve/export/search_wishes.h"
#include "apps/serve/export/shared_order.h"
#include "tests/serve/fixture.h"

// The shares of clients in what a server remembers: open files, the index of handles, searches.
namespace weft::serve {
namespace {

using nfs3::Nfsstat3;
using testing::ExportTest;
using testing::write_local;

const DiskClient kHonest{1, "192.0.2.1"}, kNeighbour{2, "192.0.2.1"}, kStranger{3, "192.0.2.3"};

constexpr FileKey key_of(std::uint64_t n) {
  return {.dev = 0, .ino = n, .btime_ns = static_cast<std::int64_t>(n)};
}

class SharedOrderTest : public ::testing::Test {
 protected:
  void use(int key, const DiskClient& client) {
    const auto at = std::ranges::find(keys, key, [](const Entry& entry) { return entry.key; });
    if (at != keys.end()) return order.touch(at->place, client);
    while (order.is_full()) {
      const int out = order.next_out();
      const auto gone = std::ranges::find(keys, out, [](const Entry& entry) { return entry.key; });
      order.remove(gone->place);
      keys.erase(gone);
    }
    keys.push_back({key, order.add(key, client)});
  }
  bool has(int key) const {
    return std::ranges::count(keys, key, [](const Entry& entry) { return entry.key; }) == 1;
  }

  struct Entry {
    int key = 0;
    SharedOrder<int>::Place place;
  };
  SharedOrder<int> order{10};
  std::vector<Entry> keys;
};

TEST_F(SharedOrderTest, AKeyCountsForThePlacesThatItTakes) {
  for (int key = 0; key < 3; ++key) use(key, kHonest);
  for (int key = 10; key < 12; ++key) use(key, kStranger);
  order.resize(keys.back().place, 5);
  EXPECT_EQ(order.size(), 9u);
  EXPECT_EQ(order.next_out(), 10) << "of the client with most places, the key used longest ago";
  order.resize(keys.back().place, 1);
  EXPECT_EQ(order.next_out(), 0);
  order.resize(keys.back().place, 6);
  EXPECT_TRUE(order.is_full());
  use(11, kHonest);  // it changes hands with its places
  EXPECT_EQ(order.next_out(), 0);
  order.end(kHonest);
  order.end(kStranger);
  EXPECT_EQ(order.size(), 10u);
  order.remove(keys.back().place);
  EXPECT_EQ(order.size(), 4u);
}

TEST_F(SharedOrderTest, OfOneClientTheKeyUsedLongestAgoGoes) {
  for (int key = 0; key < 10; ++key) use(key, kHonest);
  use(0, kHonest);
  use(10, kHonest);
  EXPECT_TRUE(has(0));
  EXPECT_FALSE(has(1));
  EXPECT_EQ(order.size(), 10u);
}

// From another address, and from the same.
TEST_F(SharedOrderTest, AClientThatUsesManyLosesItsOwn) {
  for (const DiskClient& greedy : {kStranger, kNeighbour}) {
    for (int key = 0; key < 2; ++key) use(key, kHonest);
    for (int key = 100; key < 1000; ++key) use(key, greedy);
    for (int key = 0; key < 2; ++key) EXPECT_TRUE(has(key)) << greedy.group << " " << key;
    EXPECT_EQ(order.size(), 10u);
  }
}

TEST_F(SharedOrderTest, ManyClientsOfOneAddressAreOneAddress) {
  for (int key = 0; key < 4; ++key) use(key, kHonest);
  for (std::uint32_t client = 10; client < 300; ++client) use(static_cast<int>(client), {client, "192.0.2.3"});
  for (int key = 0; key < 4; ++key) EXPECT_TRUE(has(key)) << key;
}

TEST_F(SharedOrderTest, AUseTakesNoKeyFromAClientThatKeepsToItsPart) {
  for (int key = 0; key < 3; ++key) use(key, kHonest);
  for (int key = 100; key < 200; ++key) use(key, kStranger);
  for (int key = 0; key < 3; ++key) use(key, kStranger);
  for (int key = 200; key < 300; ++key) use(key, kStranger);
  for (int key = 0; key < 3; ++key) EXPECT_TRUE(has(key)) << key;
  // It takes from one that has more.
  use(299, kHonest);
  for (int key = 300; key < 400; ++key) use(key, kStranger);
  EXPECT_TRUE(has(299));
}

TEST_F(SharedOrderTest, AClientThatComesLateFindsPlaces) {
  for (int key = 0; key < 10; ++key) use(key, kStranger);
  for (int key = 100; key < 105; ++key) use(key, kHonest);
  for (int key = 100; key < 105; ++key) EXPECT_TRUE(has(key)) << key;
  EXPECT_TRUE(has(9));
  EXPECT_FALSE(has(0));
}

TEST_F(SharedOrderTest, WhatAClientLeavesIsOfItsAddress) {
  use(0, kHonest);
  use(1, kHonest);
  use(2, kNeighbour);
  use(3, kStranger);
  EXPECT_EQ(order.num_holders(), 3u);
  order.end(kHonest);
  EXPECT_EQ(order.num_holders(), 3u) << "192.0.2.1, its second client, and the stranger";
  order.end(kNeighbour);
  order.end(kStranger);
  order.end({9, "192.0.2.9"});
  EXPECT_EQ(order.num_holders(), 2u);
  EXPECT_EQ(order.size(), 4u);
  // The keys that were left first go first.
  for (const int out : {0, 1}) {
    EXPECT_EQ(order.next_out(), out);
    order.remove(std::ranges::find(keys, out, [](const Entry& entry) { return entry.key; })->place);
  }
}

// What the client leaves is more than what its address has from others.
TEST_F(SharedOrderTest, TheShelfWithFewerKeysIsPutIntoTheOther) {
  use(0, kNeighbour);
  order.end(kNeighbour);
  for (int key = 1; key < 10; ++key) use(key, kHonest);
  use(1, kHonest);
  order.end(kHonest);
  EXPECT_EQ(order.num_holders(), 1u);
  for (const int out : {0, 2, 3}) {
    EXPECT_EQ(order.next_out(), out);
    use(100 + out, {7, "192.0.2.7"});
  }
}

// A client that comes back gets what it uses, so that others that come and go do not take that from it.
TEST_F(SharedOrderTest, AClientTakesOverWhatItUsesOfItsAddress) {
  for (int key = 0; key < 3; ++key) use(key, kHonest);
  order.end(kHonest);
  constexpr std::uint32_t kAgain = 9;
  for (int key = 0; key < 3; ++key) use(key, {kAgain, kHonest.group});
  EXPECT_EQ(order.num_holders(), 1u) << "nothing is left";
  for (std::uint32_t client = 10; client < 50; ++client) {
    const DiskClient passing{client, kHonest.group};
    use(static_cast<int>(client), passing);
    order.end(passing);
  }
  for (int key = 0; key < 3; ++key) EXPECT_TRUE(has(key)) << key;
}

// Clients that come, name files and go.
TEST_F(SharedOrderTest, AnAddressThatComesAgainAndAgainLosesItsOwn) {
  for (int key = 0; key < 4; ++key) use(key, kHonest);
  order.end(kHonest);
  for (std::uint32_t client = 10; client < 300; ++client) {
    const DiskClient passing{client, kStranger.group};
    use(static_cast<int>(client), passing);
    order.end(passing);
    EXPECT_LE(order.num_holders(), 2u);
  }
  for (int key = 0; key < 4; ++key) EXPECT_TRUE(has(key)) << key;
  EXPECT_TRUE(has(299));
  EXPECT_FALSE(has(293));
}

TEST(SharedOrder, HoldersAreClientsAndAddressesThatHaveKeys) {
  constexpr std::uint32_t kClients = 10000;
  SharedOrder<std::uint32_t> order(2 * kClients);
  std::vector<SharedOrder<std::uint32_t>::Place> places;
  for (std::uint32_t client = 1; client <= kClients; ++client) {
    const DiskClient passing{client, client % 2 == 0 ? "192.0.2.1" : "192.0.2.3"};
    places.push_back(order.add(client, passing));
    if (client > 100) order.end(passing);
  }
  EXPECT_EQ(order.num_holders(), 100u + 2);
  for (const auto& place : places) order.remove(place);
  EXPECT_EQ(order.num_holders(), 0u);
  EXPECT_EQ(order.size(), 0u);
}

TEST(SharedOrder, ALargeTableIsSharedToo) {
  constexpr std::size_t kMax = 1 << 15;
  SharedOrder<std::uint64_t> order(kMax);
  std::vector<SharedOrder<std::uint64_t>::Place> places(3 * kMax);
  std::vector<bool> is_here(3 * kMax);
  const auto add = [&](std::uint64_t key, const DiskClient& client) {
    while (order.is_full()) {
      const std::uint64_t out = order.next_out();
      order.remove(places[out]);
      is_here[out] = false;
    }
    places[key] = order.add(key, client);
    is_here[key] = true;
  };
  for (std::uint64_t key = 0; key < 1000; ++key) add(key, kHonest);
  for (std::uint64_t key = 1000; key < 3 * kMax; ++key) add(key, kStranger);
  EXPECT_EQ(std::count(is_here.begin(), is_here.begin() + 1000, true), 1000);
  EXPECT_EQ(order.size(), kMax);
}

TEST(SearchWishes, EachClientMayHaveOne) {
  SearchWishes wishes(8);
  for (std::uint64_t n = 0; n < 1000; ++n) wishes.add(key_of(n), kStranger);
  wishes.add(key_of(5000), kHonest);
  wishes.add(key_of(5001), kNeighbour);
  const std::vector<FileKey> taken = wishes.take();
  EXPECT_LE(taken.size(), 8u + 3);
  EXPECT_EQ(std::ranges::count(taken, key_of(5000)), 1);
  EXPECT_EQ(std::ranges::count(taken, key_of(5001)), 1);
  EXPECT_TRUE(wishes.take().empty());
  wishes.add(key_of(1), kStranger);
  EXPECT_EQ(wishes.take().size(), 1u);
}

// Clients that connect, wish something and go leave nothing to the search.
TEST(SearchWishes, EndWithTheirClient) {
  SearchWishes wishes(8);
  wishes.add(key_of(5000), kHonest);
  for (std::uint32_t n = 0; n < 1000; ++n) {
    const DiskClient passing{100 + n, kStranger.group};
    wishes.add(key_of(n), passing);
    wishes.end(passing);
  }
  EXPECT_THAT(wishes.take(), ::testing::ElementsAre(key_of(5000)));
}

TEST(SearchWishes, WhatTwoClientsWishOutlivesOne) {
  SearchWishes wishes(8);
  wishes.add(key_of(1), kStranger);
  wishes.add(key_of(1), kHonest);
  wishes.end(kStranger);
  EXPECT_THAT(wishes.take(), ::testing::ElementsAre(key_of(1)));
}

class SharesTest : public ExportTest {};

TEST_F(SharesTest, AClientThatOpensManyFilesClosesItsOwn) {
  int num_opened = 0;
  calls.lies_in_memory = [&](int) { return ++num_opened, false; };
  config.max_open_files = 8;
  start();
  std::vector<nfs3::NfsFh3> files;
  for (int i = 0; i < 40; ++i) {
    write_local(dir + "/" + std::to_string(i), "x");
    files.push_back(handle(std::to_string(i)));
  }
  for (const DiskClient& greedy : {kStranger, kNeighbour}) {
    {
      const ActingFor honest(kHonest);
      for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(read(files[i]), "x");
    }
    {
      const ActingFor acting(greedy);
      for (std::size_t i = 2; i < 40; ++i) EXPECT_EQ(read(files[i]), "x");
    }
    num_opened = 0;
    const ActingFor honest(kHonest);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(read(files[i]), "x");
    EXPECT_EQ(num_opened, 0) << greedy.group;
    EXPECT_LE(backend->num_open_files(), 8u);
  }
}

// A client has many files with unsynced writes. The Calls of other clients do not sync them: where no further such file
// has a place, a client loses a file of its own.
TEST_F(SharesTest, ACallThatNeedsAPlaceSyncsNoFileOfOthers) {
  int num_synced = 0;
  calls.fsync = [&](int fd) { return ++num_synced, ::fsync(fd); };
  config.max_open_files = 64;  // and places for 8 files that wait
  start();
  std::vector<nfs3::NfsFh3> files;
  for (int i = 0; i < 160; ++i) {
    write_local(dir + "/" + std::to_string(i), "x");
    files.push_back(handle(std::to_string(i)));
  }
  {
    const ActingFor acting(kStranger);
    for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(write(files[i], 0, "y").status, Nfsstat3::kOk);
    EXPECT_EQ(backend->num_files_waiting(), 3u) << "one, and a quarter of the others";
    EXPECT_EQ(num_synced, 33) << "the others it syncs itself";
  }
  {
    const ActingFor acting(kHonest);
    for (std::size_t i = 100; i < 110; ++i) EXPECT_EQ(read(files[i]), "x");
    EXPECT_EQ(num_synced, 33);
    EXPECT_EQ(backend->num_files_waiting(), 6u);
    const ActingFor neighbour(kNeighbour);
    for (std::size_t i = 110; i < 120; ++i) EXPECT_EQ(read(files[i]), "x");
    EXPECT_EQ(num_synced, 33);
  }
  for (std::uint32_t i = 0; i < 10; ++i) {
    const DiskClient other{10 + i, "198.51.100." + std::to_string(i)};
    const ActingFor acting(other);
    EXPECT_EQ(read(files[120 + i]), "x");
  }
  EXPECT_EQ(num_synced, 33) << "each address has one place in any case";
  EXPECT_EQ(backend->num_files_waiting(), 16u) << "and all have twice as many as there are to share";
  {
    const DiskClient one_more{100, "198.51.100.100"};
    const ActingFor acting(one_more);
    EXPECT_EQ(read(files[150]), "x");
    EXPECT_EQ(num_synced, 34);
  }
  backend->sync_evicted_files();
  EXPECT_EQ(num_synced, 50);
  EXPECT_EQ(backend->num_files_waiting(), 0u);
}

TEST_F(SharesTest, AClientThatNamesManyFilesForgetsItsOwn) {
  tree_config.max_indexed_files = 32;
  start();
  for (int i = 0; i < 100; ++i) write_local(dir + "/" + std::to_string(i), "");
  std::vector<nfs3::NfsFh3> files;
  {
    const ActingFor honest(kHonest);
    for (int i = 0; i < 5; ++i) files.push_back(handle(std::to_string(i)));
  }
  {
    const ActingFor stranger(kStranger);
    for (int i = 0; i < 100; ++i) handle(std::to_string(i));
  }
  for (const nfs3::NfsFh3& file : files) {
    EXPECT_TRUE(tree->find(tree->key_of(file).value()).ok()) << "this one needs a search";
  }
}

TEST_F(SharesTest, AClientThatEndsLeavesWhatItNamedAndOpenedToItsAddress) {
  start();
  write_local(dir + "/file", "x");
  const std::size_t holders = tree->num_index_holders();
  for (std::uint32_t number = 1; number <= 100; ++number) {
    const DiskClient client{number, "192.0.2.1"};
    {
      const ActingFor acting(client);
      const std::string name = std::to_string(number);
      write_local(dir + "/" + name, name);
      EXPECT_EQ(read(handle(name)), name);
    }
    backend->on_client_end(client);
  }
  EXPECT_EQ(tree->num_index_holders(), holders + 1);
  EXPECT_EQ(backend->num_file_holders(), 1u);
}

// A client has the turn to search. Its search is for the files of all that ask meanwhile.
TEST_F(SharesTest, OneSearchIsForAllThatWait) {
  for (const char* name : {"one", "two", "three"}) write_local(dir + "/" + name, name);
  const nfs3::NfsFh3 one = handle("one"), two = handle("two"), three = handle("three");
  Nfsstat3 of_two = Nfsstat3::kOk, of_three = Nfsstat3::kOk;
  bool is_first = true;
  tree_config.on_tree_search = [&] {
    if (!std::exchange(is_first, false)) return;
    std::thread others([&] {
      of_two = getattr_status(two);
      of_three = getattr_status(three);
    });
    others.join();
  };
  lose_index();
  EXPECT_EQ(getattr_status(one), Nfsstat3::kOk);
  EXPECT_EQ(of_two, Nfsstat3::kJukebox);
  EXPECT_EQ(of_three, Nfsstat3::kJukebox);
  EXPECT_EQ(tree->num_searches(), 1u);
  EXPECT_EQ(getattr_status(two), Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(three), Nfsstat3::kOk);
  EXPECT_EQ(tree->num_searches(), 1u);
}

// A file that is not there keeps nobody from the files that are.
TEST_F(SharesTest, AWishThatCannotBeMetIsNoneTheNextTime) {
  for (const char* name : {"one", "two", "gone"}) write_local(dir + "/" + name, name);
  const nfs3::NfsFh3 one = handle("one"), two = handle("two"), gone = handle("gone");
  bool is_first = true;
  tree_config.on_tree_search = [&] {
    if (!std::exchange(is_first, false)) return;
    std::thread others([&] {
      EXPECT_EQ(getattr_status(gone), Nfsstat3::kJukebox);
      EXPECT_EQ(getattr_status(two), Nfsstat3::kJukebox);
    });
    others.join();
  };
  ASSERT_EQ(::unlink((dir + "/gone").c_str()), 0);
  lose_index();
  EXPECT_EQ(getattr_status(one), Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(two), Nfsstat3::kOk);
  EXPECT_EQ(getattr_status(gone), Nfsstat3::kStale);
  EXPECT_EQ(tree->num_searches(), 1u);
}

}  // namespace
}  // namespace weft::serve
