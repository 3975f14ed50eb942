#include "rpcrdma/message_resources.h"

#include <algorithm>
#include <utility>

#include "rpcrdma/receive_plan.h"
#include "rpcrdma/reverse.h"

namespace weft::rpcrdma {

verbs::Status MessageResources::open(verbs::Device& device, verbs::Pd& pd, verbs::CompChannel& events,
                                     const ServerConfig& config) {
  const verbs::Caps& caps = device.caps();
  const std::uint32_t most = config.credits + kExtraReceives;
  shape.num_receives = shape.num_sends = most;
  reverse_credits = config.reverse_credits;
  idle_credits = config.min_credits != 0 ? config.min_credits : config.credits;
  std::size_t num = config.max_connections * (most + config.reverse_credits);
  if (shares_receives(config, caps)) {
    const auto plan = ReceivePlan::make(config, caps);
    if (!plan.ok()) return plan.error();
    receive_shape = plan->pool;
    if (auto status = share_receives(device, pd, events); !status.ok()) return status;
    shape.num_receives = idle_credits = plan->idle_credits;
    num = receive_shape.shares.max_receives;
  }
  ReverseRequester::widen(shape, config.reverse_credits);
  shape.max_send_wr = std::min(shape.max_send_wr, caps.max_qp_wr);
  // As many Send buffers as there can be Calls, so that no answer waits for a buffer.
  num = std::min<std::size_t>(num, UINT32_MAX);
  sends = std::make_unique<MessagePool>(pd, shape.send_len, static_cast<std::uint32_t>(num));
  shape.sends = sends.get();
  return {};
}

verbs::Status MessageResources::share_receives(verbs::Device& device, verbs::Pd& pd, verbs::CompChannel& events) {
  auto pool = ReceivePool::create(pd, receive_shape);
  if (!pool.ok()) return pool.error();
  auto cq = device.create_cq(static_cast<int>(receive_shape.shares.max_receives), &events);
  if (!cq.ok()) return cq.error();
  receives = std::make_shared<SharedReceives>(SharedReceives{std::move(*pool), std::move(*cq)});
  return {};
}

verbs::Status MessageResources::replace_overrun(verbs::Device& device, verbs::Pd& pd, verbs::CompChannel& events) {
  if (!receives || !receives->overrun) return {};
  return share_receives(device, pd, events);
}

Endpoint::Config MessageResources::next(std::uint32_t serial, std::string address) const {
  Endpoint::Config config = shape;
  config.serial = serial;
  config.address = std::move(address);
  if (receives) config.receives = receives->pool.get();
  return config;
}

void MessageResources::trim() {
  sends->trim();
  if (receives) receives->pool->trim();
}

ServerMemory MessageResources::memory() const {
  ServerMemory memory;
  memory.sends = sends->registered();
  if (!receives) return memory;
  memory.has_shared_receives = true;
  memory.receives = receives->pool->registered();
  memory.promised = receives->pool->shares().reserved();
  return memory;
}

}  // namespace weft::rpcrdma
