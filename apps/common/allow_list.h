#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::apps {

// AllowList tells by a peer's address whether it may connect (--allow). An IPv4 address mapped into IPv6
// (::ffff:A.B.C.D) is that IPv4 address, in a rule as in a peer: IPv4 rules match IPv4 peers alone, IPv6 rules the
// others. A value; any thread.
class AllowList {
 public:
  // parse takes rules ADDRESS[/PREFIX] apart, PREFIX in bits; without it the rule is one address. Errors: no address in
  // numbers, a prefix out of range, and an address with bits beyond its prefix, which is likelier a mistake than a
  // wish.
  static absl::StatusOr<AllowList> parse(std::span<const std::string> rules);

  // Whether there are no rules; then everybody is admitted.
  bool empty() const { return rules_.empty(); }
  bool admits(const sockaddr_storage& peer) const;

 private:
  struct Rule {
    bool is_v4 = false;
    std::array<std::uint8_t, 16> address{};  // of IPv4 the first four
    unsigned prefix = 0;                     // bits
  };
  static absl::StatusOr<Rule> parse_rule(std::string_view text);

  std::vector<Rule> rules_;
};

// allow_fault checks one rule, for CLI::Option::check. It returns the fault in words, or an empty string.
std::string allow_fault(const std::string& rule);

// filter_of: the list as the filter that listeners take; none for an empty list.
std::function<bool(const sockaddr_storage& peer)> filter_of(AllowList list);

// is_loopback: whether only this host reaches a listener at that address.
bool is_loopback(const sockaddr_storage& addr);

}  // namespace weft::apps
