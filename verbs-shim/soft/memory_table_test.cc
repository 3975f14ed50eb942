#include "verbs-shim/soft/memory_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <set>
#include <thread>
#include <vector>

namespace weft::verbs::soft {
namespace {

using ddp::AccessError;
using ddp::Right;
using ddp::Stag;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr ddp::StreamScope kScope{.pd = 7, .stream = 1};
constexpr ddp::StreamScope kForeign{.pd = 8, .stream = 1};
constexpr Access kAll = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;

struct RegionTableTest : ::testing::Test {
  RegionTable table{1000};
  std::vector<std::uint8_t> octets = std::vector<std::uint8_t>(100);
  std::uint64_t base = reinterpret_cast<std::uintptr_t>(octets.data());

  Stag add(Access access) { return *table.add(7, base, 100, access); }
  // "ok", or the AccessError.
  int check(Stag stag, std::uint64_t to, std::size_t len, Right right, ddp::StreamScope scope = kScope) {
    const auto result = table.resolve(scope, stag, to, len, right);
    if (const auto* error = std::get_if<AccessError>(&result)) return static_cast<int>(*error);
    EXPECT_EQ(std::get<MutBytes>(result).size(), len);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(std::get<MutBytes>(result).data()), to);
    return -1;
  }
};

constexpr int kOk = -1;
constexpr int code(AccessError error) {
  return static_cast<int>(error);
}

TEST_F(RegionTableTest, BoundsToTheOctet) {
  RecordProperty("proves", "DDP-7.1-13 DDP-7.1-14 DDP-8.1-01 DDP-8.3-04");
  const Stag stag = add(kAll);
  EXPECT_EQ(check(stag, base, 100, Right::kRemoteWrite), kOk);
  EXPECT_EQ(check(stag, base + 99, 1, Right::kRemoteWrite), kOk);
  EXPECT_EQ(check(stag, base + 100, 0, Right::kRemoteWrite), kOk);
  EXPECT_EQ(check(stag, base, 101, Right::kRemoteWrite), code(AccessError::kBaseBounds));
  EXPECT_EQ(check(stag, base + 1, 100, Right::kRemoteWrite), code(AccessError::kBaseBounds));
  EXPECT_EQ(check(stag, base - 1, 1, Right::kRemoteWrite), code(AccessError::kBaseBounds));
  EXPECT_EQ(check(stag, base + 101, 0, Right::kRemoteWrite), code(AccessError::kBaseBounds));
}

TEST_F(RegionTableTest, WrapIsToldFromBounds) {
  RecordProperty("proves", "DDP-7.1-15");
  const Stag stag = add(kAll);
  EXPECT_EQ(check(stag, kMax, 1, Right::kRemoteWrite), code(AccessError::kToWrap));  // the sum is 2^64
  EXPECT_EQ(check(stag, kMax, 0, Right::kRemoteWrite), code(AccessError::kBaseBounds));
  EXPECT_EQ(check(stag, kMax - 9, 10, Right::kRemoteWrite), code(AccessError::kToWrap));
  EXPECT_EQ(check(stag, kMax - 10, 10, Right::kRemoteWrite), code(AccessError::kBaseBounds));
  EXPECT_EQ(check(stag, base + 1, SIZE_MAX, Right::kRemoteWrite), code(AccessError::kToWrap));
}

TEST_F(RegionTableTest, RightsAreThoseGranted) {
  RecordProperty("proves", "DDP-7.1-12 DDP-8.3.1-05");
  const Stag none = add(Access::kNone);
  EXPECT_EQ(check(none, base, 1, Right::kLocalRead), kOk);
  for (const Right right : {Right::kLocalWrite, Right::kRemoteRead, Right::kRemoteWrite}) {
    EXPECT_EQ(check(none, base, 1, right), code(AccessError::kAccessRights));
  }
  const Stag readable = add(Access::kRemoteRead);
  EXPECT_EQ(check(readable, base, 1, Right::kRemoteRead), kOk);
  EXPECT_EQ(check(readable, base, 1, Right::kRemoteWrite), code(AccessError::kAccessRights));
  const Stag writable = add(Access::kLocalWrite | Access::kRemoteWrite);
  EXPECT_EQ(check(writable, base, 1, Right::kRemoteWrite), kOk);
  EXPECT_EQ(check(writable, base, 1, Right::kRemoteRead), code(AccessError::kAccessRights));
}

TEST_F(RegionTableTest, ChecksComeInOrder) {
  const Stag stag = add(Access::kNone);
  // Everything is wrong at once: the first check speaks.
  EXPECT_EQ(check(Stag{stag.value ^ 1}, kMax, 100, Right::kRemoteWrite, kForeign), code(AccessError::kInvalidStag));
  EXPECT_EQ(check(stag, kMax, 100, Right::kRemoteWrite, kForeign), code(AccessError::kNotAssociated));
  EXPECT_EQ(check(stag, kMax, 100, Right::kRemoteWrite), code(AccessError::kAccessRights));
  EXPECT_EQ(check(stag, kMax, 100, Right::kLocalRead), code(AccessError::kToWrap));
}

TEST_F(RegionTableTest, All32BitsCount) {
  RecordProperty("proves", "DDP-7.1-11");
  const Stag stag = add(kAll);
  for (int bit = 0; bit < 32; ++bit) {
    EXPECT_EQ(check(Stag{stag.value ^ (1u << bit)}, base, 1, Right::kRemoteWrite), code(AccessError::kInvalidStag));
  }
  EXPECT_EQ(check(Stag{0}, base, 1, Right::kRemoteWrite), code(AccessError::kInvalidStag));
}

TEST_F(RegionTableTest, RemovedIsInvalidAndNotReusedSoon) {
  RecordProperty("proves", "DDP-8.3-02");
  RegionTable large(RegionTable::kQuarantine + 10);
  const Stag stag = *large.add(7, base, 100, kAll);
  large.remove(stag);
  large.remove(stag);
  EXPECT_EQ(large.size(), 0u);
  std::set<std::uint32_t> seen{stag.value};
  for (std::size_t i = 0; i < RegionTable::kQuarantine; ++i) {
    const Stag next = *large.add(7, base, 100, kAll);
    ASSERT_NE(next.value, 0u);
    ASSERT_TRUE(seen.insert(next.value).second);
    large.remove(next);
  }
  EXPECT_TRUE(std::holds_alternative<AccessError>(large.resolve(kScope, stag, base, 1, Right::kLocalRead)));
}

TEST_F(RegionTableTest, RegistrationRefusesWrapAndLimit) {
  EXPECT_FALSE(table.add(7, kMax - 9, 10, kAll));
  EXPECT_TRUE(table.add(7, kMax - 10, 10, kAll));
  EXPECT_FALSE(table.add(7, base, 0, kAll));
  for (int i = 0; i < 999; ++i) ASSERT_TRUE(table.add(7, base, 1, kAll));
  EXPECT_FALSE(table.add(7, base, 1, kAll));
}

TEST_F(RegionTableTest, PeersCannotInvalidateRegions) {
  const Stag stag = add(kAll);
  const auto why = [&](ddp::StreamScope scope, Stag which) {
    return std::get<AccessError>(table.invalidate(scope, which));
  };
  EXPECT_EQ(why(kForeign, stag), AccessError::kNotAssociated);
  EXPECT_EQ(why(kScope, stag), AccessError::kInvalidStag);
  EXPECT_EQ(why(kScope, Stag{stag.value ^ 2}), AccessError::kInvalidStag);
  EXPECT_EQ(check(stag, base, 1, Right::kRemoteWrite), kOk);
}

constexpr ddp::StreamScope kOtherStream{.pd = 7, .stream = 2};

struct WindowTableTest : RegionTableTest {
  Stag region = add(kAll | Access::kRemoteAtomic | Access::kMwBind);
  Stag window = *table.add_window(7);

