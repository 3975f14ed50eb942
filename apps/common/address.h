#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft::apps {

// HostPort is ADDR:PORT, NAME:PORT or [V6ADDR]:PORT taken apart; host without brackets.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// parse_host_port takes text apart; without ":PORT" default_port counts, and where that is negative the port is
// demanded. An empty host is an error.
absl::StatusOr<HostPort> parse_host_port(std::string_view text, int default_port = -1);
// address_fault says what is wrong with such a text, for CLI::Option::check; empty where nothing is.
std::string address_fault(std::string_view text, int default_port = -1);

// resolve gives the first address of a host (numeric or a name, verbs::getaddrinfo; it may block on DNS).
absl::StatusOr<sockaddr_storage> resolve(const HostPort& where);
// The two above in one.
absl::StatusOr<sockaddr_storage> resolve_address(std::string_view text, int default_port = -1);

// format_address writes an address as parse_host_port reads it.
std::string format_address(const sockaddr_storage& addr);
std::uint16_t port_of(const sockaddr_storage& addr);
void set_port(sockaddr_storage& addr, std::uint16_t port);
// Octets of the address proper, as bind(2) and connect(2) want them.
socklen_t address_len(const sockaddr_storage& addr);

}  // namespace weft::apps
