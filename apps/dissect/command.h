#pragma once

#include "apps/common/global_options.h"

namespace weft::apps {

// register_dissect_command adds `weft dissect`: it reads a capture and shows the iWARP connections in it.
void register_dissect_command(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
