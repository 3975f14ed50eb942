#include "apps/common/address.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "apps/common/command.h"
#include "verbs-shim/api/addr_info.h"

namespace weft::apps {
namespace {

absl::Status bad_address(std::string_view text, const char* why) {
  return absl::InvalidArgumentError(fmt::format("'{}' is not an address: {}", text, why));
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

}  // namespace

absl::StatusOr<HostPort> parse_host_port(std::string_view text, int default_port) {
  HostPort result;
  std::string_view rest;
  if (text.starts_with('[')) {
    std::size_t close = text.find(']');
    if (close == std::string_view::npos) return bad_address(text, "the closing ] is missing");
    result.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return bad_address(text, "only :PORT may follow the ]");
  } else {
    std::size_t colon = text.find(':');
    if (colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos) {
      return bad_address(text, "write an IPv6 address in brackets, [ADDR]:PORT");
    }
    result.host = text.substr(0, colon);
    if (colon != std::string_view::npos) rest = text.substr(colon);
  }
  if (result.host.empty()) return bad_address(text, "the host is missing");
  if (rest.empty()) {
    if (default_port < 0) return bad_address(text, "the port is missing, ADDR:PORT is wanted");
    result.port = std::uint16_t(default_port);
    return result;
  }
  std::optional<std::uint16_t> port = parse_port(rest.substr(1));
  if (!port) return bad_address(text, "the port must be a number from 0 to 65535");
  result.port = *port;
  return result;
}

std::string address_fault(std::string_view text, int default_port) {
  return std::string(parse_host_port(text, default_port).status().message());
}

absl::StatusOr<sockaddr_storage> resolve(const HostPort& where) {
  auto found = verbs::getaddrinfo(where.host, std::to_string(where.port), false);
  if (!found.ok()) return to_status(found.error());
  return found->front();
}

absl::StatusOr<sockaddr_storage> resolve_address(std::string_view text, int default_port) {
  absl::StatusOr<HostPort> where = parse_host_port(text, default_port);
  if (!where.ok()) return where.status();
  return resolve(*where);
}

}  // namespace weft::apps
