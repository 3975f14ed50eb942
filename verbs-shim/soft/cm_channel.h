#pragma once

#include <memory>
#include <optional>

#include "verbs-shim/api/cm.h"
#include "verbs-shim/soft/cm_id.h"
#include "verbs-shim/soft/event_queue.h"
#include "verbs-shim/soft/fleet.h"

namespace weft::verbs::soft {

class SoftCmChannel final : public CmChannel {
 public:
  explicit SoftCmChannel(Fleet& fleet) : fleet_(fleet), queue_(std::make_shared<EventQueue>(fleet.core())) {}
  ~SoftCmChannel() override { queue_->close(); }
  int fd() const override { return queue_->fd(); }
  std::optional<CmEvent> get_event() override { return queue_->pop(); }
  Result<std::unique_ptr<CmId>> create_id() override {
    return std::unique_ptr<CmId>(std::make_unique<SoftCmId>(fleet_, fleet_.next_loop(), queue_));
  }

 private:
  Fleet& fleet_;
  std::shared_ptr<EventQueue> queue_;
};

}  // namespace weft::verbs::soft
