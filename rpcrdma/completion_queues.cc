#include "rpcrdma/completion_queues.h"

#include <algorithm>
#include <cerrno>

namespace weft::rpcrdma {

namespace {

// Size of one queue, in completions.
constexpr std::uint32_t kSharedCqe = 16384;

}  // namespace

verbs::Result<CompletionQueues::Share> CompletionQueues::take(std::uint32_t need) {
  std::erase_if(queues_, [](const auto& queue) { return queue->overrun && queue->room == queue->size; });
  for (auto& queue : queues_) {
    if (queue->room >= need && !queue->overrun) return Share(*queue, need);
  }
  const std::uint32_t cqe = std::min(std::max(kSharedCqe, need), device_.caps().max_cqe);
  if (cqe < need) return verbs::Error{ENOMEM, "the device's completion queues are too short"};
  auto made = device_.create_cq(static_cast<int>(cqe), &events_);
  if (!made.ok()) return made.error();
  queues_.push_back(std::make_unique<Queue>(Queue{std::move(*made), cqe, cqe}));
  return Share(*queues_.back(), need);
}

}  // namespace weft::rpcrdma
