#include "rpcrdma/completion_queues.h"

#include <algorithm>
#include <cerrno>

namespace weft::rpcrdma {

namespace {

// Size of the first queue, in completions. Each further queue is twice as large as the one before: a turn looks at all
// of them.
constexpr std::uint32_t kFirstCqe = 16384;

}  // namespace

verbs::Result<CompletionQueues::Share> CompletionQueues::take(std::uint32_t need) {
  std::erase_if(queues_, [](const auto& queue) { return queue->overrun && queue->room == queue->size; });
  for (auto& queue : queues_) {
    if (queue->room >= need && !queue->overrun) return Share(*queue, need);
  }
  const std::uint64_t next = queues_.empty() ? kFirstCqe : 2 * std::uint64_t{queues_.back()->size};
  const std::uint32_t most = device_.caps().max_cqe;
  const auto cqe = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max<std::uint64_t>(next, need), most));
  if (cqe < need) return verbs::Error{ENOMEM, "the device's completion queues are too short"};
  auto made = device_.create_cq(static_cast<int>(cqe), &events_);
  if (!made.ok()) return made.error();
  queues_.push_back(std::make_unique<Queue>(Queue{std::move(*made), cqe, cqe}));
  return Share(*queues_.back(), need);
}

}  // namespace weft::rpcrdma
