#include "verbs-shim/soft/core.h"

#include <algorithm>

namespace weft::verbs::soft {
namespace {

std::vector<std::unique_ptr<Poller>> make_pollers(std::size_t num) {
  std::vector<std::unique_ptr<Poller>> out;
  for (std::size_t i = 0; i < num; ++i) out.push_back(std::make_unique<Poller>());
  return out;
}

}  // namespace

Core::Core(const SoftConfig& config)
    : config_(config),
      peer_(*mpa::find_peer_profile(config.peer)),
      // open_trace makes all of them.
      trace_(std::static_pointer_cast<TraceFile>(config.trace)),
      regions_(config.max_mrs, threaded()),
      pollers_(make_pollers(std::max<std::size_t>(config.num_workers, 1))),
      async_(threaded(), doorbell()) {}

Status Core::open() {
  if (threaded()) {
    if (Status status = bell_.open(); !status) return status;
  }
  for (const auto& poller : pollers_) {
    if (Status status = poller->open(); !status) return status;
  }
  return {};
}

bool Core::claim_srq() {
  if (num_srqs_.fetch_add(1) < config_.max_srq) return true;
  release_srq();
  return false;
}

}  // namespace weft::verbs::soft
