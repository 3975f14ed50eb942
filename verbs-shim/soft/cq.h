#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/comp_channel.h"
#include "verbs-shim/soft/core.h"
#include "verbs-shim/soft/fixed_ring.h"
#include "verbs-shim/soft/maybe_mutex.h"

namespace weft::verbs::soft {

// SoftCq is a ring of completions with a fixed capacity. An overflow is permanent and fails its queue pairs, too; the
// Cq knows them by number. With workers the queue pairs may belong to several loops. The lock of the Cq is taken inside
// the lock of a queue pair.
class SoftCq final : public Cq {
 public:
  // Called under the locks of the queue pair that overflowed it and of this Cq, in any thread.
  using OnOverflow = absl::AnyInvocable<void()>;

  SoftCq(Core& core, std::size_t capacity, SoftCompChannel* channel);
  ~SoftCq() override;

  int poll(std::span<Wc> wc) override;
  Status req_notify(bool solicited_only) override;

  // solicited: the receive of a solicited Send. Errors count as solicited.
  void push(const Wc& wc, bool solicited);
  void add_qp(std::uint32_t qp_num, OnOverflow on_overflow);
  // The queue pair hears of no overflow from then on.
  void remove_qp(std::uint32_t qp_num);
  // Drops the completions and the claim of a queue pair that is being destroyed.
  void forget(std::uint32_t qp_num);

  // Claims room for `num` completions of the queue pair, until forget. False if too little room is unclaimed (RFC 5042
  // section 6.4.3.2), unless overcommitment is allowed. srq: the completions are for all receives that this queue
  // holds. They count once for all queue pairs that complete its receives here (the section counts queues).
  bool charge(std::uint32_t qp_num, std::size_t num, const Srq* srq = nullptr);
  const Core& core() const { return core_; }

 private:
  enum class Armed : std::uint8_t { kNo, kSolicited, kNext };
  struct User {
    std::uint32_t qp_num = 0;
    OnOverflow on_overflow;
  };
  struct Charge {
    std::uint32_t qp_num = 0;
    const Srq* srq = nullptr;
    std::size_t num = 0;
  };

  void enter(const Wc& wc, bool solicited);
  void overflow();
  std::vector<Charge>::iterator find(const Srq& srq);

  Core& core_;
  SoftCompChannel* const channel_;
  Mutex mutex_;  // guards all below
  FixedRing<Wc> ring_;
  Armed armed_ = Armed::kNo;
  bool overflow_ = false;
  std::vector<User> users_;
  std::vector<Charge> charges_;
  std::size_t charged_ = 0;
};

}  // namespace weft::verbs::soft
