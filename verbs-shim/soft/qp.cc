#include "verbs-shim/soft/qp.h"

#include <cerrno>
#include <string>

#include "verbs-shim/soft/mw.h"
#include "verbs-shim/soft/socket.h"
#include "verbs-shim/soft/translate.h"

namespace weft::verbs::soft {
namespace {

// The attributes as they are granted.
Result<QpInitAttr> granted(const Core& core, const SoftPd& pd, const QpInitAttr& attr) {
  const SoftConfig& config = core.config();
  if (core.gone()) return Error{ENODEV, "the device was removed"};
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr)
    return Error{EINVAL, "a queue pair needs two completion queues"};
  QpInitAttr out = attr;
  QpCap& cap = out.cap;
  const auto* srq = static_cast<const SoftSrq*>(attr.srq);
  if (srq != nullptr) cap.max_recv_wr = cap.max_recv_sge = 0;
  if (cap.max_send_wr > config.max_qp_wr || cap.max_recv_wr > config.max_qp_wr) {
    return Error{EINVAL, "more work requests than max_qp_wr, " + std::to_string(config.max_qp_wr)};
  }
  if (cap.max_send_sge > config.max_sge || cap.max_recv_sge > config.max_sge) {
    return Error{EINVAL, "more scatter/gather elements than max_sge, " + std::to_string(config.max_sge)};
  }
  if (cap.max_inline_data > config.max_inline_data) {
    return Error{EINVAL, "more inline data than max_inline_data, " + std::to_string(config.max_inline_data)};
  }
  if (&static_cast<SoftCq*>(attr.send_cq)->core() != &core || &static_cast<SoftCq*>(attr.recv_cq)->core() != &core) {
    return Error{EINVAL, "a completion queue of another device"};  // SEC-7.1-01
  }
  if (srq != nullptr && (&srq->core() != &core || srq->pd() != pd.number())) {
    return Error{EINVAL, "a shared receive queue of another protection domain"};
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<SoftQp>> SoftQp::create(Loop& loop, const SoftPd& pd, const QpInitAttr& attr) {
  auto checked = granted(loop.core(), pd, attr);
  if (!checked) return checked.error();
  auto qp = std::make_unique<SoftQp>(loop, pd.number(), *checked);
  WorkQueues& queues = *qp->queues_;
  const auto* srq = static_cast<const SoftSrq*>(attr.srq);
  if (!queues.send_cq().charge(queues.qp_num(), checked->cap.max_send_wr) ||
      !queues.recv_cq().charge(queues.qp_num(), srq != nullptr ? srq->max_wr() : checked->cap.max_recv_wr, srq)) {
    return Error{ENOMEM,
                 "the completion queue has no room for all that the queue pair may leave in it: make it longer, "
                 "or the queues shorter"};  // SEC-6.4.3.2-01
  }
  return qp;
}

SoftQp::SoftQp(Loop& loop, std::uint32_t pd, const QpInitAttr& attr)
    : loop_(loop), queues_(std::make_shared<WorkQueues>(loop.core(), *this, pd, loop.core().next_number(), attr)) {
  const auto on_overflow = [this] {
    queues_->set_overflow();
    loop_.attend(*queues_);
  };
  queues_->send_cq().add_qp(qp_num(), on_overflow);
  queues_->recv_cq().add_qp(qp_num(), on_overflow);
}

SoftQp::~SoftQp() {
  // The queue pair leaves the Cqs first: from then on no Cq enters it in the loop's inbox.
  for (SoftCq* cq : {&queues_->send_cq(), &queues_->recv_cq()}) cq->remove_qp(qp_num());
  loop_.run([this] { loop_.remove(*queues_); });
  for (SoftCq* cq : {&queues_->send_cq(), &queues_->recv_cq()}) cq->forget(qp_num());
  loop_.core().async().forget(*this);
}

Status SoftQp::post_send(const SendWr& wr) {
  const auto op = send_op(wr.opcode);
  if (!op) return Error{EINVAL, "iWARP in user space has no counterpart of this opcode"};
  if (Status status = check_send(wr, queues_->attr().cap); !status) return status;
  // With polled progress the Stream takes the request at once. The connection is alive: a connection that dies puts the
  // queues into error.
  Status status = queues_->post_send(
      wr, *op, [this](const rdmap::SendWr& request) { return loop_.find(queues_->connection())->post_send(request); });
  if (!status) return status;
  // The lock is released first: the woken thread takes it at once.
  if (loop_.core().threaded()) loop_.attend(*queues_);
  if (wr.opcode == WrOpcode::kBindMw) static_cast<SoftMw*>(wr.bind_mw.mw)->set_rkey(wr.bind_mw.rkey);
  return {};
}

Status SoftQp::modify(QpState state) {
  if (state != QpState::kErr)
    return Error{EINVAL, "the connection manager makes all changes of state but that to kErr"};
  loop_.run([this] {
    if (Connection* connection = loop_.find(queues_->connection()))
      connection->cut("the queue pair was put into error");
    queues_->fail();
  });
  return {};
}

QpCounters SoftQp::counters() const {
  return loop_.call([this] {
    const Connection* connection = loop_.find(queues_->connection());
    const rdmap::StreamCounters* live = connection != nullptr ? connection->counters() : nullptr;
    return live != nullptr ? to_api(*live) : queues_->final_counters();
  });
}

std::size_t SoftQp::num_unsent() const {
  return loop_.call([this] {
    const Connection* connection = loop_.find(queues_->connection());
    return connection != nullptr ? soft::num_unsent(connection->fd()) : 0;
  });
}

}  // namespace weft::verbs::soft
