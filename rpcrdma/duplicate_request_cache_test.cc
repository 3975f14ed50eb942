#include "rpcrdma/duplicate_request_cache.h"

#include <gtest/gtest.h>

#include "rpcrdma/testing/engines.h"

namespace weft::rpcrdma::testing {
namespace {

using Verdict = DuplicateRequestCache::Verdict;
using std::chrono::milliseconds;

RequestKey key_of(std::uint32_t xid, const std::string& client = "192.0.2.1") {
  return {client, xid, 100003, 3, 7, 40, 99};
}
ServedCallId id_of(std::uint32_t connection, std::uint32_t call) {
  return {std::uint64_t{connection} << 32 | call};
}
ServedReply reply_of(Octets results) {
  ServedReply reply;
  reply.results = std::move(results);
  return reply;
}

struct DuplicateRequestCacheTest : ::testing::Test {
  // No clock begins at zero: times that were never set must be old.
  DuplicateRequestCacheTest() { at(0); }
  void at(int ms) { cache.on_time(TimePoint{} + std::chrono::hours(1) + milliseconds(ms)); }

  Verdict on_call(const RequestKey& key, ServedCallId id) { return cache.on_call(key, key.client, id); }
  void on_fatal(const std::string& client, std::uint32_t xid) { cache.on_fatal(client, client, {xid, 77}); }
  bool was_fatal(const std::string& client, std::uint32_t xid) const { return cache.was_fatal(client, {xid, 77}); }
  // A Call that has run, and its Reply.
  void run(const RequestKey& key, ServedCallId id, std::size_t octets = 0) {
    EXPECT_EQ(on_call(key, id), Verdict::kRun);
    EXPECT_NE(cache.on_reply(id, reply_of(Octets(octets))).reply, nullptr);
  }

  DuplicateRequestCache cache{{.max_octets = 10000, .max_entries = 24, .max_age = milliseconds(1000)}};
};

TEST_F(DuplicateRequestCacheTest, ACallRunsOnceAndIsAnsweredAgain) {
  EXPECT_EQ(on_call(key_of(1), id_of(1, 5)), Verdict::kRun);
  EXPECT_EQ(cache.find(key_of(1)), nullptr);
  EXPECT_TRUE(cache.on_reply(id_of(1, 5), reply_of({1, 2, 3, 4})).waiting.empty());
  EXPECT_EQ(on_call(key_of(1), id_of(2, 1)), Verdict::kAnswer);
  ASSERT_NE(cache.find(key_of(1)), nullptr);
  EXPECT_EQ(cache.find(key_of(1))->results, Octets({1, 2, 3, 4}));
  // Another XID, another client: other Calls.
  EXPECT_EQ(on_call(key_of(2), id_of(2, 2)), Verdict::kRun);
  EXPECT_EQ(on_call(key_of(1, "192.0.2.2"), id_of(3, 1)), Verdict::kRun);
}

TEST_F(DuplicateRequestCacheTest, WhileItRunsItsConnectionNeedsNoOtherAnswerAndANewOneWaits) {
  EXPECT_EQ(on_call(key_of(1), id_of(1, 5)), Verdict::kRun);
  EXPECT_EQ(on_call(key_of(1), id_of(1, 6)), Verdict::kDrop);
  EXPECT_EQ(on_call(key_of(1), id_of(2, 7)), Verdict::kWait);
  EXPECT_EQ(on_call(key_of(1), id_of(2, 8)), Verdict::kDrop);
  EXPECT_EQ(on_call(key_of(1), id_of(3, 9)), Verdict::kWait);
  EXPECT_EQ(cache.on_reply(id_of(1, 6), reply_of({})).reply, nullptr);  // not the one that runs
  const DuplicateRequestCache::Ended ended = cache.on_reply(id_of(1, 5), reply_of({7, 7, 7, 7}));
  EXPECT_EQ(ended.waiting, (std::vector<ServedCallId>{id_of(2, 7), id_of(3, 9)}));
  EXPECT_EQ(ended.reply->results, Octets({7, 7, 7, 7}));
}

TEST_F(DuplicateRequestCacheTest, ForgetsWhatIsOld) {
  (void)on_call(key_of(1), id_of(1, 1));
  (void)on_call(key_of(2), id_of(1, 2));
  at(500);
  (void)cache.on_reply(id_of(1, 1), reply_of({}));
  at(999);
  EXPECT_EQ(cache.size(), 2u);
  at(1000);  // the one that never ended
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(cache.on_reply(id_of(1, 2), reply_of({})).reply, nullptr);
  at(1499);
  EXPECT_NE(cache.find(key_of(1)), nullptr);
  at(1500);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.octets(), 0u);
}

TEST_F(DuplicateRequestCacheTest, IsBoundedInOctetsAndEntries) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    (void)on_call(key_of(i), id_of(1, i));
    (void)cache.on_reply(id_of(1, i), reply_of(Octets(4000)));
  }
  at(1);
  EXPECT_LE(cache.octets(), 10000u);
  EXPECT_EQ(cache.find(key_of(0)), nullptr);
  EXPECT_NE(cache.find(key_of(3)), nullptr);  // the newest stay
  for (std::uint32_t i = 10; i < 30; ++i) {
    EXPECT_EQ(on_call(key_of(i, i % 2 == 0 ? "192.0.2.1" : "192.0.2.2"), id_of(1, i)), Verdict::kRun);
  }
  // An address leaves twice as many free as it has: its running Calls are kept, and its further Calls are not.
  EXPECT_EQ(cache.size(), 12u);
  EXPECT_EQ(on_call(key_of(10), id_of(2, 1)), Verdict::kWait);
  EXPECT_EQ(on_call(key_of(29), id_of(2, 2)), Verdict::kRun);
}

