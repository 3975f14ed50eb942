#include "verbs-shim/ibv/mapping.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>

namespace weft::verbs::ibv {
namespace {

TEST(Mapping, OneRequestOfASendQueueIsTheMarkers) {
  ibv_device_attr attr{};
  attr.max_qp_wr = 1024;
  EXPECT_EQ(from_ibv(attr, Transport::kIwarp).max_qp_wr, 1023u);
  attr.max_qp_wr = 0;
  EXPECT_EQ(from_ibv(attr, Transport::kIwarp).max_qp_wr, 0u);
}

TEST(Mapping, ARefusedPortIsNotBlamedOnTheDevicesFiles) {
  const Error refused = bind_error("192.0.2.1:80", "siw0", EACCES);
  EXPECT_EQ(refused.errno_value, EACCES);
  EXPECT_EQ(refused.message,
            "cannot bind to 192.0.2.1:80: Permission denied; ports below 1024 are for root and CAP_NET_BIND_SERVICE");
  EXPECT_NE(call_error("ibv_alloc_pd", -EACCES).message.find("/dev/infiniband"), std::string::npos);
  EXPECT_NE(bind_error("192.0.2.1:80", "siw0", EADDRNOTAVAIL).message.find("below RDMA device siw0"),
            std::string::npos);
  EXPECT_EQ(bind_error("192.0.2.1:80", "siw0", EADDRINUSE).message,
            "cannot bind to 192.0.2.1:80: Address already in use");
}

// libibverbs' own strings, for every status and every event that has a counterpart here.
TEST(Mapping, NamesAreThoseOfLibibverbs) {
  std::set<WcStatus> statuses;
  for (int i = IBV_WC_SUCCESS; i <= IBV_WC_GENERAL_ERR; ++i) {
    const auto theirs = static_cast<ibv_wc_status>(i);
    const WcStatus ours = from_ibv(theirs);
    if (ours == WcStatus::kGeneralErr && theirs != IBV_WC_GENERAL_ERR) continue;  // no counterpart
    EXPECT_STREQ(wc_status_str(ours), ibv_wc_status_str(theirs));
    EXPECT_TRUE(statuses.insert(ours).second) << wc_status_str(ours);
  }
  EXPECT_EQ(statuses.size(), std::size_t{1} + static_cast<std::size_t>(WcStatus::kRnrRetryExcErr));
  std::set<AsyncEventType> events;
  for (int i = IBV_EVENT_CQ_ERR; i <= IBV_EVENT_WQ_FATAL; ++i) {
    const auto theirs = static_cast<ibv_event_type>(i);
    const std::optional<AsyncEventType> ours = from_ibv(theirs);
    if (!ours) continue;
    EXPECT_STREQ(async_event_str(*ours), ibv_event_type_str(theirs));
    EXPECT_TRUE(events.insert(*ours).second) << async_event_str(*ours);
  }
  EXPECT_EQ(events.size(), std::size_t{1} + static_cast<std::size_t>(AsyncEventType::kDeviceFatal));
}

}  // namespace
}  // namespace weft::verbs::ibv
