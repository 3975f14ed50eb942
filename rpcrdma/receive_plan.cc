#include "rpcrdma/receive_plan.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "rpcrdma/endpoint.h"
#include "rpcrdma/message_credits.h"
#include "rpcrdma/server_limits.h"

namespace weft::rpcrdma {

namespace {

// Receives for peers that send more than their grant, until the overrun is noticed.
constexpr std::size_t kSlackOctets = 1 << 20;
constexpr std::size_t kMinSlack = 4;
constexpr std::size_t kMaxSlack = 32;
// Receives that are posted for all connections together if not all reserved Receives need to be posted. So many that a
// turn of the device seldom ends because they run out.
constexpr std::size_t kPostedOctets = 256 << 10;

// The least first share, in credits. Where credits count messages, two ends need a few to go on.
std::size_t least_credits(const ServerConfig& config) {
  return frames_messages(config) ? MessageCredits::kLeastWindow + 1 : 1;
}

std::size_t wanted_credits(const ServerConfig& config) {
  if (config.min_credits != 0) return config.min_credits;
  const std::size_t num = std::max<std::size_t>(kIdleReceives / config.inline_threshold, least_credits(config));
  return std::min<std::size_t>(config.credits, num);
}

// The Receives of a connection beside its credits: for Replies to the server's own Calls; and if not all reserved
// Receives are posted, those that its peer may fill beyond its share, and one that it may have begun to fill.
std::size_t besides(const ServerConfig& config, const verbs::Caps& caps) {
  return config.reverse_credits + (caps.srq_reserve ? kExtraReceives + 1 : 0);
}

verbs::Error too_many(const ServerConfig& config, std::size_t needed, std::size_t most, std::size_t connections) {
  return {EINVAL, std::to_string(config.max_connections) + " connections need " + std::to_string(needed) +
                      " shared Receives, and the device has " + std::to_string(most) + ": allow at most " +
                      std::to_string(connections) + " connections"};
}

}  // namespace

bool shares_receives(const ServerConfig& config, const verbs::Caps& caps) {
  return caps.max_srq != 0 && config.max_shared_receives != 0;
}

verbs::Result<ReceivePlan> ReceivePlan::make(const ServerConfig& config, const verbs::Caps& caps) {
  const std::size_t len = config.inline_threshold;
  // The most Receives that one connection takes in a turn (R1-4.3.1-09).
  const std::size_t reserve = caps.srq_reserve ? config.credits + kExtraReceives + config.reverse_credits : 0;
  const std::size_t slack = std::max(std::clamp(kSlackOctets / len, kMinSlack, kMaxSlack), reserve);
  const std::size_t most = std::min(caps.max_srq_wr, caps.max_cqe);
  const std::size_t num = config.max_connections;
  const std::size_t beside = besides(config, caps);
  const std::size_t least = std::min<std::size_t>(least_credits(config), config.credits);
  const std::size_t left = most - std::min(most, slack);
  if (num > left / (least + beside)) {
    return too_many(config, num * (least + beside) + slack, most, left / (least + beside));
  }
  const std::size_t wanted = wanted_credits(config);
  const std::size_t half = left / 2 / num;
  const std::size_t idle = std::clamp(half - std::min(half, beside), std::min(least, wanted), wanted);
  const std::size_t first_shares = num * (idle + beside);
  const std::size_t grown = std::min(config.max_shared_receives / len, left - std::min(left, first_shares));

  ReceivePlan plan;
  plan.idle_credits = static_cast<std::uint32_t>(idle);
  plan.pool = {.receive_len = len,
               .max_grown = static_cast<std::uint32_t>(grown),
               .shares = {.max_receives = static_cast<std::uint32_t>(first_shares + grown + slack),
                          .slack = static_cast<std::uint32_t>(slack)},
               .reserve = static_cast<std::uint32_t>(reserve)};
  if (caps.srq_reserve) {
    plan.pool.shares.max_posted = static_cast<std::uint32_t>(std::max<std::size_t>(kPostedOctets / len, 1));
  }
  return plan;
}

}  // namespace weft::rpcrdma
