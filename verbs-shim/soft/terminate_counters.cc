#include "verbs-shim/soft/terminate_counters.h"

#include <algorithm>

#include "rdmap/terminate.h"

namespace weft::verbs::soft {
namespace {

constexpr std::uint8_t kNoLayer = 255;

std::size_t row_of(const rdmap::Terminate& terminate) {
  const auto rows = rdmap::terminate_rows();
  const auto at = std::ranges::find_if(rows, [&](const rdmap::TerminateRow& row) {
    return row.layer == terminate.layer && row.etype == terminate.etype && (row.any_code || row.code == terminate.code);
  });
  return static_cast<std::size_t>(at - rows.begin());
}

TerminateCount entry(std::size_t index) {
  if (index == rdmap::terminate_rows().size()) return {.layer = kNoLayer, .meaning = "unregistered"};
  const rdmap::TerminateRow& row = rdmap::terminate_rows()[index];
  return {.layer = static_cast<std::uint8_t>(row.layer),
          .etype = row.etype,
          .code = row.code,
          .meaning = std::string(row.meaning)};
}

}  // namespace

TerminateCounters::TerminateCounters() : pairs_(rdmap::terminate_rows().size() + 1) {}

void TerminateCounters::count(const rdmap::Closed& closed) {
  if (!closed.terminate) return;
  Pair& pair = pairs_[row_of(*closed.terminate)];
  if (closed.reason == rdmap::CloseReason::kTerminateSent) ++pair.sent;
  if (closed.reason == rdmap::CloseReason::kTerminateReceived) ++pair.received;
}

std::vector<TerminateCount> TerminateCounters::read() const {
  std::vector<TerminateCount> out;
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    TerminateCount one = entry(i);
    one.sent = pairs_[i].sent;
    one.received = pairs_[i].received;
    if (one.sent != 0 || one.received != 0) out.push_back(std::move(one));
  }
  return out;
}

}  // namespace weft::verbs::soft
