#include "rpcrdma/message_resources.h"

#include <algorithm>
#include <utility>

#include "rpcrdma/reverse.h"

namespace weft::rpcrdma {

namespace {

// Receives for peers that send more than their grant, until the overrun is noticed.
constexpr std::size_t kSlackOctets = 1 << 20;
constexpr std::size_t kMinSlack = 4;
// Receives that are posted for all connections together if not all reserved Receives need to be posted. So many that a
// turn of the device seldom ends because they run out.
constexpr std::size_t kPostedOctets = 256 << 10;
constexpr std::size_t kMaxSlack = 32;

}  // namespace

verbs::Status MessageResources::open(verbs::Device& device, verbs::Pd& pd, verbs::CompChannel& events,
                                     const ServerConfig& config) {
  const verbs::Caps& caps = device.caps();
  const std::size_t len = config.inline_threshold;
  const std::uint32_t most = config.credits + kExtraReceives;
  shape.num_receives = shape.num_sends = most;
  reverse_credits = config.reverse_credits;
  idle_credits = config.min_credits != 0 ? config.min_credits : config.credits;
  std::size_t num = config.max_connections * (most + config.reverse_credits);
  if (caps.max_srq != 0 && config.max_shared_receives != 0) {
    if (config.min_credits == 0) {
      idle_credits =
          std::min(config.credits, static_cast<std::uint32_t>(std::max<std::size_t>(kIdleReceives / len, 1)));
    }
    // The most Receives that one connection takes in a turn (R1-4.3.1-09).
    const std::size_t reserve = caps.srq_reserve ? most + config.reverse_credits : 0;
    const std::size_t slack = std::max(std::clamp(kSlackOctets / len, kMinSlack, kMaxSlack), reserve);
    num = config.max_connections * (idle_credits + config.reverse_credits) + config.max_shared_receives / len + slack;
    // Besides its share a peer may fill kExtraReceives, and may have begun to fill one more.
    if (caps.srq_reserve) num += config.max_connections * (kExtraReceives + 1);
    num = std::min<std::size_t>({num, caps.max_srq_wr, caps.max_cqe});
    // Clients that were busy keep their grant until their next Call. The limit keeps Receives for other clients.
    const std::size_t max_grown = std::min(config.max_shared_receives / len, num / 2);
    const std::uint32_t max_posted =
        caps.srq_reserve ? static_cast<std::uint32_t>(std::max<std::size_t>(kPostedOctets / len, 1)) : UINT32_MAX;
    receive_shape = {.receive_len = len,
                     .shares = {.max_receives = static_cast<std::uint32_t>(num),
                                .slack = static_cast<std::uint32_t>(slack),
                                .max_grown = static_cast<std::uint32_t>(max_grown),
                                .max_posted = max_posted},
                     .reserve = static_cast<std::uint32_t>(reserve)};
    if (auto status = share_receives(device, pd, events); !status.ok()) return status;
    shape.num_receives = idle_credits;
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

Endpoint::Config MessageResources::next(std::uint32_t serial) const {
  Endpoint::Config config = shape;
  config.serial = serial;
  if (receives) {
    config.receives = receives->pool.get();
    // A connection gets few Receives rather than none.
    const ReceiveShares& shares = receives->pool->shares();
    const std::uint32_t left = shares.max_reserved() - shares.reserved();
    config.num_receives = std::min(config.num_receives, std::max(left, reverse_credits + 1));
  }
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
