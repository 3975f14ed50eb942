#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/poller.h"

namespace weft::verbs::soft {

class SoftCq;
class SoftQp;

class SoftCompChannel final : public CompChannel {
 public:
  explicit SoftCompChannel(Poller& poller) : poller_(poller) {}
  ~SoftCompChannel() override;

  int fd() const override;
  Cq* get_event() override;

  void push(SoftCq& cq);
  void forget(const SoftCq& cq);

 private:
  Poller& poller_;
  mutable UniqueFd fd_;
  std::deque<SoftCq*> fired_;
};

// SoftCq is a ring of completions with a fixed capacity. Overflow is an error for good, and for its queue pairs too.
class SoftCq final : public Cq {
 public:
  // on overflow the Cq enters itself in `overflowed`, which the device looks through.
  SoftCq(std::size_t capacity, SoftCompChannel* channel, std::vector<SoftCq*>& overflowed)
      : ring_(capacity), channel_(channel), overflowed_list_(overflowed) {}
  ~SoftCq() override;

  int poll(std::span<Wc> wc) override;
  Status req_notify(bool solicited_only) override;

  // solicited: the receive of a solicited Send. Errors count as solicited.
  void push(const Wc& wc, bool solicited);
  // Takes out what a queue pair left that is being destroyed.
  void forget(std::uint32_t qp_num);

  void add_qp(SoftQp& qp) { qps_.push_back(&qp); }
  void remove_qp(const SoftQp& qp);
  const std::vector<SoftQp*>& qps() const { return qps_; }

  // Whether it belongs to the device that looks through this list.
  bool of(const std::vector<SoftCq*>& overflowed) const { return &overflowed_list_ == &overflowed; }
  // How many completions no queue pair has a claim on yet (RFC 5042 section 6.4.3.2).
  std::size_t room() const { return ring_.size() - std::min(ring_.size(), charged_); }
  // The queue pair may leave so many completions here; until remove_qp.
  void charge(const SoftQp& qp, std::size_t num);
  std::size_t size() const { return size_; }

 private:
  enum class Armed : std::uint8_t { kNo, kSolicited, kNext };

  std::vector<Wc> ring_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  Armed armed_ = Armed::kNo;
  bool overflow_ = false;
  SoftCompChannel* channel_;
  std::vector<SoftCq*>& overflowed_list_;
  std::vector<SoftQp*> qps_;
  std::vector<std::pair<const SoftQp*, std::size_t>> charges_;
  std::size_t charged_ = 0;
};

}  // namespace weft::verbs::soft
