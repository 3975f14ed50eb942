#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/time.h"
#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/fleet.h"

namespace weft::verbs::soft {

// SoftDevice is the verbs' side of a soft RNIC. It owns the parts and makes the other objects.
class SoftDevice final : public Device {
 public:
  // open_soft_device has checked config.
  explicit SoftDevice(const SoftConfig& config);
  Status open();

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Pd>> alloc_pd() override;
  Result<std::unique_ptr<CompChannel>> create_comp_channel() override;
  Result<std::unique_ptr<Cq>> create_cq(int cqe, CompChannel* channel) override;
  Result<std::unique_ptr<CmChannel>> create_event_channel() override;
  DeviceAttr query() const override;
  std::optional<AsyncEvent> get_async_event() override { return core_.async().pop(); }
  int async_fd() override { return core_.async().fd(); }
  std::size_t process(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  int fd() const override;
  void set_busy_polling(bool on) override;
  // Like verbs::unplug.
  void unplug();

  Fleet& fleet() { return fleet_; }

 private:
  mutable Core core_;
  const Caps caps_;
  Fleet fleet_;
};

}  // namespace weft::verbs::soft
