#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft::apps {

// HostPort holds the parts of ADDR:PORT, NAME:PORT or [V6ADDR]:PORT; host has no brackets.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

// parse_host_port takes text apart. Without ":PORT" it uses default_port; with a negative default_port the port is
// required. An empty host is an error.
absl::StatusOr<HostPort> parse_host_port(std::string_view text, int default_port = -1);
// address_fault returns the fault of an address text, for CLI::Option::check. It returns an empty text if there is
// none.
std::string address_fault(std::string_view text, int default_port = -1);

// resolve gives the first address of a host, which is numeric or a name. It uses verbs::getaddrinfo and may block on
// DNS.
absl::StatusOr<sockaddr_storage> resolve(const HostPort& where);
// resolve_address does parse_host_port and resolve.
absl::StatusOr<sockaddr_storage> resolve_address(std::string_view text, int default_port = -1);

}  // namespace weft::apps
