#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "mpa/peer_profile.h"
#include "verbs-shim/soft/async_queue.h"
#include "verbs-shim/soft/cq.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/device_bell.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/maybe_mutex.h"
#include "verbs-shim/soft/memory_table.h"
#include "verbs-shim/soft/port_map.h"
#include "verbs-shim/soft/worker.h"

namespace weft::verbs::soft {

// SoftDevice is the soft RNIC: the registered memory, and the loops that move its connections: one that the caller
// drives, or one for each worker.
class SoftDevice final : public Device {
 public:
  explicit SoftDevice(const SoftConfig& config);
  ~SoftDevice() override;
  Status open();

  const Caps& caps() const override { return caps_; }
  Result<std::unique_ptr<Pd>> alloc_pd() override;
  Result<std::unique_ptr<CompChannel>> create_comp_channel() override;
  Result<std::unique_ptr<Cq>> create_cq(int cqe, CompChannel* channel) override;
  Result<std::unique_ptr<CmChannel>> create_event_channel() override;
  DeviceAttr query() const override;
  std::optional<AsyncEvent> get_async_event() override { return async_->pop(); }
  int async_fd() override { return async_->fd(); }
  std::size_t process(TimePoint now) override;
  std::optional<TimePoint> next_timeout() const override;
  int fd() const override { return threaded() ? bell_->fd() : loops_.front()->fd(); }
  void set_busy_polling(bool on) override;
  // As verbs::unplug.
  void unplug();

  // ---- for its own parts, on any thread
  bool threaded() const { return config_.num_workers > 0; }
  const SoftConfig& config() const { return config_; }
  const mpa::PeerProfile& peer() const { return peer_; }
  RegionTable& regions() { return regions_; }
  // Of the one loop that the caller drives; null with workers.
  Poller* poller() { return threaded() ? nullptr : &loops_.front()->poller(); }
  AsyncQueue& async() { return *async_; }
  // Counts one more shared receive queue; false where there are max_srq.
  bool claim_srq();
  void release_srq() { --num_srqs_; }
  bool gone() const { return gone_; }
  void add_id(class SoftCmId& id);
  void remove_id(SoftCmId& id);
  // Rung with workers only.
  DeviceBell& bell() { return *bell_; }
  // In the thread of the first loop.
  PortMapAnswers& port_map_answers() { return *port_map_answers_; }
  const std::vector<std::unique_ptr<Loop>>& loops() { return loops_; }
  // The loop for the next connection: they take turns.
  Loop& next_loop() { return *loops_[next_loop_++ % loops_.size()]; }
  std::uint32_t next_number() { return ++last_number_; }
  Result<std::unique_ptr<Qp>> create_qp(SoftCmId& id, Loop& loop, Pd& pd, const QpInitAttr& attr);
  // remove takes an STag out of the table; when it returns, no turn of a loop uses memory that it named.
  void remove(ddp::Stag stag);

 private:
  const SoftConfig config_;
  const mpa::PeerProfile& peer_;
  Caps caps_;
  RegionTable regions_;
  const std::unique_ptr<DeviceBell> bell_ = std::make_unique<DeviceBell>();
  std::atomic<std::uint32_t> last_number_ = 0;
  std::atomic<std::size_t> next_loop_ = 0;
  std::atomic<std::uint32_t> num_srqs_ = 0;
  std::unique_ptr<AsyncQueue> async_;
  std::atomic<bool> gone_ = false;
  Mutex ids_mutex_;  // guards ids_; nobody waits for a loop under it
  absl::flat_hash_set<SoftCmId*> ids_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<PortMapAnswers> port_map_answers_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace weft::verbs::soft
