#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "apps/common/global_options.h"
#include "apps/ping/protocol.h"

namespace weft::apps::ping {

struct PingOptions {
  std::string listen;               // ADDR:PORT, or empty
  std::string target;               // ADDR:PORT, or empty
  std::size_t size = kDefaultSize;  // octets
  std::uint64_t count = 0;          // 0: until a signal; for the listener: connections to serve
  bool verify = false;
  bool json = false;
  std::chrono::milliseconds timeout{0};  // 0: kPatience, kListenerPatience
};

// How long the other side may be silent.
inline constexpr std::chrono::seconds kPatience{10};
inline constexpr std::chrono::seconds kListenerPatience{30};
inline std::chrono::milliseconds patience(const PingOptions& options) {
  if (options.timeout.count() > 0) return options.timeout;
  return options.listen.empty() ? kPatience : kListenerPatience;
}

// Both return the exit status. Errors are on stderr by then.
int run_client(const GlobalOptions& global, const PingOptions& options);
int run_server(const GlobalOptions& global, const PingOptions& options);

}  // namespace weft::apps::ping
