#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "rpcrdma/channel.h"
#include "rpcrdma/v1/private_data.h"
#include "verbs-shim/api/cm.h"
#include "verbs-shim/api/verbs.h"

// What both ends of a connection do when they set it up.
namespace weft::rpcrdma {

// Thresholds of one connection, in octets: each the smaller of what one side sends and the other receives (RFC 8166
// section 3.3.2, RFC 8797 section 4.2).
struct Thresholds {
  std::size_t send = v1::kDefaultInline;
  std::size_t receive = v1::kDefaultInline;
};

inline Thresholds settle_thresholds(std::size_t own_inline, ConstBytes peer_private_data) {
  const v1::PrivateData peer = v1::parse_private_data(peer_private_data);
  return {std::min(own_inline, peer.receive_size), std::min(own_inline, peer.send_size)};
}

// The private data for connect and accept; nothing where the device carries too little of it (R1-4.3.2-14).
// remote_invalidate: R.
std::vector<std::uint8_t> own_private_data(const verbs::Caps& caps, std::size_t inline_threshold,
                                           bool remote_invalidate = false);

// Whether a requester on such a device can let its peer invalidate all that it advertises: regions never, so it takes
// windows.
inline bool can_be_invalidated(const verbs::Caps& caps) {
  return caps.mem_windows_type2 && caps.remote_invalidation && caps.max_private_data >= v1::kPrivateDataLen;
}
// Whether a responder can send with invalidation, and say so.
inline bool can_invalidate(const verbs::Caps& caps) {
  return caps.remote_invalidation && caps.max_private_data >= v1::kPrivateDataLen;
}

// "address:port", with brackets around IPv6.
std::string address_str(const sockaddr_storage& addr);
// The address alone: who a client is, whatever port it comes from.
std::string host_str(const sockaddr_storage& addr);

inline constexpr std::uint32_t kMaxCredits = 1024;

// What bounds the thresholds and the credits that an end is given. other_receives: those on top of the credits.
verbs::Status check_sizes(const verbs::Caps& caps, std::size_t inline_threshold, std::uint32_t credits,
                          std::uint32_t other_receives);

// Takes all events of a completion channel. Its queues are to be drained after that, each of them: an event that is
// taken later may be one of a queue that was armed meanwhile.
inline void take_events(verbs::CompChannel& events) {
  while (events.get_event() != nullptr) {
  }
}

// Arms a queue again and hands `handle` every completion there is. Returns how many, or -1 after an overflow.
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
