#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace weft::apps {

// LimitOptions are the options of servers: the limits for clients of one address (an IPv4 address, or a /64 of IPv6)
// and for all clients together. An option that is not given has the program's default.
struct LimitOptions {
  std::optional<std::size_t> max_connections;
  std::optional<std::size_t> max_connections_per_address;
  std::optional<std::size_t> max_buffered;              // bytes
  std::optional<std::size_t> max_buffered_per_address;  // bytes

  // The bound for one address when all together may have `all`: the option, but at most `all`, or else `all`: an
  // address with many connections gives them up when others come.
  std::size_t connections_per_address(std::size_t all) const;
};

// limits_fault names a limit for one address that is above the limit for all clients. Empty: there is none. An option
// that is not given counts with its default; where the limit of open files is low, the default is lower than here.
std::string limits_fault(const LimitOptions& options);

// LeastBuffered: the least that --max-buffered and --max-buffered-per-address take. Less than 16 MiB cannot hold the
// largest request with its reply.
struct LeastBuffered {
  std::uint64_t mib = 16;
  std::uint64_t mib_per_address = 16;
};

// add_limit_options puts --max-connections, --max-connections-per-address, --max-buffered and
// --max-buffered-per-address on a command. `options` outlives the parse.
void add_limit_options(CLI::App& command, LimitOptions& options, const LeastBuffered& least = {});

}  // namespace weft::apps
