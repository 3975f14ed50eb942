#include "rpcrdma/recent_xids.h"

#include <gtest/gtest.h>

namespace weft::rpcrdma {
namespace {

TEST(RecentXids, TheOldestGoesForTheNext) {
  RecentXids recent(3);
  EXPECT_FALSE(recent.has(0)) << "nothing was added";
  for (std::uint32_t xid = 1; xid <= 3; ++xid) recent.add(xid);
  for (std::uint32_t xid = 1; xid <= 3; ++xid) EXPECT_TRUE(recent.has(xid)) << xid;
  for (std::uint32_t xid = 4; xid <= 20; ++xid) {
    recent.add(xid);
    EXPECT_FALSE(recent.has(xid - 3)) << xid;
    for (std::uint32_t last = xid - 2; last <= xid; ++last) EXPECT_TRUE(recent.has(last)) << xid;
  }
}

}  // namespace
}  // namespace weft::rpcrdma
