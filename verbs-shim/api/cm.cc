#include "verbs-shim/api/cm.h"

namespace weft::verbs {

const char* cm_event_str(CmEventType type) {
  switch (type) {
    case CmEventType::kAddrResolved: return "address resolved";
    case CmEventType::kAddrError: return "address error";
    case CmEventType::kRouteResolved: return "route resolved";
    case CmEventType::kRouteError: return "route error";
    case CmEventType::kConnectRequest: return "connect request";
    case CmEventType::kConnectError: return "connect error";
    case CmEventType::kUnreachable: return "unreachable";
    case CmEventType::kRejected: return "rejected";
    case CmEventType::kEstablished: return "established";
    case CmEventType::kDisconnected: return "disconnected";
    case CmEventType::kDeviceRemoval: return "device removal";
  }
  return "unknown";
}

}  // namespace weft::verbs
