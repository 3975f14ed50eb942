#include "apps/metrics/metrics_option.h"

#include <CLI/CLI.hpp>

#include "apps/common/address.h"
#include "apps/common/allow_list.h"
#include "apps/common/command.h"
#include "base/address.h"
#include "fmt/format.h"

namespace weft::metrics {

void add_metrics_option(CLI::App& command, std::string& where) {
  command
      .add_option("--metrics", where,
                  "the address for HTTP requests for /metrics (OpenMetrics), for weft top and Prometheus; port 0 picks "
                  "one; without it there are no metrics")
      ->check([](const std::string& text) { return apps::address_fault(text, kMetricsPort); })
      ->type_name("ADDR:PORT");
}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> open_endpoint(const std::string& where, const std::string& program) {
  if (where.empty()) return nullptr;
  EndpointConfig config;
  config.program = program;
  absl::StatusOr<sockaddr_storage> listen = apps::resolve_address(where, kMetricsPort);
  if (!listen.ok()) return listen.status();
  config.listen = *listen;
  if (!apps::is_loopback(*listen)) {
    apps::warn(
        fmt::format("--metrics {}: every host that reaches this address can read the metrics, with the addresses "
                    "of clients",
                    address_str(*listen)));
  }
  return MetricsEndpoint::start(config);
}

std::size_t num_descriptors(const std::string& where) {
  constexpr std::size_t kOwn = 5;  // its listener, its event loop's three, and the one that asks for a snapshot
  return where.empty() ? 0 : EndpointConfig{}.max_connections + 1 + kOwn;
}

std::string ready_text(const MetricsEndpoint* endpoint) {
  return endpoint == nullptr ? "" : " metrics=" + address_str(endpoint->local_addr());
}

}  // namespace weft::metrics
