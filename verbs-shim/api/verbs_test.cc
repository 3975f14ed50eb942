#include "verbs-shim/api/verbs.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>

#include "verbs-shim/api/cm.h"

namespace weft::verbs {
namespace {

// A device that has only what every device must have.
struct PlainPd : Pd {
  Result<std::unique_ptr<Mr>> reg_mr(void*, std::size_t, Access) override { return Error{ENOMEM, "no memory"}; }
};
struct PlainQp : Qp {
  Status post_send(const SendWr&) override { return {}; }
  Status post_recv(const RecvWr&) override { return {}; }
  QpState state() const override { return QpState::kRts; }
  std::uint32_t qp_num() const override { return 0; }
  QpCounters counters() const override { return {}; }
};
struct PlainDevice : Device {
  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Pd>> alloc_pd() override { return Error{ENOMEM, "no memory"}; }
  Result<std::unique_ptr<CompChannel>> create_comp_channel() override { return Error{ENOMEM, "no memory"}; }
  Result<std::unique_ptr<Cq>> create_cq(int, CompChannel*) override { return Error{ENOMEM, "no memory"}; }
  Result<std::unique_ptr<CmChannel>> create_event_channel() override { return Error{ENOMEM, "no memory"}; }
  std::size_t process(TimePoint) override { return 0; }
  std::optional<TimePoint> next_timeout() const override { return {}; }
  int fd() const override { return -1; }

  Caps caps_;
};

template <typename Refused>
void expect_unsupported(const Refused& refused, const std::string& message) {
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().errno_value, EOPNOTSUPP);
  EXPECT_EQ(refused.error().message, message);
}

TEST(PlainDevice, RefusesWhatItDoesNotHaveByName) {
  PlainPd pd;
  expect_unsupported(pd.alloc_mw(), "this device has no memory windows of type 2");
  expect_unsupported(pd.create_srq({}), "this device has no shared receive queues");
  PlainQp qp;
  expect_unsupported(qp.query(), "this device cannot be asked about a queue pair");
  expect_unsupported(qp.modify(QpState::kErr), "this device cannot modify a queue pair");
}

TEST(PlainDevice, HasNoAsynchronousEventsAndNothingToTell) {
  PlainDevice device;
  EXPECT_EQ(device.async_fd(), -1);
  EXPECT_FALSE(device.get_async_event());
  const DeviceAttr attr = device.query();
  EXPECT_EQ(attr.name, "");
  EXPECT_EQ(attr.node_guid, 0u);
  EXPECT_TRUE(attr.terminates.empty());
}

// libibverbs' names stand in verbs-shim/ibv/mapping_test.cc, which asks libibverbs itself.
TEST(Names, OfEventsOfConnectionsAndTransports) {
  const std::pair<CmEventType, const char*> kEvents[] = {
      {CmEventType::kAddrResolved, "address resolved"},  {CmEventType::kAddrError, "address error"},
      {CmEventType::kRouteResolved, "route resolved"},   {CmEventType::kRouteError, "route error"},
      {CmEventType::kConnectRequest, "connect request"}, {CmEventType::kConnectError, "connect error"},
      {CmEventType::kUnreachable, "unreachable"},        {CmEventType::kRejected, "rejected"},
      {CmEventType::kEstablished, "established"},        {CmEventType::kDisconnected, "disconnected"},
      {CmEventType::kDeviceRemoval, "device removal"},
  };
  for (const auto& [type, name] : kEvents) EXPECT_STREQ(cm_event_str(type), name);
  EXPECT_STREQ(transport_str(Transport::kIwarp), "iWARP");
  EXPECT_STREQ(transport_str(Transport::kInfiniBand), "InfiniBand");
  EXPECT_STREQ(transport_str(Transport::kRoce), "RoCE");
  EXPECT_STREQ(transport_str(Transport::kOther), "other");
}

TEST(Names, OfValuesThatAreNoneAreNotNull) {
  EXPECT_STREQ(cm_event_str(static_cast<CmEventType>(99)), "unknown");
  EXPECT_STREQ(transport_str(static_cast<Transport>(99)), "unknown");
  EXPECT_STREQ(async_event_str(static_cast<AsyncEventType>(99)), "unknown event");
  EXPECT_STREQ(wc_status_str(static_cast<WcStatus>(99)), "unknown");
}

}  // namespace
}  // namespace weft::verbs
