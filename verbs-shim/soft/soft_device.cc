#include "verbs-shim/soft/soft_device.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "mpa/startup.h"
#include "verbs-shim/soft/cm.h"

namespace weft::verbs::soft {
namespace {

Caps caps_of(const SoftConfig& config, const mpa::PeerProfile& peer) {
  Caps caps;
  caps.mem_windows_type2 = true;
  caps.remote_invalidation = true;
  caps.imm_data = config.rfc7306;
  caps.own_progress = config.num_workers > 0;
  caps.atomics = config.rfc7306;
  caps.max_qp_wr = config.max_qp_wr;
  caps.max_sge = config.max_sge;
  caps.max_sge_rd = config.max_sge;
  caps.max_inline_data = config.max_inline_data;
  caps.max_cqe = config.max_cqe;
  caps.max_qp_rd_atom = config.ird;
  caps.max_qp_init_rd_atom = config.ord;
  caps.max_srq = config.max_srq;
  caps.max_srq_wr = config.max_srq_wr;
  caps.max_srq_sge = config.max_srq_sge;
  caps.srq_reserve = config.num_workers == 0;  // workers take turns at the same time
  caps.max_private_data = static_cast<std::uint32_t>(mpa::max_private_data(config.mpa_revision, peer.max_pd_length));
  return caps;
}

Loop::Limits share(const SoftConfig& config, std::size_t num_loops) {
  const auto part = [&](std::size_t whole) { return whole == 0 ? 0 : std::max<std::size_t>(whole / num_loops, 1); };
  return {.max_silent = part(config.max_silent),
          .max_lingering = part(config.max_lingering),
          .max_parked = part(config.max_parked)};
}

}  // namespace

SoftDevice::SoftDevice(const SoftConfig& config)
    : config_(config),
      peer_(*mpa::find_peer_profile(config.peer)),
      caps_(caps_of(config, peer_)),
      regions_(config.max_mrs, threaded()),
      ids_mutex_(threaded()) {
  const std::size_t num_loops = std::max<std::size_t>(config.num_workers, 1);
  for (std::size_t i = 0; i < num_loops; ++i) {
    loops_.push_back(std::make_unique<Loop>(*this, i, share(config, num_loops)));
  }
  async_ = std::make_unique<AsyncQueue>(*this);
  port_map_answers_ = std::make_unique<PortMapAnswers>(*loops_.front());
}

SoftDevice::~SoftDevice() {
  workers_.clear();
  for (const auto& loop : loops_) loop->set_worker(nullptr);
}

Status SoftDevice::open() {
  if (threaded()) {
    if (Status status = bell_->open(); !status) return status;
  }
  for (const auto& loop : loops_) {
    if (Status status = loop->open(); !status) return status;
    if (!threaded()) continue;
    auto& worker = workers_.emplace_back(std::make_unique<Worker>(*loop));
    loop->set_worker(worker.get());
    if (Status status = worker->start(); !status) return status;
  }
  return {};
}

std::size_t SoftDevice::process(TimePoint now) {
  if (threaded()) return bell_->take_completed() ? 1 : 0;
  return loops_.front()->process(now);
}

void SoftDevice::set_busy_polling(bool on) {
  if (threaded()) return bell_->set_busy(on);
  loops_.front()->poller().set_busy(on);
}

std::optional<TimePoint> SoftDevice::next_timeout() const {
  if (threaded()) return std::nullopt;
  return loops_.front()->next_timeout();
}

DeviceAttr SoftDevice::query() const {
  DeviceAttr attr;
  attr.name = "soft";
  attr.transport = Transport::kIwarp;
  attr.port_active = !gone_;
  return attr;
}

bool SoftDevice::claim_srq() {
  if (num_srqs_.fetch_add(1) < config_.max_srq) return true;
  release_srq();
  return false;
}

void SoftDevice::add_id(SoftCmId& id) {
  const std::scoped_lock lock(ids_mutex_);
  ids_.insert(&id);
}

void SoftDevice::remove_id(SoftCmId& id) {
  const std::scoped_lock lock(ids_mutex_);
  ids_.erase(&id);
}

void SoftDevice::unplug() {
  if (gone_.exchange(true)) return;
  for (const auto& loop : loops_) loop->run([&loop] { loop->unplug(); });
  loops_.front()->run([this] { port_map_answers_->clear(); });
  {
    // An id that goes meanwhile waits for its loop, behind this.
    const std::scoped_lock lock(ids_mutex_);
    for (SoftCmId* id : ids_) id->loop().post([id] { id->device_gone(); });
  }
  for (const auto& loop : loops_) loop->run([] {});
  AsyncEvent event;
  event.type = AsyncEventType::kDeviceFatal;
  event.text = "the device was removed";
  async_->push(std::move(event));
}

void SoftDevice::remove(ddp::Stag stag) {
  regions_.remove(stag);
  for (const auto& worker : workers_) worker->wait_for_turn();
}

}  // namespace weft::verbs::soft
