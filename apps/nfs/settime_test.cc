#include "apps/nfs/settime.h"

#include <gtest/gtest.h>

namespace weft::nfs {
namespace {

void expect(const timespec& time, std::uint32_t seconds, std::uint32_t nseconds, bool is_cut) {
  const LocalTime local = to_settime(time);
  EXPECT_EQ(local.value.how, nfs3::TimeHow::kSetToClientTime);
  EXPECT_EQ(local.value.time.seconds, seconds) << time.tv_sec;
  EXPECT_EQ(local.value.time.nseconds, nseconds) << time.tv_sec;
  EXPECT_EQ(local.is_cut, is_cut) << time.tv_sec;
}

TEST(LocalTime, ATimeOf32BitsIsKept) {
  expect({0, 0}, 0, 0, false);
  expect({1'700'000'000, 123}, 1'700'000'000, 123, false);
  expect({UINT32_MAX, 999'999'999}, UINT32_MAX, 999'999'999, false);
}

TEST(LocalTime, ATimeBeyondThemIsTheNearestOne) {
  expect({-1, 5}, 0, 0, true);
  expect({-315'619'200, 0}, 0, 0, true);  // 1960
  expect({std::int64_t{UINT32_MAX} + 1, 5}, UINT32_MAX, 0, true);
  expect({7'258'118'400, 0}, UINT32_MAX, 0, true);  // 2200
}

}  // namespace
}  // namespace weft::nfs
