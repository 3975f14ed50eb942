#include "verbs-shim/api/types.h"

#include <iterator>

namespace weft::verbs {

namespace {

constexpr std::uint64_t QpCounters::*kCounters[] = {
    &QpCounters::sends_tx,      &QpCounters::sends_rx,      &QpCounters::send_octets_tx,  &QpCounters::send_octets_rx,
    &QpCounters::writes_tx,     &QpCounters::writes_rx,     &QpCounters::write_octets_tx, &QpCounters::write_octets_rx,
    &QpCounters::reads_tx,      &QpCounters::reads_rx,      &QpCounters::read_octets_tx,  &QpCounters::read_octets_rx,
    &QpCounters::immediates_tx, &QpCounters::immediates_rx, &QpCounters::atomics_tx,      &QpCounters::atomics_rx,
};
static_assert(sizeof(QpCounters) == std::size(kCounters) * sizeof(std::uint64_t), "a field is missing from kCounters");

}  // namespace

QpCounters& QpCounters::operator+=(const QpCounters& one) {
  for (const auto counter : kCounters) this->*counter += one.*counter;
  return *this;
}

const char* wc_status_str(WcStatus status) {
  switch (status) {
    case WcStatus::kSuccess: return "success";
    case WcStatus::kLocLenErr: return "local length error";
    case WcStatus::kLocQpOpErr: return "local QP operation error";
    case WcStatus::kLocProtErr: return "local protection error";
    case WcStatus::kWrFlushErr: return "Work Request Flushed Error";
    case WcStatus::kMwBindErr: return "memory management operation error";
    case WcStatus::kBadRespErr: return "bad response error";
    case WcStatus::kLocAccessErr: return "local access error";
    case WcStatus::kRemInvReqErr: return "remote invalid request error";
    case WcStatus::kRemAccessErr: return "remote access error";
    case WcStatus::kRemOpErr: return "remote operation error";
    case WcStatus::kFatalErr: return "fatal error";
    case WcStatus::kGeneralErr: return "general error";
    case WcStatus::kRetryExcErr: return "transport retry counter exceeded";
    case WcStatus::kRnrRetryExcErr: return "RNR retry counter exceeded";
  }
  return "unknown";
}

}  // namespace weft::verbs
