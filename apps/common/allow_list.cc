#include "apps/common/allow_list.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "base/address.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "verbs-shim/api/log_budget.h"

namespace weft::apps {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr unsigned kMappedBits = 8 * kMapped.size();

// Address is an IP address without its port. An IPv4 address that is mapped into IPv6 counts as IPv4.
struct Address {
  bool is_v4 = false;
  std::array<std::uint8_t, 16> octets{};
  bool was_mapped = false;
};

Address of_v6(const in6_addr& from) {
  Address out;
  std::memcpy(out.octets.data(), &from, sizeof from);
  if (!std::equal(kMapped.begin(), kMapped.end(), out.octets.begin())) return out;
  std::array<std::uint8_t, 16> v4{};
  std::copy(out.octets.begin() + kMapped.size(), out.octets.end(), v4.begin());
  return {.is_v4 = true, .octets = v4, .was_mapped = true};
}

Address of_v4(const in_addr& from) {
  Address out{.is_v4 = true};
  std::memcpy(out.octets.data(), &from, sizeof from);
  return out;
}

std::optional<Address> of_peer(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &peer, sizeof in);
    return of_v4(in.sin_addr);
  }
  if (peer.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 in{};
  std::memcpy(&in, &peer, sizeof in);
  return of_v6(in.sin6_addr);
}

std::optional<Address> of_text(const std::string& text) {
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return of_v4(v4);
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) return of_v6(v6);
  return std::nullopt;
}

// Whether the first `bits` bits are equal.
bool match(const std::array<std::uint8_t, 16>& a, const std::array<std::uint8_t, 16>& b, unsigned bits) {
  const std::size_t whole = bits / 8;
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin())) return false;
  return bits % 8 == 0 || ((a[whole] ^ b[whole]) >> (8 - bits % 8)) == 0;
}

bool has_bits_beyond(const std::array<std::uint8_t, 16>& address, unsigned bits) {
  for (std::size_t i = bits / 8; i < address.size(); ++i) {
    const unsigned kept = i == bits / 8 ? bits % 8 : 0;
    if ((address[i] & (0xffu >> kept)) != 0) return true;
  }
  return false;
}

absl::Status bad_rule(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("'{}' is not ADDRESS[/PREFIX]: {}", text, why));
}

}  // namespace

absl::StatusOr<AllowList::Rule> AllowList::parse_rule(std::string_view text) {
  const std::size_t slash = text.find('/');
  // With a NUL inside, the C library would see only the beginning.
  if (text.find('\0') != text.npos) return bad_rule("", "it holds a NUL");
  std::optional<Address> address = of_text(std::string(text.substr(0, slash)));
  if (!address) return bad_rule(text, "an IPv4 or IPv6 address in numbers is wanted, IPv6 without brackets");
  const bool written_v6 = !address->is_v4 || address->was_mapped;
  const unsigned most = written_v6 ? 128 : 32;
  unsigned prefix = most;
  if (slash != text.npos) {
    const std::string_view digits = text.substr(slash + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (error != std::errc() || end != digits.data() + digits.size() || prefix > most) {
      return bad_rule(text, fmt::format("the prefix must be a number from 0 to {}", most));
    }
  }
  if (address->was_mapped) {
    if (prefix < kMappedBits) return bad_rule(text, "write IPv4 addresses as IPv4");
    prefix -= kMappedBits;
  }
  if (has_bits_beyond(address->octets, prefix)) {
    return bad_rule(text, "the address has bits beyond its prefix; put zeros there, or leave the prefix out");
  }
  return Rule{.is_v4 = address->is_v4, .address = address->octets, .prefix = prefix};
}

absl::StatusOr<AllowList> AllowList::parse(std::span<const std::string> rules) {
  AllowList out;
  for (const std::string& text : rules) {
    absl::StatusOr<Rule> rule = parse_rule(text);
    if (!rule.ok()) return rule.status();
    out.rules_.push_back(*rule);
  }
  return out;
}

bool AllowList::admits(const sockaddr_storage& peer) const {
  if (rules_.empty()) return true;
  const std::optional<Address> address = of_peer(peer);
  if (!address) return false;
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
    return rule.is_v4 == address->is_v4 && match(rule.address, address->octets, rule.prefix);
  });
}

std::string allow_fault(const std::string& rule) {
  return std::string(AllowList::parse(std::span(&rule, 1)).status().message());
}

std::function<bool(const sockaddr_storage& peer)> filter_of(AllowList list) {
  if (list.empty()) return {};
  // All threads that use the filter share one budget.
  struct Log {
    bool may_write() {
      const std::scoped_lock lock(mutex);
      return budget.take(std::chrono::steady_clock::now());
    }
    std::mutex mutex;
    verbs::LogBudget budget;
  };
  return [list = std::move(list), log = std::make_shared<Log>()](const sockaddr_storage& peer) {
    if (list.admits(peer)) return true;
    if (log->may_write()) spdlog::warn("{} refused: --allow does not name it", address_str(peer));
    return false;
  };
}

std::function<bool(const sockaddr_storage& peer)> counting(std::function<bool(const sockaddr_storage& peer)> admits,
                                                           std::shared_ptr<RefusedPeers> refused) {
  if (!admits) return {};
  return [admits = std::move(admits), refused = std::move(refused)](const sockaddr_storage& peer) {
    const bool is_admitted = admits(peer);
    if (!is_admitted) ++*refused;
    return is_admitted;
  };
}

bool is_loopback(const sockaddr_storage& addr) {
  const std::optional<Address> address = of_peer(addr);
  if (!address) return false;
  if (address->is_v4) return address->octets[0] == 127;
  return std::memcmp(address->octets.data(), &in6addr_loopback, sizeof in6addr_loopback) == 0;
}

}  // namespace weft::apps