// One address may have kept any number of Replies. The Replies of another address stay, and new ones find room.
TEST_F(DuplicateRequestCacheTest, AFloodOfOneAddressDropsItsOwnRepliesOnly) {
  const std::string other = "192.0.2.2", third = "192.0.2.3";
  run(key_of(1, other), id_of(1, 1), 1000);
  for (std::uint32_t i = 0; i < 100; ++i) run(key_of(i), id_of(2, i));
  EXPECT_EQ(cache.size(), 8u) << "7, and the other's 1: 16 stay free, at least twice 7";
  run(key_of(2, other), id_of(1, 2), 1000);
  run(key_of(1, third), id_of(3, 1), 1000);
  for (std::uint32_t i = 100; i < 200; ++i) run(key_of(i), id_of(2, i), 4000 + i);
  at(1);
  EXPECT_LE(cache.octets(), 10000u);
  EXPECT_EQ(on_call(key_of(1, other), id_of(4, 1)), Verdict::kAnswer);
  EXPECT_EQ(on_call(key_of(2, other), id_of(4, 2)), Verdict::kAnswer);
  EXPECT_EQ(on_call(key_of(1, third), id_of(4, 3)), Verdict::kAnswer);
}

TEST_F(DuplicateRequestCacheTest, CallsOfOneAddressThatNeverEndLeaveRoomForThoseOfAnother) {
  const std::string other = "192.0.2.2";
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(on_call(key_of(i), id_of(2, i)), Verdict::kRun);
  run(key_of(1, other), id_of(1, 1));
  EXPECT_EQ(on_call(key_of(1, other), id_of(4, 1)), Verdict::kAnswer);
}

// Two addresses could fill the cache with Calls that never end, and a third one's CREATE would run twice.
TEST_F(DuplicateRequestCacheTest, CallsOfTwoAddressesThatNeverEndLeaveRoomForThoseOfAThird) {
  const std::string other = "192.0.2.2", third = "192.0.2.3";
  for (std::uint32_t i = 0; i < 100; ++i) {
    EXPECT_EQ(on_call(key_of(i), id_of(2, i)), Verdict::kRun);
    EXPECT_EQ(on_call(key_of(i, other), id_of(3, i)), Verdict::kRun);
  }
  run(key_of(1, third), id_of(1, 1));
  EXPECT_EQ(on_call(key_of(1, third), id_of(4, 1)), Verdict::kAnswer);
}

