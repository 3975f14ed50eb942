#pragma once

#include "apps/common/global_options.h"

namespace weft::apps {

// register_ping_command adds `weft ping`: rping's protocol, either side.
void register_ping_command(CLI::App& root, CommandContext& context);

}  // namespace weft::apps
