#pragma once

#include <cstdint>
#include <optional>

#include "rdmap/work.h"
#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/fixed_ring.h"
#include "verbs-shim/soft/maybe_mutex.h"

namespace weft::verbs::soft {

// SoftSrq is a ring of receives from which the queue pairs of one protection domain take, in the threads of their
// loops. One with a reserve gives the newest first: where many receives are posted for peers that rest, a peer that
// works fills the same few over and over. Its lock is taken inside the lock of a queue pair.
class SoftSrq final : public Srq, public rdmap::RecvSource {
 public:
  // The device has counted it (Core::claim_srq).
  SoftSrq(Core& core, std::uint32_t pd, const SrqAttr& attr);
  ~SoftSrq() override;

  Status post_recv(const RecvWr& wr) override;
  Status modify(std::uint32_t srq_limit) override;
  Result<SrqAttr> query() const override;
  std::optional<std::uint32_t> num_waiting() const override;

  // Nothing if the ring is empty: the message then finds no buffer, as with a queue pair's own receive queue
  // (DDP-7.1-03).
  std::optional<rdmap::PostedRecv> take() override;

  const Core& core() const { return core_; }
  std::uint32_t pd() const { return pd_; }
  std::uint32_t max_wr() const { return max_wr_; }
  // Whether as many receives are left as one turn may need (SrqAttr::reserve). With workers there is no reserve; the
  // ring is then not read, since other threads change it.
  bool has_reserve() const { return reserve_ == 0 || ring_.size() >= reserve_; }

 private:
  void check_limit();

  Core& core_;
  const std::uint32_t pd_;
  const std::uint32_t max_wr_;
  const std::uint32_t max_sge_;
  const std::uint32_t reserve_;  // 0 with workers
  const bool newest_first_;
  mutable Mutex mutex_;  // guards all below
  std::uint32_t limit_;  // 0: not armed
  FixedRing<rdmap::PostedRecv> ring_;
};

}  // namespace weft::verbs::soft
