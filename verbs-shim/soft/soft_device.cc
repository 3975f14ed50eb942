#include "verbs-shim/soft/soft_device.h"

#include <netinet/in.h>

#include <cerrno>
#include <string>
#include <utility>

#include "mpa/peer_profile.h"
#include "mpa/startup.h"
#include "verbs-shim/soft/cm_channel.h"
#include "verbs-shim/soft/comp_channel.h"
#include "verbs-shim/soft/cq.h"
#include "verbs-shim/soft/pd.h"
#include "verbs-shim/soft/socket.h"

namespace weft::verbs {
namespace {

constexpr std::uint32_t kMaxWorkers = 256;

Status check_config(const SoftConfig& config) {
  if (config.mpa_revision > 2) return Error{EINVAL, "MPA revisions are 0, 1 and 2"};
  const mpa::PeerProfile* peer = mpa::find_peer_profile(config.peer);
  if (peer == nullptr) return Error{EINVAL, "no peer profile is called " + config.peer};
  if (config.markers && !peer->stands_markers) return Error{EINVAL, config.peer + " rejects a request for Markers"};
  if (config.rtr > Rtr::kNone && config.mpa_revision < mpa::kEnhancedRevision) {
    return Error{EINVAL, "an RTR indication is agreed on at MPA revision 2 only"};
  }
  if (config.num_workers > kMaxWorkers) return Error{EINVAL, "at most 256 workers"};
  if (config.max_silent == 0) return Error{EINVAL, "with max_silent 0 no peer could connect"};
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

}  // namespace

SoftDevice::SoftDevice(const SoftConfig& config) : core_(config), caps_(caps_of(config, core_.peer())), fleet_(core_) {}

Status SoftDevice::open() {
  Status status = core_.open();
  return status ? fleet_.open() : status;
}

Result<std::unique_ptr<Pd>> SoftDevice::alloc_pd() {
  return std::unique_ptr<Pd>(std::make_unique<SoftPd>(fleet_));
}

Result<std::unique_ptr<CompChannel>> SoftDevice::create_comp_channel() {
  return std::unique_ptr<CompChannel>(std::make_unique<SoftCompChannel>(core_));
}

Result<std::unique_ptr<CmChannel>> SoftDevice::create_event_channel() {
  return std::unique_ptr<CmChannel>(std::make_unique<SoftCmChannel>(fleet_));
}

Result<std::unique_ptr<Cq>> SoftDevice::create_cq(int cqe, CompChannel* channel) {
  if (cqe <= 0 || static_cast<std::uint32_t>(cqe) > core_.config().max_cqe) {
    return Error{EINVAL, "a completion queue holds 1 to " + std::to_string(core_.config().max_cqe) + " completions"};
  }
  return std::unique_ptr<Cq>(
      std::make_unique<SoftCq>(core_, static_cast<std::size_t>(cqe), static_cast<SoftCompChannel*>(channel)));
}

std::size_t SoftDevice::process(TimePoint now) {
  if (core_.threaded()) return core_.bell().take_completed() ? 1 : 0;
  return fleet_.front().process(now);
}

std::optional<TimePoint> SoftDevice::next_timeout() const {
  return core_.threaded() ? std::nullopt : fleet_.front().next_timeout();
}

int SoftDevice::fd() const {
  return core_.threaded() ? core_.bell().fd() : core_.poller(0).fd();
}

void SoftDevice::set_busy_polling(bool on) {
  if (core_.threaded()) return core_.bell().set_busy(on);
  core_.poller(0).set_busy(on);
}

DeviceAttr SoftDevice::query() const {
  DeviceAttr attr;
  attr.name = "soft";
  attr.transport = Transport::kIwarp;
  attr.port_active = !core_.gone();
  attr.terminates = core_.terminates().read();
  return attr;
}

void SoftDevice::unplug() {
  if (!core_.leave()) return;
  fleet_.unplug();
  core_.async().push({.type = AsyncEventType::kDeviceFatal, .text = "the device was removed"});
}

}  // namespace soft
}  // namespace weft::verbs
