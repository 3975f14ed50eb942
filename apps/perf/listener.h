#pragma once

#include "apps/common/global_options.h"
#include "apps/perf/options.h"

namespace weft::apps::perf {

// run_listener serves every op until a signal comes, and returns the exit status.
int run_listener(const GlobalOptions& global, const PerfOptions& options);

}  // namespace weft::apps::perf
