#pragma once

#include "apps/common/global_options.h"

namespace weft::apps {

// register_top_command adds `weft top`: the metrics of a running serve or gateway, live.
void register_top_command(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
