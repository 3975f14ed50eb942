#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/doorbell.h"
#include "verbs-shim/soft/maybe_mutex.h"

namespace weft::verbs::soft {

class SoftCq;
class SoftDevice;
class SoftQp;
class SoftSrq;

class SoftCompChannel final : public CompChannel {
 public:
  explicit SoftCompChannel(SoftDevice& device);
  ~SoftCompChannel() override;

  int fd() const override;
  Cq* get_event() override;

  void push(SoftCq& cq);
  void forget(const SoftCq& cq);

 private:
  mutable Mutex mutex_;
  mutable Doorbell bell_;
  std::deque<SoftCq*> fired_;
};

// SoftCq is a ring of completions with a fixed capacity. Overflow is an error for good, and for its queue pairs too.
// With workers its queue pairs may belong to several. Its lock is taken inside a queue pair's.
class SoftCq final : public Cq {
 public:
  SoftCq(SoftDevice& device, std::size_t capacity, SoftCompChannel* channel);
  ~SoftCq() override;

  int poll(std::span<Wc> wc) override;
  Status req_notify(bool solicited_only) override;

  // solicited: the receive of a solicited Send. Errors count as solicited.
  void push(const Wc& wc, bool solicited);
  // Takes out what a queue pair left that is being destroyed, and its claim.
  void forget(const SoftQp& qp);

  void add_qp(SoftQp& qp);
  // From then on it hears of no overflow.
  void remove_qp(const SoftQp& qp);
  // The queue pair may leave so many completions here, until forget; false where there is no room for them that no
  // other has a claim on (RFC 5042 section 6.4.3.2), unless overcommitment is allowed.
  bool charge(const SoftQp& qp, std::size_t num);
  // The same for all that a shared receive queue holds, once for all queue pairs that complete its receives here (RFC
  // 5042 section 6.4.3.2 counts queues).
  bool charge(const SoftQp& qp, const SoftSrq& srq);
  SoftDevice& device() const { return device_; }

 private:
  enum class Armed : std::uint8_t { kNo, kSolicited, kNext };

  void enter(const Wc& wc, bool solicited);
  void overflow();
  bool has_room(std::size_t num) const;
  bool is_charged(const SoftSrq& srq) const;

  SoftDevice& device_;
  SoftCompChannel* const channel_;
  Mutex mutex_;  // guards all below
  std::vector<Wc> ring_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  Armed armed_ = Armed::kNo;
  bool overflow_ = false;
  std::vector<SoftQp*> qps_;
  struct Charge {
    const SoftQp* qp = nullptr;
    const SoftSrq* srq = nullptr;  // whose receives they are, where not the queue pair's own
    std::size_t num = 0;
  };
  std::vector<Charge> charges_;
  std::size_t charged_ = 0;
};

}  // namespace weft::verbs::soft
