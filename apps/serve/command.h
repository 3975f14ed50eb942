#pragma once

#include "apps/common/global_options.h"

namespace weft::apps {

// register_serve_command adds `weft serve`: an NFSv3 server for one directory.
void register_serve_command(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
