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

// SoftCq is a ring of completions with a fixed capacity. Overflow is an error for good, and for its queue pairs too,
// which it knows by number. With workers they may belong to several. Its lock is taken inside a queue pair's.
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
  // From then on it hears of no overflow.
  void remove_qp(std::uint32_t qp_num);
  // Takes out what a queue pair left that is being destroyed, and its claim.
  void forget(std::uint32_t qp_num);

  // The queue pair may leave so many completions here, until forget; false where there is no room for them that no
  // other has a claim on (RFC 5042 section 6.4.3.2), unless overcommitment is allowed. srq: they are all that this
  // queue holds, and count once for all queue pairs that complete its receives here (that section counts queues).
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
