#include "verbs-shim/soft/device.h"

#include <netinet/in.h>

#include <cerrno>
#include <limits>

#include "mpa/peer_profile.h"
#include "verbs-shim/soft/cm.h"
#include "verbs-shim/soft/pd.h"
#include "verbs-shim/soft/qp.h"
#include "verbs-shim/soft/socket.h"
#include "verbs-shim/soft/soft_device.h"
#include "verbs-shim/soft/srq.h"

// The factory, and what makes the other objects: arguments are checked here.
namespace weft::verbs {
namespace {

constexpr std::uint32_t kMaxWorkers = 256;

Status check_config(const SoftConfig& config) {
  if (config.mpa_revision > 2) return Error{EINVAL, "MPA revisions are 0, 1 and 2"};
  const mpa::PeerProfile* peer = mpa::find_peer_profile(config.peer);
  if (peer == nullptr) return Error{EINVAL, "no peer profile is called " + config.peer};
  if (config.markers && !peer->stands_markers) return Error{EINVAL, config.peer + " rejects who asks for Markers"};
  if (config.rtr > Rtr::kNone && config.mpa_revision < mpa::kEnhancedRevision) {
    return Error{EINVAL, "an RTR indication is agreed on at MPA revision 2 only"};
  }
  if (config.num_workers > kMaxWorkers) return Error{EINVAL, "at most 256 workers"};
  if (config.max_silent == 0) return Error{EINVAL, "max_silent 0 would let nobody connect"};
  if (config.max_qp_wr == 0 || config.max_sge == 0 || config.max_cqe == 0) {
    return Error{EINVAL, "limits of queues start at 1"};
  }
  if (config.max_mrs > soft::RegionTable::kMaxRegions) return Error{EINVAL, "STags would not suffice for max_mrs"};
  const SoftConfig::PortMap& port_map = config.port_map;
  if (port_map.port == 0 || port_map.tries == 0 || port_map.answers_per_second == 0 || port_map.interval.count() <= 0) {
    return Error{EINVAL, "port, tries, interval and rate of the port mapper start at 1"};
  }
  // A socket that takes the options now will do so later.
  auto probe = soft::open_socket(AF_INET, config);
  if (!probe && probe.error().errno_value == EAFNOSUPPORT) probe = soft::open_socket(AF_INET6, config);
  if (!probe) return probe.error();
  return {};
}

}  // namespace

Result<std::unique_ptr<Device>> open_soft_device(const SoftConfig& config) {
  if (Status status = check_config(config); !status) return status.error();
  auto device = std::make_unique<soft::SoftDevice>(config);
  if (Status status = device->open(); !status) return status.error();
  return std::unique_ptr<Device>(std::move(device));
}

void unplug(Device& device) {
  static_cast<soft::SoftDevice&>(device).unplug();
}

namespace soft {

Result<std::unique_ptr<Pd>> SoftDevice::alloc_pd() {
  return std::unique_ptr<Pd>(std::make_unique<SoftPd>(*this, next_number()));
}

Result<std::unique_ptr<CompChannel>> SoftDevice::create_comp_channel() {
  return std::unique_ptr<CompChannel>(std::make_unique<SoftCompChannel>(*this));
}

Result<std::unique_ptr<CmChannel>> SoftDevice::create_event_channel() {
  return std::unique_ptr<CmChannel>(std::make_unique<SoftCmChannel>(*this));
}

Result<std::unique_ptr<Cq>> SoftDevice::create_cq(int cqe, CompChannel* channel) {
  if (cqe <= 0 || static_cast<std::uint32_t>(cqe) > config_.max_cqe) {
    return Error{EINVAL, "a completion queue holds 1 to " + std::to_string(config_.max_cqe) + " completions"};
  }
  return std::unique_ptr<Cq>(
      std::make_unique<SoftCq>(*this, static_cast<std::size_t>(cqe), static_cast<SoftCompChannel*>(channel)));
}

Result<std::unique_ptr<Qp>> SoftDevice::create_qp(SoftCmId& id, Loop& loop, Pd& pd, const QpInitAttr& attr) {
  if (gone()) return Error{ENODEV, "the device was removed"};
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr)
    return Error{EINVAL, "a queue pair needs two completion queues"};
  QpInitAttr granted = attr;
  QpCap& cap = granted.cap;
  const auto* srq = static_cast<const SoftSrq*>(attr.srq);
  if (srq != nullptr) cap.max_recv_wr = cap.max_recv_sge = 0;
  if (cap.max_send_wr > config_.max_qp_wr || cap.max_recv_wr > config_.max_qp_wr) {
    return Error{EINVAL, "more work requests than max_qp_wr, " + std::to_string(config_.max_qp_wr)};
  }
  if (cap.max_send_sge > config_.max_sge || cap.max_recv_sge > config_.max_sge) {
    return Error{EINVAL, "more scatter/gather elements than max_sge, " + std::to_string(config_.max_sge)};
  }
  if (cap.max_inline_data > config_.max_inline_data) {
    return Error{EINVAL, "more inline data than max_inline_data, " + std::to_string(config_.max_inline_data)};
  }
  auto& send_cq = static_cast<SoftCq&>(*attr.send_cq);
  auto& recv_cq = static_cast<SoftCq&>(*attr.recv_cq);
  if (&send_cq.device() != this || &recv_cq.device() != this) {
    return Error{EINVAL, "a completion queue of another device"};  // SEC-7.1-01
  }
  const std::uint32_t pd_number = static_cast<SoftPd&>(pd).number();
  if (srq != nullptr && (&srq->device() != this || srq->pd() != pd_number)) {
    return Error{EINVAL, "a shared receive queue of another protection domain"};
  }
  auto qp = std::make_unique<SoftQp>(id, loop, pd_number, next_number(), granted);
  if (!send_cq.charge(*qp, cap.max_send_wr) ||
      !(srq != nullptr ? recv_cq.charge(*qp, *srq) : recv_cq.charge(*qp, cap.max_recv_wr))) {
    return Error{ENOMEM,
                 "the completion queue has no room for all that the queue pair may leave in it: make it longer, "
                 "or the queues shorter"};  // SEC-6.4.3.2-01
  }
  return std::unique_ptr<Qp>(std::move(qp));
}

}  // namespace soft
}  // namespace weft::verbs