// Each of many addresses takes a third of what the others left. At last nothing is left, and the one that came first,
// which has most, forgets a Call for each newcomer.
TEST_F(DuplicateRequestCacheTest, CallsOfManyAddressesThatNeverEndLeaveRoomForThoseOfAnother) {
  const auto address = [](std::uint32_t n) { return "198.51.100." + std::to_string(n); };
  for (std::uint32_t n = 0; n < 30; ++n) {
    for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(on_call(key_of(i, address(n)), id_of(n, i)), Verdict::kRun);
  }
  EXPECT_LE(cache.size(), 24u);
  const std::string other = "192.0.2.2";
  run(key_of(1, other), id_of(100, 1));
  EXPECT_EQ(on_call(key_of(1, other), id_of(101, 1)), Verdict::kAnswer);
  EXPECT_LE(cache.size(), 24u);
}

// A Call that came again and waits would wait for ever.
TEST_F(DuplicateRequestCacheTest, ARunningCallThatAnotherOneWaitsForIsNotForgotten) {
  for (std::uint32_t i = 0; i < 100; ++i) (void)on_call(key_of(i), id_of(2, i));
  const auto size = cache.size();
  for (std::uint32_t i = 0; i < size; ++i) EXPECT_EQ(on_call(key_of(i), id_of(3, i)), Verdict::kWait) << i;
  for (std::uint32_t n = 0; n < 30; ++n) (void)on_call(key_of(1, "198.51.100." + std::to_string(n)), id_of(10 + n, 1));
  EXPECT_EQ(cache.on_reply(id_of(2, 0), reply_of({})).waiting, std::vector<ServedCallId>{id_of(3, 0)});
}

// One address is known by its group: a client has as many addresses of one /64 as it likes.
TEST_F(DuplicateRequestCacheTest, AddressesOfOneGroupAreOne) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    const RequestKey key = key_of(1, "2001:db8::" + std::to_string(i));
    EXPECT_EQ(cache.on_call(key, "2001:db8::/64", id_of(2, i)), Verdict::kRun);
  }
  EXPECT_EQ(cache.size(), 8u) << "a third of 24";
}

TEST_F(DuplicateRequestCacheTest, KnowsCallsThatEndedTheirConnection) {
  EXPECT_FALSE(was_fatal("192.0.2.1", 5));
  on_fatal("192.0.2.1", 5);
  EXPECT_TRUE(was_fatal("192.0.2.1", 5));
  EXPECT_FALSE(was_fatal("192.0.2.1", 6));
  EXPECT_FALSE(was_fatal("192.0.2.2", 5));
  at(1000);
  EXPECT_FALSE(was_fatal("192.0.2.1", 5));
}

// One client of an address knows the XIDs of another.
TEST_F(DuplicateRequestCacheTest, AnotherCallWithTheXidOfAFatalOneIsAnother) {
  cache.on_fatal("192.0.2.1", "192.0.2.1", {5, 77});
  EXPECT_FALSE(cache.was_fatal("192.0.2.1", {5, 78}));
  EXPECT_FALSE(cache.was_fatal("192.0.2.1", {6, 77}));
  cache.on_fatal("192.0.2.1", "192.0.2.1", {5, 78});
  EXPECT_TRUE(cache.was_fatal("192.0.2.1", {5, 77}));
  EXPECT_TRUE(cache.was_fatal("192.0.2.1", {5, 78}));
}

TEST_F(DuplicateRequestCacheTest, FatalCallsAreRememberedUpToANumber) {
  on_fatal("192.0.2.1", 0);
  for (std::uint32_t xid = 1; xid < 256; ++xid) {
    for (int i = 0; i < 5; ++i) on_fatal("192.0.2.1", xid);
  }
  EXPECT_TRUE(was_fatal("192.0.2.1", 0)) << "one that comes again and again takes one place";
  on_fatal("192.0.2.1", 256);
  EXPECT_FALSE(was_fatal("192.0.2.1", 0)) << "the 257th takes the place of the oldest one";
  EXPECT_TRUE(was_fatal("192.0.2.1", 1));
  EXPECT_TRUE(was_fatal("192.0.2.1", 256));
}

