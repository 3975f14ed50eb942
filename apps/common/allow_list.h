#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::apps {

// AllowList tells by a peer's address whether the peer may connect (--allow). An IPv4 address mapped into IPv6
// (::ffff:A.B.C.D) counts as the IPv4 address, in rules and in peers. IPv4 rules match only IPv4 peers, IPv6 rules only
// other peers. AllowList is a value for any thread.
class AllowList {
 public:
  // parse takes rules ADDRESS[/PREFIX] apart; PREFIX is in bits. Without PREFIX the rule is one address. Errors: an
  // address that is not numeric, a prefix out of range, and an address with bits beyond its prefix, which is probably a
  // mistake.
  static absl::StatusOr<AllowList> parse(std::span<const std::string> rules);

  // Whether there are no rules. Then every peer is admitted.
  bool empty() const { return rules_.empty(); }
  bool admits(const sockaddr_storage& peer) const;

 private:
  struct Rule {
    bool is_v4 = false;
    std::array<std::uint8_t, 16> address{};  // IPv4: the first four
    unsigned prefix = 0;                     // bits
  };
  static absl::StatusOr<Rule> parse_rule(std::string_view text);

  std::vector<Rule> rules_;
};

// allow_fault checks one rule, for CLI::Option::check. It returns the fault in words, or an empty string.
std::string allow_fault(const std::string& rule);

// filter_of makes the list a filter for listeners, for any thread. The log names the peers that it refuses, within a
// budget. An empty list gives no filter.
std::function<bool(const sockaddr_storage& peer)> filter_of(AllowList list);

// counting makes a filter count the peers that it refuses. No filter stays no filter. A device closes the connections
// of these peers before a server hears of them, so the server cannot count them.
using RefusedPeers = std::atomic<std::uint64_t>;
std::function<bool(const sockaddr_storage& peer)> counting(std::function<bool(const sockaddr_storage& peer)> admits,
                                                           std::shared_ptr<RefusedPeers> refused);

// is_loopback tells whether only this host reaches a listener at this address.
bool is_loopback(const sockaddr_storage& addr);

}  // namespace weft::apps
