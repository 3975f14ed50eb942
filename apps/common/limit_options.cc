#include "apps/common/limit_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

namespace weft::apps {
namespace {

constexpr std::uint64_t kMostConnections = 65536;
constexpr std::uint64_t kMostMib = std::uint64_t{1} << 20;
// The defaults of all programs. A low limit of open files makes fewer connections the default.
constexpr std::size_t kUsualConnections = 1024;
constexpr std::size_t kUsualBuffered = 256 << 20;

// `name` is the limit for all clients. The limit for one address has the same name with an ending.
std::string fault_of(const std::string& name, const std::optional<std::size_t>& one, std::size_t all, std::size_t unit,
                     const char* unit_name) {
  if (one.value_or(0) <= all) return "";
  return fmt::format(
      "{0}-per-address {1} is more than all clients together may have: {2}{3}. Try: at most {2}, or {0} {1}", name,
      *one / unit, all / unit, unit_name);
}

void add_limit(CLI::App& command, const std::string& name, std::optional<std::size_t>& value, std::size_t unit,
               CLI::Range range, const std::string& type, const std::string& text) {
  command
      .add_option_function<std::uint64_t>(
          name, [&value, unit](const std::uint64_t& given) { value = static_cast<std::size_t>(given) * unit; }, text)
      ->check(range)
      ->type_name(type);
}

}  // namespace

std::size_t LimitOptions::connections_per_address(std::size_t all) const {
  return std::min(max_connections_per_address.value_or(all), all);
}

std::string limits_fault(const LimitOptions& options) {
  constexpr std::size_t kMib = std::size_t{1} << 20;
  const std::string fault = fault_of("--max-connections", options.max_connections_per_address,
                                     options.max_connections.value_or(kUsualConnections), 1, " connections");
  if (!fault.empty()) return fault;
  return fault_of("--max-buffered", options.max_buffered_per_address, options.max_buffered.value_or(kUsualBuffered),
                  kMib, " MiB");
}

void add_limit_options(CLI::App& command, LimitOptions& options, const LeastBuffered& least) {
  const CLI::Range connections(std::uint64_t{1}, kMostConnections);
  add_limit(command, "--max-connections", options.max_connections, 1, connections, "N",
            "connections of all clients (default 1024, or fewer if the limit of open files is low)");
  add_limit(command, "--max-connections-per-address", options.max_connections_per_address, 1, connections, "N",
            "connections of one IPv4 address or IPv6 /64, at most --max-connections (default: no limit while no other "
            "address needs places)");
  add_limit(command, "--max-buffered", options.max_buffered, std::size_t{1} << 20, CLI::Range(least.mib, kMostMib),
            "MIB", "memory for large requests and replies of all clients, in MiB; further requests wait (default 256)");
  add_limit(
      command, "--max-buffered-per-address", options.max_buffered_per_address, std::size_t{1} << 20,
      CLI::Range(least.mib_per_address, kMostMib), "MIB",
      "the part of this memory for one IPv4 address or IPv6 /64, in MiB, at most --max-buffered (default a quarter)");
}

}  // namespace weft::apps
