#pragma once

#include "tests/rpc/world.h"
#include "verbs-shim/api/testing/post_tap.h"

// A server on verbs alone, for tests of clients with misbehaving servers.
namespace weft::rpcrdma::testing {

// RawServer listens on 127.0.0.1 and accepts every connection; the last one is `qp`. No tap hears it.
struct RawServer {
  explicit RawServer(verbs::Device& its_device) : device(verbs::testing::bare(its_device)) {
    pd = std::move(*device.alloc_pd());
    cq = std::move(*device.create_cq(256, nullptr));
    events = std::move(*device.create_event_channel());
    listener = std::move(*events->create_id());
    EXPECT_TRUE(listener->bind_addr(loopback(0)).ok());
    EXPECT_TRUE(listener->listen(4).ok());
  }
  // prepare: posts Receives before a connection is accepted.
  void turn(const std::function<void()>& prepare = [] {}) {
    device.process(Clock::now());
    while (auto event = events->get_event()) {
      if (event->type != verbs::CmEventType::kConnectRequest) continue;
      id = std::move(event->new_id);
      verbs::QpInitAttr attr;
      attr.send_cq = attr.recv_cq = cq.get();
      qp = std::move(*id->create_qp(*pd, attr));
      prepare();
      EXPECT_TRUE(id->accept({}).ok());
    }
  }

  verbs::Device& device;
  std::unique_ptr<verbs::Pd> pd;
  std::unique_ptr<verbs::Cq> cq;
  std::unique_ptr<verbs::CmChannel> events;
  std::unique_ptr<verbs::CmId> listener, id;
  std::unique_ptr<verbs::Qp> qp;  // gone before all others
};

}  // namespace weft::rpcrdma::testing