TEST_F(DuplicateRequestCacheTest, FatalCallsOfOneAddressPushOutItsOwnOnly) {
  const std::string other = "192.0.2.2", third = "192.0.2.3";
  on_fatal(other, 1);
  for (std::uint32_t xid = 0; xid < 1000; ++xid) on_fatal("192.0.2.1", xid);
  on_fatal(third, 1);
  for (std::uint32_t xid = 1000; xid < 2000; ++xid) on_fatal("192.0.2.1", xid);
  EXPECT_TRUE(was_fatal(other, 1));
  EXPECT_TRUE(was_fatal(third, 1));
  EXPECT_TRUE(was_fatal("192.0.2.1", 1999));
  EXPECT_FALSE(was_fatal("192.0.2.1", 0));
}

TEST_F(DuplicateRequestCacheTest, OfAddressesWithAsManyFatalCallsTheOneWithTheOldestGivesItUp) {
  on_fatal("b", 1);
  at(1);
  on_fatal("a", 1);
  at(2);
  for (std::uint32_t n = 0; n < 255; ++n) on_fatal("c" + std::to_string(n), 1);
  EXPECT_FALSE(was_fatal("b", 1));
  EXPECT_TRUE(was_fatal("a", 1));
}

TEST_F(DuplicateRequestCacheTest, FatalCallsOfTheAddressesOfOneGroupAreCountedTogether) {
  const std::string other = "192.0.2.2";
  for (std::uint32_t xid = 0; xid < 2; ++xid) on_fatal(other, xid);
  for (std::uint32_t i = 0; i < 1000; ++i) cache.on_fatal("2001:db8::" + std::to_string(i), "2001:db8::/64", {1, 77});
  EXPECT_TRUE(was_fatal(other, 0));
  EXPECT_TRUE(was_fatal(other, 1));
  EXPECT_TRUE(was_fatal("2001:db8::999", 1)) << "each address by itself is known";
  EXPECT_FALSE(was_fatal("2001:db8::998", 2));
}

RequestKey key_of(const std::string& client, std::uint32_t xid, const CallHeaderView& rpc, ConstBytes args,
                  std::span<const KeptItem> items) {
  return DuplicateRequestCache(DuplicateRequestLimits{}).key_of(client, xid, rpc, args, items);
}

TEST(RequestKeyOf, IsTheSameInEveryFormOfACall) {
  const OpaqueAuth cred = auth_sys_of_this_process();
  const CallHeaderView rpc{7, 100003, 3, 7, cred, {}};
  for (const std::size_t len : {1ul, 99ul, 5000ul}) {
    const Octets data = pattern(len);
    const Octets reduced = write_args(len);
    Octets whole = reduced;
    whole.insert(whole.end(), data.begin(), data.end());
    whole.resize(xdr::round_up(whole.size()));
    const KeptItem item{reduced.size(), data};
    const RequestKey key = key_of("a", 7, rpc, reduced, {&item, 1});
    EXPECT_EQ(key, key_of("a", 7, rpc, whole, {})) << len;
    EXPECT_EQ(key.length, whole.size());
    // Other data, at either end.
    for (const std::size_t at : {std::size_t{0}, len - 1}) {
      Octets other = data;
      other[at] ^= 1;
      const KeptItem other_item{reduced.size(), other};
      EXPECT_NE(key, key_of("a", 7, rpc, reduced, {&other_item, 1})) << len;
    }
  }
}

// A peer that could make two Calls of one key would have a Call of another client answered with what its own did.
TEST(RequestKeyOf, DependsOnTheServersSecret) {
  const OpaqueAuth cred = auth_sys_of_this_process();
  const CallHeaderView rpc{7, 100003, 3, 7, cred, {}};
  const Octets args = pattern(40);
  const DuplicateRequestCache one(DuplicateRequestLimits{}, SipHash::random_key());
  const DuplicateRequestCache other(DuplicateRequestLimits{}, SipHash::random_key());
  EXPECT_EQ(one.key_of("a", 7, rpc, args, {}), one.key_of("a", 7, rpc, args, {}));
  EXPECT_NE(one.key_of("a", 7, rpc, args, {}), other.key_of("a", 7, rpc, args, {}));
}

