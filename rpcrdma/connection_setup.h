#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "rpcrdma/endpoint.h"
#include "rpcrdma/private_data.h"
#include "rpcrdma/profile.h"
#include "rpcrdma/terms.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

// Steps of connection set-up that both ends take.
namespace weft::rpcrdma {

// settle_thresholds: the thresholds before any message. A peer that announces nothing, or less, takes messages of
// Profile::default_threshold.
inline Thresholds settle_thresholds(std::size_t own_inline, ConstBytes peer_private_data, const Profile& profile) {
  const std::size_t least = profile.default_threshold;
  if (profile.thresholds_by_properties) return {std::min(own_inline, least), std::min(own_inline, least)};
  const PrivateData peer = parse_private_data(peer_private_data);
  return {std::min(own_inline, std::max(peer.receive_size, least)),
          std::min(own_inline, std::max(peer.send_size, least))};
}

// The private data for connect and accept; empty if the device carries too few octets of it (R1-4.3.2-14).
// remote_invalidate: R.
std::vector<std::uint8_t> own_private_data(const verbs::Caps& caps, std::size_t inline_threshold,
                                           bool remote_invalidate = false);

// Whether a requester on a device with these Caps can let its peer invalidate all memory that it advertises. A peer can
// invalidate windows, but not regions, so the requester uses windows.
inline bool can_be_invalidated(const verbs::Caps& caps) {
  return caps.mem_windows_type2 && caps.remote_invalidation && caps.max_private_data >= kPrivateDataLen;
}
// Whether a responder can send with invalidation, and announce it.
inline bool can_invalidate(const verbs::Caps& caps) {
  return caps.remote_invalidation && caps.max_private_data >= kPrivateDataLen;
}

inline constexpr std::uint32_t kMaxCredits = 1024;

// Checks the configured threshold and credits of one end. other_receives: Receives beyond the credits.
verbs::Status check_sizes(const verbs::Caps& caps, std::size_t inline_threshold, std::uint32_t credits,
                          std::uint32_t other_receives);

// Takes all events of a completion channel. The caller must drain each of its queues after that: an event that is taken
// later may belong to a queue that was armed meanwhile.
inline void take_events(verbs::CompChannel& events) {
  while (events.get_event() != nullptr) {
  }
}

// Arms a queue again and passes every completion in it to `handle`. Returns the number of completions, or -1 after an
// overflow.
template <typename Handle>
int drain_completions(verbs::Cq& cq, Handle handle) {
  if (!cq.req_notify(false).ok()) return -1;
  int total = 0;
  verbs::Wc wcs[32];
  for (;;) {
    const int num = cq.poll(wcs);
    if (num < 0) return -1;
    if (num == 0) return total;
    total += num;
    for (int i = 0; i < num; ++i) handle(wcs[i]);
  }
}

}  // namespace weft::rpcrdma
