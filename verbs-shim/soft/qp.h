#pragma once

#include <cstdint>
#include <memory>

#include "verbs-shim/api/verbs.h"
#include "verbs-shim/soft/loop.h"
#include "verbs-shim/soft/pd.h"
#include "verbs-shim/soft/work_queues.h"

namespace weft::verbs::soft {

// SoftQp is the verbs' side of a queue pair, and owns its queues. SoftQp and its connection belong to one loop. The
// handle in the queues names the connection.
class SoftQp final : public Qp {
 public:
  static Result<std::unique_ptr<SoftQp>> create(Loop& loop, const SoftPd& pd, const QpInitAttr& attr);
  // Called by create, which has checked attr.
  SoftQp(Loop& loop, std::uint32_t pd, const QpInitAttr& attr);
  ~SoftQp() override;

  Status post_send(const SendWr& wr) override;
  Status post_recv(const RecvWr& wr) override { return queues_->post_recv(wr); }
  QpState state() const override { return queues_->state(); }
  Result<QpAttr> query() const override { return queues_->query(); }
  Status modify(QpState state) override;
  std::uint32_t qp_num() const override { return queues_->qp_num(); }
  QpCounters counters() const override;
  std::size_t num_unsent() const override;

  // For the id of the queue pair, which may be destroyed before or after it.
  std::weak_ptr<WorkQueues> queues() const { return queues_; }

 private:
  Loop& loop_;
  const std::shared_ptr<WorkQueues> queues_;
};

}  // namespace weft::verbs::soft