TEST(RequestKeyOf, IsAnotherForAnotherCaller) {
  OpaqueAuth cred{1, pattern(40)};
  const auto key = [&cred] { return key_of("a", 7, {7, 100003, 3, 7, cred, {}}, {}, {}); };
  const RequestKey own = key();
  cred.body[8] ^= 1;
  EXPECT_NE(key(), own);
  cred.body[8] ^= 1;
  EXPECT_EQ(key(), own);
  cred.flavor = 2;
  EXPECT_NE(key(), own);
  // With RPCSEC_GSS the credential of a Call changes each time that the Call goes out.
  cred.flavor = 6;
  const RequestKey gss = key();
  cred.body[8] ^= 1;
  EXPECT_EQ(key(), gss);
}

TEST(CallPrintOf, IsOneForTheSameCallOnAnotherConnection) {
  const DuplicateRequestCache cache(DuplicateRequestLimits{}, SipHash::random_key());
  const auto lists_of = [](std::uint32_t handle, std::uint32_t len) {
    ChunkLists lists;
    EXPECT_EQ(ChunkLists::validate({.write_list = {{Segment{handle, len, handle * 0x100ull}}}}, ChunkLimits{}, lists),
              ChunkError::kNone);
    return lists;
  };
  OpaqueAuth cred{1, pattern(40)};
  CallHeaderView rpc{7, 100003, 3, 6, cred, {}};
  Octets args = pattern(100);
  const auto print = [&] { return cache.print_of(lists_of(1, 300), &rpc, args); };
  const std::uint64_t own = print();
  EXPECT_EQ(cache.print_of(lists_of(2, 300), &rpc, args), own);
  EXPECT_NE(cache.print_of(lists_of(1, 301), &rpc, args), own);
  EXPECT_NE(cache.print_of(lists_of(1, 300), nullptr, {}), own);
  for (std::uint8_t* octet : {&args[99], &cred.body[8]}) {
    *octet ^= 1;
    EXPECT_NE(print(), own);
    *octet ^= 1;
  }
  rpc.procedure = 7;
  EXPECT_NE(print(), own);
  // With RPCSEC_GSS the credential and the arguments change each time that the Call goes out.
  rpc.cred.flavor = 6;
  const std::uint64_t gss = print();
  args[99] ^= 1;
  cred.body[8] ^= 1;
  EXPECT_EQ(print(), gss);
}

TEST(KeptReplyOf, IsAnsweredWithItsItems) {
  FakeMemory memory;
  FakePd pd(memory);
  BufferPool pool(pd, 10000, 20000);
  ServedReply reply;
  reply.results = {0, 0, 0, 1};
  Buffer buffer = pool.take(500);
  const Octets data = pattern(500);
  std::copy(data.begin(), data.end(), buffer.octets().begin());
  reply.skip_item();
  reply.add_item(std::move(buffer), 500);
  const KeptReply kept = KeptReply::of(reply);
  reply.buffers.front().octets()[7] ^= 1;  // it holds the next Reply
  reply = {};
  EXPECT_EQ(pool.in_use(), 0u);
  const auto again = kept.revive(pool);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->results, Octets({0, 0, 0, 1}));
  ASSERT_EQ(again->items.size(), 1u);
  EXPECT_EQ(again->items[0].position, 4u);
  EXPECT_EQ(again->items[0].operation, 1u);
  EXPECT_EQ(copy_of(again->items[0].data.octets), data);
  const Buffer all = pool.take(9999);
  const Buffer rest = pool.take(9501);
  EXPECT_FALSE(kept.revive(pool));  // none left
}

}  // namespace
}  // namespace weft::rpcrdma::testing
