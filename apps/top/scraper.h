#pragma once

#include <sys/socket.h>

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "apps/common/signals.h"
#include "apps/metrics/openmetrics_parser.h"

namespace weft::apps::top {

// TimedScrape is the answer of a server and the time when it came.
struct TimedScrape {
  metrics::Scrape scrape;
  std::chrono::steady_clock::time_point at{};
};

// fetch gets the metrics of a `weft serve` or `weft gateway`. The answer has a bound of 8 MiB, the whole exchange a
// bound of `timeout`. A stop signal ends it with kCancelled.
absl::StatusOr<TimedScrape> fetch(const sockaddr_storage& where, std::chrono::milliseconds timeout,
                                  const StopSignals& stop);

}  // namespace weft::apps::top
