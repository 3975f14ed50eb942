#include "apps/perf/rdma_peer.h"

#include <algorithm>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "apps/common/connection.h"
#include "base/address.h"

namespace weft::apps::perf {
namespace {

// wr_ids of the send queue: the place of an answer, or an echo.
constexpr std::uint64_t kEchoId = ~std::uint64_t{0};
constexpr std::uint32_t kPeerCompletions = 32;
// Each answer covers a quarter of the window, so the client never waits for an answer while it has room.
constexpr std::uint32_t kWindowParts = 4;
constexpr std::uint32_t kMinWindow = 8;

}  // namespace

std::uint64_t RdmaPeer::memory_of(const Hello& hello) {
  return is_rdma(hello.op) ? hello.size : 0;
}

RdmaPeer::RdmaPeer(std::unique_ptr<verbs::CmId> id, const Hello& hello, Region region)
    : name_(address_str(id->peer_addr())),
      hello_(hello),
      window_(hello.op == Op::kSend ? std::max(2 * hello.depth, kMinWindow) : kMinWindow),
      region_(std::move(region)),
      id_(std::move(id)) {}

absl::Status RdmaPeer::accept(verbs::Device& device, Ready ready) {
  if (absl::Status status = prepare(device); !status.ok()) return status;
  ready.window = window_;
  if (region_mr_) {
    ready.addr = reinterpret_cast<std::uintptr_t>(region_.octets().data());
    ready.rkey = region_mr_->rkey();
    ready.length = region_.octets().size();
  }
  verbs::ConnParam param;
  auto octets = emit_ready(ready);
  param.private_data.assign(octets.begin(), octets.end());
  cut_ready(param.private_data, device.caps().max_private_data);
  param.responder_resources = std::uint8_t(std::min<std::uint32_t>(device.caps().max_qp_rd_atom, 255));
  if (auto status = id_->accept(param); !status.ok()) return to_status(status.error(), "cannot accept");
  is_accepted_ = true;
  return absl::OkStatus();
}

absl::Status RdmaPeer::prepare(verbs::Device& device) {
  auto pd = alloc_pd(device);
  if (!pd.ok()) return pd.status();
  pd_ = std::move(*pd);
  using verbs::Access;
  verbs::QpInitAttr attr;
  attr.cap.max_recv_wr = window_ + 1;  // one more for the client's end
  attr.cap.max_send_wr = std::uint32_t(kNumAnswers + 2 * kSignalEvery);
  auto cq = device.create_cq(int(attr.cap.max_recv_wr + attr.cap.max_send_wr), nullptr);
  if (!cq.ok()) return to_status(cq.error(), "cannot create a completion queue");
  cq_ = std::move(cq.value());

  if (!region_.octets().empty()) {
    Access access = hello_.op == Op::kRead    ? Access::kRemoteRead
                    : hello_.op == Op::kWrite ? Access::kLocalWrite | Access::kRemoteWrite
                                              : Access::kLocalWrite;
    auto mr = reg_mr(*pd_, region_.octets().data(), region_.octets().size(), access);
    if (!mr.ok()) return mr.status();
    region_mr_ = std::move(*mr);
  }
  answers_.resize(kNumAnswers * kTotalsLen);
  for (std::size_t i = 0; i < kNumAnswers; ++i) free_answers_.push_back(i);
  auto mr = reg_mr(*pd_, answers_.data(), answers_.size(), Access::kNone);
  if (!mr.ok()) return mr.status();
  answers_mr_ = std::move(*mr);

  attr.send_cq = attr.recv_cq = cq_.get();
  auto qp = id_->create_qp(*pd_, attr);
  if (!qp.ok()) return to_status(qp.error(), "cannot create a queue pair");
  qp_ = std::move(qp.value());
  for (std::uint32_t i = 0; i < attr.cap.max_recv_wr; ++i) {
    if (auto status = post_recv(); !status.ok()) return to_status(status.error(), "cannot post a receive");
  }
  return absl::OkStatus();
}

// All Receives of Sends name the same memory: it stays in the cache, and its content does not matter. The other ops
// receive only the client's end, which is empty.
verbs::Status RdmaPeer::post_recv() {
  verbs::RecvWr wr;
  verbs::Sge sge;
  if (hello_.op == Op::kSend) {
    sge = {reinterpret_cast<std::uintptr_t>(region_.octets().data()), std::uint32_t(region_.octets().size()),
           region_mr_->lkey()};
    wr.sg_list = {&sge, 1};
  }
  return qp_->post_recv(wr);
}

bool RdmaPeer::on_progress() {
  verbs::Wc wc[kPeerCompletions];
  int num = cq_->poll(wc);
  for (int i = 0; i < num; ++i) {
    if (!on_completion(wc[i])) return false;
  }
  has_more_ = num == int(std::size(wc));
  return num >= 0;
}

std::chrono::steady_clock::duration RdmaPeer::silent_for(TimePoint now) {
  if (!is_accepted_) return {};
  // The client's RDMA Writes and Reads end in no completion here.
  const verbs::QpCounters counters = qp_->counters();
  const std::uint64_t moved =
      counters.sends_rx + counters.sends_tx + counters.write_octets_rx + counters.read_octets_tx + totals_.messages;
  if (!moved_at_ || moved != moved_) moved_at_ = now;
  moved_ = moved;
  return now - *moved_at_;
}

bool RdmaPeer::on_completion(const verbs::Wc& wc) {
  if (wc.status != verbs::WcStatus::kSuccess) return false;
  if (wc.opcode == verbs::WcOpcode::kRecv) return on_message(wc.byte_len);
  if (wc.wr_id != kEchoId) free_answers_.push_back(wc.wr_id);
  return true;
}

bool RdmaPeer::on_message(std::uint32_t len) {
  if (!post_recv().ok()) return false;
  if (len == 0) return answer(true);
  ++totals_.messages;
  totals_.octets += len;
  if (hello_.lat) return echo(len);
  if (++unanswered_ < window_ / kWindowParts) return true;
  unanswered_ = 0;
  return answer(false);
}

bool RdmaPeer::echo(std::uint32_t len) {
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(region_.octets().data()), len, region_mr_->lkey()};
  verbs::SendWr wr;
  wr.wr_id = kEchoId;
  wr.sg_list = {&sge, 1};
  if (totals_.messages % kSignalEvery != 0) wr.send_flags = verbs::SendFlags::kNone;
  return qp_->post_send(wr).ok();
}

bool RdmaPeer::answer(bool final) {
  // A client that keeps to its window leaves a place free; any other client is sent away.
  if (free_answers_.empty()) return false;
  std::size_t place = free_answers_.back();
  free_answers_.pop_back();
  totals_.final = final;
  auto octets = emit_totals(totals_);
  std::uint8_t* at = answers_.data() + place * kTotalsLen;
  std::copy(octets.begin(), octets.end(), at);
  verbs::Sge sge{reinterpret_cast<std::uintptr_t>(at), kTotalsLen, answers_mr_->lkey()};
  verbs::SendWr wr;
  wr.wr_id = place;
  wr.sg_list = {&sge, 1};
  return qp_->post_send(wr).ok();
}

}  // namespace weft::apps::perf
