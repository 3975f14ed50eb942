#include "verbs-shim/ibv/mapping.h"

#include <gtest/gtest.h>

#include <cerrno>

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

}  // namespace
}  // namespace weft::verbs::ibv
