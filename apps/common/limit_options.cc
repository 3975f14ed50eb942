#include "apps/common/limit_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

namespace weft::apps {
namespace {

constexpr std::uint64_t kMostConnections = 65536;
constexpr std::uint64_t kMostMib = std::uint64_t{1} << 20;

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

void add_limit_options(CLI::App& command, LimitOptions& options, const LeastBuffered& least) {
  const CLI::Range connections(std::uint64_t{1}, kMostConnections);
  add_limit(command, "--max-connections", options.max_connections, 1, connections, "N",
            "connections of all clients (default 1024, or fewer if the limit of open files is low)");
  add_limit(command, "--max-connections-per-address", options.max_connections_per_address, 1, connections, "N",
            "connections of one IPv4 address or IPv6 /64 (default: no limit while no other address needs places)");
  add_limit(command, "--max-buffered", options.max_buffered, std::size_t{1} << 20, CLI::Range(least.mib, kMostMib),
            "MIB", "memory for large requests and replies of all clients, in MiB; further requests wait (default 256)");
  add_limit(command, "--max-buffered-per-address", options.max_buffered_per_address, std::size_t{1} << 20,
            CLI::Range(least.mib_per_address, kMostMib), "MIB",
            "the part of this memory for one IPv4 address or IPv6 /64, in MiB (default a quarter)");
}

}  // namespace weft::apps
