#include "rpcrdma/call.h"

#include <algorithm>

namespace weft::rpcrdma {

const char* call_status_str(CallStatus status) {
  switch (status) {
    case CallStatus::kSuccess: return "SUCCESS";
    case CallStatus::kProgUnavail: return "PROG_UNAVAIL";
    case CallStatus::kProgMismatch: return "PROG_MISMATCH";
    case CallStatus::kProcUnavail: return "PROC_UNAVAIL";
    case CallStatus::kGarbageArgs: return "GARBAGE_ARGS";
    case CallStatus::kSystemErr: return "SYSTEM_ERR";
    case CallStatus::kDenied: return "MSG_DENIED";
    case CallStatus::kVersMismatch: return "version mismatch";
    case CallStatus::kTransportError: return "transport error";
    case CallStatus::kBadReply: return "bad reply";
    case CallStatus::kTimeout: return "timeout";
    case CallStatus::kCancelled: return "cancelled";
    case CallStatus::kDisconnected: return "disconnected";
    case CallStatus::kLocalError: return "local error";
  }
  return "unknown";
}

void ServedReply::add_item(Buffer buffer, std::size_t len) {
  std::size_t position = results.size();
  for (const Slice& slice : more_results) position += slice.octets.size();
  const ConstBytes octets = ConstBytes(buffer.octets()).first(std::min(len, buffer.octets().size()));
  items.push_back({position, next_operation_++, {octets, buffer.lkey()}});
  buffers.push_back(std::move(buffer));
}

}  // namespace weft::rpcrdma
