#include "verbs-shim/api/verbs.h"

#include <cerrno>

namespace weft::verbs {

Result<std::unique_ptr<Mw>> Pd::alloc_mw() {
  return Error{EOPNOTSUPP, "this device has no memory windows of type 2"};
}

Result<std::unique_ptr<Srq>> Pd::create_srq(const SrqAttr& /*attr*/) {
  return Error{EOPNOTSUPP, "this device has no shared receive queues"};
}

Result<QpAttr> Qp::query() const {
  return Error{EOPNOTSUPP, "this device cannot be asked about a queue pair"};
}

Status Qp::modify(QpState /*state*/) {
  return Error{EOPNOTSUPP, "this device cannot modify a queue pair"};
}

DeviceAttr Device::query() const {
  return {};
}

std::optional<AsyncEvent> Device::get_async_event() {
  return std::nullopt;
}

int Device::async_fd() {
  return -1;
}

const char* async_event_str(AsyncEventType type) {
  switch (type) {
    case AsyncEventType::kCqErr: return "CQ error";
    case AsyncEventType::kQpFatal: return "local work queue catastrophic error";
    case AsyncEventType::kQpReqErr: return "invalid request local work queue error";
    case AsyncEventType::kQpAccessErr: return "local access violation work queue error";
    case AsyncEventType::kCommEst: return "communication established";
    case AsyncEventType::kQpLastWqeReached: return "last WQE reached";
    case AsyncEventType::kSrqErr: return "SRQ catastrophic error";
    case AsyncEventType::kSrqLimitReached: return "SRQ limit reached";
    case AsyncEventType::kPortActive: return "port active";
    case AsyncEventType::kPortErr: return "port error";
    case AsyncEventType::kDeviceFatal: return "local catastrophic error";
  }
  return "unknown event";
}

const char* transport_str(Transport transport) {
  switch (transport) {
    case Transport::kIwarp: return "iWARP";
    case Transport::kInfiniBand: return "InfiniBand";
    case Transport::kRoce: return "RoCE";
    case Transport::kOther: return "other";
  }
  return "unknown";
}

}  // namespace weft::verbs
