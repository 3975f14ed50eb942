#include "apps/common/spin_budget.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "apps/common/allow_list.h"

namespace weft::apps {
namespace {

bool same_host(const sockaddr_storage& a, const sockaddr* b) {
  if (b == nullptr || a.ss_family != b->sa_family) return false;
  if (a.ss_family == AF_INET) {
    return std::memcmp(&reinterpret_cast<const sockaddr_in&>(a).sin_addr,
                       &reinterpret_cast<const sockaddr_in*>(b)->sin_addr, sizeof(in_addr)) == 0;
  }
  if (a.ss_family != AF_INET6) return false;
  return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace

PeerPlace place_of(const sockaddr_storage& peer) {
  if (is_loopback(peer)) return PeerPlace::kThisMachine;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return PeerPlace::kElsewhere;
  PeerPlace place = PeerPlace::kElsewhere;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (same_host(peer, one->ifa_addr)) place = PeerPlace::kThisMachine;
  }
  freeifaddrs(all);
  return place;
}

unsigned cores_of_this_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // The call fails if the machine has more cores than the set holds. Then there are enough cores.
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

SpinBudget::SpinBudget(PeerPlace peer, unsigned num_cores)
    : full_(peer == PeerPlace::kElsewhere ? kForRemotePeer
            : num_cores > 1               ? kForLocalPeer
                                          : kLeast) {}

bool SpinBudget::may_spin(TimePoint began, TimePoint now) {
  // Time before the wait does not count: the thread did other work then.
  if (last_look_ >= began && now - last_look_ >= kGap) on_lost(now);
  last_look_ = now;
  return now - began < (now < small_until_ ? std::min(kLeast, full_) : full_);
}

void SpinBudget::on_lost(TimePoint now) {
  ++num_lost_;
  const bool soon = num_lost_ > 1 && now - small_until_ < pause_;
  pause_ = soon ? std::min(2 * pause_, kLongestPause) : kFirstPause;
  small_until_ = now + pause_;
}

}  // namespace weft::apps
