#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "apps/metrics/metrics_endpoint.h"

namespace CLI {
class App;
}

namespace weft::metrics {

// The port of --metrics where none is given.
inline constexpr std::uint16_t kMetricsPort = 9450;

// add_metrics_option puts --metrics on a command. `where` outlives the parse; empty: no metrics.
void add_metrics_option(CLI::App& command, std::string& where);

// open_endpoint starts the endpoint of --metrics, or returns null if `where` is empty. It warns if other hosts can
// reach it. program: "serve" or "gateway".
absl::StatusOr<std::unique_ptr<MetricsEndpoint>> open_endpoint(const std::string& where, const std::string& program);

// num_descriptors: of the endpoint, its clients and the one that is being accepted; 0 if `where` is empty.
std::size_t num_descriptors(const std::string& where);

// ready_text is the part of the ready line: " metrics=ADDR:PORT", or nothing.
std::string ready_text(const MetricsEndpoint* endpoint);

}  // namespace weft::metrics
