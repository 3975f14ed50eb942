#pragma once

#include "verbs-shim/api/testing/pair.h"

namespace weft::verbs::testing {

// AsyncTest: both devices' asynchronous events are listened for.
class AsyncTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    if (IsSkipped()) return;
    if (server_.device->async_fd() < 0 || client_.device->async_fd() < 0) GTEST_SKIP() << "no asynchronous events";
  }

  // The next event of this side, which is one of its queue pair.
  void expect_qp_event(Side& side, AsyncEventType type) {
    const auto event = wait_async(side);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->type, type) << async_event_str(event->type) << ": " << event->text;
    EXPECT_EQ(event->qp, side.qp.get());
    EXPECT_EQ(event->text.find('\n'), std::string::npos);
  }
  void drive_to_the_end() {
    ASSERT_TRUE(
        drive([&] { return client_.has(CmEventType::kDisconnected) && server_.has(CmEventType::kDisconnected); }));
  }
};

}  // namespace weft::verbs::testing
