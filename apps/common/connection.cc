#include "apps/common/connection.h"

#include <chrono>
#include <utility>

#include "apps/common/address.h"
#include "apps/common/command.h"
#include "base/address.h"
#include "verbs-shim/api/explain.h"

namespace weft::apps {
namespace {

constexpr std::chrono::milliseconds kResolveTimeout{5000};

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::open(verbs::Device& device, verbs::Pd& pd,
                                                             const sockaddr_storage& dst, const verbs::QpCap& cap,
                                                             Progress& progress) {
  std::unique_ptr<Connection> self(new Connection());
  self->dst_ = dst;
  if (absl::Status status = self->create(device); !status.ok()) return status;

  auto cq = device.create_cq(int(cap.max_send_wr + cap.max_recv_wr), nullptr);
  if (!cq.ok()) return to_status(cq.error(), "cannot create a completion queue");
  self->cq_ = std::move(cq.value());

  if (auto status = self->id_->resolve_addr(dst, kResolveTimeout); !status.ok()) {
    return self->failed(status.error().message);
  }
  if (auto status = self->wait_for(verbs::CmEventType::kAddrResolved, progress); !status.ok()) return status;
  if (auto status = self->id_->resolve_route(kResolveTimeout); !status.ok()) {
    return self->failed(status.error().message);
  }
  if (auto status = self->wait_for(verbs::CmEventType::kRouteResolved, progress); !status.ok()) return status;

  verbs::QpInitAttr attr;
  attr.send_cq = attr.recv_cq = self->cq_.get();
  attr.cap = cap;
  auto qp = self->id_->create_qp(pd, attr);
  if (!qp.ok()) return to_status(qp.error(), "cannot create a queue pair");
  self->qp_ = std::move(qp.value());
  return self;
}

Connection::~Connection() = default;

absl::Status Connection::create(verbs::Device& device) {
  device_ = &device;
  auto channel = device.create_event_channel();
  if (!channel.ok()) return to_status(channel.error(), "cannot create an event channel");
  channel_ = std::move(channel.value());
  auto id = channel_->create_id();
  if (!id.ok()) return to_status(id.error(), "cannot create a connection identifier");
  id_ = std::move(id.value());
  return absl::OkStatus();
}

absl::Status Connection::connect(const verbs::ConnParam& param, Progress& progress) {
  if (auto status = id_->connect(param); !status.ok()) return failed(status.error().message);
  return wait_for(verbs::CmEventType::kEstablished, progress);
}

absl::Status Connection::wait_for(verbs::CmEventType wanted, Progress& progress) {
  while (!progress.stop_requested()) {
    progress.turn(*device_);
    std::optional<verbs::CmEvent> event = channel_->get_event();
    if (!event) continue;
    peer_param_ = std::move(event->param);
    if (event->type == wanted) return absl::OkStatus();
    return failed(event->text.empty() ? verbs::cm_event_str(event->type) : event->text);
  }
  return absl::CancelledError("interrupted while connecting to " + address_str(dst_));
}

const std::optional<std::string>& Connection::ended() {
  if (ended_) return ended_;
  while (std::optional<verbs::CmEvent> event = channel_->get_event()) {
    if (event->type == verbs::CmEventType::kEstablished) continue;
    ended_ = event->text.empty() ? verbs::cm_event_str(event->type) : event->text;
  }
  return ended_;
}

std::string Connection::why(const verbs::Wc& wc, Progress& progress) {
  const TimePoint until = std::chrono::steady_clock::now() + kLastWords;
  while (!ended() && !progress.stop_requested() && std::chrono::steady_clock::now() < until) {
    progress.turn(*device_, until);
  }
  return verbs::explain(wc, ended_ ? std::string_view(*ended_) : std::string_view());
}

void Connection::disconnect(std::chrono::milliseconds patience) {
  if (ended() || !id_->disconnect().ok()) return;
  device_->set_busy_polling(false);
  // A stop signal that has come would end every sleep at once.
  Progress progress(ProgressMode::kBlock, nullptr);
  TimePoint until = std::chrono::steady_clock::now() + patience;
  while (!ended() && std::chrono::steady_clock::now() < until) progress.turn(*device_, until);
}

absl::Status Connection::failed(const std::string& why) const {
  return absl::UnavailableError("cannot connect to " + address_str(dst_) + ": " + why);
}

absl::StatusOr<std::unique_ptr<verbs::Pd>> alloc_pd(verbs::Device& device) {
  auto pd = device.alloc_pd();
  if (!pd.ok()) return to_status(pd.error(), "cannot allocate a protection domain");
  return std::move(pd.value());
}

absl::StatusOr<std::unique_ptr<verbs::Mr>> reg_mr(verbs::Pd& pd, void* addr, std::size_t length, verbs::Access access) {
  auto mr = pd.reg_mr(addr, length, access);
  if (!mr.ok()) return to_status(mr.error(), "cannot register memory");
  return std::move(mr.value());
}

}  // namespace weft::apps
