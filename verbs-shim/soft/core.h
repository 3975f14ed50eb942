#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpa/peer_profile.h"
#include "verbs-shim/soft/async_queue.h"
#include "verbs-shim/soft/device.h"
#include "verbs-shim/soft/device_bell.h"
#include "verbs-shim/soft/doorbell.h"
#include "verbs-shim/soft/memory_table.h"
#include "verbs-shim/soft/poller.h"
#include "verbs-shim/soft/terminate_counters.h"
#include "verbs-shim/soft/trace_file.h"

namespace weft::verbs::soft {

// Core holds the things that all parts of a device share. It outlives the parts. Any thread, but for the Pollers.
class Core {
 public:
  explicit Core(const SoftConfig& config);
  Status open();

  const SoftConfig& config() const { return config_; }
  const mpa::PeerProfile& peer() const { return peer_; }
  // Null: no trace is written.
  const std::shared_ptr<TraceFile>& trace() const { return trace_; }
  bool threaded() const { return config_.num_workers > 0; }
  std::size_t num_loops() const { return pollers_.size(); }
  RegionTable& regions() { return regions_; }
  AsyncQueue& async() { return async_; }
  TerminateCounters& terminates() { return terminates_; }
  DeviceBell& bell() { return bell_; }  // rung with workers only
  Poller& poller(std::size_t loop) { return *pollers_[loop]; }
  // For a new channel.
  Doorbell doorbell() { return {threaded() ? nullptr : pollers_.front().get(), bell_}; }
  // With polled progress: wakes the caller, because the next call of process has something to report.
  void want_caller() {
    if (!threaded()) pollers_.front()->set_wanted(true);
  }

  std::uint32_t next_number() { return ++last_number_; }
  // Counts one more shared receive queue; false if there are max_srq already.
  bool claim_srq();
  void release_srq() { --num_srqs_; }
  // Whether the device was removed.
  bool gone() const { return gone_; }
  // Removes the device; false if it was removed before.
  bool leave() { return !gone_.exchange(true); }

 private:
  const SoftConfig config_;
  const mpa::PeerProfile& peer_;
  const std::shared_ptr<TraceFile> trace_;
  RegionTable regions_;
  DeviceBell bell_;
  std::vector<std::unique_ptr<Poller>> pollers_;  // one for each loop
  AsyncQueue async_;
  TerminateCounters terminates_;
  std::atomic<std::uint32_t> last_number_ = 0;
  std::atomic<std::uint32_t> num_srqs_ = 0;
  std::atomic<bool> gone_ = false;
};

}  // namespace weft::verbs::soft
