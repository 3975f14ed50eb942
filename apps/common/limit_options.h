#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace CLI {
class App;
}

namespace weft::apps {

// LimitOptions are the options of programs that serve: what clients may hold of them, one address (an IPv4 address, or
// a /64 of IPv6) and all together. Where one is not given, the program's default counts.
struct LimitOptions {
  std::optional<std::size_t> max_connections;
  std::optional<std::size_t> max_connections_per_address;
  std::optional<std::size_t> max_buffered;              // bytes
  std::optional<std::size_t> max_buffered_per_address;  // bytes

  // connections_or gives the bound of connections: the option, or `preferred` as far as half of the limit of open
  // files allows, at least 16.
  std::size_t connections_or(std::size_t preferred, std::uint64_t file_limit) const;
  // The bound for one address where all may have `all`: the option, at most `all`, or three quarters.
  std::size_t connections_per_address(std::size_t all) const;
};

// add_limit_options puts --max-connections, --max-connections-per-address, --max-buffered and
// --max-buffered-per-address on a command. `options` outlives the parse.
void add_limit_options(CLI::App& command, LimitOptions& options);

}  // namespace weft::apps
