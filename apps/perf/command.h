#pragma once

#include "apps/common/global_options.h"

namespace weft::apps {

// register_perf_command adds `weft perf`: throughput and latency over RDMA, and over plain TCP for comparison.
void register_perf_command(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
