#include "rpcrdma/server_limits.h"

#include <algorithm>
#include <cerrno>

#include "rpcrdma/connection_setup.h"
#include "rpcrdma/endpoint.h"
#include "rpcrdma/profiles.h"
#include "rpcrdma/receive_plan.h"
#include "rpcrdma/reverse.h"

namespace weft::rpcrdma {

namespace {

// Of each chunk of a Call; a Read list has two chunks (RFC 8267 section 6.4.2).
constexpr std::size_t kMustTakeSegments = 16;

// Octets that one Call may hold: its message, its items, results and a Reply.
std::size_t largest_call(const ServerConfig& config) {
  return config.max_call + 3 * config.max_item;
}

}  // namespace

std::size_t max_connections_per_group(const ServerConfig& config) {
  return config.max_connections_per_client != 0 ? config.max_connections_per_client : config.max_connections;
}

std::size_t max_waiting(const ServerConfig& config) {
  return std::min(config.max_waiting, config.max_connections / 2);
}

std::size_t max_buffered_per_group(const ServerConfig& config) {
  if (config.max_buffered_per_client != 0) return config.max_buffered_per_client;
  return std::max(config.max_buffered / 4, largest_call(config));
}

bool frames_messages(const ServerConfig& config) {
  const auto frames = [](Protocol protocol) { return profile_of(protocol).framing != nullptr; };
  return std::ranges::any_of(config.protocols, frames);
}

Budget::Bounds call_memory(const ServerConfig& config) {
  return {.all = config.max_buffered,
          .address = max_buffered_per_group(config),
          .connection = config.max_buffered_per_connection,
          .guaranteed = std::max(config.min_buffered_per_connection, config.inline_threshold),
          .finishing = frames_messages(config) ? largest_call(config) : 0};
}

std::size_t max_call_memory(const ServerConfig& config) {
  const Budget::Bounds bounds = call_memory(config);
  return bounds.all + bounds.finishing + config.max_connections * bounds.guaranteed;
}

verbs::Status check(const ServerConfig& config, const verbs::Caps& caps) {
  if (config.protocols.empty()) return verbs::Error{EINVAL, "protocols must name at least one"};
  const std::uint32_t other_receives = kExtraReceives + config.reverse_credits;
  auto sizes = check_sizes(caps, config.inline_threshold, config.credits, other_receives);
  if (!sizes.ok()) return sizes;
  if (config.reverse_credits > kMaxReverseCredits) {
    return verbs::Error{EINVAL, "reverse credits must be at most 16"};
  }
  if (config.max_connections == 0) return verbs::Error{EINVAL, "max_connections must be at least 1"};
  if (config.min_credits > config.credits) return verbs::Error{EINVAL, "min_credits must not exceed credits"};
  // U1-6.4.2-05
  if (config.max_segments < 2 * kMustTakeSegments || config.max_read_chunks == 0 || config.max_write_chunks == 0 ||
      config.max_items == 0) {
    return verbs::Error{EINVAL, "a server must take 32 segments a list and one chunk of each kind"};
  }
  if (config.max_buffered_per_client != 0 && config.max_buffered_per_client < largest_call(config)) {
    return verbs::Error{EINVAL, "max_buffered_per_client must hold one Call of max_call and three times max_item"};
  }
  if (config.max_item == 0 || config.max_call == 0 || config.max_item > config.max_buffered ||
      largest_call(config) > config.max_buffered) {
    return verbs::Error{EINVAL, "max_buffered must hold one Call of max_call and three times max_item"};
  }
  if (shares_receives(config, caps)) {
    if (const auto plan = ReceivePlan::make(config, caps); !plan.ok()) return plan.error();
  }
  return {};
}

ServerConfig with_default_threshold(ServerConfig config) {
  for (const Protocol protocol : config.protocols) {
    config.inline_threshold = std::max(config.inline_threshold, profile_of(protocol).default_threshold);
  }
  return config;
}

}  // namespace weft::rpcrdma
