#include "verbs-shim/soft/fleet.h"

namespace weft::verbs::soft {
namespace {

std::vector<std::unique_ptr<Loop>> make_loops(Core& core) {
  std::vector<std::unique_ptr<Loop>> out;
  for (std::size_t i = 0; i < core.num_loops(); ++i) out.push_back(std::make_unique<Loop>(core, i));
  return out;
}

}  // namespace

Fleet::Fleet(Core& core) : core_(core), loops_(make_loops(core)), port_map_answers_(front()) {}

Status Fleet::open() {
  if (!core_.threaded()) return {};
  for (const auto& loop : loops_) {
    if (Status status = workers_.emplace_back(std::make_unique<Worker>(*loop))->start(); !status) return status;
  }
  return {};
}

void Fleet::remove(ddp::Stag stag) {
  core_.regions().remove(stag);
  for (const auto& loop : loops_) loop->mailbox().wait_for_turn();
}

void Fleet::unplug() {
  for (const auto& loop : loops_) loop->run([&loop] { loop->unplug(); });
  front().run([this] { port_map_answers_.clear(); });
  for (const auto& loop : loops_) loop->run([&loop] { loop->tell_removal(); });
}

}  // namespace weft::verbs::soft