  Stag next(Stag stag) const { return Stag{inc_rkey(stag.value)}; }
  ddp::WindowBind wanted(Stag stag) const { return {stag, region, base + 16, 32, true, true, true}; }
  bool bind(Stag stag) { return table.bind_window(kScope, wanted(stag)); }
  int invalidated(Stag stag, ddp::StreamScope scope = kScope) {
    const auto result = table.invalidate(scope, stag);
    const auto* error = std::get_if<AccessError>(&result);
    return error != nullptr ? static_cast<int>(*error) : kOk;
  }
};

TEST_F(WindowTableTest, NamesItsPartOfTheRegionFromBindToInvalidation) {
  EXPECT_EQ(check(window, base + 16, 1, Right::kRemoteRead), code(AccessError::kInvalidStag));
  const Stag bound = next(window);
  ASSERT_TRUE(bind(bound));
  EXPECT_EQ(table.num_bound(region), 1u);
  for (const Right right : {Right::kRemoteRead, Right::kRemoteWrite, Right::kRemoteAtomic}) {
    EXPECT_EQ(check(bound, base + 16, 32, right), kOk);
    EXPECT_EQ(check(bound, base + 15, 1, right), code(AccessError::kBaseBounds));
    EXPECT_EQ(check(bound, base + 16, 33, right), code(AccessError::kBaseBounds));
    EXPECT_EQ(check(bound, kMax, 1, right), code(AccessError::kToWrap));
  }
  EXPECT_EQ(check(bound, base + 16, 1, Right::kLocalRead), code(AccessError::kAccessRights));
  EXPECT_EQ(check(bound, base + 16, 1, Right::kLocalWrite), code(AccessError::kAccessRights));
  EXPECT_EQ(check(window, base + 16, 1, Right::kRemoteRead), code(AccessError::kInvalidStag)) << "the old key";
  ASSERT_TRUE(table.invalidate_window(kScope, bound));
  EXPECT_EQ(check(bound, base + 16, 1, Right::kRemoteRead), code(AccessError::kInvalidStag));
  EXPECT_EQ(table.num_bound(region), 0u);
  EXPECT_EQ(check(region, base, 100, Right::kRemoteWrite), kOk) << "the region is no worse for it";
}

TEST_F(WindowTableTest, BelongsToTheStreamThatBoundIt) {
  const Stag bound = next(window);
  ASSERT_TRUE(bind(bound));
  for (const ddp::StreamScope scope : {kOtherStream, kForeign}) {
    EXPECT_EQ(check(bound, base + 16, 1, Right::kRemoteRead, scope), code(AccessError::kNotAssociated));
    EXPECT_EQ(check(bound, base + 16, 1, Right::kRemoteWrite, scope), code(AccessError::kNotAssociated));
    EXPECT_EQ(invalidated(bound, scope), code(AccessError::kNotAssociated));
    EXPECT_FALSE(table.invalidate_window(scope, bound));
  }
  EXPECT_EQ(check(bound, base + 16, 1, Right::kRemoteRead), kOk);
}

TEST_F(WindowTableTest, PeerInvalidatesWhatItsStreamHasAndNothingElse) {
  const Stag first = next(window);
  const Stag other_window = *table.add_window(7);
  const Stag other = next(other_window);
  ASSERT_TRUE(bind(first));
  ASSERT_TRUE(bind(other));
  EXPECT_EQ(invalidated(Stag{first.value ^ 1}), code(AccessError::kInvalidStag)) << "all 32 bits count";
  EXPECT_EQ(invalidated(first), kOk);
  EXPECT_EQ(invalidated(first), code(AccessError::kInvalidStag)) << "once";
  EXPECT_EQ(check(first, base + 16, 1, Right::kRemoteRead), code(AccessError::kInvalidStag));
  EXPECT_EQ(check(other, base + 16, 1, Right::kRemoteRead), kOk);
  EXPECT_TRUE(table.invalidate_window(kScope, first)) << "the user need not know that the peer was faster";
  EXPECT_FALSE(table.invalidate_window(kScope, Stag{first.value ^ 1}));
  EXPECT_FALSE(table.invalidate_window(kScope, region));
}

TEST_F(WindowTableTest, EachBindNeedsAnotherKey) {
  const Stag first = next(window);
  EXPECT_FALSE(bind(window)) << "the key it was born with";
  ASSERT_TRUE(bind(first));
  EXPECT_FALSE(bind(next(first))) << "bound";
  ASSERT_TRUE(table.invalidate_window(kScope, first));
  EXPECT_FALSE(bind(first));
  EXPECT_FALSE(bind(Stag{first.value + 256})) << "another index";
  ASSERT_TRUE(bind(next(first)));
  EXPECT_EQ(check(first, base + 16, 1, Right::kRemoteRead), code(AccessError::kInvalidStag));
  EXPECT_EQ(check(next(first), base + 16, 1, Right::kRemoteRead), kOk);
}

TEST_F(WindowTableTest, BindGivesNoMoreThanTheRegionAndItsDomainAllow) {
  const Stag stag = next(window);
  const auto refused = [&](ddp::WindowBind bind, ddp::StreamScope scope = kScope) {
    return !table.bind_window(scope, bind) && table.num_bound(bind.region) == 0;
  };
  const auto with = [&](auto change) {
    ddp::WindowBind bind = wanted(stag);
    change(bind);
    return bind;
  };
  EXPECT_TRUE(refused(wanted(stag), kForeign));
  EXPECT_TRUE(refused(with([&](auto& b) { b.region.value ^= 1; })));
  EXPECT_TRUE(refused(with([&](auto& b) { b.len = 0; })));
  EXPECT_TRUE(refused(with([&](auto& b) { b.to = base - 1; })));
  EXPECT_TRUE(refused(with([&](auto& b) { b.len = 85; })));
  EXPECT_TRUE(refused(with([&](auto& b) { b.to = base + 101, b.len = kMax; })));
  EXPECT_TRUE(refused(with([&](auto& b) { b.region = *table.add(8, base, 100, kAll | Access::kMwBind); })));
  EXPECT_TRUE(refused(with([&](auto& b) { b.region = add(kAll); }))) << "without kMwBind";
  const Stag read_only = add(Access::kRemoteRead | Access::kMwBind);
  EXPECT_TRUE(refused(with([&](auto& b) { b.region = read_only, b.remote_atomic = false; })));
  EXPECT_TRUE(refused(with([&](auto& b) { b.region = read_only, b.remote_write = false; })));
  EXPECT_TRUE(table.bind_window(
      kScope, with([&](auto& b) { b.region = read_only, b.remote_write = b.remote_atomic = false; })));
  EXPECT_EQ(check(stag, base + 16, 1, Right::kRemoteWrite), code(AccessError::kAccessRights));
  EXPECT_EQ(check(stag, base + 16, 8, Right::kRemoteAtomic), code(AccessError::kAccessRights));
}

TEST_F(WindowTableTest, RegionTakesItsWindowsAlong) {
  const Stag other_window = *table.add_window(7);
  ASSERT_TRUE(bind(next(window)));
  ASSERT_TRUE(bind(next(other_window)));
  table.remove(region);
  for (const Stag stag : {next(window), next(other_window)}) {
    EXPECT_EQ(check(stag, base + 16, 1, Right::kRemoteRead), code(AccessError::kInvalidStag));
    EXPECT_EQ(invalidated(stag), code(AccessError::kInvalidStag));
    EXPECT_TRUE(table.invalidate_window(kScope, stag));
  }
  region = add(kAll | Access::kRemoteAtomic | Access::kMwBind);
  EXPECT_TRUE(bind(next(next(window)))) << "the window itself is still there";
}

TEST_F(WindowTableTest, WindowGoesWhateverItsState) {
  const Stag bound = next(window);
  ASSERT_TRUE(bind(bound));
  table.remove(window);  // by its index
  EXPECT_EQ(check(bound, base + 16, 1, Right::kRemoteRead), code(AccessError::kInvalidStag));
  EXPECT_EQ(table.num_bound(region), 0u);
  EXPECT_FALSE(bind(next(bound)));
  EXPECT_FALSE(table.invalidate_window(kScope, bound));
  EXPECT_EQ(table.size(), 1u);
  RegionTable small(1);
  EXPECT_TRUE(small.add_window(7));
  EXPECT_FALSE(small.add_window(7));
}

// One thread binds a window again and again, elsewhere and as long as it likes each time, while another asks for it
// under the STag that comes next: it is not there, or there with the bounds of its bind. ThreadSanitizer watches
// (preset tsan).
TEST(SharedRegionTable, BindingIsThereWholeOrNotAtAll) {
  RecordProperty("proves", "SEC-2.3.5-02");
  constexpr std::uint64_t kBase = 1 << 20;
  RegionTable table(10, true);
  const Stag region = *table.add(7, kBase, 1 << 16, kAll | Access::kMwBind);
  const Stag window = *table.add_window(7);
  const auto named = [&](std::uint32_t n) { return Stag{(window.value & ~0xffu) | (n & 0xff)}; };
  const auto to = [&](std::uint32_t n) { return kBase + (n & 0xff) * 64; };
  const auto len = [](std::uint32_t n) { return 1 + (n & 0x3f); };
  std::atomic<std::uint32_t> next = 0;
  std::thread binder([&] {
    for (std::uint32_t n = window.value + 1; n != window.value + 20000; ++n) {
      next = n;
      EXPECT_TRUE(table.bind_window(
          kScope, {.stag = named(n), .region = region, .to = to(n), .len = len(n), .remote_write = true}));
      EXPECT_TRUE(table.invalidate_window(kScope, named(n)));
    }
    next = 0;
  });
  while (next == 0) std::this_thread::yield();
  for (std::uint32_t n = next; n != 0; n = next) {
    const auto inside = table.resolve(kScope, named(n), to(n), len(n), Right::kRemoteWrite);
    const auto* error = std::get_if<AccessError>(&inside);
    EXPECT_TRUE(error == nullptr || *error == AccessError::kInvalidStag) << static_cast<int>(*error);
    const auto beyond = table.resolve(kScope, named(n), to(n), len(n) + 1, Right::kRemoteWrite);
    EXPECT_FALSE(std::holds_alternative<MutBytes>(beyond));
  }
  binder.join();
}

}  // namespace
}  // namespace weft::verbs::soft
